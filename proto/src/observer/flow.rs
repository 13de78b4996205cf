//! One observed flow: the data of its sender, the losses of the air, and the retransmissions.

use super::rate_probe::RateProbe;
use crate::packet::Packet;
use crate::port::Port;
use crate::ranges::{Ranges, Span};
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use crate::wired_path::WiredPath;
use alloc::collections::VecDeque;
use core::time::Duration;

/// Spans of a flow's stream that are remembered at most: more than any real one's holes.
const MAX_SPANS: usize = 1024;
/// No sender's timer is shorter: Linux waits 200 ms beyond the round trip, and the last ACK passes
/// here a little before it arrives there.
const TIMEOUT: Duration = Duration::from_millis(180);
/// The time that a sender may need for its next data, if its round trip is unknown.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(200);

/// The observed state of one flow. Positions in its stream are 64 bits wide.
#[derive(Debug)]
pub struct FlowObserver {
    /// Up to where the mobile has everything, and up to where data has passed.
    acked: u64,
    highest: u64,
    /// What has passed above `acked`, and what was missing when later data passed, since when: that
    /// was lost before it came here.
    passed: Ranges,
    gaps: VecDeque<(Span, Instant)>,
    sacked: Ranges,
    wired: WiredPath,
    /// The least round trip on the wired side ever: without what has queued here since.
    least_wired: Option<Duration>,
    air_rtt: Option<Duration>,
    /// That of the last ACK, if it gave one.
    sample: Option<Duration>,
    /// The end of the segment that is being timed, and when it left.
    timed: Option<(u64, Instant)>,
    probe: RateProbe,
    window_scale: Option<u8>,
    /// Frames that the mobile was known to have when they passed again, and whose duplicate
    /// arrival it has not reported yet.
    needless: u64,
    /// ACKs that came, and those at which the sender had used up the mobile's window.
    acks: u64,
    full_windows: u64,
    window: u64,
    /// When it last sent or received anything, and since when nothing is outstanding.
    pub last_seen: Instant,
    quiet_since: Option<Instant>,
    /// Whether an end has closed the connection.
    pub is_closed: bool,
    /// What has been counted.
    pub counts: FlowCounts,
}

/// The counters of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Bytes of payload that the mobile has acknowledged.
    pub delivered: u64,
    /// Frames with data that went on the air.
    pub frames: u64,
    /// Their bytes of IP.
    pub ip_bytes: u64,
    /// Their bytes of payload.
    pub payload_bytes: u64,
    /// Bytes of payload in a full frame.
    pub mss: u64,
    /// Frames that passed here, and that the sender then had to send again.
    pub resent: u64,
    /// The number of these that had arrived already, as DSACK shows (RFC 2883).
    pub spurious: u64,
    /// Frames that were lost before they came here.
    pub lost_before: u64,
    /// Frames of new data.
    pub new_frames: u64,
    /// Those that were not full: the sender had no more.
    pub short_frames: u64,
    /// ACKs that show a loss on the air to the sender.
    pub loss_acks: u64,
    /// Times that the sender sent its lowest frame again after a silence.
    pub timeouts: u64,
}

impl FlowCounts {
    /// Frames that the air lost.
    pub fn losses(&self) -> u64 {
        self.resent.saturating_sub(self.spurious)
    }

    /// Whether the sender mostly had less to send than a frame holds.
    pub fn is_application_limited(&self) -> bool {
        self.new_frames >= 20 && self.short_frames * 5 > self.new_frames
    }

    fn frames_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss.max(1))
    }
}

impl FlowObserver {
    /// A flow whose next byte is `seq`.
    pub fn new(now: Instant, seq: SeqNumber) -> Self {
        // Room below: what comes now may have been sent again.
        let begin = (1 << 32) + u64::from(seq.0);
        Self {
            acked: begin,
            highest: begin,
            passed: Ranges::default(),
            gaps: VecDeque::new(),
            sacked: Ranges::default(),
            wired: WiredPath::default(),
            least_wired: None,
            air_rtt: None,
            sample: None,
            timed: None,
            probe: RateProbe::default(),
            window_scale: None,
            needless: 0,
            acks: 0,
            full_windows: 0,
            window: 0,
            last_seen: now,
            quiet_since: Some(now),
            is_closed: false,
            counts: FlowCounts::default(),
        }
    }

    /// A segment with data left towards the mobile in this packet. Returns its bytes of IP, with
    /// the headers of all frames.
    pub fn data(&mut self, now: Instant, packet: &Packet, segment: &Segment) -> u64 {
        let frames = frames(packet, segment);
        let headers = u64::from(segment.payload_offset - segment.network_offset);
        let ip_bytes = u64::from(segment.payload_len) + frames * headers;
        self.departed(now, segment, frames, ip_bytes);
        ip_bytes
    }

