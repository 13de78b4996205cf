//! From flags and file to the configuration.

use super::*;
use crate::args::{Cli, Command};
use airmend_live::bpf::Attach;
use airmend_live::gateway::{LogFormat, LogLevel};
use clap::Parser;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file of this process, which goes with the value.
struct Temporary(PathBuf);

impl Temporary {
    fn new(text: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmend-{}-{number}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Flags of a gateway on `wlan0` with this configuration file.
fn args_with(file: &str, flags: &[&str]) -> (GatewayArgs, Temporary) {
    let file = Temporary::new(file);
    let config = ["--config", file.0.to_str().unwrap()];
    (parse(&[&config, flags].concat()), file)
}

fn parse(flags: &[&str]) -> GatewayArgs {
    let command = ["airmend", "gateway", "wlan0"].iter().chain(flags);
    match Cli::try_parse_from(command).unwrap().command {
        Command::Gateway(args) => *args,
        command => panic!("{command:?}"),
    }
}

fn both(file: &str, flags: &[&str]) -> GatewayConfig {
    let (args, _file) = args_with(file, flags);
    config(&args).unwrap().0
}

/// Every option, each other than its default.
const FILE: &str = r#"
agent = "snoop"
observe = true
flows = ["mobile:10.0.0.0/8,port:443", "!dscp:ef"]
limit-memory = "64MiB"
limit-flows = 5000
mark = 7
priority = "1:10"
shape = "auto"
handoff = "group=239.1.2.3,key-file=k"
attach = "tcx"
air-rate = "20mbit"
pcap = "a.pcapng"
trace = "t.csv"
metrics = "127.0.0.1:9290"
socket = "/tmp/s"
log = "json"
log-level = "debug"
keep-privileges = true

[set]
hold_limit = "100ms"
hold_own = 0.5
"#;

const FLAGS: [&str; 30] = [
    "--observe",
    "--flows=mobile:10.0.0.0/8,port:443",
    "--flows",
    "!dscp:ef",
    "--limit-memory=64MiB",
    "--limit-flows=5000",
    "--mark",
    "7",
    "--priority",
    "1:10",
    "--shape=auto",
    "--handoff=group=239.1.2.3,key-file=k",
    "--attach",
    "tcx",
    "--air-rate",
    "20mbit",
    "--pcap=a.pcapng",
    "--trace=t.csv",
    "--metrics=127.0.0.1:9290",
    "--socket",
    "/tmp/s",
    "--log",
    "json",
    "--log-level",
    "debug",
    "--keep-privileges",
    "--set",
    "hold_limit=100ms",
    "--set",
    "hold_own=0.5",
];

#[test]
fn flags_and_file_say_the_same_under_the_same_names() {
    let (from_file, from_flags) = (both(FILE, &[]), both("", &FLAGS));
    assert_eq!(from_file, from_flags);
    let mut differences = from_file.differences(&both("", &[]));
    differences.extend(["agent"]);
    differences.sort_unstable();
    let mut names = options::OPTION_NAMES.to_vec();
    names.sort_unstable();
    assert_eq!(differences, names, "an option that this test does not set");
}

#[test]
fn every_option_is_a_flag() {
    use clap::CommandFactory;
    let mut command = Cli::command();
    let gateway = command.find_subcommand_mut("gateway").unwrap();
    let mut flags: Vec<&str> = gateway.get_arguments().filter_map(|a| a.get_long()).collect();
    flags.retain(|flag| !["config", "json"].contains(flag));
    flags.sort_unstable();
    let mut names = options::OPTION_NAMES.to_vec();
    names.sort_unstable();
    assert_eq!(flags, names);
}

#[test]
fn flags_win_over_the_file() {
    let flags = ["--agent=snoop95", "--limit-memory=1MiB", "--flows=port:80", "--log-level=warn"];
    let config = both(&FILE[..FILE.find("[set]").unwrap()], &flags);
    assert_eq!(config.agent.name(), "snoop95");
    assert_eq!(config.limits.cache_bytes, 1 << 20);
    assert_eq!(config.rules.to_string(), "port:80");
    assert_eq!(config.log_level, LogLevel::Warn);
    assert_eq!((config.log, config.attach), (LogFormat::Json, Attach::Tcx));

    let config = both(FILE, &["--set=hold_limit=7ms"]);
    let expected = both("", &["--set=hold_own=0.5", "--set=hold_limit=7ms"]);
    assert_eq!(config.agent, expected.agent);
}

#[test]
fn nothing_said_is_the_gateways_own() {
    let agent = airmend_proto::agents::AgentConfig::by_name("snoop").unwrap();
    assert_eq!(both("", &[]), GatewayConfig::new("wlan0", agent));
}

#[test]
fn a_mistake_is_one_sentence_with_file_and_line() {
    let wrong = [
        ("agent = \"snoop\"\nflow = []", ":2: unknown key `flow`; did you mean `flows`?"),
        ("\nlimit_memory = 1", ":2: unknown key `limit_memory`; did you mean `limit-memory`?"),
        ("zzz = 1", ":1: unknown key `zzz`; known are agent, limit-memory"),
        ("\n\nagent = \"tulip\"", ":3: `agent`: tulip needs an agent at each end"),
        ("agent = [1]", ":1: `agent` must be a single value"),
        ("flows = [\n\"port:443\",\n\"port:x\"]", ":3: flow rule \"port:x\": \"x\" is no port"),
        ("flows = \"port:443\"", ":1: `flows` must be a list"),
        ("flows = [443]", ":1: a flow rule must be a text"),
        ("limit-memory = \"1kB\"", ":1: `limit-memory`: \"1kB\" holds no window"),
        ("observe = \"perhaps\"", ":1: `observe`: \"perhaps\" must be true or false"),
        ("metrics = \"0.0.0.0:1\"", ":1: `metrics`: \"0.0.0.0:1\" can be reached"),
        ("[set]\nhold_limit = \"1ms\"\nhold = 1", ":3: snoop has no setting \"hold\""),
        ("[sett]", ":1: unknown key `sett`; did you mean `set`?"),
        ("set = 1", ":1: `set` must be a table"),
        ("agent = ", ":1: "),
        ("mark = 1\nmark = 2", ":2: "),
    ];
    for (text, expected) in wrong {
        let (args, file) = args_with(text, &[]);
        let error = config(&args).unwrap_err();
        assert!(error.is::<BadUsage>());
        let error = error.to_string();
        let expected = format!("{}{expected}", file.0.display());
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let error = config(&parse(&["--config", "/nowhere/wlan0.toml"])).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/wlan0.toml: it cannot be read: No such file"), "{error}");
}

#[test]
fn settings_of_a_flag_are_the_agents_own() {
    let error = config(&parse(&["--set", "hold=1"])).unwrap_err();
    assert!(error.is::<BadUsage>() && error.to_string().contains("hold_limit"), "{error}");
}

#[test]
fn an_interface_has_a_name() {
    for wrong in ["", "..", "a/b", "wlan0:1", "wlan 0", "longer-than-fifteen"] {
        assert!(Cli::try_parse_from(["airmend", "gateway", wrong]).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_queue_of_its_own_is_refused_beside_priority_and_observe() {
    let refused = |flags: &[&str]| check_combination(&both("", flags)).is_err();
    assert!(!refused(&["--shape=auto"]) && !refused(&["--observe", "--priority=1:10"]));
    assert!(refused(&["--shape=auto", "--observe"]));
    assert!(refused(&["--shape=20mbit", "--priority=1:10"]));
}

#[test]
fn the_example_names_every_option_and_can_be_used() {
    let example = include_str!("../../../packaging/wlan0.toml");
    let is_value = |line: &&str| line.contains(" = ") || line.starts_with('[');
    let values = example.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_value);
    let values: Vec<&str> = values.collect();
    both(&values.join("\n"), &[]);
    for name in options::OPTION_NAMES {
        let (key, table) = (format!("{name} = "), format!("[{name}]"));
        let mut said = values.iter();
        assert!(said.any(|line| line.starts_with(&key) || *line == table), "{name} is not there");
    }
}
