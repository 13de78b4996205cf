//! The laboratory, run for real. Where the kernel gives this user no network namespaces, every
//! test is ignored.

mod agents;
mod lab_handoff;
mod lab_hosts;
mod lab_kernel;
mod lab_link;
mod lab_mobile;

use agents::{Cheating, Panicking};
use airmend_live::lab::config::{
    Amount, CongestionControl, DeviceKind, Direction, FarQueue, Hop, LabConfig, Place, Short,
};
use airmend_live::lab::outcome::{Outcome, TraceKind};
use airmend_live::lab::{LabError, Probe, enter_user_namespace, probe, run};
use airmend_proto::agents::plain::Plain;
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::link::ErrorModel;
use airmend_proto::{Agent, Port};
use airmend_testkit::{Result as Tested, Suite};
use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::error::Error;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Test = fn() -> Tested;

const NOBODY: u32 = 65534;
/// The lateness that `airmend lab` warns of, in microseconds.
const LATE_US: u64 = 1_000;

const TESTS: [(&str, Test); 34] = [
    ("down", down),
    ("up", up),
    ("ipv6", ipv6),
    ("several_flows", several_flows),
    ("for_a_time", for_a_time),
    ("after_a_warm_up", after_a_warm_up),
    ("far_bottleneck", far_bottleneck),
    ("unmended_flows", unmended_flows),
    ("both_ends_of_the_air", lab_link::both_ends_of_the_air),
    ("half_duplex", lab_link::half_duplex),
    ("kernel_forwards", lab_kernel::kernel_forwards),
    ("kernel_queue", lab_kernel::kernel_queue),
    ("kernel_refuses", lab_kernel::kernel_refuses),
    ("mobile_mends_uploads", lab_mobile::mobile_mends_uploads),
    ("mobile_passes_downloads", lab_mobile::mobile_passes_downloads),
    ("mobile_leaves_the_station_its_queues", lab_mobile::mobile_leaves_the_station_its_queues),
    ("mobile_takes_turns", lab_mobile::mobile_takes_turns),
    ("mobile_agent_misbehaves", lab_mobile::mobile_agent_misbehaves),
    ("mobile_refuses", lab_mobile::mobile_refuses),
    ("pinged", pinged),
    ("one_after_another", lab_hosts::one_after_another),
    ("short_flows", lab_hosts::short_flows),
    ("several_pairs", lab_hosts::several_pairs),
    ("fading", fading),
    ("losses_both_ways", losses_both_ways),
    ("losses_without_sack", losses_without_sack),
    ("losses_up", losses_up),
    ("interrupted", interrupted),
    ("time_limit", time_limit),
    ("recording", recording),
    ("recording_that_cannot_be_written", recording_that_cannot_be_written),
    ("panicking_agent", panicking_agent),
    ("cheating_agents", cheating_agents),
    ("values_that_cannot_be_run", values_that_cannot_be_run),
];

/// A harness of its own, since a user namespace can only be entered before there are threads.
fn main() -> ExitCode {
    let entered = enter_user_namespace().err().map(|reason| reason.to_string());
    let lacks = |what: fn() -> Option<String>| entered.clone().or_else(what);
    let only = |name, test: Test| [(name, test)];
    Suite::default()
        .tests(entered.as_deref(), TESTS)
        .tests(entered.as_deref(), lab_handoff::TESTS)
        .tests(lacks(|| lacks_congestion_control("cubic")).as_deref(), only("cubic", cubic))
        .tests(lacks(|| lacks_congestion_control("reno")).as_deref(), only("reno", reno))
        .tests(lacks(|| lacks_congestion_control("bbr")).as_deref(), only("bbr", bbr))
        .tests(lacks(lacks_tun).as_deref(), only("tun", tun))
        .tests(lacks(lacks_nobody).as_deref(), only("ordinary_user", ordinary_user))
        .tests(
            lacks(lab_kernel::lacks_gateways).as_deref(),
            only("gateway_process", lab_kernel::gateway_process),
        )
        .tests(
            lacks(lab_kernel::has_gateways).as_deref(),
            only("gateway_needs_root", lab_kernel::gateway_needs_root),
        )
        // Two runs at a time would disturb each other's timing.
        .run(Some(1))
}

