//! The ports that a peer's agent sends through: frames leave in batches, packets joined.

use super::carrier::{Batch, Carrier, Sent};
use super::channel::Channel;
use super::counters::Counters;
use super::message::{Message, PADDED_HEADER};
use super::padding::Padding;
use super::parts;
use super::random::random;
use super::routing::Routing;
use crate::device::Device;
use airmend_proto::agents::Compressor;
use airmend_proto::wire::ip::Network;
use airmend_proto::{Ecn, Instant, LinkType, Packet, Port, Ports};
use std::io;

/// What all peers share: the device, the carrier, and whose addresses are whose.
pub(super) struct Io {
    pub(super) device: Box<dyn Device>,
    pub(super) carrier: Box<dyn Carrier>,
    pub(super) routing: Routing,
    /// The socket has refused a batch, which waits at its peer: nobody else sends before it.
    pub(super) is_full: bool,
    device_error: Option<io::Error>,
}

impl Io {
    pub(super) fn new(
        device: Box<dyn Device>,
        carrier: Box<dyn Carrier>,
        routing: Routing,
    ) -> Self {
        Self { device, carrier, routing, is_full: false, device_error: None }
    }

    /// Writes what the device has kept.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.device.flush()?;
        self.device_error.take().map_or(Ok(()), Err)
    }
}

/// What leaves for one peer.
pub(super) struct Outbound {
    pub(super) channel: Box<dyn Channel>,
    /// What this part and those before it count.
    pub(super) own: Counters,
    pub(super) now: Instant,
    batch: Batch,
    /// A batch that the socket had no room for.
    waiting: Option<Batch>,
    /// The longest datagram of data since this was last asked for.
    pub(super) longest_sent: usize,
    /// Frames that make longer datagrams leave in parts.
    pub(super) limit: usize,
    /// The longest datagram that padding makes: what the path carries.
    pub(super) padded_limit: usize,
    padding: Option<Padding>,
    next_number: u32,
    /// What crosses in the place of the agent's frames.
    pub(super) compressor: Option<Compressor>,
}

impl Outbound {
    pub(super) fn new(
        channel: Box<dyn Channel>,
        padding: Option<Padding>,
        compressor: Option<Compressor>,
    ) -> Self {
        let mut number = [0; 4];
        random(&mut number).ok();
        Self {
            channel,
            own: Counters::default(),
            now: Instant::ZERO,
            batch: Batch::default(),
            waiting: None,
            longest_sent: 0,
            limit: usize::MAX,
            padded_limit: 0,
            padding,
            next_number: u32::from_be_bytes(number),
            compressor,
        }
    }

    /// Bytes that are added to each frame; padding may add more.
    pub(super) fn overhead(&self) -> usize {
        self.channel.overhead() + self.padding.map_or(0, |_| PADDED_HEADER)
    }

    /// Whether the socket has refused what is to leave next.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Sends the batch, and the datagrams that the channel itself originates.
    pub(super) fn flush(&mut self, io: &mut Io) {
        if let Some(batch) = self.waiting.take() {
            io.is_full = false;
            self.transmit(io, batch);
        }
        self.close_batch(io);
        while let Some((to, message)) = self.channel.poll_transmit() {
            io.carrier.send(to, &Batch::single(message));
        }
    }

    /// Forgets the batch that waits: its peer goes.
    pub(super) fn give_up(&mut self, io: &mut Io) {
        io.is_full &= self.waiting.take().is_none();
    }

    /// Sends a message to the peer's tunnel, which arrives whole or not at all.
    pub(super) fn send_message(&mut self, io: &mut Io, message: Message<'_>, length: usize) {
        let Some(to) = self.channel.peer() else { return };
        let mut datagram = Vec::new();
        let length = length.saturating_sub(self.channel.overhead());
        self.channel.seal(self.now, &message.bytes(length), &mut datagram);
        if !datagram.is_empty() {
            io.carrier.send_whole(to, &datagram);
        }
    }

    /// The counters here and in the channel.
    pub(super) fn counters(&self) -> Counters {
        let mut all = self.own;
        all += *self.channel.counters();
        all
    }

    /// Sends the frames that tell the peer which runs of both ends are present.
    pub(super) fn tell_epochs(&mut self, io: &mut Io) {
        while let Some(frame) = self.compressor.as_mut().and_then(Compressor::poll_transmit) {
            self.send_frame(io, frame.bytes(), frame.outer_ecn());
        }
    }

