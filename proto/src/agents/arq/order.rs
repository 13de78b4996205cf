//! The packets among which a link keeps the order.

use crate::named;
use crate::settings::written_as_displayed;

/// The packets among which the order is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// All packets to one destination [tulip99 §III S2-02, lack §3.3 S1-23].
    Destination,
    /// The packets of one flow: the same addresses, protocol and ports (RFC 3366 §3.2).
    Flow,
}

named! { Order, "is no order of packets": Destination = "destination", Flow = "flow" }
written_as_displayed!(Order);
