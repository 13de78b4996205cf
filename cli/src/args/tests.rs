//! What flags come to.

use super::*;
use airmend_live::lab::config::LabConfig;
use airmend_proto::link::ErrorModel;
use std::time::Duration;

fn config(flags: &[&str]) -> LabConfig {
    let command = ["airmend", "lab", "run"].iter().chain(flags);
    match Cli::try_parse_from(command).unwrap().command {
        Command::Lab(Lab::Run(args)) => args.setup.config(args.cc, args.errors.model()).unwrap(),
        command => panic!("{command:?}"),
    }
}

#[test]
fn without_flags_a_run_is_the_laboratorys_own() {
    let (from_flags, own) = (config(&[]), LabConfig::default());
    assert_eq!(format!("{from_flags:?}"), format!("{own:?}"));
}

#[test]
fn the_window_is_the_kernels_own_with_sack_and_the_queues_without() {
    assert_eq!(config(&[]).window_segments, None);
    assert_eq!(config(&["--no-sack"]).window_segments, Some(280));
    assert_eq!(config(&["--no-sack", "--queue", "50"]).window_segments, Some(50));
    assert_eq!(config(&["--no-sack", "--window", "none"]).window_segments, None);
    assert_eq!(config(&["--window", "64"]).window_segments, Some(64));
}

#[test]
fn half_duplex_radios_turn_round_and_links_are_told() {
    assert_eq!(config(&["--half-duplex"]).turnaround, Some(Duration::from_micros(10)));
    assert_eq!(
        config(&["--half-duplex=1ms"]).mac().map(|mac| mac.turnaround),
        Some(Duration::from_millis(1))
    );
    let command = ["airmend", "lab", "run", "--half-duplex", "--air-delay", "20us"];
    let own = ["--set", "ack_delay=1ms", "--set", "half_duplex=false"];
    let set = |own: &[&str]| {
        let command = command.iter().chain(own);
        let Command::Lab(Lab::Run(args)) = Cli::try_parse_from(command).unwrap().command else {
            panic!("another command");
        };
        let mut agents = [AgentConfig::by_name("tulip99").unwrap()];
        args.setup.set(&mut agents).map(|()| agents)
    };
    let Ok([agent]) = set(&own[..2]) else { panic!("refused") };
    let settings = agent.settings();
    let expected = ["half_duplex=true", "rate=20mbit", "max_propagation_delay=20000ns"];
    for expected in expected.into_iter().chain(["ack_delay=1000000ns"]) {
        assert!(settings.split(' ').any(|word| word == expected), "{expected} in {settings}");
    }
    assert!(set(&own).is_err_and(|error| error.to_string().contains("--half-duplex")));
}

#[test]
fn the_published_far_bottleneck_is_a_few_flags() {
    let flags = ["--rate", "100mbit", "--air-delay", "1ms", "--wired-rate", "10mbit"];
    let more = ["--wired-delay", "25ms", "--wired-queue", "65kB", "--loss", "0.04"];
    let config = config(&[&flags[..], &more].concat());
    assert_eq!((config.wired_queue_frames, config.queue_frames), (43, 88));
    assert_eq!(config.bound_bps(), 10e6 * 1448.0 / 1500.0);
}

#[test]
fn each_pair_of_hosts_needs_a_flow() {
    let parse = |flags: &[&str]| {
        let command = ["airmend", "lab", "run"].iter().chain(flags);
        let Command::Lab(Lab::Run(args)) = Cli::try_parse_from(command).ok()?.command else {
            return None;
        };
        args.setup.set(&mut []).ok()
    };
    assert_eq!(parse(&["--pairs", "3", "--flows", "3"]), Some(()));
    for wrong in [["--pairs", "3", "--flows", "2"], ["--pairs", "17", "--flows", "17"]] {
        assert_eq!(parse(&wrong), None, "{wrong:?}");
    }
    assert_eq!(parse(&["--short", "0,50ms"]), None);
    let short = config(&["--short", "10kB,50ms"]).short.map(|short| short.bytes);
    assert_eq!(short, Some(10_000));
}

#[test]
fn bursts_are_a_list_where_processes_are_compared() {
    let command = ["airmend", "lab", "compare", "--burst", "2/64Ki,4/64Ki,6/64Ki,4/64Ki"];
    let Command::Lab(Lab::Compare(args)) = Cli::try_parse_from(command).unwrap().command else {
        panic!("another command");
    };
    let burst = |frames| ErrorModel::Burst { frames, every_bytes: 65_536 };
    assert_eq!(args.errors.models(), [2, 4, 6].map(burst));
}

#[test]
fn a_warm_up_must_leave_something_to_measure() {
    let parse = |warmup| {
        let command = ["airmend", "lab", "run", "--seconds", "5", "--warmup", warmup];
        match Cli::try_parse_from(command).unwrap().command {
            Command::Lab(Lab::Run(args)) => args.setup.set(&mut []),
            command => panic!("{command:?}"),
        }
    };
    assert!(parse("4.9s").is_ok());
    assert!(parse("5s").is_err_and(|error| error.to_string().contains("--seconds")));
}