    fn send_compressed(&mut self, io: &mut Io, frame: Packet) {
        let ecn = frame.outer_ecn();
        let Some(compressor) = &mut self.compressor else {
            return self.send_frame(io, frame.bytes(), ecn);
        };
        let (bytes, is_short) = compressor.compress(frame);
        self.own.compressed += u64::from(is_short);
        self.send_frame(io, &bytes, ecn);
    }

    fn send_frame(&mut self, io: &mut Io, frame: &[u8], ecn: Ecn) {
        let overhead = self.overhead();
        if frame.len() + overhead <= self.limit {
            return self.send_padded(io, frame, ecn);
        }
        self.own.fragmented += 1;
        self.next_number = self.next_number.wrapping_add(1);
        match parts::split(self.next_number, frame, self.limit.saturating_sub(overhead)) {
            Some(parts) => parts.for_each(|part| self.send_padded(io, &part.bytes(0), ecn)),
            None => self.own.send_errors += 1,
        }
    }

    fn send_padded(&mut self, io: &mut Io, frame: &[u8], ecn: Ecn) {
        let Some(padding) = self.padding else { return self.send_sealed(io, frame, ecn) };
        let room = self.padded_limit.saturating_sub(self.channel.overhead());
        let length = padding.length(PADDED_HEADER + frame.len(), room);
        self.send_sealed(io, &Message::Padded { bytes: frame }.bytes(length), ecn);
    }

    fn send_sealed(&mut self, io: &mut Io, frame: &[u8], ecn: Ecn) {
        let length = frame.len() + self.channel.overhead();
        if !self.batch.takes(length, ecn) {
            self.close_batch(io);
        }
        let begin = self.batch.bytes.len();
        self.channel.seal(self.now, frame, &mut self.batch.bytes);
        if self.batch.bytes.len() == begin + length {
            self.batch.joined(length, ecn);
            self.own.frames_sent += 1;
        } else {
            self.batch.bytes.truncate(begin);
            self.own.send_errors += 1;
        }
    }

    /// Sends the batch; it waits if there is no room. No second batch waits behind it, since no
    /// frame is taken then.
    fn close_batch(&mut self, io: &mut Io) {
        if self.batch.segments == 0 || io.is_full {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        self.transmit(io, batch);
    }

    fn transmit(&mut self, io: &mut Io, mut batch: Batch) {
        let Some(to) = self.channel.peer() else { return };
        self.longest_sent = self.longest_sent.max(batch.segment_size);
        let before = io.carrier.fragmented();
        match io.carrier.send(to, &batch) {
            Sent::Done(errors) => {
                self.own.send_errors += errors;
                if self.batch.segments == 0 {
                    // Its memory serves the next one.
                    batch.clear();
                    self.batch = batch;
                }
            }
            Sent::Full => {
                io.is_full = true;
                self.waiting = Some(batch);
            }
        }
        self.own.fragmented += io.carrier.fragmented() - before;
    }
}

/// The way out for the agent of the peer in this place.
pub(super) struct Exit<'a> {
    pub(super) io: &'a mut Io,
    pub(super) outbound: &'a mut Outbound,
    pub(super) place: usize,
}

impl Exit<'_> {
    /// Whether the peer may send from this packet's source address.
    fn is_its_own(&self, packet: &Packet) -> bool {
        let routing = &self.io.routing;
        // Passthrough gives the peer's frame, which is the packet.
        let packet = || Packet::new(LinkType::Ip, packet.shared_bytes());
        let source = || routing.place(Network::walk(&packet()).ok()?.source);
        routing.only().is_some() || source() == Some(self.place)
    }
}

impl Ports for Exit<'_> {
    fn can_send(&self, _now: Instant, side: Port) -> bool {
        side == Port::Wired || !self.io.is_full && self.outbound.channel.peer().is_some()
    }

    fn send(&mut self, _now: Instant, side: Port, packet: Packet) {
        match side {
            Port::Air => self.outbound.send_compressed(self.io, packet),
            Port::Wired if !self.is_its_own(&packet) => self.outbound.own.wrong_source += 1,
            Port::Wired => {
                self.outbound.own.packets_out += 1;
                self.outbound.own.bytes_out += u64::from(packet.wire_len());
                if let Err(error) = self.io.device.send(&packet) {
                    self.io.device_error = Some(error);
                }
            }
        }
    }
}
