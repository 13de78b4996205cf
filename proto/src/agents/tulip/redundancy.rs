//! How many repair frames the link sends, so that the losses to be expected need no retransmission.
//!
//! Of the packets in flight each is lost with the probability that the path shows, and a repair
//! frame makes up for any one of them. Losses and repair frames so make a random walk: a loss waits
//! until as many repair frames have arrived as packets are missing. With a share of repair frames
//! of p + 2 sqrt(p (1 - p) / h) the walk returns within about h frames, p being the share of
//! losses; that is the need below. What link ACKs show to be lost beyond it is retransmitted.
//!
//! A repair frame covers no packet that leaves after it. While packets follow one another the next
//! one does; the last packets of a burst need some of their own.

use super::frame::Ack;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The need lies so many standard deviations of the losses above their mean.
const DEVIATIONS: f64 = 2.0;
/// The frames within which a loss is to be made up for, where the link has capacity to spare. Where
/// packets wait for it the horizon is all in flight: a shorter one costs the hosts more of the path
/// than the wait for a retransmission does.
const SPARE_HORIZON: f64 = 16.0;
/// With fewer frames in flight a retransmission is as quick where packets wait for the link: it
/// delays only senders that do not fill the path.
const LEAST_BUSY: u32 = 200;
/// The same for the last packets of a burst: capacity is idle after them.
const PAUSE_DEVIATIONS: f64 = 5.0;
/// Bytes of packets that are kept to recover others from.
const MAX_DECODER_BYTES: usize = 8 << 20;
/// And at most this part of what packets that are sent may take.
const DECODER_SHARE: usize = 8;
/// The most repair frames that are remembered.
const MAX_REPAIRS: usize = 4_096;

/// Bytes of packets that an end keeps to recover others from, if it caches so many.
pub(super) fn decoder_bytes(cache_bytes: usize) -> usize {
    MAX_DECODER_BYTES.min(cache_bytes / DECODER_SHARE)
}

/// The repair frames of one end that may still be of use, and what the path loses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Redundancy {
    repairs: VecDeque<Repair>,
    /// Of `repairs`, those that have arrived, and those of them that make up for a loss.
    arrived: u32,
    useful: u32,
    /// The first packet since the hosts have paused last.
    burst: SeqNumber,
    losses: Losses,
}

/// A repair frame that has arrived, or may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Repair {
    serial: SeqNumber,
    /// The first sequence number above its window.
    end: SeqNumber,
    has_arrived: bool,
}

/// The packets in flight: the first one, those whose outcome is open, and those that are known to
/// be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) first: SeqNumber,
    pub(super) open: u32,
    pub(super) missing: u32,
}

impl Redundancy {
    /// A new stream begins, over the same path.
    pub(super) fn restart(&mut self) {
        *self = Self { losses: self.losses, ..Self::default() };
    }

    /// A repair frame leaves, for the packets below `end`.
    pub(super) fn sent(&mut self, serial: SeqNumber, end: SeqNumber) {
        if self.repairs.len() < MAX_REPAIRS {
            self.repairs.push_back(Repair { serial, end, has_arrived: false });
        }
    }

    /// The hosts have paused before this packet.
    pub(super) fn begin_burst(&mut self, seq: SeqNumber) {
        self.burst = seq;
    }

    /// The outcome of a transmission.
    pub(super) fn count(&mut self, has_arrived: bool) {
        self.losses.count(has_arrived);
    }

    /// Takes a link ACK. Repair frames up to `settled` that have not arrived are lost, which counts
    /// if the path `is_clear` of a queue. Those for packets that have all arrived are of no use any
    /// more. `missing` lists the missing packets, in order; it is asked only where repair frames
    /// have arrived for them, since it allocates.
    pub(super) fn acknowledge(
        &mut self,
        ack: &Ack,
        (settled, is_clear): (SeqNumber, bool),
        missing: impl FnOnce() -> Vec<SeqNumber>,
    ) {
        let (losses, arrived) = (&mut self.losses, &mut self.arrived);
        self.repairs.retain_mut(|repair| {
            if !repair.has_arrived {
                repair.has_arrived = ack.has_arrived(repair.serial) == Some(true);
                let is_lost = !repair.has_arrived && repair.serial <= settled;
                if is_clear && (repair.has_arrived || is_lost) {
                    losses.count(repair.has_arrived);
                }
                if is_lost {
                    return false;
                }
                *arrived += u32::from(repair.has_arrived);
            }
            let is_of_use = repair.end > ack.next;
            *arrived -= u32::from(repair.has_arrived && !is_of_use);
            is_of_use
        });
        self.useful = if self.arrived > 0 { self.useful(&missing()) } else { 0 };
    }

