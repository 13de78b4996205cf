//! The frames in flight, and what link ACKs show of the rate that the path carries: the bytes that
//! arrived between the sending of a frame and its link ACK, over the time in which as many were
//! sent or arrived, the longer one (draft-cheng-iccrg-delivery-rate-estimation-02, Linux
//! `tcp_rate.c`).
//!
//! What the path loses by itself has crossed its bottleneck, and counts as if it had arrived: so
//! much of the losses as usually goes with what has arrived, and no more, since a policer drops as
//! well. A share of what was sent would grow with that, and the rate without end.

use crate::agents::arq::WIDEST_WINDOW;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most frames that are remembered: the widest window, and as many that are sent once or are
/// repair frames. An end that says nothing of them must not cost memory without bound.
const MOST_FRAMES: usize = 2 * WIDEST_WINDOW as usize;

/// The frames in flight. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    /// The serial number of the first of `sent`; serial numbers have no gaps.
    first: SeqNumber,
    sent: VecDeque<Sent>,
    in_flight: u64,
    /// Of these, what has arrived, since its link ACKs wait in the queue of the way back.
    unheard: u64,
    /// Those of them that the link repeats if they are lost.
    reliable: u64,
    /// All that is lost, and all that has arrived, and when the last of it did.
    lost: u64,
    delivered: u64,
    delivered_at: Instant,
    /// When the frame left that was acknowledged last.
    first_sent: Instant,
    /// Samples are limited by the hosts until more than this has arrived.
    host_limited: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sent {
    at: Instant,
    bytes: u32,
    is_reliable: bool,
    /// The state at its sending.
    under_way: u64,
    lost: u64,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    is_host_limited: bool,
    /// Whether it was sent below the rate of the path.
    is_slow: bool,
    /// Whether its outcome is known.
    is_settled: bool,
}

/// What one link ACK shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Bytes that were under way before it, and when the last frame left whose outcome it shows.
    pub(super) prior_under_way: u64,
    pub(super) under_way_at_departure: u64,
    /// Bytes that have arrived.
    pub(super) arrived: u64,
    /// Frames whose outcome it shows, and those of them that are lost.
    pub(super) frames: u32,
    pub(super) lost: u32,
    /// The same of frames that were sent below the rate of the path.
    pub(super) slow_frames: u32,
    pub(super) slow_lost: u32,
    /// The rate that the path carries.
    pub(super) rate: Option<Rate>,
    /// The round trip of the last frame of which this is the first that is heard, and that has
    /// overtaken no other: from its departure to the link ACK. Those that overtake are the quick
    /// ones.
    pub(super) round_trip: Option<Duration>,
    /// Whether that frame has the highest serial number.
    pub(super) is_highest: bool,
}

