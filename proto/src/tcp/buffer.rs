//! The receive buffer and the window it announces, as Linux tunes both (`tcp_rcvbuf_grow`,
//! `tcp_grow_window`, `__tcp_select_window` of Linux 6.18).
//!
//! The window grows with each segment, those out of order included, so that a duplicate ACK
//! mostly announces another window than the one before it. All sizes are payload bytes.

use super::profile::Profile;
use crate::time::Instant;
use core::time::Duration;

/// What the default of `tcp_rmem` holds before and after the first segment showed how much of the
/// memory is payload: a half, then five eighths (1448 of 2304 bytes).
const FIRST_SIZE: u64 = 64 << 10;
const SIZE: u64 = 80 << 10;
/// Segments that the application reads in the first round trip at least (`TCP_INIT_CWND`).
const FIRST_SEGMENTS: u64 = 10;

/// The receive buffer of an application that reads at once.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    mss: u64,
    /// Bytes that it holds now, and may hold.
    size: u64,
    limit: u64,
    /// The most that is announced (`rcv_ssthresh`).
    ssthresh: u64,
    /// The first position that the announced window excludes.
    edge: u64,
    /// The application has read all before this position.
    read: u64,
    /// Bytes read in a round trip, the most so far (`rcvq_space.space`), and the position and time
    /// at which the current round trip began.
    space: u64,
    from: u64,
    since: Instant,
    /// The round trip, as echoed timestamps show it, and whether they do.
    round_trip: Option<Duration>,
    has_timestamps: bool,
    /// The window announced last. From when on as much as it held then has been arriving, and the
    /// position behind that.
    window: u64,
    filling: Option<(Instant, u64)>,
}

impl Buffer {
    /// The buffer before the first segment.
    pub(super) fn new(profile: &Profile) -> Self {
        let mss = u64::from(profile.mss.saturating_sub(12)).max(1);
        let limit = u64::from(profile.receive_window);
        let first = FIRST_SIZE / mss * mss;
        Self {
            mss,
            size: SIZE.min(limit),
            limit,
            ssthresh: first.min(limit),
            edge: 0,
            read: 1,
            space: FIRST_SEGMENTS * mss,
            from: 1,
            since: Instant::ZERO,
            round_trip: None,
            has_timestamps: false,
            window: 0,
            filling: None,
        }
    }

    /// A segment echoed a timestamp of this age (`tcp_rcv_rtt_measure_ts`).
    pub(super) fn measured(&mut self, round_trip: Duration) {
        let smooth = |srtt: Duration| (7 * srtt + round_trip) / 8;
        self.round_trip = Some(self.round_trip.map_or(round_trip, smooth));
        self.has_timestamps = true;
    }

    /// Without timestamps: a window of data takes a round trip or more, so that the least time of
    /// one counts (`tcp_rcv_rtt_measure`).
    fn measure_window(&mut self, now: Instant, next: u64) {
        if let Some((since, end)) = self.filling {
            if next < end {
                return;
            }
            let taken = now.since(since);
            self.round_trip = Some(self.round_trip.map_or(taken, |least| least.min(taken)));
        }
        self.filling = Some((now, next + self.window));
    }

    /// The application has read all before `next` (`tcp_rcv_space_adjust`); `ahead` is how far what
    /// arrived out of order reaches beyond it.
    pub(super) fn read(&mut self, now: Instant, next: u64, ahead: u64) {
        self.read = next;
        if !self.has_timestamps {
            self.measure_window(now, next);
        }
        let Some(round_trip) = self.round_trip else { return };
        if now.since(self.since) < round_trip {
            return;
        }
        let copied = next.saturating_sub(self.from);
        if copied > self.space {
            self.enlarge(copied, ahead);
        }
        self.from = next;
        self.since = now;
    }

    /// A segment with so many bytes arrived (`tcp_grow_window`); `beyond` bytes wait out of order,
    /// and reach `ahead` of `next`.
    pub(super) fn arrived(&mut self, segment: u64, next: u64, beyond: u64, ahead: u64) {
        if ahead > 0 {
            self.enlarge(self.space, ahead);
        }
        let room = self.free(next, beyond).saturating_sub(self.ssthresh);
        self.ssthresh += room.min(2 * segment.max(self.mss));
    }