    /// For how many of the missing packets, in order, repair frames have arrived: each makes up for
    /// one that left before it.
    fn useful(&self, missing: &[SeqNumber]) -> u32 {
        let (mut before, mut useful) = (0, 0);
        for repair in self.repairs.iter().filter(|repair| repair.has_arrived) {
            while missing.get(before).is_some_and(|seq| *seq < repair.end) {
                before += 1;
            }
            useful = (useful + 1).min(before);
        }
        useful as u32
    }

    /// The number of losses that are known or to be expected.
    pub(super) fn expected(&self, packets: InFlight) -> f64 {
        f64::from(packets.missing) + self.losses.share() * f64::from(packets.open)
    }

    /// Whether another repair frame is due; `is_spare` where the link has capacity to spare.
    pub(super) fn is_due(&self, packets: InFlight, is_spare: bool) -> bool {
        if !is_spare && packets.open + self.open() < LEAST_BUSY {
            return false;
        }
        let need = |open| self.need(InFlight { open, ..packets }, is_spare);
        // What the last packets of an earlier burst have had of their own covers none of this one.
        let earlier = self.burst.offset_from(packets.first).clamp(0, packets.open as i32) as u32;
        let is_older = |repair: &&Repair| repair.end <= self.burst;
        let older = self.repairs.iter().take_while(is_older);
        let older = older.filter(|repair| !repair.has_arrived).count();
        let useless = (1.0 - self.losses.share()) * older as f64 - need(earlier);
        need(packets.open) >= self.at_hand() - useless.max(0.0) + 0.5
    }

    /// The losses of packets in flight that are to be made up for within the horizon.
    fn need(&self, packets: InFlight, is_spare: bool) -> f64 {
        let share = self.losses.share();
        let frames = f64::from(packets.open + self.open());
        let horizons = if is_spare { (frames / SPARE_HORIZON).max(1.0) } else { 1.0 };
        let deviation = libm::sqrt(share * (1.0 - share) * frames * horizons);
        self.expected(packets) + DEVIATIONS * deviation
    }

    /// Whether another repair frame is due for the last packets before `end`, after which the hosts
    /// pause. Repair frames that left before a packet do not cover it.
    pub(super) fn is_due_in_pause(&self, packets: InFlight, end: SeqNumber) -> bool {
        let last = packets.open.min(SPARE_HORIZON as u32);
        let covers = |repair: &&Repair| repair.end > end - last;
        let covering = self.repairs.iter().rev().take_while(covers).count();
        need_of_last(last, self.losses.share())
            >= (1.0 - self.losses.share()) * covering as f64 + 0.5
    }

    /// Whether a frame by itself, as the last one of a burst, needs to be made up for where this
    /// share is lost.
    pub(super) fn is_due_for_one(share: f64) -> bool {
        need_of_last(1, share) >= 0.5
    }

    /// The share of frames that are lost, of packets that are repeated and of repair frames.
    pub(super) fn share(&self) -> f64 {
        self.losses.share()
    }

    /// Whether repair frames are too few for the losses that are known.
    pub(super) fn lacks(&self, missing: u32) -> bool {
        f64::from(missing) >= self.at_hand() + 1.0
    }

    /// Repair frames that have arrived, or will.
    fn at_hand(&self) -> f64 {
        f64::from(self.useful) + (1.0 - self.losses.share()) * f64::from(self.open())
    }

    /// Repair frames whose outcome is not known.
    fn open(&self) -> u32 {
        self.repairs.len() as u32 - self.arrived
    }
}

/// The losses to be made up for of the last packets of a burst, of which this share is lost.
fn need_of_last(packets: u32, share: f64) -> f64 {
    let expected = share * f64::from(packets);
    expected + PAUSE_DEVIATIONS * libm::sqrt(expected * (1.0 - share))
}

/// Transmissions after which older ones count half, and from which on only what was seen counts.
const MEMORY: u32 = 2_048;
const KNOWN: u32 = 256;
/// What is assumed before: one loss of twenty.
const PRIOR: (u32, u32) = (1, 20);

/// What the path loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Losses {
    frames: u32,
    lost: u32,
}

impl Losses {
    fn count(&mut self, has_arrived: bool) {
        self.frames += 1;
        self.lost += u32::from(!has_arrived);
        if self.frames > MEMORY {
            (self.frames, self.lost) = (self.frames / 2, self.lost / 2);
        }
    }

