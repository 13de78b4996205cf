//! What must be seen in the experiments of the Local Acknowledgment paper, on the set-up of S1-30.

mod common;

use airmend_sim::{Outcome, TraceKind};

const TCP: &str = "tcp";
const LACK: &str = "lack";
const FLOW: &str = "lack-flow";
const COPIES: &str = "lack, idle copies";
/// Payload of a packet of 4000 bits.
const PAYLOAD: f64 = 460.0;

/// An experiment, with few runs of each point.
struct Figure(common::Figure);

impl Figure {
    fn new(name: &str, settings: &[(&str, &str)]) -> Self {
        Self(common::Figure::new(&format!("lack/{name}"), settings))
    }

    fn runs(&self, values: &[&str]) -> &[Outcome] {
        self.0.runs(values)
    }

    /// The packets that the destination received in a run, on average.
    fn packets(&self, values: &[&str]) -> f64 {
        let runs = self.runs(values);
        let bytes = runs.iter().map(|run| run.bytes_received as f64).sum::<f64>();
        let packets = bytes / PAYLOAD / runs.len() as f64;
        println!("{values:?}: {packets:.0} packets, {:?}", runs[0].agent_counters);
        packets
    }
}

/// The packets that 200 s of the link carry where each packet needs a CACK of its own: independent
/// bit errors on 4000 bits of a packet, and on 200 bits of a CACK (limits.md D.3).
fn cack_bound(ber: &str) -> f64 {
    let ber = 1.0 / (1e3 * ber[2..].trim_end_matches('k').parse::<f64>().unwrap());
    200.0 * 500.0 * (1.0 - ber).powi(4_000) * (1.0 - ber).powi(200)
}

fn check_shares(figure: &Figure, scheme: &str, least: &[(&str, f64)]) {
    for (ber, least) in least {
        let share = figure.packets(&[scheme, ber]) / cack_bound(ber);
        println!("{scheme} at {ber}: {share:.3} of the bound with CACKs, at least {least}");
        assert!(share >= *least, "{scheme} at {ber}: {share} of the bound");
    }
}

/// S1-40, S1-41: far more than TCP where errors are many. In-order release holds a TCP window of
/// 50 packets back: 90 % at 1/20k and 95 % at 1/40k and 1/100k are not reached.
#[test]
fn figure_7_with_physical_errors() {
    let figure = Figure::new("fig7-physical", &[("runs", "1")]);
    for (ber, times) in [("1/4k", 2.0), ("1/10k", 2.0), ("1/20k", 2.0), ("1/100k", 1.2)] {
        let [tcp, lack] = [TCP, LACK].map(|scheme| figure.packets(&[scheme, ber]));
        assert!(lack > times * tcp, "{ber}: {lack} and {tcp}");
    }
    let least = [
        ("1/4k", 0.55),
        ("1/10k", 0.75),
        ("1/20k", 0.8),
        ("1/40k", 0.86),
        ("1/100k", 0.93),
        ("1/400k", 0.95),
    ];
    check_shares(&figure, LACK, &least);
    for (ber, _) in least {
        let [flow, lack] = [FLOW, LACK].map(|scheme| figure.packets(&[scheme, ber]));
        assert!((0.95..1.05).contains(&(flow / lack)), "one flow, one order: {flow} and {lack}");
    }
}

/// S1-40: with a TCP window of 400 packets little but headers and CACKs is lost. At 1/4k most of a
/// run passes before the sender's window has grown so far.
#[test]
fn figure_7_with_a_window_of_400() {
    let figure = Figure::new("fig7-window-400", &[("runs", "1")]);
    let bers = ["1/10k", "1/20k", "1/40k", "1/100k", "1/400k"];
    check_shares(&figure, LACK, &bers.map(|ber| (ber, 0.95)));
    check_shares(&figure, LACK, &[("1/4k", 0.8)]);
    check_shares(&figure, COPIES, &[("1/4k", 0.95)]);
}

/// S1-41, S1-42: the same as TCP at 1/400k but for the header, more above.
#[test]
fn figure_7_with_calibrated_errors() {
    let figure = Figure::new("fig7-calibrated", &[("runs", "1")]);
    for ber in ["1/4k", "1/10k", "1/20k", "1/40k", "1/100k"] {
        let [tcp, lack] = [TCP, LACK].map(|scheme| figure.packets(&[scheme, ber]));
        assert!(lack > tcp, "{ber}: {lack} and {tcp}");
    }
    let [tcp, lack, flow] = [TCP, LACK, FLOW].map(|scheme| figure.packets(&[scheme, "1/400k"]));
    assert!((0.97..1.03).contains(&(lack / tcp)) && (0.97..1.03).contains(&(flow / tcp)));
}

