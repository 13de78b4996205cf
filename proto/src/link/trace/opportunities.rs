//! Opportunities to deliver, as Mahimahi's `mm-link` has them.
//!
//! Each line of its file is a millisecond in which 1504 bytes can be delivered: a packet of 1500
//! bytes and the four bytes that its TUN device puts before each. What waits shares an opportunity,
//! a packet that is larger than the rest goes on in the next one, and an opportunity at which
//! nothing waits is gone. After the last line the file begins again.

use super::error::TraceError;
use crate::time::Instant;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Lines at most.
pub const MAX_OPPORTUNITIES: usize = 10_000_000;
/// Bytes of an opportunity.
const OPPORTUNITY: u64 = 1504;
/// What each packet has before it there.
const TUN_HEADER: u64 = 4;
/// Bits of a full packet, which uses one up.
const FULL_PACKET: f64 = ((OPPORTUNITY - TUN_HEADER) * 8) as f64;
const MILLISECOND: u64 = 1_000_000;

/// When opportunities come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// In milliseconds, never descending, and the last one more than 0.
    times: Arc<[u32]>,
    period: u64,
}

impl Opportunities {
    /// Reads a packet-delivery trace.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<u32> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let refuse = |message| Err(TraceError::at_line(number, message));
            let is_whole = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
            let word = line.trim();
            let time = word.parse().ok().filter(|_| is_whole(word));
            let Some(time) = time else {
                return refuse(format!(
                    "a line must be a whole number of milliseconds up to {}, not {word:?}",
                    u32::MAX
                ));
            };
            if times.last().is_some_and(|last| time < *last) {
                return refuse(format!("the timestamps must not descend, and {time} does"));
            }
            if times.len() == MAX_OPPORTUNITIES {
                return refuse(format!("a trace has at most {MAX_OPPORTUNITIES} lines"));
            }
            times.push(time);
        }
        match times.last() {
            None => Err(TraceError::of_file("the file is empty; it has a timestamp in each line")),
            Some(0) => Err(TraceError::of_file(
                "the last timestamp must be more than 0, since the trace \
                                         begins again then",
            )),
            Some(&last) => Ok(Self { times: times.into(), period: last.into() }),
        }
    }

    /// The mean rate of packets of 1500 bytes, in bits per second.
    pub fn mean_bps(&self) -> f64 {
        self.times.len() as f64 * FULL_PACKET * 1e3 / self.period as f64
    }

    /// The same between two times.
    pub(super) fn between_bps(&self, from: Instant, to: Instant) -> f64 {
        let count = self.until(to) - self.until(from);
        count as f64 * FULL_PACKET / to.since(from).as_secs_f64().max(1e-9)
    }

    /// Opportunities until a time and at it.
    fn until(&self, time: Instant) -> u64 {
        let next = self.first_after(time);
        next.cycle * self.times.len() as u64 + next.index as u64
    }

    /// The first opportunity after a time.
    fn first_after(&self, time: Instant) -> Place {
        let millis = time.as_nanos() / MILLISECOND + 1;
        let cycle = (millis - 1) / self.period;
        let phase = millis - cycle * self.period;
        let index = self.times.partition_point(|at| u64::from(*at) < phase);
        Place { cycle, index }
    }

    fn time(&self, Place { cycle, index }: Place) -> Instant {
        let phase = self.times.get(index).copied().unwrap_or_default();
        let millis = cycle.saturating_mul(self.period).saturating_add(phase.into());
        Instant::from_nanos(millis.saturating_mul(MILLISECOND))
    }
}

/// An opportunity: how often the file has begun again, and the line.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    cycle: u64,
    index: usize,
}

/// Uses the opportunities of one way.
#[derive(Clone, Debug)]
pub(in crate::link) struct Deliveries {
    opportunities: Opportunities,
    present: Place,
    /// Bytes that the present opportunity can still take.
    rest: u64,
}

impl Deliveries {
    pub(super) fn new(opportunities: Opportunities) -> Self {
        Self { opportunities, present: Place::default(), rest: OPPORTUNITY }
    }

    /// When a packet of so many bytes has been delivered. It waits since `start`; `follows` another
    /// one, which was delivered then, or nothing waited before it.
    pub(super) fn end(&mut self, start: Instant, follows: bool, bytes: u64) -> Instant {
        if !follows {
            self.present = self.opportunities.first_after(start);
            self.rest = OPPORTUNITY;
        }
        let mut left = bytes + TUN_HEADER;
        while left > self.rest {
            left -= self.rest;
            self.advance();
        }
        self.rest -= left;
        self.opportunities.time(self.present)
    }

