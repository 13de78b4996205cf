//! Networks of any shape, channels that several stations share, and hosts that move.

use airmend_sim::{Experiment, Outcome, results, run};
use std::sync::atomic::AtomicBool;

fn outcome(text: &str) -> Outcome {
    let experiment = Experiment::parse("test".to_owned(), text.to_owned(), &[]);
    let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
    run(&experiment.points[0].plan, 1, &AtomicBool::new(false)).unwrap()
}

const HEAD: &str = "title = \"test\"\ntime_limit = \"10min\"\n";

/// A link of `between`, with these keys besides.
fn link(name: &str, between: [&str; 2], more: &str) -> String {
    let [first, second] = between;
    format!("[links.{name}]\nbetween = [\"{first}\", \"{second}\"]\n{more}\n")
}

fn flow(name: &str, from: &str, to: &str, bytes: &str) -> String {
    format!("[flows.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"{bytes}\"\n")
}

const WIRED: &str = "rate = \"10mbit\"\ndelay = \"2ms\"";
const AIR: &str = "air = true\nrate = \"2mbit\"\ndelay = \"1ms\"";

#[test]
fn a_chain_of_routers_takes_the_time_of_its_links() {
    let (fast, air) = ("rate = \"1gbit\"\ndelay = \"5ms\"", format!("{AIR}\nqueue = 1000"));
    let routers = "r = { agent = \"plain\" }\ns = { agent = \"plain\" }\n";
    let nodes = format!(
        "[hosts]\nfh = {{ profile = \"linux\" }}\nmh = {{ profile = \"linux\" }}\n[stations]\n\
         {routers}bs = {{ agent = \"snoop\" }}\n"
    );
    let flow = flow("file", "fh", "mh", "1MB");
    let chain = [
        link("a", ["fh", "r"], fast),
        link("b", ["r", "s"], fast),
        link("c", ["s", "bs"], fast),
        link("air", ["bs", "mh"], &air),
    ];
    let direct =
        [link("a", ["fh", "bs"], &fast.replace("5ms", "15ms")), link("air", ["bs", "mh"], &air)];
    let [chain, direct] = [chain.concat(), direct.concat()];
    let nodes_of_direct = nodes.replace(routers, "");
    let long = outcome(&format!("{HEAD}{nodes}{chain}{flow}"));
    let short = outcome(&format!("{HEAD}{nodes_of_direct}{direct}{flow}"));
    assert!(long.completed && short.completed);
    // A packet and its ACK are serialised twice more, within microseconds.
    assert!((long.seconds - short.seconds).abs() < 0.01, "{} {}", long.seconds, short.seconds);
}

#[test]
fn two_servers_behind_a_router_share_one_air() {
    let text = [
        HEAD,
        "[hosts]\na = { profile = \"linux\" }\nb = { profile = \"linux\" }\n\
         mh = { profile = \"linux\", count = 2 }\n[stations]\nr = { agent = \"plain\" }\n\
         bs = { agent = \"snoop\" }\n",
        &link("a", ["a", "r"], WIRED),
        &link("b", ["b", "r"], WIRED),
        &link("trunk", ["r", "bs"], WIRED),
        &link("air", ["bs", "mh"], &format!("{AIR}\nshared = true\nerrors = {{ loss = \"2%\" }}")),
        &flow("down", "a", "mh", "300kB"),
        &flow("up", "mh", "b", "200kB"),
        &flow("across", "a", "b", "100kB"),
    ]
    .concat();
    let outcome = outcome(&text);
    assert!(outcome.completed);
    assert_eq!(outcome.bytes_received, 2 * 300_000 + 2 * 200_000 + 100_000);
    // What a router passes from one wired link to another is not for the agents.
    assert_eq!(outcome.flow_goodput_bps.len(), 5);
    let [.., across] = outcome.flow_goodput_bps[..] else { panic!("no flows") };
    assert!(across > 2e6, "it does not cross the air: {across}");
}

