//! The information of an ACK and its SACK blocks: `tcp_sacktag_write_queue` and
//! `tcp_clean_rtx_queue`.

use super::{Linux, State};
use crate::ranges::Span;
use crate::tcp::congestion::Acked;
use crate::tcp::outgoing::Outgoing;
use crate::tcp::sender::Ack;
use crate::tcp::stream::timestamp;
use crate::time::Instant;
use crate::wire::seq::is_before;
use core::time::Duration;

/// The information of an ACK (Linux's flags).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// The position that was acknowledged before.
    pub(super) prior_una: u64,
    /// Whether the ACK advances.
    pub(super) advances: bool,
    /// It is no pure duplicate: it advances, carries data or opens the window.
    pub(super) is_more: bool,
    /// Segments were acknowledged, or newly SACKed.
    pub(super) acked: bool,
    pub(super) sacked: bool,
    /// What was sent only once before the last loss was noticed has arrived.
    pub(super) original: bool,
    /// A segment arrived twice; it was the probe.
    pub(super) duplicate: bool,
    pub(super) duplicate_probe: bool,
    /// The round trip of the segment sent last among those reported.
    pub(super) round_trip: Option<Duration>,
    /// Whether the timer must be restarted.
    pub(super) restarts_timer: bool,
}

/// When the first and the last of the segments that an ACK reports were sent.
#[derive(Clone, Copy, Debug, Default)]
struct SentAt(Option<(Instant, Instant)>);

impl SentAt {
    fn add(&mut self, at: Instant) {
        self.0 = Some((self.0.map_or(at, |(first, _)| first), at));
    }
}

impl Linux {
    /// Takes the SACK blocks; returns the transmission times of the segments that they report.
    fn take_blocks(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        ack: &Ack,
        blocks: &[Span],
        news: &mut News,
    ) -> SentAt {
        let twice = duplicate(blocks, ack.position);
        if let Some(block) = twice {
            self.take_duplicate(out, block, news);
        }
        let mut sorted: [Option<Span>; 4] = [None; 4];
        for (place, block) in sorted.iter_mut().zip(blocks.iter().filter(|block| {
            out.una < block.start && block.start < block.end && block.end <= out.nxt
        })) {
            *place = Some(*block);
        }
        sorted.sort_unstable_by_key(|block| block.map_or(u64::MAX, |block| block.start));
        let (recover, mut reordered, mut sent_at) = (self.recover, u64::MAX, SentAt::default());
        let (rack, delivery) = (&mut self.rack, &mut self.delivery);
        let before = self.queue.sacked_out;
        for block in sorted.into_iter().flatten() {
            let highest = self.queue.highest_sacked().unwrap_or(out.una);
            if twice == Some(block) {
                let undo = &mut self.undo;
                self.queue.sacked_twice(block, |segment| {
                    if segment.again {
                        undo.duplicate(segment.span.end, 1);
                        if segment.sacked {
                            reordered = reordered.min(segment.span.start);
                        }
                    }
                });
            }
            self.queue.sack(block, |segment| {
                rack.arrived(now, segment);
                delivery.arrived(segment);
                if !segment.again {
                    // A hole that no retransmission filled: reordering.
                    if segment.span.start < highest {
                        reordered = reordered.min(segment.span.start);
                    }
                    news.original |= segment.span.end <= recover;
                    sent_at.add(segment.at);
                }
            });
        }
        news.sacked = self.queue.sacked_out > before;
        self.delivered += u64::from(self.queue.sacked_out - before);
        if self.state != State::Loss || self.undo.marker.is_some() {
            self.check_reordering(out, reordered);
        }
        sent_at
    }

    /// `tcp_dsack_seen`: more duplicates than were sent again are not ours.
    fn take_duplicate(&mut self, out: &mut Outgoing, block: Span, news: &mut News) {
        let segments = block.len().div_ceil(out.mss).max(1);
        out.counters.dsacks += 1;
        self.duplicates += segments;
        if self.duplicates > out.counters.retransmits {
            return;
        }
        self.delivered += segments;
        news.duplicate = true;
        news.duplicate_probe = self.probed.is_some_and(|(end, _)| end == block.end);
        if !news.duplicate_probe {
            self.rack.duplicate();
        }
        if block.end <= news.prior_una {
            self.undo.duplicate(block.end, segments as u32);
        }
    }

    /// Takes away what is acknowledged, and the round trips that the ACK shows.
    pub(super) fn take(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        ack: &Ack,
        blocks: &[Span],
        prior_una: u64,
    ) -> News {
        let mut news = News { prior_una, advances: out.una > prior_una, ..News::default() };
        let prior_highest = self.queue.highest_sacked().unwrap_or(prior_una);
        let sacked_at = self.take_blocks(now, out, ack, blocks, &mut news);
        let (mut acked_at, mut again, mut reordered) = (SentAt::default(), false, u64::MAX);
        while let Some(segment) = self.queue.pop(out.una) {
            news.acked = true;
            if segment.again {
                again = true;
            } else if !segment.sacked {
                acked_at.add(segment.at);
                reordered = reordered.min(segment.span.start);
                news.original |= segment.span.end <= self.recover;
            }
            if !segment.sacked {
                self.delivered += 1;
                self.delivery.arrived(&segment);
                let spurious = segment.again
                    && ack.echo.is_some_and(|echo| is_before(echo, timestamp(segment.at)));
                if !spurious {
                    self.rack.arrived(now, &segment);
                }
            }
        }
        let since = |at: Instant| now.since(at);
        let (first_acked, first_sacked) = (acked_at.0.filter(|_| !again), sacked_at.0);
        let latest = first_sacked.or(first_acked).map(|(_, last)| since(last));
        news.round_trip = latest;
        let by_echo = ack.round_trip.filter(|_| news.acked && ack.echo.is_some());
        let sample = first_acked.or(first_sacked).map(|(first, _)| since(first)).or(by_echo);
        if let Some(sample) = sample {
            self.measured(now, out, sample, latest.or(by_echo));
        }
        if news.acked {
            news.restarts_timer = true;
            if reordered < prior_highest {
                self.check_reordering(out, reordered);
            }
        } else if let (Some((first, _)), Some(head)) = (first_sacked, self.queue.head()) {
            // The oldest segment left after what is now SACKed: its time is not yet over.
            news.restarts_timer = first < head.at;
        }
        news
    }

    /// `tcp_ack_update_rtt`, and what CUBIC makes of it.
    fn measured(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        sample: Duration,
        latest: Option<Duration>,
    ) {
        out.rto.measured(sample, out.una, out.nxt);
        if let Some(latest) = latest {
            self.rack.measured(latest);
        }
        let acked = Acked { una: out.una, nxt: out.nxt, round_trip: latest };
        out.congestion.measured(now, &acked);
    }

    /// `tcp_check_sack_reordering`: a segment from `low` on arrived after later ones.
    pub(super) fn check_reordering(&mut self, out: &mut Outgoing, low: u64) {
        let highest = self.queue.highest_sacked().unwrap_or(out.una);
        if low < highest {
            self.rack.reordered((highest - low).div_ceil(out.mss) as u32);
            out.counters.reorderings += 1;
        }
    }
}

/// The first block, if it reports what arrived twice (RFC 2883 §4).
fn duplicate(blocks: &[Span], una: u64) -> Option<Span> {
    let first = *blocks.first()?;
    let is_old = first.start < una;
    let is_within = |second: &Span| second.start <= first.start && first.end <= second.end;
    (first.start < first.end && (is_old || blocks.get(1).is_some_and(is_within))).then_some(first)
}
