//! One end of a tunnel without device, socket and clock: the caller carries its datagrams. For
//! fuzzing, and for tests of both ends against each other.

use super::carrier::Address;
use super::channel::Channel;
use super::counters::Counters;
use super::inbound::{Arrival, Inbound};
use super::noise::Names;
use super::notice::Notice;
use super::security::{self, Security};
use airmend_proto::{Ecn, Instant};
use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// One end: datagrams become frames, and frames datagrams. `now` must not decrease.
pub struct Endpoint {
    channel: Box<dyn Channel>,
    inbound: Inbound,
}

impl Endpoint {
    /// An end; with a peer's address it initiates. `since_1970` is the time at `Instant::ZERO`.
    pub fn new(security: &Security, peer: Option<Address>, since_1970: Duration) -> Self {
        let channel = security::open(security, Names::default(), peer, since_1970);
        Self { channel, inbound: Inbound::new(usize::MAX) }
    }

    /// Handles a datagram from this address: any bytes at all. The frame that it completes, if it
    /// is authentic; probes are not answered here.
    pub fn receive(&mut self, now: Instant, from: Address, datagram: &[u8]) -> Option<Bytes> {
        let mut buffer = BytesMut::new();
        if !self.channel.receive(now, from, datagram, &mut buffer) {
            return None;
        }
        match self.inbound.take(now, buffer.freeze(), Ecn::NotEct)? {
            Arrival::Frame(frame, _) => Some(frame),
            Arrival::Probe { .. } | Arrival::Answer { .. } => None,
        }
    }

    /// The datagram with this frame for the peer; empty without a session.
    pub fn seal(&mut self, now: Instant, frame: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.channel.seal(now, frame, &mut datagram);
        datagram
    }

    /// Handles the timeouts that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.channel.handle_timeout(now);
    }

    /// The next timeout.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.channel.poll_timeout()
    }

    /// The next handshake message, keepalive or reply to send, and where to.
    pub fn poll_transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.channel.poll_transmit()
    }

    /// The next thing that an operator should know.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.channel.poll_notice()
    }

    /// The peer's address, if frames can be sent there now.
    pub fn peer(&self) -> Option<Address> {
        self.channel.peer()
    }

    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        self.channel.counters()
    }
}
