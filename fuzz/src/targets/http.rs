//! Any bytes as an HTTP request that comes in pieces: once there is an answer, more bytes do not
//! change it, and the path of an answer has no query and nothing that a path cannot have.

use airmend_live::gateway::telemetry::server::fuzzing::{Parsed, parse_request};

const STATUSES: [&str; 3] =
    ["400 Bad Request", "405 Method Not Allowed", "431 Request Header Fields Too Large"];

pub(crate) fn fuzz(data: &[u8]) {
    let whole = parse_request(data);
    let ends = data.iter().enumerate().filter(|(_, byte)| matches!(byte, b'\n' | b' '));
    for len in ends.map(|(at, _)| at + 1).take(80).chain([data.len() / 2]) {
        let so_far = parse_request(&data[..len]);
        assert!(so_far == whole || so_far == Parsed::Partial, "{so_far:?} after {len} bytes");
    }
    match whole {
        Parsed::Partial => {}
        Parsed::Path(path) => {
            assert!(!path.contains(|c: char| c == '?' || c.is_ascii_control() || c == ' '));
            let is_in_request = data.windows(path.len().max(1)).any(|at| at == path.as_bytes());
            assert!(is_in_request || path.is_empty(), "{path:?} was not asked for");
        }
        Parsed::Refused(status) => assert!(STATUSES.contains(&status), "{status}"),
    }
}
