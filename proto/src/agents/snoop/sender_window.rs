//! The window of a sender, as the data shows it that passes the agent [C-34].

use crate::time::Instant;
use core::time::Duration;

/// What a sender sends anew in a round trip of its own: its window, while it is what limits the
/// sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderWindow {
    /// The begin of the round, and the end of the stream then.
    round: Option<(Instant, u64)>,
    /// What was sent in the last two rounds, in bytes.
    sent: [u64; 2],
}

impl SenderWindow {
    /// Data comes from a sender with this round trip that has sent all data below `highest`.
    pub(super) fn data_came(&mut self, now: Instant, round_trip: Duration, highest: u64) {
        let &mut (begin, from) = self.round.get_or_insert((now, highest));
        let taken = now.since(begin);
        if taken < round_trip {
            return;
        }
        let [last, _] = self.sent;
        let sent = round_trip.div_duration_f64(taken) * highest.saturating_sub(from) as f64;
        self.sent = [sent as u64, last];
        self.round = Some((now, highest));
    }

    /// The window in bytes, 0 if it is not known.
    pub(super) fn bytes(&self) -> u64 {
        self.sent.into_iter().fold(0, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_a_round_trip_brings() {
        let round_trip = Duration::from_millis(50);
        let mut window = SenderWindow::default();
        let mut highest = 1 << 32;
        for packet in 0..200 {
            assert!(window.bytes() == 0 || packet > 49, "{packet}");
            window.data_came(Instant::from_millis(packet), round_trip, highest);
            highest += 1_000;
        }
        assert_eq!(window.bytes(), 50_000);
        window.data_came(Instant::from_millis(1_000), round_trip, highest);
        window.data_came(Instant::from_millis(2_000), round_trip, highest);
        assert!(window.bytes() < 4_000, "an idle sender");
    }
}