    fn advance(&mut self) {
        self.rest = OPPORTUNITY;
        self.present.index += 1;
        if self.present.index == self.opportunities.times.len() {
            self.present = Place { cycle: self.present.cycle.saturating_add(1), index: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;

    fn deliveries(text: &str) -> Deliveries {
        Deliveries::new(Opportunities::parse(text).unwrap())
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn packets_share_an_opportunity_or_go_on_in_the_next() {
        let mut link = deliveries("3\n3\n10\n");
        // Fills the first one, and 20 more bytes of the second of the same millisecond.
        assert_eq!(link.end(at(0), false, 1520), at(3));
        // Of 1484 left, 56 and 56 are used; the next packet is larger than the rest.
        assert_eq!(link.end(at(3), true, 52), at(3));
        assert_eq!(link.end(at(3), true, 52), at(3));
        assert_eq!(link.end(at(3), true, 1500), at(10));
        // The file begins again at 10, and its first opportunity is at 13.
        assert_eq!(link.end(at(10), true, 1500), at(13));
    }

    #[test]
    fn an_unused_opportunity_is_gone() {
        let mut link = deliveries("1\n2\n5\n");
        assert_eq!(link.end(at(0), false, 100), at(1));
        // The rest of that of 1 ms, and that of 2 ms.
        assert_eq!(link.end(at(2), false, 100), at(5));
        assert_eq!(link.end(at(27), false, 1500), at(30));
        assert_eq!(link.end(at(30), true, 1500), at(31));
        assert_eq!(link.end(at(1_000_000_000), false, 1), at(1_000_000_001));
    }

    #[test]
    fn a_line_a_millisecond_is_12_megabits() {
        let schedule = Opportunities::parse("1\n").unwrap();
        assert_eq!(schedule.mean_bps(), 12e6);
        let mut link = Deliveries::new(schedule);
        let mut now = link.end(Instant::ZERO, false, 1500);
        for _ in 0..9_999 {
            now = link.end(now, true, 1500);
        }
        assert_eq!(now, at(10_000));
    }

    #[test]
    fn what_mahimahi_refuses_is_refused() {
        let refused = |text: &str| Opportunities::parse(text).unwrap_err().to_string();
        let number = "a line must be a whole number of milliseconds up to 4294967295, not";
        for (text, sentence) in [
            ("", "the file is empty; it has a timestamp in each line".into()),
            ("1\n5\n4\n", "line 3: the timestamps must not descend, and 4 does".into()),
            ("1\n\n2\n", format!("line 2: {number} \"\"")),
            ("1.5\n", format!("line 1: {number} \"1.5\"")),
            ("+1\n", format!("line 1: {number} \"+1\"")),
            ("4294967296\n", format!("line 1: {number} \"4294967296\"")),
            ("time_s,rate_bps\n", format!("line 1: {number} \"time_s,rate_bps\"")),
        ] {
            assert_eq!(refused(text), sentence, "{text:?}");
        }
        assert!(refused("0\n0\n").starts_with("the last timestamp must be more than 0"));
        assert!(Opportunities::parse("0\r\n1\r\n").is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_gets_one_sentence(text in "(?s)[0-9\n\r .x]{0,60}") {
            if let Err(error) = Opportunities::parse(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }

        /// Beside a plain list of opportunities, each of which is used or gone.
        #[test]
        fn deliveries_are_those_of_a_list(
            steps in prop::collection::vec(0u64..9, 1..20),
            packets in prop::collection::vec((0u64..3_000_000, 1u64..4_000), 1..60),
        ) {
            let mut last = 0;
            let times: Vec<u64> = steps.iter().map(|step| { last += step; last }).collect();
            prop_assume!(last > 0);
            let text: String = times.iter().map(|time| format!("{time}\n")).collect();
            let mut link = deliveries(&text);
            let rounds = 1..=20_000 / last;
            let mut list = times.clone();
            list.extend(rounds.flat_map(|n| times.iter().map(move |time| n * last + time)));
            let mut list = list.into_iter().map(at).peekable();
            let (mut now, mut busy_until, mut rest) = (Instant::ZERO, None, 0);
            for (pause, bytes) in packets {
                now += core::time::Duration::from_nanos(pause);
                let follows = busy_until.is_some_and(|busy| busy >= now);
                let start = if follows { busy_until.unwrap_or(now) } else { now };
                if !follows {
                    rest = 0;
                    while list.next_if(|time| *time <= start).is_some() {}
                }
                let (mut left, mut end) = (bytes + 4, start);
                while left > rest {
                    left -= rest;
                    end = list.next().unwrap();
                    rest = 1504;
                }
                rest -= left;
                prop_assert_eq!(link.end(start, follows, bytes), end);
                busy_until = Some(end);
            }
        }
    }
}