/// A run ends with its last finite flow: an endless one that would begin later has no goodput, and
/// does not seem to have had one of 0.
#[test]
fn a_flow_that_never_began_has_no_goodput() {
    let text = [
        HEAD,
        "[hosts]\na = { profile = \"linux\" }\nmh = { profile = \"linux\" }\n\
         [stations]\nbs = { agent = \"plain\" }\n",
        &link("wired", ["a", "bs"], WIRED),
        &link("air", ["bs", "mh"], AIR),
        &flow("down", "a", "mh", "200kB"),
        "[flows.later]\nfrom = \"a\"\nto = \"mh\"\nstart = \"50s\"\n",
    ]
    .concat();
    let experiment = Experiment::parse("graph".to_owned(), text.clone(), &[]).unwrap();
    let lines = results::lines("graph", &experiment, &[outcome(&text)]);
    let [run, summary] = &lines[..] else { panic!("{lines:?}") };
    let goodputs = run["flow_goodput_bps"].as_array().unwrap();
    assert!(goodputs[0].as_f64().unwrap() > 1e6 && goodputs[1].is_null(), "{goodputs:?}");
    assert_eq!(summary["flows_not_begun_mean"].as_f64(), Some(1.0));
}

#[test]
fn repairs_wait_behind_data_where_there_is_no_fast_band() {
    let text = |station: &str| {
        [
            HEAD,
            "[hosts]\na = { profile = \"linux\" }\nmh = { profile = \"linux\" }\n",
            &format!("[stations]\nbs = {{ agent = \"snoop\"{station} }}\n"),
            &link("wired", ["a", "bs"], WIRED),
            &link("air", ["bs", "mh"], &format!("{AIR}\nerrors = {{ loss = \"5%\" }}")),
            &flow("down", "a", "mh", "2MB"),
        ]
        .concat()
    };
    let [first, last] = ["", ", fast_band = false"].map(|station| outcome(&text(station)));
    assert!(first.completed && last.completed);
    // The sender sees what is masked too long, and fills the queue no more.
    let [first, last] = [first, last].map(|run| run.sender.retransmits);
    assert!(last > first, "{last} retransmissions of the sender, {first} with a fast band");
}

/// A station with an air link for each mobile, and packets from one mobile to another, which its
/// agent does not see.
#[test]
fn a_station_has_as_many_links_as_it_needs() {
    let text = [
        HEAD,
        "[hosts]\nfh = { profile = \"linux\" }\na = { profile = \"linux\" }\n\
         b = { profile = \"linux\" }\n[stations]\nbs = { agent = \"snoop\" }\n",
        &link("wired", ["fh", "bs"], WIRED),
        &link("a", ["bs", "a"], AIR),
        &link("b", ["bs", "b"], &format!("{AIR}\nerrors = {{ loss = \"10%\" }}")),
        &flow("down", "fh", "a", "200kB"),
        &flow("far", "fh", "b", "200kB"),
        &flow("between", "a", "b", "50kB"),
    ]
    .concat();
    let outcome = outcome(&text);
    assert!(outcome.completed, "{:?}", outcome.flow_goodput_bps);
    let [near, far, _] = outcome.flow_goodput_bps[..] else { panic!("three flows") };
    assert!(near > far, "{near} {far}");
    assert!(outcome.measure("local_retransmits") > 0.0);
}

const MAC: &str = "mac = { preamble = \"192us\", header_bytes = 34, rts_bytes = 20, \
                   turnaround = \"100us\", backoff_rts = 10 }";

