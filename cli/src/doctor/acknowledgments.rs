//! Whether the gateways that run here see both directions of their flows.

use super::check::Check;
use crate::status::{client, find};
use crate::text::{count, counted};
use airmend_live::gateway::default_socket;
use airmend_live::gateway::telemetry::Status;

/// Asks all gateways that this user may ask.
pub(super) fn checks() -> Vec<Check> {
    let running = find::running(find::DIRECTORY.as_ref());
    let asked = running.iter().take(MAX_GATEWAYS);
    let statuses = asked.filter_map(|interface| client::ask(&default_socket(interface)).ok());
    statuses.map(|status| check(&status)).collect()
}

fn check(status: &Status) -> Check {
    let flows = counted(status.flows, "flow");
    let result = match status.flows_unanswered {
        0 => Ok(format!("those of {flows} pass here")),
        without => Err(format!("none of {} of {flows} pass here", count(without))),
    };
    let cost = "these flows are not mended, and their losses are unknown: route what their mobile \
                hosts send through this machine too (asymmetric routing)";
    Check::new(&format!("acknowledgments at {}", status.interface), result, cost)
}

/// Gateways that are asked at most; each may take seconds to answer.
const MAX_GATEWAYS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asymmetric_route_is_named() {
        let status = Status { interface: "wlan0".into(), flows: 3, ..Status::default() };
        assert!(check(&status).ok);
        let check = check(&Status { flows_unanswered: 2, ..status });
        assert_eq!((check.ok, check.check.as_str()), (false, "acknowledgments at wlan0"));
        assert_eq!(check.found, "none of 2 of 3 flows pass here");
        assert!(check.cost.contains("asymmetric routing"), "{}", check.cost);
    }
}