fn lacks_congestion_control(name: &str) -> Option<String> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).ok()?;
    let refused = setsockopt(&socket, TcpCongestion, &name.into()).err()?;
    Some(format!("the kernel has no congestion control {name}: {refused}"))
}

fn lacks_tun() -> Option<String> {
    let device = File::options().read(true).write(true).open("/dev/net/tun");
    device.err().map(|error| format!("/dev/net/tun: {error}"))
}

/// Why this user cannot run this program as nobody.
fn lacks_nobody() -> Option<String> {
    let mut test = Command::new("test");
    test.arg("-x").arg(std::env::current_exe().ok()?).uid(NOBODY).gid(NOBODY);
    match test.status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some("nobody may not run what this user has built".to_owned()),
        Err(error) => Some(format!("this user cannot start a program as another one: {error}")),
    }
}

/// Short delays, so that the whole file is quick.
fn config() -> LabConfig {
    let mut config = LabConfig {
        amount: Amount::Bytes(1_000_000),
        wired: Hop { rate_bps: 100_000_000, delay: Duration::from_millis(5) },
        time_limit: Duration::from_secs(60),
        ..LabConfig::default()
    };
    config.queue_frames = config.default_queue_frames();
    config
}

fn plain() -> Box<dyn Agent + Send> {
    Box::new(Plain)
}

fn run_plain(config: &LabConfig) -> Result<Outcome, LabError> {
    run(config, plain(), &AtomicBool::new(false), &mut |_| ())
}

/// Runs to the end and checks what holds for every run. That every byte was right is checked
/// inside: a wrong one is an error.
fn complete(config: &LabConfig) -> Result<Outcome, LabError> {
    let outcome = run_plain(config)?;
    check(config, &outcome);
    Ok(outcome)
}

/// The same where a slow machine may let too little happen in a run: it then gets twice the amount,
/// bytes or time, and the warm-up of it, up to 64 times as much.
fn complete_with_enough(
    config: &mut LabConfig,
    is_enough: &dyn Fn(&LabConfig, &Outcome) -> bool,
) -> Result<Outcome, LabError> {
    let mut outcome = run_plain(config)?;
    for _ in 0..6 {
        if outcome.goodput_bps > 0.0 && is_enough(config, &outcome) {
            break;
        }
        config.amount = match config.amount {
            Amount::Bytes(bytes) => Amount::Bytes(2 * bytes),
            Amount::Time(time) => Amount::Time(2 * time),
        };
        config.warmup *= 2;
        config.time_limit *= 2;
        outcome = run_plain(config)?;
    }
    check(config, &outcome);
    Ok(outcome)
}

fn check(config: &LabConfig, outcome: &Outcome) {
    assert!(outcome.completed);
    assert_eq!(outcome.port_drops, 0);
    assert_eq!(outcome.flow_goodput_bps.len(), config.all_flows() as usize);
    if let Amount::Bytes(bytes) = config.amount {
        let transfers = config.all_flows() * config.sequential;
        assert_eq!(outcome.bytes_received, bytes * u64::from(transfers));
        assert_eq!(outcome.completion_seconds.len(), transfers as usize);
    }
    // The first frames of a run cannot be faster than the link either.
    let (goodput, bound) = (outcome.overall_goodput_bps, outcome.bound_bps);
    assert!(outcome.goodput_bps > 0.0 && goodput <= bound, "{goodput} of {bound} bit/s");
    assert!(outcome.fairness > 0.0 && outcome.fairness < 1.000_001);
    assert!(outcome.wire_bytes_per_byte > 1.0, "{}", outcome.wire_bytes_per_byte);
    assert!(!outcome.samples.is_empty());
    assert!(outcome.samples.iter().all(|sample| sample.flow < config.all_flows()));
}

/// Whether the loop had the processor when it needed it, as `airmend lab` says as well: figures of
/// other runs are those of the machine's load, and are not judged.
fn keeps_time(outcome: &Outcome) -> bool {
    println!("frames left up to {} us late (99 %)", outcome.lateness_us.p99);
    outcome.lateness_us.p99 <= LATE_US
}

/// Why a run failed that has to.
fn failure(result: Result<Outcome, LabError>) -> LabError {
    let Err(error) = result else { panic!("the run should have failed") };
    error
}

