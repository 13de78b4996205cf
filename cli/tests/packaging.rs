//! What a package installs: the unit's hardening, manual pages and completions that agree with the
//! flags.

use airmend_testkit::Suite;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const UNIT: &str = "packaging/airmend@.service";
const LINK_UNIT: &str = "packaging/airmend-link@.service";
/// The exposure level of each unit is not above this.
const MOST_EXPOSED: f64 = 2.0;

const SYSTEMD: [(&str, fn()); 3] = [
    ("the_services_are_hardened", the_services_are_hardened),
    ("systemd_takes_the_links_unit", systemd_takes_the_links_unit),
    ("systemd_takes_the_drop_in_for_other_stations", systemd_takes_the_drop_in_for_other_stations),
];
const ANYWHERE: [(&str, fn()); 4] = [
    ("the_service_is_handed_the_examples_key", the_service_is_handed_the_examples_key),
    ("the_services_memory_is_what_its_limits_need", the_services_memory_is_what_its_limits_need),
    ("manual_pages_tell_of_every_flag", manual_pages_tell_of_every_flag),
    ("shells_complete_every_flag_of_the_gateway", shells_complete_every_flag_of_the_gateway),
];

fn main() -> ExitCode {
    let lacks = exposure(&root().join(UNIT)).is_none();
    let lacks = lacks.then_some("the unit's hardening is judged by systemd-analyze 250 or newer");
    let lacks_promtool = Command::new("promtool").arg("--version").output().is_err();
    let lacks_promtool = lacks_promtool.then_some("promtool is in Debian's package prometheus");
    let alerts: fn() = prometheus_takes_the_alerts;
    Suite::default()
        .tests(lacks, SYSTEMD)
        .tests(lacks_promtool, [("prometheus_takes_the_alerts", alerts)])
        .tests(None, ANYWHERE)
        .run(None)
}