/// The window that a sender used after its first loss, in packets; the receiver offers 50.
struct Window {
    /// At most for 95 % of the time, and for half of it.
    high: f64,
    median: f64,
    mean: f64,
}

fn window(run: &Outcome) -> Window {
    let points = run.trace.iter().filter(|point| point.kind == TraceKind::Window);
    let points: Vec<(f64, f64)> =
        points.map(|point| (point.seconds, (point.offset as f64 / PAYLOAD).min(50.0))).collect();
    // The first slow start ends with the first loss, if there is one.
    let first = points.windows(2).position(|pair| pair[1].1 < pair[0].1).unwrap_or(0);
    let points = &points[first..];
    let ends = points.iter().skip(1).map(|(at, _)| *at).chain([200.0]);
    let mut spans: Vec<(f64, f64)> =
        points.iter().zip(ends).map(|((at, window), end)| (*window, end - at)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = spans.iter().map(|(_, time)| time).sum();
    let quantile = |share: f64| {
        let mut left = share * total;
        let found = spans.iter().find(|(_, time)| {
            left -= time;
            left <= 0.0
        });
        found.map_or(0.0, |(window, _)| *window)
    };
    let area: f64 = spans.iter().map(|(window, time)| window * time).sum();
    Window { high: quantile(0.95), median: quantile(0.5), mean: area / total }
}

/// S1-43, S1-44, S1-45: Figs 8 to 17.
#[test]
fn windows_with_calibrated_errors() {
    let figure = Figure::new("windows-calibrated", &[]);
    let of = |scheme, ber| window(&figure.runs(&[scheme, ber])[0]);
    for ber in ["1/4k", "1/10k", "1/20k", "1/40k", "1/100k"] {
        for scheme in [TCP, LACK] {
            let Window { high, median, mean } = of(scheme, ber);
            println!("{scheme} at {ber}: 95 % {high:.1}, median {median:.1}, mean {mean:.1}");
        }
    }
    for ber in ["1/20k", "1/40k", "1/100k"] {
        assert!(of(LACK, ber).median >= 50.0, "{ber}");
    }
    let tcp = of(TCP, "1/20k");
    assert!(tcp.high <= 35.0 && (12.0..18.0).contains(&tcp.mean), "{} {}", tcp.high, tcp.mean);
    assert!(of(LACK, "1/10k").high > of(TCP, "1/10k").high);
    // S1-45: LACK is above TCP at any time.
    for ber in ["1/4k", "1/10k", "1/20k", "1/40k"] {
        let received = |scheme, at: f64| {
            let points = figure.runs(&[scheme, ber])[0].trace.iter();
            let points = points.filter(|point| point.kind == TraceKind::Received);
            points.take_while(|point| point.seconds <= at).map(|point| point.offset).max()
        };
        for at in [20.0, 50.0, 100.0, 150.0, 200.0] {
            assert!(received(LACK, at) > received(TCP, at), "{ber} after {at} s");
        }
    }
}

/// Jain's index of fairness over the flows of a run: 1 if all get the same.
fn fairness(run: &Outcome) -> f64 {
    let flows = &run.flow_goodput_bps;
    let sum: f64 = flows.iter().sum();
    sum * sum / (flows.len() as f64 * flows.iter().map(|rate| rate * rate).sum::<f64>())
}

/// S1-01, S1-11, S1-12: many connections share the link; what is lost in WN1 and in WN2 their
/// senders repair, and it crosses the link again.
#[test]
fn connections_share_the_link() {
    // With this queue no packet is lost where the scenario has no loss.
    let queue = ("links.air.queue", "1000");
    let figure = Figure::new("connections", &[("runs", "1"), ("time_limit", "60s"), queue]);
    let [none, wn1, wn2] = ["no loss", "0.1 % in WN1", "0.1 % in WN2"];
    for count in ["1", "5", "20"] {
        for wired in [none, wn1, wn2] {
            let [tcp, lack, flow] =
                [TCP, LACK, FLOW].map(|scheme| figure.packets(&[scheme, count, wired]));
            assert!(lack > 2.0 * tcp && flow > 2.0 * tcp, "{count}, {wired}: {tcp} {lack} {flow}");
        }
        for scheme in [LACK, FLOW] {
            let run = &figure.runs(&[scheme, count, none])[0];
            assert!(fairness(run) > 0.8, "{scheme}, {count}: {}", fairness(run));
        }
    }
    let counted = |wired, counter| {
        let run = &figure.runs(&[LACK, "5", wired])[0];
        run.agent_counters.get(counter).copied().unwrap_or(0)
    };
    for (wired, counter) in [(wn1, "link_lost_before"), (wn2, "link_sender_duplicates")] {
        let [lossy, clean] = [wired, none].map(|wired| counted(wired, counter));
        println!("5 connections, {wired}: {counter} {lossy}, without loss {clean}");
        assert!(lossy > clean, "{counter}: {lossy} and {clean}");
    }
}

/// What a window of the link costs: with 8 packets a link of 20 ms is idle most of the time.
#[test]
fn windows_of_the_link() {
    let figure = Figure::new("link-window", &[("runs", "1"), ("time_limit", "60s")]);
    for ber in ["1/4k", "1/10k", "1/20k", "1/100k"] {
        for scheme in ["lack", "lack-flow", "tulip"] {
            let [narrow, wide, widest] = ["8", "50", "400"]
                .map(|window| figure.packets(&[&format!("{scheme}, {window}"), ber]));
            assert!(2.5 * narrow < widest, "{scheme} at {ber}: {narrow} {widest}");
            assert!(wide < 1.02 * widest, "{scheme} at {ber}: {wide} {widest}");
        }
    }
}

/// S1-30: with a queue of 20 packets LACK has what it has with 100, as TULIP: both have places for
/// what an in-order release brings at once.
#[test]
fn a_short_queue_is_the_same_for_all_links() {
    let [short, long] =
        ["queue-20", "fig7-calibrated"].map(|name| Figure::new(name, &[("runs", "1")]));
    for ber in ["1/4k", "1/20k", "1/100k"] {
        for scheme in [LACK, FLOW, "tulip"] {
            let [short, long] = [&short, &long].map(|figure| figure.packets(&[scheme, ber]));
            assert!(short > 0.98 * long, "{scheme} at {ber}: {short} and {long}");
        }
        let [tcp, lack] = [TCP, LACK].map(|scheme| short.packets(&[scheme, ber]));
        assert!(lack > tcp, "{ber}: {lack} and {tcp}");
    }
}

/// S1-30, S1-43: of the readings of what the paper leaves open only a queue of 20 without places
/// for bursts gives the window of LACK a sawtooth; Tahoe makes TCP's lower.
#[test]
fn a_queue_without_places_for_bursts_gives_a_sawtooth() {
    let figure = Figure::new("windows-tahoe", &[]);
    let of = |scheme, reading| window(&figure.runs(&[scheme, reading])[0]);
    for reading in ["Reno", "Tahoe", "queue of 20", "protected ACKs"] {
        assert!(of(LACK, reading).median >= 50.0, "{reading}: {}", of(LACK, reading).median);
    }
    let sawtooth = of(LACK, "queue of 20, no places for bursts");
    assert!(sawtooth.median < 45.0, "{}", sawtooth.median);
    assert!(of(TCP, "Tahoe").mean < of(TCP, "Reno").mean);
}

/// S1-40: with six connections LACK has the paper's factor of about 2.
#[test]
fn six_connections_have_the_factor_of_the_paper() {
    let figure = Figure::new("connections-calibrated", &[("runs", "1")]);
    let factor = |count| figure.packets(&[LACK, count]) / figure.packets(&[TCP, count]);
    let [one, six] = ["1", "6"].map(factor);
    assert!((1.7..2.3).contains(&six) && one > 5.0, "{one} and {six}");
}

/// S1-03, S1-14: one local ACK for each packet alone, the paper's form, costs a timeout where it is
/// lost; EACKs of what is out of order make no difference but at the highest error rate.
#[test]
fn local_acks_that_tell_of_one_packet_cost_timeouts() {
    let figure = Figure::new("local-acks", &[("runs", "1")]);
    for ber in ["1/4k", "1/10k", "1/40k"] {
        let [own, all] = ["one packet", "32 packets"].map(|how| figure.packets(&[how, ber]));
        assert!(own < 1.02 * all && own > 0.3 * all, "{ber}: {own} and {all}");
        let damaged = figure.packets(&["32 packets, EACK of damaged frames only", ber]);
        assert!((0.9..1.1).contains(&(all / damaged)), "{ber}: {all} and {damaged}");
    }
}