fn down() -> Result<(), Box<dyn Error>> {
    let config = config();
    let outcome = complete(&config)?;
    // What the full queue dropped leaves for the first time when the sender sends it again.
    let data = outcome.trace.iter().filter(|point| point.kind != TraceKind::Ack);
    assert!(data.clone().all(|point| point.side == Port::Air));
    let frames = u64::from(1_000_000u32.div_ceil(config.payload_per_frame()));
    // Full frames of wire size reached the air: no segmentation offload was at work.
    assert!(data.clone().count() as u64 >= frames);
    let last = data.map(|point| point.offset).max().unwrap_or(0);
    assert!((900_000..=1_000_001).contains(&last), "{last}");
    assert!(outcome.trace.iter().any(|point| point.kind == TraceKind::Ack));
    let air = outcome.links.get("air_down").copied().unwrap_or_default();
    assert_eq!((air.lost, air.dropped), (0, 0));
    assert!(air.bytes <= air.frames * 1500);
    Ok(())
}

fn up() -> Result<(), Box<dyn Error>> {
    let outcome = complete(&LabConfig { direction: Direction::Up, ..config() })?;
    let data = |side| {
        let is_data = |kind| kind == TraceKind::Data;
        outcome.trace.iter().filter(|point| is_data(point.kind) && point.side == side).count()
    };
    assert!(data(Port::Wired) > 0);
    assert_eq!(data(Port::Air), 0);
    Ok(())
}

fn ipv6() -> Result<(), Box<dyn Error>> {
    let config = LabConfig { ipv6: true, timestamps: false, ..config() };
    assert_eq!(config.payload_per_frame(), 1440);
    complete(&config)?;
    Ok(())
}

fn several_flows() -> Result<(), Box<dyn Error>> {
    let outcome = complete(&LabConfig { flows: 4, amount: Amount::Bytes(400_000), ..config() })?;
    assert!((0..4).all(|flow| outcome.samples.iter().any(|sample| sample.flow == flow)));
    Ok(())
}

fn for_a_time() -> Result<(), Box<dyn Error>> {
    let time = Duration::from_millis(700);
    let mut config = LabConfig { flows: 2, amount: Amount::Time(time), ..config() };
    let outcome = complete_with_enough(&mut config, &|_, _| true)?;
    assert!(outcome.seconds >= time.as_secs_f64());
    Ok(())
}

fn after_a_warm_up() -> Result<(), Box<dyn Error>> {
    let (amount, warmup) = (Amount::Time(Duration::from_millis(900)), Duration::from_millis(400));
    let mut config = LabConfig { amount, warmup, ..config() };
    let counted = |config: &LabConfig, outcome: &Outcome| {
        outcome.goodput_bps * (outcome.seconds - config.warmup.as_secs_f64()) / 8.0
    };
    // What came before does not count; what is counted came after.
    let is_part = |config: &LabConfig, outcome: &Outcome| {
        let counted = counted(config, outcome);
        counted > 0.0 && counted < outcome.bytes_received as f64
    };
    let outcome = complete_with_enough(&mut config, &is_part)?;
    assert!(is_part(&config, &outcome), "{outcome:?}");
    let all = outcome.overall_goodput_bps * outcome.seconds / 8.0;
    assert!((all - outcome.bytes_received as f64).abs() < 1.0, "{outcome:?}");
    Ok(())
}

/// The queue that the data meets before the slower wired hop is the one that overflows.
fn far_bottleneck() -> Result<(), Box<dyn Error>> {
    let far = LabConfig {
        air: Hop { rate_bps: 50_000_000, delay: Duration::from_millis(1) },
        wired: Hop { rate_bps: 10_000_000, delay: Duration::from_millis(5) },
        wired_queue_frames: 10,
        ..config()
    };
    assert_eq!(far.bound_bps(), 10e6 * 1448.0 / 1500.0);
    let outcome = complete(&far)?;
    let dropped = |outcome: &Outcome, link| outcome.links.get(link).map(|link| link.dropped);
    assert!(dropped(&outcome, "wired_down") > Some(0), "{:?}", outcome.links);
    assert_eq!(dropped(&outcome, "air_down"), Some(0));
    assert_eq!(outcome.agent_counters.get("egress_drops_air"), None);
    let outcome = complete(&LabConfig { direction: Direction::Up, ..far })?;
    assert!(outcome.agent_counters.get("egress_drops_wired") > Some(&0), "{outcome:?}");
    Ok(())
}