/// `promtool check rules` has nothing against the alerts.
fn prometheus_takes_the_alerts() {
    let alerts = root().join("packaging/alerts.yml");
    let (text, directory) = (fs::read_to_string(alerts).unwrap(), Temporary::new("alerts"));
    let wrong = text.replace("[5m]", "[often]");
    for (text, is_right) in [(&text, true), (&wrong, false)] {
        let file = directory.0.join("alerts.yml");
        fs::write(&file, text).unwrap();
        let judged = Command::new("promtool").args(["check", "rules"]).arg(file).output().unwrap();
        assert_eq!(judged.status.success(), is_right, "{judged:?}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The exposure level that systemd finds for a unit; none without `systemd-analyze`.
fn exposure(unit: &Path) -> Option<f64> {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--no-pager", "--offline=true"]).arg(unit);
    let output = analyze.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let level = text.lines().find_map(|line| line.split_once("Overall exposure level for "));
    let Some((_, level)) = level else {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        // Before 250 it knows no unit that is not installed.
        assert!(why.contains("unrecognized option"), "{why}{text}");
        return None;
    };
    let level = level.split_once(": ").and_then(|(_, rest)| rest.split(' ').next());
    Some(level.and_then(|level| level.parse().ok()).unwrap_or_else(|| panic!("{text}")))
}

fn the_services_are_hardened() {
    for unit in [UNIT, LINK_UNIT] {
        let level = exposure(&root().join(unit)).unwrap();
        assert!(level <= MOST_EXPOSED, "{unit}: exposure level {level}, above {MOST_EXPOSED}");

        // The same without hardening, to see that the judge can say no.
        let text = fs::read_to_string(root().join(unit)).unwrap();
        let bare = text.split("NoNewPrivileges=").next().unwrap();
        let bare = bare.replace("DynamicUser=yes", "");
        let directory = Temporary::new("bare");
        let unit = directory.0.join(unit.rsplit('/').next().unwrap());
        fs::write(&unit, bare).unwrap();
        assert!(exposure(&unit).unwrap() > MOST_EXPOSED);
    }
}

fn systemd_takes_the_links_unit() {
    let text = fs::read_to_string(root().join(LINK_UNIT)).unwrap();
    for (umask, is_right) in [("0077", true), ("none", false)] {
        let text = text.replace("UMask=0077", &format!("UMask={umask}"));
        let directory = Temporary::new("link-unit");
        let here = text.replace("/usr/bin/airmend", env!("CARGO_BIN_EXE_airmend"));
        fs::write(directory.0.join("airmend-link@.service"), here).unwrap();
        let said = verified(&directory.0, "airmend-link@home.service");
        assert_eq!(said.is_empty(), is_right, "{said}");
    }
}

/// What systemd says of a unit in this directory.
fn verified(directory: &Path, unit: &str) -> String {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["verify", "--man=no", unit]);
    // An empty last entry stands for systemd's own directories.
    analyze.env("SYSTEMD_UNIT_PATH", format!("{}:", directory.display()));
    String::from_utf8_lossy(&analyze.output().unwrap().stderr).into_owned()
}

/// What systemd says of the unit with the drop-in of docs/handoff.md: nothing.
fn systemd_takes_the_drop_in_for_other_stations() {
    let guide = fs::read_to_string(root().join("docs/handoff.md")).unwrap();
    let drop_in = guide.split("```").find(|block| block.contains("IPAddressAllow=")).unwrap();
    let wrong = drop_in.replace("IPAddressAllow=", "IPAddressAllow=nowhere ");
    for (drop_in, is_right) in [(drop_in, true), (&wrong, false)] {
        let directory = Temporary::new("drop-in");
        let drop_ins = directory.0.join("airmend@wlan0.service.d");
        fs::create_dir_all(&drop_ins).unwrap();
        // The program need not be installed.
        let here = |text: &str| text.replace("/usr/bin/airmend", env!("CARGO_BIN_EXE_airmend"));
        let unit = fs::read_to_string(root().join(UNIT)).unwrap();
        fs::write(directory.0.join("airmend@.service"), here(&unit)).unwrap();
        fs::write(drop_ins.join("handoff.conf"), here(drop_in)).unwrap();
        let said = verified(&directory.0, "airmend@wlan0.service");
        assert_eq!(said.is_empty(), is_right, "{said}");
    }
}

/// The program looks for a key among its credentials by the name of the file.
fn the_service_is_handed_the_examples_key() {
    let unit = fs::read_to_string(root().join(UNIT)).unwrap();
    let example = fs::read_to_string(root().join("packaging/wlan0.toml")).unwrap();
    let key = example.split("key-file=").nth(1).unwrap().split([',', '"']).next().unwrap();
    let name = key.rsplit('/').next().unwrap();
    assert!(unit.contains(&format!("\nLoadCredential={name}:{key}\n")), "{key}");
    assert!(unit.contains(&format!("\nSetCredential={name}:none\n")), "a key may be missing");
}

/// Bytes that a flow takes at most, in the agent, the telemetry and the kernel's map; the gateway's
/// test `many_flows` measures it.
const FLOW: usize = 3072;
/// Bytes of copies that a turn reads, and of those that wait for the next one
/// (`live/src/gateway/{copies,pace}.rs`).
const QUEUES: usize = (8 + 8 + 16) << 20;
/// The program, its rings in memory and its clients.
const PROGRAM: usize = 64 << 20;

/// Neither may the limits be reached before those of the daemon, nor be without effect.
fn the_services_memory_is_what_its_limits_need() {
    let text = fs::read_to_string(root().join(UNIT)).unwrap();
    let limit = text.lines().find_map(|line| line.strip_prefix("MemoryMax=")).unwrap();
    let limit = limit.strip_suffix('M').unwrap().parse::<usize>().unwrap() << 20;
    let limits = airmend_proto::agents::Limits::default();
    // The allocator and the entries of a cache take a quarter more.
    let needed = limits.cache_bytes / 4 * 5 + limits.flows * FLOW + QUEUES + PROGRAM;
    assert!(needed <= limit, "{needed} bytes needed, {limit} allowed");
    assert!(limit <= needed / 2 * 3, "{needed} bytes needed, {limit} allowed");
}

/// A directory that goes with the value.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("airmend-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn airmend(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_airmend")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The long flags that a command's `--help` lists.
fn flags(command: &[&str]) -> Vec<String> {
    let help = airmend(&[command, &["--help"]].concat());
    let words = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
    words.map(|word| word.split([' ', '=', '[', ',']).next().unwrap().to_owned()).collect()
}

fn manual_pages_tell_of_every_flag() {
    let directory = Temporary::new("man");
    airmend(&["generate", "man", directory.0.to_str().unwrap()]);
    for command in [&["gateway"][..], &["link"], &["doctor"], &["lab", "run"]] {
        let page = format!("airmend-{}.1", command.join("-"));
        let page = fs::read_to_string(directory.0.join(page)).unwrap().replace("\\-", "-");
        let flags = flags(command);
        assert!(!flags.is_empty());
        for flag in flags {
            assert!(page.contains(&format!("--{flag}")), "{command:?} --{flag}");
        }
    }
    assert!(!directory.0.join("airmend-generate.1").exists(), "what is hidden has no page");
}

fn shells_complete_every_flag_of_the_gateway() {
    let directory = Temporary::new("completions");
    airmend(&["generate", "completions", directory.0.to_str().unwrap()]);
    for (file, dashes) in [("airmend.bash", "--"), ("_airmend", "--"), ("airmend.fish", "-l ")] {
        let script = fs::read_to_string(directory.0.join(file)).unwrap();
        for flag in flags(&["gateway"]) {
            assert!(script.contains(&format!("{dashes}{flag}")), "{file}: {flag}");
        }
    }
    let bash = Command::new("bash").arg("-n").arg(directory.0.join("airmend.bash")).status();
    assert!(bash.is_ok_and(|status| status.success()), "bash cannot read its completions");
}