#[test]
fn mobiles_of_one_half_duplex_channel_have_errors_of_their_own() {
    let cell = |losses: [&str; 3]| {
        let [near, middle, far] = losses.map(|loss| format!("errors = {{ loss = \"{loss}\" }}"));
        let further = |errors: &str| format!("channel = \"near\"\n{errors}");
        let text = [
            HEAD,
            "[hosts]\nfh = { profile = \"linux\" }\nnear = { profile = \"linux\" }\n\
             middle = { profile = \"linux\" }\nfar = { profile = \"linux\" }\n[stations]\n\
             bs = { agent = \"plain\" }\n",
            &link("wired", ["fh", "bs"], WIRED),
            &link("near", ["bs", "near"], &format!("{AIR}\n{MAC}\n{near}")),
            &link("middle", ["bs", "middle"], &further(&middle)),
            &link("far", ["bs", "far"], &further(&far)),
            &flow("near", "fh", "near", "300kB"),
            &flow("middle", "fh", "middle", "300kB"),
            &flow("far", "fh", "far", "300kB"),
        ]
        .concat();
        let outcome = outcome(&text);
        assert!(outcome.completed, "{losses:?} {:?}", outcome.flow_goodput_bps);
        outcome
    };
    let equal = cell(["0%", "0%", "0%"]);
    assert_eq!(equal.links.lost, 0);
    let sum: f64 = equal.flow_goodput_bps.iter().sum();
    let [least, most] = [f64::min, f64::max]
        .map(|pick| equal.flow_goodput_bps.iter().copied().reduce(pick).unwrap());
    assert!(most < 2.0 * least && sum < 2e6, "one channel, shared: {:?}", equal.flow_goodput_bps);
    let apart = cell(["0%", "3%", "15%"]);
    assert!(apart.links.lost > 0);
    assert!(apart.flow_goodput_bps.is_sorted_by(|a, b| a > b), "{:?}", apart.flow_goodput_bps);
}

/// Fades of the mobiles of a cell are independent: the others go on while one is in a fade.
#[test]
fn mobiles_of_a_cell_fade_independently() {
    let text = [
        HEAD,
        "[hosts]\nfh = { profile = \"linux\" }\nmh = { profile = \"linux\", count = 3 }\n\
         [stations]\nbs = { agent = \"plain\" }\n",
        &link("wired", ["fh", "bs"], WIRED),
        &link(
            "air",
            ["bs", "mh"],
            &format!("{AIR}\nshared = true\nerrors = {{ fading = \"good=2s,bad=200ms,loss=1\" }}"),
        ),
        &flow("down", "fh", "mh", "1MB"),
    ]
    .concat();
    let outcome = outcome(&text);
    assert!(outcome.completed);
    let [a, b, c] = outcome.flow_goodput_bps[..] else { panic!("three flows") };
    assert!(a != b && b != c, "{a} {b} {c}");
}

fn moving(moves: &str) -> Outcome {
    outcome(
        &[
            HEAD,
            moves,
            "[hosts]\nfh = { profile = \"linux\" }\nmh = { profile = \"linux\" }\n[stations]\n\
             r = { agent = \"plain\" }\none = { agent = \"snoop\" }\ntwo = { agent = \"snoop\" }\n",
            &link("wired", ["fh", "r"], WIRED),
            &link("left", ["r", "one"], WIRED),
            &link("right", ["r", "two"], WIRED),
            &link("a", ["one", "mh"], AIR),
            &link("b", ["two", "mh"], AIR),
            &flow("file", "fh", "mh", "2MB"),
        ]
        .concat(),
    )
}

#[test]
fn a_host_moves_between_two_stations_while_it_receives() {
    let at = |time: &str, to: &str| format!("{{ at = \"{time}\", host = \"mh\", to = \"{to}\" }}");
    let stays = moving(&format!("moves = [{}]\n", at("0s", "two")));
    assert!(stays.completed);
    assert_eq!(stays.links.lost, 0);
    let moves = moving(&format!("moves = [{}, {}]\n", at("2s", "two"), at("5s", "one")));
    assert!(moves.completed);
    assert_eq!(moves.bytes_received, 2_000_000);
    // What was on its way to the old station, or queued there, is lost; the sender repeats it.
    assert!(moves.links.lost > 0 && moves.sender.retransmits > 0, "{:?}", moves.links);
    assert!(moves.seconds > stays.seconds);
    // Both data and ACKs crossed the air behind both stations.
    assert!(moves.wire_bytes_per_byte.unwrap() > 1.0);
}
