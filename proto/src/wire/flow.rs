//! The key under which an agent finds a flow.

use crate::port::Port;
pub use crate::wire::endpoint::Endpoint;
use crate::wire::tcp::Segment;
use core::fmt;
use core::hash::{Hash, Hasher};

/// A connection as a gateway sees it, the same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// The end on the wired side: the fixed host.
    pub wired: Endpoint,
    /// The end on the air side: the mobile host.
    pub air: Endpoint,
}

impl FlowKey {
    /// The flow of a segment that arrived from `from`.
    pub fn of(segment: &Segment, from: Port) -> Self {
        match from {
            Port::Wired => Self { wired: segment.source, air: segment.destination },
            Port::Air => Self { wired: segment.destination, air: segment.source },
        }
    }
}

/// Three writes of plain numbers; the derived code would also hash lengths.
impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from_be_bytes(self.wired.address));
        state.write_u128(u128::from_be_bytes(self.air.address));
        state.write_u32(u32::from(self.wired.port) << 16 | u32::from(self.air.port));
    }
}

/// The wired end first: `10.0.0.1:80 <-> 10.0.1.2:5000`.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <-> {}", self.wired, self.air)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::build::SegmentBuilder;
    use alloc::string::ToString;

    #[test]
    fn both_directions_have_one_key() {
        let (fixed, mobile) = (([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000));
        let parse = |builder: SegmentBuilder<'_>| {
            Segment::parse(&builder.build(crate::LinkType::Ip)).unwrap()
        };
        let down = FlowKey::of(&parse(SegmentBuilder::new(fixed, mobile)), Port::Wired);
        let up = FlowKey::of(&parse(SegmentBuilder::new(mobile, fixed)), Port::Air);
        assert_eq!(down, up);
        assert_eq!(down.to_string(), "10.0.0.1:80 <-> 10.0.1.2:5000");
        assert_ne!(down, FlowKey::of(&parse(SegmentBuilder::new(mobile, fixed)), Port::Wired));
    }
}
