//! The first congestion window of this host's own connections through the link (`initcwnd`).
//!
//! TCP begins with ten segments, since it knows nothing of the path (RFC 6928); the link has
//! measured it. What the path holds without a queue leaves at once, as far as the window of a SYN
//! can allow it. Linux lets the metric `initrwnd` only lower that one
//! (`tcp_select_initial_window`), so that it stays as it is. Hosts behind the ends keep their
//! own first windows.

use airmend_proto::PathView;
use std::net::IpAddr;

/// The largest window of a SYN, which is not scaled (RFC 7323 §2.2).
const SYN_WINDOW: u64 = 65_535;
/// Linux's first window in segments (`TCP_INIT_CWND`, RFC 6928).
const USUAL: u32 = 10;
/// Bytes of the headers of a segment over IPv4.
const HEADERS: u32 = 40;

/// The first window in segments over a path, at this MTU of the interface; 0 for the kernel's own,
/// where the path holds no more or is not known.
pub(super) fn initial_window(path: Option<PathView>, mtu: u32) -> u32 {
    let holds = || {
        let path = path?;
        let bytes = path.rate? as f64 * path.least_round_trip?.as_secs_f64();
        Some((bytes as u64).min(SYN_WINDOW) as u32 / mtu.saturating_sub(HEADERS).max(1))
    };
    holds().filter(|segments| *segments > USUAL).unwrap_or(0)
}

/// Whether a route's window is to become another one. What a path is measured to hold varies.
pub(super) fn is_another(wanted: u32, present: u32) -> bool {
    let [wanted, present] = [wanted, present].map(|segments| segments.max(USUAL));
    wanted.abs_diff(present) > present / 4
}

/// Whether connections to this address are not those of the link's users: each interface has it.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn path(mbps: u64, millis: u64) -> Option<PathView> {
        Some(PathView {
            rate: Some(mbps * 125_000),
            least_round_trip: Some(Duration::from_millis(millis)),
            ..PathView::default()
        })
    }

    #[test]
    fn a_window_is_what_the_path_holds_and_a_syn_allows() {
        assert_eq!(initial_window(path(20, 10), 1_422), 18);
        assert_eq!(initial_window(path(20, 140), 1_422), 47);
        assert_eq!(initial_window(path(20, 140), 9_000), 0, "seven segments of 8,960 bytes");
        assert_eq!(initial_window(path(20, 4), 1_422), 0, "less than ten segments");
        assert_eq!(initial_window(path(u64::MAX >> 20, 600), 1_422), 47);
        assert_eq!(initial_window(path(20, 140), 0), SYN_WINDOW as u32);
        assert_eq!(initial_window(None, 1_422), 0);
        assert_eq!(initial_window(Some(PathView::default()), 1_422), 0);
    }

    #[test]
    fn a_window_that_differs_by_little_stays() {
        assert!(!is_another(24, 20) && is_another(26, 20) && is_another(14, 20));
        assert!(is_another(20, 0) && is_another(0, 20) && !is_another(0, 0));
        // A path that holds ten segments or so.
        assert!(!is_another(11, 0) && !is_another(0, 11));
    }

    #[test]
    fn only_ipv6_has_link_local_networks_on_each_interface() {
        assert!(is_link_local("fe80::".parse().unwrap()));
        assert!(!is_link_local("fd09::".parse().unwrap()));
        assert!(!is_link_local("169.254.0.0".parse().unwrap()));
    }
}