/// The agent opens one flow and is not shown the other.
fn unmended_flows() -> Result<(), Box<dyn Error>> {
    for ipv6 in [false, true] {
        let errors = ErrorModel::Loss(0.03);
        let amount = Amount::Bytes(300_000);
        let config = LabConfig { unmended_flows: 1, ipv6, errors, amount, ..config() };
        let limits = Limits { egress: config.egress_limits(), ..Limits::default() };
        let agent = AgentConfig::by_name("snoop95")?.build(limits, 1);
        let outcome = run(&config, agent, &AtomicBool::new(false), &mut |_| ())?;
        assert!(outcome.completed && outcome.flow_goodput_bps.len() == 2);
        assert_eq!(outcome.bytes_received, 600_000);
        let count = |name| outcome.agent_counters.get(name).copied().unwrap_or(0);
        // A straggler after the close opens it once more.
        let (opened, closed) = (count("flows_opened"), count("flows_closed"));
        assert!((1..=2).contains(&opened) && opened <= closed + 1, "{:?}", outcome.agent_counters);
    }
    Ok(())
}

fn pinged() -> Result<(), Box<dyn Error>> {
    for ipv6 in [false, true] {
        let mut config = LabConfig { ping: true, ipv6, ..config() };
        // The last ones of a run may be late, and the run over.
        let all_but_the_last = |_: &LabConfig, outcome: &Outcome| {
            let ping = outcome.ping.as_ref();
            ping.is_some_and(|ping| ping.sent > 2 && ping.received + 2 >= ping.sent)
        };
        let outcome = complete_with_enough(&mut config, &all_but_the_last)?;
        assert!(all_but_the_last(&config, &outcome), "{:?}", outcome.ping);
        let ping = outcome.ping.ok_or("no ping")?;
        assert!(ping.round_trip.min > 2 * Duration::from_millis(7), "{ping:?}");
    }
    let (errors, amount) = (ErrorModel::Loss(0.05), Amount::Time(Duration::from_secs(2)));
    let mut lossy = LabConfig { ping: true, errors, amount, ..config() };
    let ping = complete_with_enough(&mut lossy, &|_, _| true)?.ping.ok_or("no ping")?;
    assert!(ping.received < ping.sent, "{ping:?}");
    // The base station ends early: whoever pings must not wait for it.
    let agent = Cheating::acknowledging();
    let result = run(&lossy, Box::new(agent), &AtomicBool::new(false), &mut |_| ());
    assert!(failure(result).to_string().contains("it sent ACK"));
    Ok(())
}

/// What fades has a bound of its own in each run.
fn fading() -> Result<(), Box<dyn Error>> {
    let [good, bad] = [40, 5].map(Duration::from_millis);
    let errors = ErrorModel::Fading { good, bad, bad_loss: 1.0, good_ber: 0.0 };
    let outcome = complete(&LabConfig { errors, amount: Amount::Bytes(200_000), ..config() })?;
    let realised = outcome.realised_bound_bps.ok_or("no bound")?;
    assert!(outcome.goodput_bps < realised && realised < 20e6, "{realised}");
    assert!(outcome.links.get("air_down").is_some_and(|link| link.lost > 0));
    assert_eq!(complete(&config())?.realised_bound_bps, None);
    Ok(())
}

fn losses_both_ways() -> Result<(), Box<dyn Error>> {
    let config = LabConfig { errors: ErrorModel::Loss(0.05), ..config() };
    let outcome = complete(&config)?;
    assert!(outcome.sender.retransmits > 0 && outcome.sender.cwnd_reductions() > 0);
    assert!(outcome.tcp_ext.contains_key("TCPSackRecovery"), "{:?}", outcome.tcp_ext);
    for link in ["air_down", "air_up"] {
        let report = outcome.links.get(link).copied().unwrap_or_default();
        let (frames, lost) = (report.frames as f64, report.lost as f64);
        let sigma = (frames * 0.05 * 0.95).sqrt();
        assert!((lost - frames * 0.05).abs() < 5.0 * sigma, "{link}: {report:?}");
    }
    assert_eq!(outcome.links.get("wired_down").map(|report| report.lost), Some(0));
    Ok(())
}

