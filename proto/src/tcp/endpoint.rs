//! One end of a connection: segments to positions and back, handshake, close, and the timers.

use super::profile::{Profile, SackRecovery};
use super::receiver::Receiver;
use super::sender::{Ack, Sender};
use super::state::{Deadline, State, Timer};
use super::stats::Stats;
use super::stream::{Stream, timestamp};
use crate::packet::{LinkType, Packet};
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::build::SegmentBuilder;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Endpoint as Address, Flags, Options, Segment, Timestamps};
use alloc::vec::Vec;
use core::time::Duration;

/// One end of a connection: its sender and its receiver.
///
/// After each packet, timeout, `write` or `close`, take what may leave by
/// [`Endpoint::poll_transmit`] until there is nothing. Packets carry no payload, only its length.
#[derive(Clone, Debug)]
pub struct Endpoint {
    profile: Profile,
    local: Address,
    remote: Option<Address>,
    outgoing: Stream,
    incoming: Option<Stream>,
    sender: Sender,
    receiver: Receiver,
    /// What the SYNs agreed on.
    peer_mss: u16,
    peer_shift: u8,
    shift: u8,
    scaling: bool,
    sack: bool,
    timestamps: bool,
    /// The window that segments announce.
    window: u32,
    /// No position beyond this one is acknowledged, if set.
    ack_limit: Option<u64>,
    /// Position and window of the last segment.
    announced: (u64, u32),
    /// Our FIN left before the peer's arrived.
    closed_first: bool,
    time_wait: Option<Instant>,
    reset: bool,
}

impl Endpoint {
    /// The end that opens the connection; its SYN leaves at the first
    /// [`Endpoint::poll_transmit`].
    pub fn connect(profile: Profile, local: Address, remote: Address, isn: SeqNumber) -> Self {
        Self { remote: Some(remote), ..Self::listen(profile, local, isn) }
    }

    /// The end that waits for a SYN, and from then on belongs to that connection.
    pub fn listen(profile: Profile, local: Address, isn: SeqNumber) -> Self {
        Self {
            local,
            remote: None,
            outgoing: Stream { isn },
            incoming: None,
            sender: Sender::new(&profile),
            receiver: Receiver::new(&profile),
            // RFC 9293 §3.7.1: what a peer takes that does not say.
            peer_mss: 536,
            peer_shift: 0,
            shift: 0,
            scaling: false,
            sack: false,
            timestamps: false,
            window: profile.receive_window,
            ack_limit: None,
            announced: (0, 0),
            closed_first: false,
            time_wait: None,
            reset: false,
            profile,
        }
    }

    /// The application writes `bytes`; says how many the send buffer took. None after `close`.
    pub fn write(&mut self, bytes: u64) -> u64 {
        let buffered = self.sender.out.written() - self.sender.out.acked_bytes();
        let room = self.profile.send_buffer.saturating_sub(buffered);
        let accepted = if self.sender.out.is_closed() { 0 } else { bytes.min(room) };
        self.sender.out.write(accepted);
        accepted
    }

    /// The application writes no more: a FIN follows what it wrote.
    pub fn close(&mut self) {
        self.sender.out.close();
    }

    /// The application reads slowly: from now on the receive buffer has room for `bytes` more. A
    /// change that opens a closed window, or adds two segments, is announced at once; a smaller one
    /// is not (RFC 9293 §3.8.6.2.2).
    pub fn set_room(&mut self, bytes: u32) {
        self.receiver.stop_tuning();
        let step = 2 * u32::from(self.profile.mss);
        let opens = bytes >= self.window.saturating_add(step);
        if opens || bytes < self.window {
            self.window = bytes;
        }
        if opens {
            self.receiver.repeat_ack();
        }
    }

    /// The host wants its last ACK sent again so many times, as after a handoff.
    pub fn repeat_acks(&mut self, count: u32) {
        if self.incoming.is_some() {
            (0..count).for_each(|_| self.receiver.repeat_ack());
        }
    }

    /// From now on no more than these bytes of what arrives are acknowledged, and each call that
    /// raises the limit makes an ACK due: a proxy that acknowledges what the host behind it has
    /// acknowledged. A FIN is acknowledged when all before it is.
    pub fn limit_acks(&mut self, bytes: u64) {
        self.ack_limit = Some(1 + bytes).max(self.ack_limit);
    }

