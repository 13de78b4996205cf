//! Reports: which of the last transmissions have arrived. Their length follows from the losses
//! since the last few link ACKs, while the complete state of the paper grows with the window.

use super::frame::MAX_VECTOR_LEN;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec;
use bytes::Bytes;

/// Transmissions that are remembered: one for each bit of the longest vector.
const REMEMBERED: usize = 8 * MAX_VECTOR_LEN;
/// Link ACKs in which each transmission and each late arrival is reported: all but one of them may
/// be lost.
const REPEATS: usize = 8;
/// Transmissions that a report covers at least: their vector may travel with a packet.
const LEAST: u32 = 128;

/// The arrivals of one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reports {
    /// Whether each transmission has arrived, from the highest serial number downwards.
    arrived: VecDeque<bool>,
    /// The first transmission of which each of the last link ACKs told something new.
    told: VecDeque<SeqNumber>,
    /// The first of which the next one will.
    new: Option<SeqNumber>,
}

impl Reports {
    /// A transmission has arrived; `highest` is the highest serial number before it.
    pub(super) fn note(&mut self, serial: SeqNumber, highest: SeqNumber) {
        self.note_missing(serial, highest);
        let before = highest.offset_from(serial).max(0) as usize;
        if let Some(arrived) = self.arrived.get_mut(before).filter(|arrived| !**arrived) {
            *arrived = true;
            self.new = Some(self.new.map_or(serial, |new| new.min(serial)));
        }
    }

    /// A transmission is known of, and has not arrived.
    pub(super) fn note_missing(&mut self, serial: SeqNumber, highest: SeqNumber) {
        let ahead = serial.offset_from(highest).clamp(0, REMEMBERED as i32);
        (0..ahead).for_each(|_| self.arrived.push_front(false));
        self.arrived.truncate(REMEMBERED);
        if ahead > 0 {
            self.new.get_or_insert(highest + 1);
        }
    }

    /// The report of this moment: the number of transmissions that it covers, and its vector.
    /// `whole` covers all that are remembered.
    pub(super) fn take(&mut self, highest: SeqNumber, whole: bool) -> (u16, Bytes) {
        let (covered, vector) = (self.covered(highest, whole), self.vector(highest, whole));
        self.told.push_back(self.new.take().unwrap_or(highest + 1));
        if self.told.len() == REPEATS {
            self.told.pop_front();
        }
        (covered as u16, vector)
    }

    /// The length of the next report's vector, in bytes.
    pub(super) fn vector_len(&self, highest: SeqNumber, whole: bool) -> usize {
        let mut covered = self.arrived.iter().take(self.covered(highest, whole));
        covered.rposition(|arrived| !arrived).map_or(0, |last| last / 8 + 1)
    }

    fn covered(&self, highest: SeqNumber, whole: bool) -> usize {
        if whole || self.told.len() < REPEATS - 1 {
            return self.arrived.len();
        }
        let new = self.told.iter().copied().chain(self.new);
        let first = new.fold(highest + 1, SeqNumber::min);
        let since = (highest + 1).offset_from(first) as u32;
        (since.max(LEAST) as usize).min(self.arrived.len())
    }

    fn vector(&self, highest: SeqNumber, whole: bool) -> Bytes {
        let mut vector = vec![0u8; self.vector_len(highest, whole)];
        let covered = self.arrived.iter().take(self.covered(highest, whole));
        for (bit, _) in covered.enumerate().filter(|(_, arrived)| !**arrived) {
            vector[bit / 8] |= 1 << (bit % 8);
        }
        vector.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(serials: &[u32]) -> (Reports, SeqNumber) {
        let (mut reports, mut highest) = (Reports::default(), SeqNumber(0));
        for serial in serials.iter().map(|serial| SeqNumber(*serial)) {
            reports.note(serial, highest);
            highest = highest.max(serial);
        }
        (reports, highest)
    }

    #[test]
    fn a_report_without_losses_has_no_vector() {
        let (mut reports, highest) = after(&[1, 2, 3, 4]);
        assert_eq!(reports.take(highest, false), (4, Bytes::new()));
    }

    #[test]
    fn losses_are_reported_eight_times() {
        let (mut reports, mut highest) = after(&[1, 2, 4, 5, 7]);
        // 6 and 3 are missing.
        assert_eq!(reports.take(highest, false), (7, Bytes::from_static(&[0b1_0010])));
        let mut told = 1;
        for serial in (8..).map(SeqNumber) {
            reports.note(serial, highest);
            highest = serial;
            if serial.0.is_multiple_of(100) {
                let (covered, _) = reports.take(highest, false);
                let is_told = u32::from(covered) > highest.0 - 6;
                if !is_told {
                    break;
                }
                told += 1;
            }
        }
        assert_eq!(told, REPEATS);
        assert_eq!(reports.take(highest, true).0, highest.0 as u16);
    }

    #[test]
    fn what_comes_late_is_reported_eight_times() {
        let (mut reports, mut highest) = after(&[1, 3]);
        assert_eq!(reports.take(highest, false), (3, Bytes::from_static(&[0b10])));
        let late = SeqNumber(2);
        let mut covers_late = |first: u32, last: u32| {
            for serial in (first..=last).map(SeqNumber) {
                reports.note(serial, highest);
                highest = highest.max(serial);
            }
            u32::from(reports.take(highest, false).0) > highest.offset_from(late) as u32
        };
        (4..12).for_each(|count| _ = covers_late(100 * count, 100 * count + 99));
        assert!(!covers_late(1_200, 1_299));
        assert!(covers_late(2, 2));
        let told = (13..).take_while(|count| covers_late(100 * count, 100 * count + 99)).count();
        assert_eq!(told, REPEATS - 1);
    }

    #[test]
    fn what_comes_late_is_missing_no_more() {
        let (mut reports, highest) = after(&[1, 2, 4, 5, 7]);
        assert_eq!(reports.take(highest, false), (7, Bytes::from_static(&[0b1_0010])));
        reports.note(SeqNumber(3), highest);
        assert_eq!(reports.take(highest, false), (7, Bytes::from_static(&[0b10])));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut reports, highest) = after(&[1, 1_000_000]);
        let (covered, vector) = reports.take(highest, true);
        assert_eq!((usize::from(covered), vector.len()), (REMEMBERED, MAX_VECTOR_LEN));
    }
}
