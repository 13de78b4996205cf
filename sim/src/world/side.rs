//! Pairs with one value for each port of a station.

use airmend_proto::Port;

/// The place of a port in a pair: wired, then air.
pub(crate) fn side_index(port: Port) -> usize {
    match port {
        Port::Wired => 0,
        Port::Air => 1,
    }
}
