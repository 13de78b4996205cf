//! The channel without a key: nothing is encrypted, and the last sender is the peer.

use super::carrier::Address;
use super::channel::Channel;
use super::counters::Counters;
use super::datagram::{self, Datagram, OPEN_HEADER};
use super::notice::Notice;
use airmend_proto::Instant;
use bytes::BytesMut;
use std::time::Duration;

/// As with a key: the end that knows the other's address keeps the path open.
const KEEPALIVE: Duration = Duration::from_millis(100);

/// The open channel to one peer.
pub(super) struct PlainChannel {
    keeps_alive: bool,
    peer: Option<Address>,
    last_sent: Instant,
    outbox: Option<(Address, Vec<u8>)>,
    notice: Option<Notice>,
    is_silent: bool,
    counters: Counters,
}

impl PlainChannel {
    /// A channel; with a peer's address this end sends first.
    pub(super) fn new(peer: Option<Address>) -> Self {
        Self {
            keeps_alive: peer.is_some(),
            peer,
            last_sent: Instant::ZERO,
            outbox: None,
            notice: None,
            is_silent: false,
            counters: Counters::default(),
        }
    }
}

impl Channel for PlainChannel {
    fn overhead(&self) -> usize {
        OPEN_HEADER
    }

    fn peer(&self) -> Option<Address> {
        self.peer
    }

    fn seal(&mut self, now: Instant, frame: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&datagram::open_header());
        out.extend_from_slice(frame);
        self.last_sent = now;
    }

    fn receive(
        &mut self,
        _now: Instant,
        from: Address,
        datagram: &[u8],
        out: &mut BytesMut,
    ) -> bool {
        let Some(Datagram::Open(frame)) = Datagram::parse(datagram) else {
            self.counters.truncated += 1;
            return false;
        };
        if self.counters.frames_received == 0 || std::mem::take(&mut self.is_silent) {
            self.notice = Some(Notice::PeerFound(from));
        } else if self.peer != Some(from) {
            self.counters.peer_moves += 1;
            self.notice = Some(Notice::PeerMoved(from));
        }
        self.peer = Some(from);
        self.counters.frames_received += 1;
        out.extend_from_slice(frame);
        !frame.is_empty()
    }

    fn is_for(&mut self, _now: Instant, _from: Address, _datagram: &[u8]) -> bool {
        true
    }

    fn initiate(&mut self, addresses: &[Address]) {
        self.keeps_alive = true;
        self.peer = addresses.first().copied().or(self.peer);
    }

    fn handle_silence(&mut self, _now: Instant) {
        self.notice = self.peer.map(Notice::NoAnswer);
        self.is_silent = true;
    }

    fn established(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, now: Instant) {
        let is_due = self.keeps_alive && now - self.last_sent >= KEEPALIVE;
        if let Some(peer) = self.peer.filter(|_| is_due) {
            let mut message = Vec::new();
            self.seal(now, &[], &mut message);
            self.outbox = Some((peer, message));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.keeps_alive.then(|| self.last_sent + KEEPALIVE)
    }

    fn poll_transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.outbox.take()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.notice.take()
    }

    fn resume(&mut self, counters: Counters) {
        self.counters = counters;
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