    fn departed(&mut self, now: Instant, segment: &Segment, frames: u64, ip_bytes: u64) {
        if let Some(timestamps) = segment.options.timestamps {
            let sample = self.wired.data_came(now, timestamps.echo);
            self.least_wired = self.least_wired.into_iter().chain(sample).min();
        }
        self.is_closed |= segment.flags.intersects(Flags::FIN.union(Flags::RST));
        let silence = now - self.last_seen;
        self.last_seen = now;
        let payload = u64::from(segment.payload_len);
        let Some(start) = self.position(segment.seq).filter(|_| payload > 0) else { return };
        let end = start + payload;
        let counts = &mut self.counts;
        counts.frames += frames;
        counts.ip_bytes += ip_bytes;
        counts.payload_bytes += payload;
        counts.mss = counts.mss.max(payload.div_ceil(frames.max(1)));
        if end <= self.acked {
            self.needless += frames;
            return;
        }
        self.quiet_since = None;
        if start < self.highest {
            self.retransmitted(now, Span { start, end: end.min(self.highest) }, silence);
        }
        if end > self.highest {
            self.new_data(now, start.max(self.highest), end, ip_bytes);
        }
        if self.passed.len() < MAX_SPANS {
            self.passed.insert(Span { start: start.max(self.acked), end });
        }
    }

    /// New data passes.
    fn new_data(&mut self, now: Instant, start: u64, end: u64, ip_bytes: u64) {
        if start > self.highest && self.gaps.len() < MAX_SPANS {
            self.gaps.push_back((Span { start: self.highest, end: start }, now));
        }
        let frames = self.counts.frames_of(end - start);
        self.counts.new_frames += frames;
        let is_full = (end - start).is_multiple_of(self.counts.mss.max(1));
        self.counts.short_frames += u64::from(!is_full);
        self.timed.get_or_insert((end, now));
        self.probe.left(now, end, ip_bytes);
        self.highest = end;
    }

    /// A segment below the highest position passes: a retransmission, or reordering.
    fn retransmitted(&mut self, now: Instant, span: Span, silence: Duration) {
        let Span { start, end } = span;
        let start = start.max(self.acked);
        let length = end.saturating_sub(start);
        let fresh = self.passed.missing(start, end);
        let missing_at_mobile = self.sacked.missing(start, end);
        let pause = self.wired.round_trip().unwrap_or(TIMEOUT) / 2;
        if fresh < length {
            let resent = self.counts.frames_of(missing_at_mobile.min(length - fresh));
            self.counts.resent += resent;
            self.needless += self.counts.frames_of(length - fresh).saturating_sub(resent);
            self.counts.timeouts += u64::from(start == self.acked && silence >= TIMEOUT);
        } else if self.missing_since(start).is_none_or(|since| now - since >= pause) {
            // A reordered segment arrives soon after.
            self.counts.lost_before += self.counts.frames_of(fresh);
        }
        // An ACK of a retransmitted segment is ambiguous (Karn's algorithm).
        self.timed = None;
        self.probe.give_up();
    }

    /// A packet of the mobile. Returns the rate of the path in bits of IP per second, if this ACK
    /// ends a measured train.
    pub fn ack(&mut self, now: Instant, segment: &Segment) -> Option<f64> {
        self.last_seen = now;
        self.is_closed |= segment.flags.intersects(Flags::RST);
        if segment.flags.intersects(Flags::SYN) {
            self.window_scale = Some(segment.options.window_scale.unwrap_or(0));
            return None;
        }
        if let Some(timestamps) = segment.options.timestamps {
            self.wired.ack_left(now, timestamps.value);
        }
        let ack = self.position(segment.ack)?;
        if ack < self.acked || ack > self.highest + 1 || !segment.flags.intersects(Flags::ACK) {
            return None;
        }
        let ack = ack.min(self.highest);
        self.measure_window(segment);
        let window = u64::from(segment.window);
        let shows_loss = self.take_blocks(ack, segment);
        let advanced = ack - self.acked;
        let is_duplicate = advanced == 0 && segment.is_pure_ack() && self.highest > ack;
        let is_plain = segment.options.sack.is_empty();
        let shows_loss = shows_loss || is_duplicate && is_plain && self.window == window;
        // The lowest hole is the one that the sender would notice.
        let is_air = self.missing_since(ack).is_none();
        self.counts.loss_acks += u64::from(shows_loss && is_air);
        self.window = window;
        self.counts.delivered += advanced;
        self.acked = ack;
        self.passed.remove_below(ack);
        self.sacked.remove_below(ack);
        while self.gaps.pop_front_if(|(gap, _)| gap.end <= ack).is_some() {}
        if ack == self.highest {
            self.quiet_since.get_or_insert(now);
        }
        if let Some((_, at)) = self.timed.take_if(|(end, _)| *end <= ack) {
            let sample = now - at;
            self.air_rtt = Some(self.air_rtt.map_or(sample, |least| least.min(sample)));
            self.sample = Some(sample);
        }
        self.probe.arrived(now, self.sacked.end().unwrap_or(ack).max(ack))
    }