/// A rate that the path has carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) bytes_per_second: u64,
    /// All that had arrived when the frame was sent.
    pub(super) prior_delivered: u64,
    /// Whether the hosts, and not the path, limited it.
    pub(super) is_host_limited: bool,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self {
            first: SeqNumber(0),
            sent: VecDeque::new(),
            in_flight: 0,
            unheard: 0,
            reliable: 0,
            lost: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            host_limited: None,
        }
    }

    /// Bytes in flight: of which nothing has been heard.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Of these, what has not arrived.
    pub(super) fn under_way(&self) -> u64 {
        self.in_flight.saturating_sub(self.unheard)
    }

    /// And what the link repeats if it is lost.
    pub(super) fn reliable(&self) -> u64 {
        self.reliable.saturating_sub(self.unheard)
    }

    /// Bytes have arrived whose link ACKs wait in the queue of the way back.
    pub(super) fn note_unheard(&mut self, bytes: u64) {
        self.unheard = bytes;
    }

    /// All bytes that have arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The hosts have nothing to send: what is in flight shows no rate of the path.
    pub(super) fn limit_by_hosts(&mut self) {
        self.host_limited = Some(self.delivered + self.in_flight);
    }

    /// Serial numbers begin anew: nothing is in flight.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        (self.in_flight, self.unheard, self.reliable) = (0, 0, 0);
    }

    /// A frame leaves; `is_slow` if below the rate of the path.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        serial: SeqNumber,
        (bytes, is_reliable): (u32, bool),
        is_slow: bool,
    ) {
        let is_next = serial == self.first + self.sent.len() as u32;
        if !is_next || self.sent.len() == MOST_FRAMES {
            self.restart();
            self.first = serial;
        }
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.in_flight += u64::from(bytes);
        self.reliable += if is_reliable { u64::from(bytes) } else { 0 };
        self.sent.push_back(Sent {
            at: now,
            bytes,
            is_reliable,
            under_way: self.under_way(),
            lost: self.lost,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            is_host_limited: self.host_limited.is_some(),
            is_slow,
            is_settled: false,
        });
    }

    /// Takes a link ACK. `arrived` says of a serial number up to `highest` whether it has arrived;
    /// what has not is lost up to `settled`. `usual` is the share of frames that the path loses by
    /// itself, in 1024ths, and less than all.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        (highest, settled): (SeqNumber, SeqNumber),
        usual: u64,
        arrived: &dyn Fn(SeqNumber) -> bool,
    ) -> Sample {
        let mut sample = Sample { prior_under_way: self.under_way(), ..Sample::default() };
        let mut latest: Option<Sent> = None;
        let mut is_in_order = true;
        let reach = usize::try_from(highest.offset_from(self.first) + 1).unwrap_or(0);
        for (sent, serial) in self.sent.iter_mut().take(reach).zip(0u32..) {
            let serial = self.first + serial;
            let has_arrived = !sent.is_settled && arrived(serial);
            if sent.is_settled || (!has_arrived && serial > settled) {
                is_in_order &= sent.is_settled;
                continue;
            }
            sent.is_settled = true;
            self.in_flight -= u64::from(sent.bytes);
            self.reliable -= if sent.is_reliable { u64::from(sent.bytes) } else { 0 };
            sample.under_way_at_departure = sent.under_way;
            sample.frames += 1;
            sample.lost += u32::from(!has_arrived);
            sample.slow_frames += u32::from(sent.is_slow);
            sample.slow_lost += u32::from(sent.is_slow && !has_arrived);
            if has_arrived {
                sample.arrived += u64::from(sent.bytes);
                latest = Some(*sent);
                if is_in_order {
                    sample.round_trip = Some(now.since(sent.at));
                    sample.is_highest = serial == highest;
                }
            } else {
                self.lost += u64::from(sent.bytes);
            }
        }
        while self.sent.pop_front_if(|sent| sent.is_settled).is_some() {
            self.first += 1;
        }
        self.delivered += sample.arrived;
        if let Some(sent) = latest {
            sample.rate = self.rate(now, &sent, usual);
            (self.first_sent, self.delivered_at) = (sent.at, now);
        }
        if self.host_limited.is_some_and(|until| self.delivered > until) {
            self.host_limited = None;
        }
        sample
    }

    fn rate(&self, now: Instant, sent: &Sent, usual: u64) -> Option<Rate> {
        let interval = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
        if interval < Duration::from_micros(1) {
            return None;
        }
        let (arrived, lost) = (self.delivered - sent.delivered, self.lost - sent.lost);
        let carried = arrived + lost.min(arrived * usual / (1_024 - usual));
        let bytes = u128::from(carried) * 1_000_000_000;
        Some(Rate {
            bytes_per_second: u64::try_from(bytes / interval.as_nanos()).unwrap_or(u64::MAX),
            prior_delivered: sent.delivered,
            is_host_limited: sent.is_host_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_arrivals_and_not_that_of_link_acks() {
        let mut flight = Flight::new();
        // A frame of 1000 bytes each millisecond, and a link ACK for each four after 20 ms.
        let mut rates = alloc::vec::Vec::new();
        for millis in 0..200u32 {
            let now = Instant::from_millis(u64::from(millis));
            flight.sent(now, SeqNumber(millis), (1_000, true), false);
            if millis >= 20 && millis.is_multiple_of(4) {
                let highest = SeqNumber(millis - 20);
                let sample = flight.acknowledge(now, (highest, highest), 0, &|_| true);
                rates.extend(sample.rate.map(|rate| rate.bytes_per_second));
            }
        }
        assert!(rates[10..].iter().all(|rate| (950_000..=1_050_000).contains(rate)), "{rates:?}");
        assert_eq!(flight.in_flight(), 23_000);
    }

    #[test]
    fn frames_of_which_nothing_is_heard_take_bounded_memory() {
        let mut flight = Flight::new();
        for serial in 0..3 * MOST_FRAMES as u32 {
            flight.sent(Instant::ZERO, SeqNumber(serial), (100, false), false);
            assert!(flight.sent.len() <= MOST_FRAMES);
        }
        assert_eq!(flight.in_flight(), flight.sent.len() as u64 * 100);
    }

    #[test]
    fn what_is_usually_lost_has_crossed_the_path_and_what_is_lost_beyond_it_has_not() {
        // A frame of 1000 bytes each millisecond, of which one in ten is lost.
        let largest_rate = |usual| {
            let mut flight = Flight::new();
            let mut largest = 0;
            for millis in 0..400u32 {
                let now = Instant::from_millis(u64::from(millis));
                flight.sent(now, SeqNumber(millis), (1_000, true), false);
                if millis >= 100 && !millis.is_multiple_of(10) {
                    let highest = SeqNumber(millis - 100);
                    let arrived = |serial: SeqNumber| !serial.0.is_multiple_of(10);
                    let sample = flight.acknowledge(now, (highest, highest), usual, &arrived);
                    let rate = sample.rate.filter(|_| millis >= 200);
                    largest = largest.max(rate.map_or(0, |rate| rate.bytes_per_second));
                }
            }
            largest / 1_000
        };
        assert_eq!([0, 103, 512].map(largest_rate), [900, 1_000, 1_000]);
        assert!((945..960).contains(&largest_rate(51)));
    }

    #[test]
    fn what_a_link_ack_does_not_show_is_lost_only_when_it_is_settled() {
        let mut flight = Flight::new();
        (0..10).for_each(|serial| {
            flight.sent(Instant::ZERO, SeqNumber(serial), (100, serial < 8), serial < 3);
        });
        let now = Instant::from_millis(5);
        let arrived = |serial: SeqNumber| serial.0 != 1 && serial.0 != 6;
        let sample = flight.acknowledge(now, (SeqNumber(7), SeqNumber(4)), 0, &arrived);
        assert_eq!((sample.frames, sample.lost), (7, 1));
        assert_eq!((sample.slow_frames, sample.slow_lost), (3, 1));
        assert_eq!((sample.arrived, flight.in_flight(), flight.reliable()), (600, 300, 100));
        assert_eq!(sample.under_way_at_departure, 800);
        assert_eq!(sample.round_trip, Some(Duration::from_millis(5)));
        assert!(!sample.is_highest, "that one has overtaken another");
        // The missing one was overtaken.
        let sample = flight.acknowledge(now, (SeqNumber(7), SeqNumber(4)), 0, &|_| true);
        assert_eq!((sample.frames, sample.lost, flight.in_flight()), (1, 0, 200));
        assert_eq!(sample.round_trip, Some(Duration::from_millis(5)), "all before it are there");
    }
}
