//! The sequence-time plot of the first flow, as its first station sees it, and what its ends do.

use super::address;
use crate::outcome::{TraceKind, TracePoint};
use airmend_proto::tcp::Endpoint;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Instant, Packet};

/// Collects points, a bounded number of them.
pub(crate) struct Trace {
    pub(crate) points: Vec<TracePoint>,
    /// The sender's initial sequence number.
    initial: Option<SeqNumber>,
    /// The end of the data that has departed.
    highest: SeqNumber,
    /// Packets in the agent's cache.
    cached: usize,
}

const MAX_POINTS: usize = 1_000_000;

impl Trace {
    pub(crate) fn new() -> Self {
        Self { points: Vec::new(), initial: None, highest: SeqNumber(0), cached: 0 }
    }

    pub(crate) fn enters(&mut self, packet: &Packet) {
        if let (None, Ok(segment)) = (self.initial, Segment::parse(packet))
            && address::flow_and_end(&segment) == (0, 1)
            && segment.flags.intersects(Flags::SYN)
        {
            self.initial = Some(segment.seq);
            self.highest = segment.end();
        }
    }

    /// Notes how many packets are in the agent's cache, if the number has changed.
    pub(crate) fn cached(&mut self, now: Instant, packets: usize) {
        if packets != self.cached && self.points.len() < MAX_POINTS {
            self.cached = packets;
            let (seconds, offset) = (now.as_secs_f64(), packets as u64);
            self.points.push(TracePoint { seconds, offset, kind: TraceKind::Cached });
        }
    }

    pub(crate) fn leaves(&mut self, now: Instant, packet: &Packet, is_local: bool) {
        let (Some(initial), Ok(segment)) = (self.initial, Segment::parse(packet)) else { return };
        let (number, kind) = match address::flow_and_end(&segment) {
            (0, 1) if segment.payload_len > 0 => {
                let kind = if is_local {
                    TraceKind::LocalRetransmit
                } else if segment.seq < self.highest {
                    TraceKind::SenderRetransmit
                } else {
                    TraceKind::Data
                };
                self.highest = self.highest.max(segment.end());
                (segment.seq, kind)
            }
            (0, 0) if segment.flags.intersects(Flags::ACK) => (segment.ack, TraceKind::Ack),
            _ => return,
        };
        if self.points.len() < MAX_POINTS {
            let offset = u64::from(number.0.wrapping_sub(initial.0));
            self.points.push(TracePoint { seconds: now.as_secs_f64(), offset, kind });
        }
    }
}

/// Window and timeout of a sender, and what has arrived at the receiver.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) points: Vec<TracePoint>,
    window: u64,
    timeout: u64,
    received: u64,
}

impl Progress {
    /// Notes what has changed at the sending and at the receiving end.
    pub(crate) fn note(&mut self, now: Instant, [sender, receiver]: &[Endpoint; 2]) {
        let stats = sender.stats();
        let changes = [
            (TraceKind::Window, stats.cwnd, &mut self.window),
            (TraceKind::Timeout, stats.rto.as_millis() as u64, &mut self.timeout),
            (TraceKind::Received, receiver.delivered(), &mut self.received),
        ];
        for (kind, offset, known) in changes {
            if offset != *known && self.points.len() < MAX_POINTS {
                *known = offset;
                self.points.push(TracePoint { seconds: now.as_secs_f64(), offset, kind });
            }
        }
    }
}
