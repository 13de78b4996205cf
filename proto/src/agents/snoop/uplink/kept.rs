//! Data above a hole that has passed, kept until the fixed host acknowledges it: what was reported
//! to the mobile as received must not be lost [S0-40].

use crate::packet::Packet;
use crate::ranges::{Ranges, Span};
use crate::time::Instant;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most packets of a flow that are kept [C-26].
const MAX_KEPT: usize = 1_024;
/// The most blocks in a report: as many as fit beside timestamps (RFC 2018 §3).
const MAX_BLOCKS: usize = 3;
/// The most times that a packet is sent on again: then the mobile's timeout repairs, which ignores
/// what was reported (RFC 2018 §8).
const ATTEMPTS: u32 = 8;

/// A packet that has passed.
#[derive(Clone, Debug)]
struct Kept {
    span: Span,
    packet: Packet,
    sent_at: Instant,
    attempts: u32,
}

/// The kept packets of a flow, by position; of two that overlap the first.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptData {
    packets: VecDeque<Kept>,
    memory: usize,
}

impl KeptData {
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Keeps a packet, unless it needs more than `room` or overlaps with one that is kept.
    pub(super) fn keep(&mut self, now: Instant, span: Span, packet: &Packet, room: usize) {
        let at = self.packets.partition_point(|kept| kept.span.end <= span.start);
        let overlaps = self.packets.get(at).is_some_and(|next| next.span.start < span.end);
        let size = packet.bytes().len();
        if overlaps || self.packets.len() >= MAX_KEPT || size > room {
            return;
        }
        self.memory += size;
        let kept = Kept { span, packet: packet.clone(), sent_at: now, attempts: 0 };
        self.packets.insert(at, kept);
    }

    /// Frees what the fixed host has acknowledged.
    pub(super) fn acknowledged(&mut self, ack: u64) {
        while let Some(first) = self.packets.front().filter(|first| first.span.end <= ack) {
            self.memory -= first.packet.bytes().len();
            self.packets.pop_front();
        }
    }

    /// The runs of kept data above `hole`, the highest first.
    pub(super) fn blocks(&self, hole: u64) -> VecDeque<Span> {
        let mut runs: VecDeque<Span> = VecDeque::new();
        for kept in self.packets.iter().rev().take_while(|kept| kept.span.start > hole) {
            if let Some(run) = runs.back_mut().filter(|run| run.start == kept.span.end) {
                run.start = kept.span.start;
            } else if runs.len() < MAX_BLOCKS {
                runs.push_back(kept.span);
            } else {
                break;
            }
        }
        runs
    }

    /// The packet to send on again: the fixed host lacks it, has what passed later, and should have
    /// it for longer than `patience`.
    pub(super) fn lost_on_the_wire(
        &mut self,
        now: Instant,
        ack: u64,
        sacked: &Ranges,
        patience: Duration,
    ) -> Option<Packet> {
        let top = sacked.end().unwrap_or(0);
        let is_lost = |kept: &&mut Kept| {
            let is_reported_missing = kept.span.start <= ack || kept.span.end < top;
            is_reported_missing
                && sacked.span_at(kept.span.start).is_none()
                && kept.attempts < ATTEMPTS
                && now.since(kept.sent_at) > patience
        };
        let kept = self.packets.iter_mut().take(64).find(is_lost)?;
        kept.sent_at = now;
        kept.attempts += 1;
        Some(kept.packet.clone())
    }
}