    /// Handles SACK blocks. True if one of them is new and shows a loss to the sender.
    fn take_blocks(&mut self, ack: u64, segment: &Segment) -> bool {
        let mut shows_loss = false;
        let blocks = segment.options.sack.as_slice();
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let (Some(start), Some(end)) = (self.position(left), self.position(right)) else {
                continue;
            };
            let around =
                blocks.get(1).map(|&(left, right)| (self.position(left), self.position(right)));
            let is_within =
                around.is_some_and(|(left, right)| left <= Some(start) && right >= Some(end));
            if start < end && (end <= ack || index == 0 && is_within) {
                // RFC 2883 §4: the first block is a duplicate arrival.
                let arrived_twice = self.counts.frames_of(end - start);
                let needless = arrived_twice.min(self.needless);
                self.needless -= needless;
                self.counts.spurious += arrived_twice - needless;
            } else if start > ack && end <= self.highest && self.sacked.len() < MAX_SPANS {
                shows_loss |= self.sacked.insert(Span { start, end });
            }
        }
        shows_loss
    }

    fn measure_window(&mut self, segment: &Segment) {
        let Some(scale) = self.window_scale else { return };
        let window = u64::from(segment.window) << scale;
        self.acks += 1;
        let is_full = self.highest - self.acked + self.counts.mss >= window;
        self.full_windows += u64::from(is_full && window > 0);
    }

    /// Since when this position has been missing because it was lost before it came here.
    fn missing_since(&self, position: u64) -> Option<Instant> {
        let gap = self.gaps.get(self.gaps.partition_point(|(gap, _)| gap.end <= position));
        gap.filter(|(gap, _)| gap.start <= position).map(|(_, since)| *since)
    }

    /// The position of a sequence number, next to the highest one.
    fn position(&self, seq: SeqNumber) -> Option<u64> {
        let offset = seq.offset_from(SeqNumber(self.highest as u32));
        self.highest.checked_add_signed(offset.into())
    }

    /// Since when the sender has had nothing to send: everything has arrived, and longer ago than
    /// more could have come. A mobile that does not answer for ten seconds is gone.
    pub fn idle_since(&self, now: Instant) -> Option<Instant> {
        let pause = self.wired.round_trip().map_or(UNKNOWN_PAUSE, |rtt| rtt * 3 / 2);
        let pause = if self.is_closed { Duration::ZERO } else { pause + Duration::from_millis(10) };
        let is_gone = now - self.last_seen >= Duration::from_secs(10);
        let gone = is_gone.then_some(self.last_seen);
        self.quiet_since.filter(|since| now - *since >= pause).or(gone)
    }

    /// Since when everything has arrived.
    pub fn quiet_since(&self) -> Option<Instant> {
        self.quiet_since
    }

    /// Whether data is outstanding, so that the sender has something to do.
    pub fn is_outstanding(&self) -> bool {
        self.quiet_since.is_none()
    }

    /// The round trip of the air hop that an ACK has shown since the last call, if one has.
    pub fn take_round_trip(&mut self) -> Option<Duration> {
        self.sample.take()
    }

    /// Bytes of payload that have arrived at the mobile, in order or not.
    pub fn arrived(&self) -> u64 {
        self.counts.delivered + self.sacked.total()
    }

    /// The least round trip of the air hop, in seconds.
    pub fn air_rtt(&self) -> Option<f64> {
        self.air_rtt.map(|rtt| rtt.as_secs_f64())
    }

    /// The least round trip between here and the sender ever, in seconds.
    pub fn least_wired_rtt(&self) -> Option<f64> {
        self.least_wired.map(|least| least.as_secs_f64())
    }

    /// The same lately, in seconds.
    pub fn wired_rtt(&self) -> Option<f64> {
        self.wired.round_trip().map(|rtt| rtt.as_secs_f64())
    }

    /// The mobile's window in bytes, if the sender has mostly used it up.
    pub fn limiting_window(&self) -> Option<u64> {
        let window = self.window << self.window_scale?;
        (self.acks >= 20 && self.full_windows * 2 > self.acks).then_some(window)
    }
}

/// The first byte of the sender's that this segment lets one observe: its own, or what a mobile
/// that answers a SYN waits for, whose window scale is then known.
pub fn first_byte(from: Port, segment: &Segment) -> Option<SeqNumber> {
    let is_answer = segment.flags.intersects(Flags::SYN) && segment.flags.intersects(Flags::ACK);
    match from {
        Port::Wired => (segment.payload_len > 0).then_some(segment.seq),
        Port::Air => is_answer.then_some(segment.ack),
    }
}

/// Frames on the wire: a super-packet is several.
fn frames(packet: &Packet, segment: &Segment) -> u64 {
    let size = packet.segment_size().map_or(u32::MAX, |size| u32::from(size.get()));
    u64::from(segment.payload_len.div_ceil(size).max(1))
}