    /// The window that an ACK of `next` announces, a multiple of `1 << shift`. What is announced
    /// is never taken back.
    pub(super) fn announce(&mut self, next: u64, beyond: u64, shift: u8) -> u64 {
        let unit = 1 << shift;
        let window = self.select(next, beyond).max(self.edge.saturating_sub(next));
        let window = window.next_multiple_of(unit);
        self.edge = next + window;
        self.window = window;
        window
    }

    /// After an ACK of `next`, the application reads: whether it must announce its window again,
    /// which is twice as large now (`tcp_cleanup_rbuf`).
    pub(super) fn opens(&mut self, next: u64, beyond: u64) -> bool {
        let announced = self.edge.saturating_sub(next);
        self.read = next;
        2 * announced <= self.size && self.select(next, beyond) >= (2 * announced).max(self.mss)
    }

    /// `__tcp_select_window`.
    fn select(&self, next: u64, beyond: u64) -> u64 {
        let free = self.free(next, beyond);
        if free < self.mss.max(self.size / 16) { 0 } else { free.min(self.ssthresh) }
    }

    fn free(&self, next: u64, beyond: u64) -> u64 {
        self.size.saturating_sub(next.saturating_sub(self.read) + beyond)
    }

    /// `tcp_rcvbuf_grow`: room for twice what was read in a round trip, more while that still
    /// grows, and for what waits out of order.
    fn enlarge(&mut self, copied: u64, ahead: u64) {
        let growth = 2 * (2 * copied) * (copied - self.space) / self.space;
        self.space = copied;
        self.size = self.size.max((2 * copied + growth + ahead).min(self.limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    #[test]
    fn a_window_of_45_segments_grows_by_two_for_each_that_arrives() {
        let mut buffer = Buffer::new(&Profile::linux());
        assert_eq!(buffer.announce(1, 0, 0), 45 * MSS);
        buffer.arrived(MSS, 1 + MSS, 0, 0);
        assert_eq!(buffer.announce(1 + MSS, 0, 0), 47 * MSS);
        // Out of order as well, which is what makes a duplicate ACK differ from the one before.
        buffer.arrived(MSS, 1 + MSS, MSS, 2 * MSS);
        assert_eq!(buffer.announce(1 + MSS, MSS, 0), 49 * MSS);
    }

    #[test]
    fn what_the_application_has_not_read_narrows_the_window_and_never_takes_it_back() {
        let mut buffer = Buffer::new(&Profile::linux());
        (0..20).for_each(|_| buffer.arrived(MSS, 1, 0, 0));
        assert_eq!(buffer.announce(1, 0, 0), SIZE);
        // A hole is filled: 30 segments come into order at once.
        let next = 1 + 30 * MSS;
        assert_eq!(buffer.announce(next, 0, 0), SIZE - 30 * MSS);
        assert!(!buffer.opens(next, 20 * MSS));
        assert_eq!(buffer.announce(next, 0, 0), SIZE);
        // The application has read when less than a half was left.
        assert!(buffer.announce(next + 40 * MSS, 0, 0) < SIZE / 2);
        assert!(buffer.opens(next + 40 * MSS, 0));
    }

    #[test]
    fn without_timestamps_a_window_takes_a_round_trip() {
        let mut buffer = Buffer::new(&Profile::linux());
        let mut next = 1;
        let mut window = buffer.announce(next, 0, 0);
        for round in 0..8 {
            // A window in each 100 ms, in two halves.
            for half in 0..2 {
                next += window / 2;
                buffer.arrived(MSS, next, 0, 0);
                buffer.read(Instant::from_millis(100 * round + 10 * half), next, 0);
            }
            (0..window / MSS).for_each(|_| buffer.arrived(MSS, next, 0, 0));
            window = buffer.announce(next, 0, 0);
        }
        assert_eq!(buffer.round_trip, Some(Duration::from_millis(100)));
        assert!(buffer.size > 1 << 20, "{}", buffer.size);
    }

    #[test]
    fn the_buffer_follows_what_is_read_in_a_round_trip() {
        let mut buffer = Buffer::new(&Profile::linux());
        buffer.measured(Duration::from_millis(100));
        let mut next = 1;
        for round in 1..5 {
            next += 10 * round * MSS;
            buffer.read(Instant::from_millis(100 * round), next, 0);
        }
        // Twice the 40 segments, and twice that again for each by which the round before was less.
        assert_eq!(buffer.size, (80 + 2 * 80 / 3) * MSS + 2 * 80 * MSS / 3 % MSS);
        buffer.read(Instant::from_millis(500), next + (1 << 20), 0);
        assert_eq!(buffer.size, 3 << 20);
    }
}
