//! Bad input ends in one sentence on stderr and the right exit status.

use std::process::{Command, Output};

const RUN: [&str; 2] = ["lab", "run"];
const COMPARE: [&str; 2] = ["lab", "compare"];

#[test]
fn wrong_values_name_flag_and_value_and_what_would_be_right() {
    for (flag, value, right) in [
        ("--rate", "0", "20mbit"),
        ("--rate", "fast", "20mbit"),
        ("--rate", "20", "kbit, mbit"),
        ("--wired-rate", "-5mbit", "20mbit"),
        ("--air-delay", "2", "40ms"),
        ("--wired-delay", "-1ms", "40ms"),
        ("--loss", "1.2", "between 0 and 1"),
        ("--loss", "-0.1", "between 0 and 1"),
        ("--ber", "2", "between 0 and 1"),
        ("--burst", "4", "4/64Ki"),
        ("--burst", "0/64Ki", "4/64Ki"),
        ("--fading", "good=1s", "good=300ms,bad=30ms,loss=0.5"),
        ("--agent", "snoop96", "plain, snoop95"),
        ("--cc", "vegas", "cubic, reno or bbr"),
        ("--direction", "sideways", "down or up"),
        ("--place", "roof", "base, mobile or both"),
        ("--port", "wifi", "veth or tun"),
        ("--flows", "0", "from 1"),
        ("--queue", "-3", "from 1"),
        ("--bytes", "0", "10MB"),
        ("--seconds", "0", "10s"),
        ("--time-limit", "soon", "40ms"),
        ("--set", "dupack_threshold", "KEY=VALUE"),
    ] {
        let sentence = usage_error(&RUN, &[flag, value]);
        for word in [flag, value, right] {
            assert!(sentence.contains(word), "{flag} {value}: no {word:?} in {sentence:?}");
        }
    }
}

#[test]
fn lists_must_not_be_empty_or_hold_wrong_values() {
    for (flag, value, right) in [
        ("--loss", "", "0.05"),
        ("--loss", "0,1.2", "between 0 and 1"),
        ("--loss", "0,,0.1", "0.05"),
        ("--ber", "", "1e-5"),
        ("--agents", "", "plain, snoop95"),
        ("--agents", "plain,,snoop95", "plain, snoop95"),
        ("--cc", "", "cubic, reno or bbr"),
        ("--repeat", "0", "from 1"),
    ] {
        let sentence = usage_error(&COMPARE, &[flag, value]);
        assert!(sentence.contains(flag), "{flag} {value}: {sentence:?}");
        assert!(sentence.contains(right), "{flag} {value}: no {right:?} in {sentence:?}");
    }
}

#[test]
fn what_excludes_each_other_is_refused() {
    for (command, flags) in [
        (&RUN, ["--loss", "0.1", "--ber", "1e-5"]),
        (&RUN, ["--burst", "4/64Ki", "--loss", "0.1"]),
        (&RUN, ["--fading", "good=1s,bad=1s,loss=1", "--ber", "1e-5"]),
        (&RUN, ["--bytes", "1MB", "--seconds", "5"]),
        (&COMPARE, ["--loss", "0,0.1", "--ber", "1e-5"]),
    ] {
        let sentence = usage_error(command, &flags);
        assert!(sentence.contains(flags[0]) && sentence.contains(flags[2]), "{sentence:?}");
        assert!(sentence.contains("exclude each other"), "{sentence:?}");
    }
    assert!(usage_error(&RUN, &["--loss", "0.1", "--loss", "0.2"]).contains("only once"));
}

/// An agent in the mobile host is the only one of its radio, and in the loop.
#[test]
fn what_an_agent_in_the_mobile_host_cannot_be_beside_is_refused() {
    let command = [&RUN[..], &["--place", "mobile", "--direction", "up"]].concat();
    for (flags, why) in [
        (&["--agent", "tulip"][..], "each end of the air"),
        (&["--agent", "lack-flow"], "each end of the air"),
        (&["--path", "kernel", "--agent", "plain"], "laboratory's loop"),
        (&["--path", "gateway"], "laboratory's loop"),
        (&["--far-wired", "100mbit,5ms"], "no radio"),
        (&["--far-queue", "50"], "goes down"),
        (&["--pairs", "2", "--flows", "2"], "a radio of its own"),
        (&["--unmended-flows", "1"], "a radio of its own"),
    ] {
        let sentence = usage_error(&command, flags);
        let refusal = format!("--place mobile cannot take {}", flags[0]);
        assert!(sentence.contains(&refusal) && sentence.contains(why), "{sentence:?}");
    }
}

#[test]
fn unknown_flags_and_commands_are_refused() {
    assert!(usage_error(&RUN, &["--lossy", "1"]).contains("did you mean --loss?"));
    assert!(usage_error(&RUN, &["now"]).contains("now"));
    assert!(usage_error(&RUN, &["--rate"]).contains("--rate needs a value"));
    assert!(usage_error(&["lob"], &[]).contains("did you mean lab?"));
}

#[test]
fn settings_must_be_known_to_an_agent() {
    assert!(usage_error(&RUN, &["--set", "no_such=1"]).contains("no_such"));
    assert!(usage_error(&RUN, &["--agent", "plain", "--set", "a=1"]).contains("plain"));
    assert!(usage_error(&COMPARE, &["--set", "no_such=1"]).contains("no_such"));
}

#[test]
fn a_directory_that_cannot_be_made_fails_before_anything_runs() {
    let output = airmend(&[&RUN[..], &["--plot", "/proc/no/such"]].concat());
    assert_sentence(&output, 1);
}

#[test]
fn help_and_version_succeed() {
    for arguments in [vec!["--help"], vec!["--version"], vec!["lab", "compare", "--help"]] {
        let output = airmend(&arguments);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_is_a_command_as_well() {
    for command in [&[][..], &["link"], &["lab"], &["lab", "compare"], &["sim", "run"]] {
        let asked = airmend(&[&["help"], command].concat());
        let flag = airmend(&[command, &["--help"]].concat());
        assert!(asked.status.success() && asked.stderr.is_empty(), "{command:?}: {asked:?}");
        assert_eq!(asked.stdout, flag.stdout, "{command:?}");
    }
    assert!(usage_error(&["help"], &["lob"]).contains("lob"));
}

fn airmend(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airmend")).args(arguments).output().expect("airmend runs")
}

fn usage_error(command: &[&str], flags: &[&str]) -> String {
    assert_sentence(&airmend(&[command, flags].concat()), 2)
}

/// One line that begins with the program's name, nothing on stdout, and this exit status.
fn assert_sentence(output: &Output, status: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(stderr.starts_with("airmend: "), "{stderr:?}");
    assert_eq!(stderr.lines().count(), 1, "{stderr:?}");
    assert!(stderr.len() < 400, "{stderr:?}");
    stderr
}