    /// The retransmission timer expires now, if it runs: the peer is back after a silence.
    pub fn expire_timer(&mut self, now: Instant) {
        if self.sender.out.timer.is_some() {
            self.sender.timeout(now);
        }
    }

    /// Bytes that arrived in order; without [`Endpoint::set_room`] the application reads them at
    /// once.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Bytes that the peer acknowledged.
    pub fn acked(&self) -> u64 {
        self.sender.out.acked_bytes()
    }

    /// Whether everything that the peer will ever send arrived, its FIN included.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// The state, by the standard's name.
    pub fn state(&self) -> State {
        let sender = &self.sender;
        if self.reset {
            return State::Closed;
        }
        if self.incoming.is_none() {
            return if self.remote.is_some() { State::SynSent } else { State::Listen };
        }
        if sender.out.una == 0 {
            return State::SynReceived;
        }
        match (sender.out.fin_sent(), sender.out.fin_acked(), self.receiver.is_finished()) {
            (false, _, false) => State::Established,
            (false, _, true) => State::CloseWait,
            (true, false, false) => State::FinWait1,
            (true, true, false) => State::FinWait2,
            (true, false, true) if self.closed_first => State::Closing,
            (true, false, true) => State::LastAck,
            (true, true, true) if self.time_wait.is_some() => State::TimeWait,
            (true, true, true) => State::Closed,
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.sender, self.receiver.delivered())
    }

