//! `airmend doctor`: checks of this machine, and the consequence of each failure.

use crate::args::DoctorArgs;
use crate::row;
use anyhow::Result;
use check::{Check, GATEWAY_BY_CLSACT, GATEWAY_BY_TCX};
use std::io::{self, Write};
use std::process::ExitCode;

mod acknowledgments;
mod check;
mod inside;
mod machine;

/// Runs all checks and prints the results; the exit status is whether the lab can run.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    if args.inside {
        inside::report(&mut out)?;
        return Ok(ExitCode::SUCCESS);
    }
    // In a child, because a user namespace cannot be left again.
    let mut checks = inside::in_child()?;
    checks.extend(machine::checks());
    checks.extend(acknowledgments::checks());
    let can_run = checks.iter().all(|check| check.ok || !check.needed);
    if args.json {
        for check in &checks {
            row::write(&mut out, check)?;
        }
    } else {
        print(&mut out, &checks)?;
    }
    Ok(if can_run { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(out: &mut impl Write, checks: &[Check]) -> io::Result<()> {
    let width = checks.iter().map(|check| check.check.chars().count()).max().unwrap_or(0);
    for check in checks {
        let mark = if check.ok { "ok" } else { "missing" };
        write!(out, "  {mark:<7}  {:<width$}  {}", check.check, check.found)?;
        match check.cost.as_str() {
            "" => writeln!(out)?,
            cost => writeln!(out, "; {cost}")?,
        }
    }
    let missing: Vec<&str> = checks
        .iter()
        .filter(|check| check.needed && !check.ok)
        .map(|check| check.check.as_str())
        .collect();
    match missing[..] {
        [] => writeln!(out, "\nThis machine can run the laboratory.")?,
        _ => writeln!(
            out,
            "\nThis machine cannot run the laboratory: {} missing.",
            missing.join(", ")
        )?,
    }
    let gateways = [GATEWAY_BY_TCX, GATEWAY_BY_CLSACT];
    let mut gateways = checks.iter().filter(|check| gateways.contains(&check.check.as_str()));
    match gateways.any(|check| check.ok) {
        true => writeln!(out, "This user can run the gateway here."),
        false => writeln!(out, "This user cannot run the gateway here; see above."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_it_costs() {
        let missing: Result<String, &str> = Err("no such file");
        let checks = [
            Check::new("veth", Ok::<_, &str>("made a pair".into()), "nothing runs").needed(),
            Check::new("TUN device", missing, "--port tun cannot be used"),
        ];
        let mut text = Vec::new();
        print(&mut text, &checks).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "  ok       veth        made a pair\n  \
             missing  TUN device  no such file; --port tun cannot be used\n\n\
             This machine can run the laboratory.\n\
             This user cannot run the gateway here; see above.\n"
        );
    }

    #[test]
    fn only_what_is_needed_stops_the_laboratory() {
        let missing: Result<String, &str> = Err("not found");
        let checks = [Check::new("iproute2", missing, "nothing runs").needed()];
        let mut text = Vec::new();
        print(&mut text, &checks).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("cannot run the laboratory: iproute2 missing.\n"), "{text}");
    }

    #[test]
    fn either_way_of_attaching_is_enough_for_the_gateway() {
        for (tcx, clsact) in [(false, false), (false, true), (true, false), (true, true)] {
            let result = |ok| if ok { Ok("attached".to_owned()) } else { Err("refused") };
            let checks = [
                Check::new(GATEWAY_BY_TCX, result(tcx), "a cost"),
                Check::new(GATEWAY_BY_CLSACT, result(clsact), "a cost"),
            ];
            let mut text = Vec::new();
            print(&mut text, &checks).unwrap();
            let text = String::from_utf8(text).unwrap();
            let can = text.ends_with("This user can run the gateway here.\n");
            assert_eq!(can, tcx || clsact, "{text}");
        }
    }
}