fn losses_without_sack() -> Result<(), Box<dyn Error>> {
    let errors = ErrorModel::Loss(0.02);
    let mut config = LabConfig { sack: false, timestamps: false, errors, ..config() };
    config.window_segments = config.default_window_segments();
    assert_eq!(config.window_segments, Some(config.queue_frames as u32));
    let outcome = complete(&config)?;
    assert!(outcome.sender.retransmits > 0);
    assert!(outcome.tcp_ext.keys().all(|name| !name.contains("Sack")), "{:?}", outcome.tcp_ext);
    Ok(())
}

fn losses_up() -> Result<(), Box<dyn Error>> {
    let errors = ErrorModel::Loss(0.05);
    let amount = Amount::Bytes(500_000);
    let config = LabConfig { direction: Direction::Up, ipv6: true, errors, amount, ..config() };
    let outcome = complete(&config)?;
    assert!(outcome.links.get("air_up").is_some_and(|report| report.lost > 0));
    assert!(outcome.sender.retransmits > 0);
    Ok(())
}

/// The library reads each socket's congestion control back and refuses any other than the one set.
fn controlled_by(cc: CongestionControl) -> Tested {
    complete(&LabConfig { cc, amount: Amount::Bytes(300_000), ..config() })?;
    Ok(())
}

fn cubic() -> Tested {
    controlled_by(CongestionControl::Cubic)
}

fn reno() -> Tested {
    controlled_by(CongestionControl::Reno)
}

fn bbr() -> Tested {
    controlled_by(CongestionControl::Bbr)
}

fn tun() -> Tested {
    let tun = LabConfig { port: DeviceKind::Tun, errors: ErrorModel::Loss(0.01), ..config() };
    // Both kinds of port charge a packet the same: its IP header and what follows.
    let air = complete(&tun)?.links.get("air_down").copied().unwrap_or_default();
    assert!(air.bytes <= air.frames * 1500);
    Ok(())
}

fn interrupted() -> Result<(), Box<dyn Error>> {
    let threads = || fs::read_dir("/proc/self/task").map(Iterator::count);
    let before = threads()?;
    let config = LabConfig { amount: Amount::Bytes(u64::MAX), flows: 3, ..config() };
    let stop = AtomicBool::new(false);
    let mut progress = |progress: airmend_live::lab::Progress| {
        stop.store(progress.bytes > 100_000, Ordering::Relaxed);
    };
    let outcome = run(&config, plain(), &stop, &mut progress)?;
    assert!(!outcome.completed);
    assert!(outcome.bytes_received > 100_000 && outcome.goodput_bps > 0.0);
    assert_eq!(threads()?, before);
    // Stopped before it began: while connecting.
    let outcome = run(&config, plain(), &AtomicBool::new(true), &mut |_| ())?;
    assert!(!outcome.completed);
    assert_eq!((outcome.bytes_received, threads()?), (0, before));
    Ok(())
}

fn time_limit() -> Result<(), Box<dyn Error>> {
    let time_limit = Duration::from_millis(300);
    // Nothing passes: not even a connection comes about.
    let config = LabConfig { errors: ErrorModel::Loss(1.0), time_limit, ..config() };
    let outcome = run_plain(&config)?;
    assert!(!outcome.completed);
    assert_eq!((outcome.bytes_received, outcome.bound_bps), (0, 0.0));
    Ok(())
}

fn recording() -> Result<(), Box<dyn Error>> {
    let file = Scratch(std::env::temp_dir().join(format!("airmend-{}.pcapng", std::process::id())));
    // A queue of four frames drops, and a comment says so of the packet that met it.
    let config = LabConfig { pcap: Some(file.0.clone()), queue_frames: 4, ..config() };
    let outcome = complete(&config)?;
    let mut reader = PcapNgReader::new(File::open(&file.0)?)?;
    let (mut packets, mut comments, mut last) = (0, 0, Duration::ZERO);
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block? else { continue };
        assert!(packet.data.first().is_some_and(|byte| byte >> 4 == 4), "raw IPv4");
        assert!(packet.timestamp >= last, "in the order of time");
        last = packet.timestamp;
        packets += 1;
        comments += packet.options.iter().filter(|option| says_dropped(option)).count() as u64;
    }
    assert_eq!(reader.interfaces().len(), 2);
    assert_eq!(outcome.agent_counters.get("egress_drops_air"), Some(&comments));
    let crossings: u64 = outcome.links.values().map(|link| link.frames).sum();
    // Everything but what was still on a link at the end crossed the agent.
    assert!(comments > 0 && packets > crossings / 2 && packets <= crossings + comments);
    Ok(())
}