    fn share(&self) -> f64 {
        let (lost, of) = if self.frames < KNOWN { PRIOR } else { (0, 0) };
        f64::from(self.lost + lost) / f64::from(self.frames + of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use core::time::Duration;

    /// A path of this share of losses in 1000ths is known.
    fn knowing(share: u32) -> Redundancy {
        let mut redundancy = Redundancy::default();
        (0..2_000).for_each(|frame| redundancy.count(frame % 1_000 >= share));
        redundancy
    }

    /// Repair frames that are due one after the other.
    fn due(redundancy: &Redundancy, open: u32, missing: u32, is_spare: bool) -> u32 {
        let mut redundancy = redundancy.clone();
        let mut sent = 0;
        while redundancy.is_due(InFlight { first: SeqNumber(0), open, missing }, is_spare) {
            sent += 1;
            redundancy.sent(SeqNumber(sent), SeqNumber(1_000));
        }
        sent
    }

    fn ack(next: u32, highest: u32, missing: u8) -> Ack {
        Ack {
            next: SeqNumber(next),
            highest_serial: SeqNumber(highest),
            delay: Duration::ZERO,
            covered: Some(highest as u16),
            marks: None,
            clock: None,
            vector: Bytes::copy_from_slice(&[missing]),
        }
    }

    #[test]
    fn a_path_without_losses_needs_none_and_one_with_losses_a_little_more_than_it_loses() {
        assert_eq!([1, 10, 1_000].map(|open| due(&knowing(0), open, 0, true)), [0, 0, 0]);
        // 5 % of 1000 are 50; 50 / 0.95 would arrive as often as packets are lost.
        assert!((64..75).contains(&due(&knowing(50), 1_000, 0, false)));
        assert!((150..190).contains(&due(&knowing(50), 1_000, 0, true)));
        assert_eq!((due(&knowing(50), 150, 0, false), due(&knowing(50), 10, 0, true)), (0, 2));
    }

    #[test]
    fn what_is_lost_beyond_the_need_lacks_repair_frames() {
        let mut redundancy = knowing(100);
        redundancy.sent(SeqNumber(8), SeqNumber(7));
        redundancy.sent(SeqNumber(9), SeqNumber(7));
        assert!(!redundancy.lacks(2) && redundancy.lacks(3));
        // One arrives and one does not: bit 0 stands for the transmission 9.
        let missing = [3, 5].map(SeqNumber);
        redundancy.acknowledge(&ack(3, 9, 1), (SeqNumber(9), true), || missing.to_vec());
        assert_eq!((redundancy.arrived, redundancy.open()), (1, 0));
        assert!(!redundancy.lacks(1) && redundancy.lacks(2));
        redundancy.acknowledge(&ack(7, 9, 1), (SeqNumber(9), true), Vec::new);
        assert!(redundancy.repairs.is_empty(), "all its packets have arrived");
    }

    #[test]
    fn what_left_before_a_packet_makes_up_for_no_loss_of_it() {
        let mut redundancy = knowing(100);
        (10..14).for_each(|serial| redundancy.sent(SeqNumber(serial), SeqNumber(5)));
        redundancy.sent(SeqNumber(14), SeqNumber(20));
        let mut useful = |missing: &[u32]| {
            let missing: Vec<SeqNumber> = missing.iter().copied().map(SeqNumber).collect();
            redundancy.acknowledge(&ack(3, 14, 0), (SeqNumber(14), true), || missing);
            redundancy.useful
        };
        // Four for the packets below 5, and one for those below 20.
        assert_eq!(useful(&[3, 6, 7, 8]), 2);
        assert_eq!(useful(&[3, 4, 6, 7]), 3);
        assert_eq!(useful(&[3, 25]), 1);
        assert_eq!(useful(&[25]), 0);
    }

    #[test]
    fn what_the_last_packets_of_a_burst_have_had_covers_none_of_the_next() {
        let due = |burst: u32| {
            let mut redundancy = knowing(50);
            (0..6).for_each(|serial| redundancy.sent(SeqNumber(serial), SeqNumber(20)));
            redundancy.begin_burst(SeqNumber(burst));
            // Two of the earlier burst, and ten of this one.
            redundancy.is_due(InFlight { first: SeqNumber(18), open: 12, missing: 0 }, true)
        };
        assert!(due(20) && !due(0));
    }

    #[test]
    fn the_last_packets_of_a_burst_need_repair_frames_of_their_own() {
        let due = |share: u32, open: u32, sent_before: u32| {
            let mut redundancy = knowing(share);
            (0..8).for_each(|serial| redundancy.sent(SeqNumber(serial), SeqNumber(sent_before)));
            let packets = InFlight { first: SeqNumber(0), open, missing: 0 };
            let is_due =
                |redundancy: &Redundancy| redundancy.is_due_in_pause(packets, SeqNumber(100));
            let mut sent = 0;
            while is_due(&redundancy) {
                sent += 1;
                redundancy.sent(SeqNumber(8 + sent), SeqNumber(100));
            }
            sent
        };
        // Those before the last 16 packets count for nothing, those after some of them do.
        assert_eq!([0, 10, 50, 100].map(|share| due(share, 1, 50)), [0, 1, 1, 2]);
        assert!(due(50, 100, 84) >= 5 && due(50, 100, 90) == 0);
        assert!(due(10, 100, 84) < due(100, 100, 84));
    }
}
