//! Timestamps: an agent may give a packet another TSval of its sender [C-12, C-27], and invents
//! none.

use super::bounded_map::BoundedMap;
use super::violation::Violation;
use crate::port::Port;
use crate::wire::tcp::{Endpoint, Segment};

/// The number of values in memory: those of a minute, if a host counts milliseconds.
const VALUES: usize = 1 << 16;
/// The number of directed flows whose newest value is in memory.
const FLOWS: usize = 1 << 12;

type Flow = (Endpoint, Endpoint);

/// The timestamps that have entered the agent.
#[derive(Debug, Default)]
pub(super) struct Timestamps {
    values: Known,
    echoes: Known,
}

/// Values of one of the two fields.
#[derive(Debug)]
struct Known {
    values: BoundedMap<(Flow, u32), ()>,
    /// `None` after values that are too far apart to have an order, which only a hostile host
    /// sends.
    newest: BoundedMap<Flow, Option<u32>>,
}

impl Default for Known {
    fn default() -> Self {
        Self { values: BoundedMap::new(VALUES), newest: BoundedMap::new(FLOWS) }
    }
}

impl Timestamps {
    /// Notes a segment that is about to enter the agent.
    pub(super) fn enters(&mut self, segment: &Segment) {
        let Some(timestamps) = segment.options.timestamps else { return };
        let flow = (segment.source, segment.destination);
        self.values.insert(flow, timestamps.value);
        self.echoes.insert(flow, timestamps.echo);
    }

    /// Checks a segment that leaves the agent towards `to`: its sender has sent this TSval and this
    /// TSecr. What the other host echoes was sent, too.
    pub(super) fn leaves(&self, to: Port, segment: &Segment) -> Result<(), Violation> {
        let Some(timestamps) = segment.options.timestamps else { return Ok(()) };
        let (value, echo) = (timestamps.value, timestamps.echo);
        let flow = (segment.source, segment.destination);
        if !self.values.allows(flow, value) && !self.echoes.allows((flow.1, flow.0), value) {
            return Err(Violation::TimestampInvented { to, value });
        }
        let is_known = self.echoes.allows(flow, echo);
        is_known.then_some(()).ok_or(Violation::EchoInvented { to, echo })
    }
}

impl Known {
    fn insert(&mut self, flow: Flow, value: u32) {
        self.values.insert((flow, value), ());
        let newest = match self.newest.get(&flow) {
            Some(Some(newest)) => later(*newest, value),
            Some(None) => None,
            None => Some(value),
        };
        self.newest.insert(flow, newest);
    }

    /// Whether this value was sent; of a flow that may have sent what is forgotten, whether it is
    /// not newer than the newest one.
    fn allows(&self, flow: Flow, value: u32) -> bool {
        if self.values.get(&(flow, value)).is_some() {
            return true;
        }
        self.values.has_forgotten
            && match self.newest.get(&flow) {
                Some(Some(newest)) => later(*newest, value) == Some(*newest),
                Some(None) => true,
                None => self.newest.has_forgotten,
            }
    }
}

/// The later of two values; `None` if they have no order.
fn later(known: u32, value: u32) -> Option<u32> {
    let offset = value.wrapping_sub(known) as i32;
    (offset.unsigned_abs() <= 1 << 30).then_some(if offset > 0 { value } else { known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::tcp::{self, Options};

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 0, 2], 5001);

    /// A segment of the mobile host.
    fn segment(value: u32, echo: u32) -> Segment {
        between(MOBILE, FIXED, value, echo)
    }

    fn between(from: ([u8; 4], u16), to: ([u8; 4], u16), value: u32, echo: u32) -> Segment {
        let timestamps = Some(tcp::Timestamps { value, echo });
        let options = Options { timestamps, ..Options::default() };
        let packet = SegmentBuilder::new(from, to).options(options).build(LinkType::Ip);
        Segment::parse(&packet).unwrap()
    }

    #[test]
    fn an_older_timestamp_may_come_back_but_none_is_invented() {
        let mut timestamps = Timestamps::default();
        // Across the wrap.
        for (value, echo) in [(u32::MAX, 7), (3, 8)] {
            timestamps.enters(&segment(value, echo));
        }
        let leaves = |value, echo| timestamps.leaves(Port::Wired, &segment(value, echo));
        assert_eq!(leaves(u32::MAX, 8), Ok(()), "C-27");
        for value in [0, 4] {
            let violation = Violation::TimestampInvented { to: Port::Wired, value };
            assert_eq!(leaves(value, 8), Err(violation));
        }
        let violation = Violation::EchoInvented { to: Port::Wired, echo: 6 };
        assert_eq!(leaves(3, 6), Err(violation));
    }

    #[test]
    fn what_the_other_host_echoes_was_sent() {
        let mut timestamps = Timestamps::default();
        timestamps.enters(&segment(1, 7));
        timestamps.enters(&between(FIXED, MOBILE, 7, 2));
        assert_eq!(timestamps.leaves(Port::Wired, &segment(2, 7)), Ok(()), "C-12");
        let echo = 2;
        let violation = Violation::EchoInvented { to: Port::Wired, echo };
        assert_eq!(timestamps.leaves(Port::Wired, &segment(1, echo)), Err(violation));
    }

    #[test]
    fn memory_is_bounded_and_then_only_what_is_too_new_is_accused() {
        let mut timestamps = Timestamps::default();
        for value in 0..=VALUES as u32 {
            timestamps.enters(&segment(value, 7));
        }
        assert_eq!(timestamps.values.values.len(), VALUES);
        assert_eq!(timestamps.leaves(Port::Wired, &segment(0, 7)), Ok(()));
        let value = VALUES as u32 + 1;
        let violation = Violation::TimestampInvented { to: Port::Wired, value };
        assert_eq!(timestamps.leaves(Port::Wired, &segment(value, 7)), Err(violation));
        // Values without an order accuse nobody.
        for value in [1 << 31, 5] {
            timestamps.enters(&segment(value, 7));
        }
        assert_eq!(timestamps.leaves(Port::Wired, &segment(value, 7)), Ok(()));
    }
}