    /// Takes a packet; what is no segment of this connection is ignored.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if let Ok(segment) = Segment::parse(packet) {
            self.handle_segment(now, &segment);
        }
    }

    /// Takes a segment that was parsed already.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        let is_ours = segment.destination == self.local
            && self.remote.is_none_or(|remote| segment.source == remote);
        if self.reset || !is_ours {
            return;
        }
        if segment.flags.intersects(Flags::SYN) && !self.handle_syn(segment) {
            return;
        }
        let Some(incoming) = self.incoming else { return };
        let Some(start) = incoming.position(segment.seq, self.receiver.next()) else { return };
        if segment.flags.intersects(Flags::RST) {
            self.reset = start == self.receiver.next();
            return;
        }
        if !segment.flags.intersects(Flags::ACK) {
            return;
        }
        let fin = segment.flags.intersects(Flags::FIN);
        if let Some(Timestamps { value, .. }) = segment.options.timestamps {
            let carries = segment.payload_len > 0 || fin;
            let end = start + u64::from(segment.payload_len) + u64::from(fin);
            let is_refused = self.receiver.is_stale(value) || self.receiver.is_old(end);
            if self.timestamps && carries && is_refused {
                self.receiver.refuse(Span { start, end });
                return;
            }
            self.receiver.stamp(start, value);
        }
        self.handle_ack(now, segment);
        if segment.payload_len > 0 || fin {
            let start = start + u64::from(segment.flags.intersects(Flags::SYN));
            let payload = Span { start, end: start + u64::from(segment.payload_len) };
            let echo = segment.options.timestamps.filter(|stamps| stamps.echo != 0);
            let age = echo.map(|stamps| timestamp(now).wrapping_sub(stamps.echo));
            let age = age.map(|age| Duration::from_millis(age.into()));
            let is_pushed = segment.flags.intersects(Flags::PSH);
            self.receiver.heard(now, self.sender.out.rto.current(), age, is_pushed);
            self.receiver.receive(now, payload, fin, self.sender.out.rto.srtt());
            self.enter_time_wait(now);
        }
    }

    /// Acts on every timer that is due; spurious calls are no-ops.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        if is_due(self.sender.out.timer) {
            self.sender.timeout(now);
        }
        if is_due(self.receiver.timer) {
            self.receiver.timeout();
        }
        if is_due(self.time_wait) {
            self.time_wait = None;
        }
    }

    /// The earliest timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        if self.reset {
            return None;
        }
        let deadline = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        let timers = [
            self.sender.deadline(),
            deadline(self.receiver.timer, Timer::DelayedAck),
            deadline(self.time_wait, Timer::TimeWait),
        ];
        timers.into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    /// The next packet that may leave now. An IP packet, its payload not captured.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let remote = self.remote.filter(|_| !self.reset)?;
        if let Some(segment) = self.sender.poll(now) {
            self.select_window();
            let packet = self.data_packet(now, remote, segment);
            self.announced = (self.ack_position(), self.window);
            self.receiver.piggybacked();
            self.closed_first |= self.sender.out.fin_sent() && !self.receiver.is_finished();
            return Some(packet);
        }
        if self.sender.out.una == 0 || !self.ack_is_due() {
            return None;
        }
        self.select_window();
        let packet = self.ack_packet(now, remote);
        self.announced = (self.ack_position(), self.window);
        match self.ack_limit {
            None => self.receiver.ack_sent(),
            Some(_) => self.receiver.all_acks_sent(),
        }
        Some(packet)
    }

    /// The window that the next segment announces.
    fn select_window(&mut self) {
        if let Some(window) = self.receiver.announce(self.shift) {
            self.window = u32::try_from(window).unwrap_or(u32::MAX);
        }
    }

    /// The peer's SYN; says whether the rest of the segment counts.
    fn handle_syn(&mut self, segment: &Segment) -> bool {
        if self.incoming.is_some() {
            // It arrived again: what answered it was lost.
            if self.sender.out.una == 0 {
                self.sender.resend_syn();
            } else {
                self.receiver.repeat_ack();
            }
            return false;
        }
        let has_ack = segment.flags.intersects(Flags::ACK);
        let answers = has_ack && segment.ack == self.outgoing.seq(1);
        let is_expected = if self.remote.is_some() { answers } else { !has_ack };
        if !is_expected || segment.flags.intersects(Flags::RST) {
            return false;
        }
        let options = &segment.options;
        self.remote = Some(segment.source);
        self.incoming = Some(Stream { isn: segment.seq });
        self.peer_mss = options.mss.unwrap_or(self.peer_mss);
        self.sack = self.profile.sack && options.sack_permitted;
        self.timestamps = self.profile.timestamps && options.timestamps.is_some();
        if let (true, Some(shift)) = (self.profile.window_scaling, options.window_scale) {
            self.scaling = true;
            self.peer_shift = shift;
            self.shift = self.window_shift();
        }
        let timestamp = options.timestamps.map(|timestamps| timestamps.value);
        self.receiver.synchronised(timestamp, self.sack);
        true
    }

    fn handle_ack(&mut self, now: Instant, segment: &Segment) {
        let is_handshake = self.sender.out.una == 0;
        let Some(position) = self.outgoing.position(segment.ack, self.sender.out.una) else {
            return;
        };
        let is_syn = segment.flags.intersects(Flags::SYN);
        let shift = if is_syn { 0 } else { self.peer_shift };
        let echo = segment.options.timestamps.filter(|stamps| self.timestamps && stamps.echo != 0);
        let ack = Ack {
            position,
            edge: position + (u64::from(segment.window) << shift),
            is_bare: segment.is_pure_ack(),
            echo: echo.map(|stamps| stamps.echo),
            round_trip: echo.map(|Timestamps { echo, .. }| {
                Duration::from_millis(u64::from(timestamp(now).wrapping_sub(echo)))
            }),
        };
        let (outgoing, near) = (self.outgoing, self.sender.out.una);
        let blocks = segment.options.sack.as_slice().iter().filter_map(|(left, right)| {
            let start = outgoing.position(*left, near)?;
            Some(Span { start, end: outgoing.position(*right, near)? })
        });
        self.sender.acknowledged(now, &ack, &blocks.collect::<Vec<_>>());
        if is_handshake && self.sender.out.una > 0 {
            let Profile { sack, sack_alone, sack_recovery, .. } = self.profile;
            let is_linux = sack_recovery == SackRecovery::Linux;
            let takes_sack = self.sack || sack && sack_alone && is_linux;
            self.sender.established(now, self.full_segment(), takes_sack);
        }
        self.enter_time_wait(now);
    }

    /// Payload bytes of a full segment: the smaller announcement less options (RFC 6691).
    fn full_segment(&self) -> u64 {
        let options = if self.timestamps { 12 } else { 0 };
        u64::from(self.profile.mss.min(self.peer_mss)).saturating_sub(options).max(1)
    }

    fn enter_time_wait(&mut self, now: Instant) {
        let over = self.sender.out.fin_acked() && self.receiver.is_finished();
        if over && self.closed_first {
            self.time_wait = Some(now + self.profile.time_wait);
        }
    }

    /// A segment with SYN, payload or FIN.
    fn data_packet(&mut self, now: Instant, remote: Address, segment: Span) -> Packet {
        let payload = self.sender.out.payload(segment);
        let mut flags = Flags::default();
        let mut options = Options::default();
        if segment.start == 0 {
            flags = flags.union(Flags::SYN);
            options = self.syn_options();
        } else if segment.end > payload.end {
            flags = flags.union(Flags::FIN);
        } else if self.sender.out.pushes(payload) {
            flags = flags.union(Flags::PSH);
        }
        if self.timestamps || options.timestamps.is_some() {
            options.timestamps = Some(self.stamps(now));
        }
        let builder = self.segment(remote, segment.start).flags(flags).options(options);
        builder.payload_len(payload.len() as u32).build(LinkType::Ip)
    }

    /// What a SYN offers; a SYN that answers one offers what was offered to it.
    fn syn_options(&self) -> Options {
        let offers = |wanted: bool, agreed: bool| wanted && (agreed || self.incoming.is_none());
        let profile = &self.profile;
        let scaling = offers(profile.window_scaling, self.scaling);
        let timestamps = offers(profile.timestamps, self.timestamps);
        Options {
            mss: Some(profile.mss),
            window_scale: scaling.then(|| self.window_shift()),
            sack_permitted: offers(profile.sack, self.sack),
            timestamps: timestamps.then(Timestamps::default),
            ..Options::default()
        }
    }

    fn ack_packet(&self, now: Instant, remote: Address) -> Packet {
        let mut options = Options::default();
        if self.timestamps {
            options.timestamps = Some(self.stamps(now));
        }
        if let (true, Some(incoming)) =
            (self.sack && self.receiver.has_sack_blocks(), self.incoming)
        {
            let edges = |span: Span| (incoming.seq(span.start), incoming.seq(span.end));
            options.sack = self.receiver.sack_blocks().map(edges).collect();
        }
        self.segment(remote, self.sender.out.nxt).options(options).build(LinkType::Ip)
    }

    /// With a limit, what arrives makes no ACK due, which would be a duplicate; but a closed window
    /// that is probed is announced again (RFC 9293 §3.8.6.1).
    fn ack_is_due(&self) -> bool {
        let is_news = || (self.ack_position(), self.window) != self.announced;
        match self.ack_limit {
            None => self.receiver.ack_is_due(),
            Some(_) => is_news() || self.window == 0 && self.receiver.ack_is_due(),
        }
    }

    /// The position that segments acknowledge.
    fn ack_position(&self) -> u64 {
        let next = self.receiver.next();
        let all = 1 + self.receiver.delivered();
        self.ack_limit.map_or(next, |limit| if limit < all { limit } else { next })
    }

    /// What every segment has.
    fn segment(&self, remote: Address, position: u64) -> SegmentBuilder<'static> {
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        let window = self.window >> if position == 0 { 0 } else { self.shift };
        let window = u16::try_from(window).unwrap_or(u16::MAX);
        let builder =
            SegmentBuilder::new(self.local, remote).seq(self.outgoing.seq(position)).window(window);
        match self.incoming {
            Some(incoming) => builder.ack(incoming.seq(self.ack_position())),
            None => builder,
        }
    }

    fn stamps(&self, now: Instant) -> Timestamps {
        Timestamps { value: timestamp(now), echo: self.receiver.ts_recent() }
    }

    /// The least shift that brings the receive window into 16 bits (RFC 7323 §2.3); where Linux
    /// tunes it, the memory for it, which is twice as large (`tcp_select_initial_window`).
    fn window_shift(&self) -> u8 {
        let tuned = u32::from(self.profile.moderate_rcvbuf);
        let bits = u32::BITS - self.profile.receive_window.leading_zeros() + tuned;
        bits.saturating_sub(u16::BITS).min(14) as u8
    }
}