fn says_dropped(option: &EnhancedPacketOption<'_>) -> bool {
    matches!(option, EnhancedPacketOption::Comment(text) if text.contains("dropped"))
}

fn recording_that_cannot_be_written() -> Result<(), Box<dyn Error>> {
    let pcap = Some(PathBuf::from("/nowhere/run.pcapng"));
    let error = failure(run_plain(&LabConfig { pcap, ..config() }));
    assert!(error.to_string().starts_with("cannot write the recording /nowhere/run.pcapng: "));
    if Path::new("/dev/full").exists() {
        let config = LabConfig { pcap: Some("/dev/full".into()), ..config() };
        let error = failure(run_plain(&config));
        assert!(matches!(error, LabError::Recording { .. }), "{error}");
    }
    Ok(())
}

fn panicking_agent() -> Result<(), Box<dyn Error>> {
    let config = config();
    let agent = Panicking(100);
    let outcome = run(&config, Box::new(agent), &AtomicBool::new(false), &mut |_| ())?;
    assert!(outcome.completed);
    assert_eq!(outcome.agent_counters.get("agent_panics"), Some(&1));
    Ok(())
}

fn cheating_agents() -> Result<(), Box<dyn Error>> {
    let config = config();
    for (cheat, complaint) in [
        (Cheating::acknowledging(), "it sent ACK"),
        (Cheating::changing_payload(), "it changed the payload"),
    ] {
        let result = run(&config, Box::new(cheat), &AtomicBool::new(false), &mut |_| ());
        let error = failure(result);
        assert!(error.to_string().contains(complaint), "{error}");
    }
    Ok(())
}

fn values_that_cannot_be_run() -> Result<(), Box<dyn Error>> {
    let second = Duration::from_secs(1);
    let dead = Hop { rate_bps: 0, delay: Duration::ZERO };
    for config in [
        LabConfig { air: dead, ..config() },
        LabConfig { wired: dead, ..config() },
        LabConfig { flows: 0, ..config() },
        LabConfig { flows: 100_000, ..config() },
        LabConfig { queue_frames: 0, ..config() },
        LabConfig { wired_queue_frames: 0, ..config() },
        LabConfig { flows: 100, unmended_flows: 100, ..config() },
        LabConfig { sequential: 0, ..config() },
        LabConfig { pairs: 0, ..config() },
        LabConfig { pairs: 2, ..config() },
        LabConfig { pairs: 17, flows: 17, ..config() },
        LabConfig { short: Some(Short { bytes: 0, pause: second }), ..config() },
        LabConfig { sequential: 2, amount: Amount::Time(second), ..config() },
        LabConfig { warmup: second, amount: Amount::Time(second), ..config() },
        LabConfig { unmended_flows: 1, pcap: Some("/nowhere".into()), ..config() },
        LabConfig { place: Place::Mobile, unmended_flows: 1, ..config() },
        LabConfig { place: Place::Mobile, pairs: 2, flows: 2, ..config() },
        LabConfig { place: Place::Mobile, far_queue: Some(FarQueue::Codel), ..config() },
        LabConfig { place: Place::Mobile, far_wired: "1mbit,5ms".parse().ok(), ..config() },
    ] {
        assert!(matches!(run_plain(&config), Err(LabError::Config(_))));
    }
    let small = Probe { rate_bps: 1, packet_bytes: 59, duration: Duration::ZERO };
    let refused = probe(&config(), &small, &AtomicBool::new(false));
    assert!(matches!(refused, Err(LabError::Config(_))));
    Ok(())
}

/// Root runs this program again as nobody, who then runs one of the tests.
fn ordinary_user() -> Tested {
    let mut again = Command::new(std::env::current_exe()?);
    again.args(["losses_both_ways", "--exact", "--nocapture"]).current_dir("/");
    let output = again.uid(NOBODY).gid(NOBODY).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    Ok(())
}

/// A file that is removed at the end of the test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}
