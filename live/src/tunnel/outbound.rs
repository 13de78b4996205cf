//! The ports that the agent sends through: frames leave in batches, packets joined.

use super::carrier::{Batch, Carrier, Sent};
use super::channel::Channel;
use super::counters::Counters;
use super::message::{Message, PADDED_HEADER};
use super::padding::Padding;
use super::parts;
use super::random::random;
use crate::device::Device;
use airmend_proto::agents::Compressor;
use airmend_proto::{Ecn, Instant, Packet, Port, Ports};
use std::io;

/// Everything that packets leave through.
pub(super) struct Outbound {
    pub(super) device: Box<dyn Device>,
    pub(super) carrier: Box<dyn Carrier>,
    pub(super) channel: Box<dyn Channel>,
    /// The counters of the tunnel itself.
    pub(super) own: Counters,
    pub(super) now: Instant,
    batch: Batch,
    /// A batch that the socket had no room for.
    waiting: Option<Batch>,
    device_error: Option<io::Error>,
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
        device: Box<dyn Device>,
        carrier: Box<dyn Carrier>,
        channel: Box<dyn Channel>,
        padding: Option<Padding>,
    ) -> Self {
        let mut number = [0; 4];
        random(&mut number).ok();
        Self {
            device,
            carrier,
            channel,
            own: Counters::default(),
            now: Instant::ZERO,
            batch: Batch::default(),
            waiting: None,
            device_error: None,
            longest_sent: 0,
            limit: usize::MAX,
            padded_limit: 0,
            padding,
            next_number: u32::from_be_bytes(number),
            compressor: None,
        }
    }

    /// Another channel, and perhaps carrier, from now on; what waited for the old one is lost.
    pub(super) fn begin_anew(
        &mut self,
        carrier: Option<Box<dyn Carrier>>,
        channel: Box<dyn Channel>,
        padding: Option<Padding>,
        compressor: Option<Compressor>,
    ) {
        if let Some(carrier) = carrier {
            self.own.fragmented += self.carrier.fragmented();
            self.carrier = carrier;
        }
        (self.channel, self.padding, self.compressor) = (channel, padding, compressor);
        (self.batch, self.waiting) = (Batch::default(), None);
        (self.limit, self.padded_limit, self.longest_sent) = (usize::MAX, 0, 0);
    }

    /// Bytes that are added to each frame; padding may add more.
    pub(super) fn overhead(&self) -> usize {
        self.channel.overhead() + self.padding.map_or(0, |_| PADDED_HEADER)
    }

    /// Whether frames can leave now.
    pub(super) fn has_room(&self) -> bool {
        !self.is_full() && self.channel.peer().is_some()
    }

    /// Whether the socket has refused what is to leave next.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.is_some()
    }

    /// Sends the batch, and the datagrams that the channel itself originates.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Some(batch) = self.waiting.take() {
            self.transmit(batch);
        }
        self.close_batch();
        while let Some((to, message)) = self.channel.poll_transmit() {
            self.carrier.send(to, &Batch::single(message));
        }
        self.device.flush()?;
        self.device_error.take().map_or(Ok(()), Err)
    }

    /// Sends a message to the peer's tunnel, which arrives whole or not at all.
    pub(super) fn send_message(&mut self, message: Message<'_>, length: usize) {
        let Some(to) = self.channel.peer() else { return };
        let mut datagram = Vec::new();
        let length = length.saturating_sub(self.channel.overhead());
        self.channel.seal(self.now, &message.bytes(length), &mut datagram);
        if !datagram.is_empty() {
            self.carrier.send_whole(to, &datagram);
        }
    }

    /// The counters here, in the channel and at the device.
    pub(super) fn counters(&mut self) -> Counters {
        let Counters {
            packets_in,
            bytes_in,
            packets_out,
            bytes_out,
            frames_sent,
            send_errors,
            compressed,
            unreadable,
            looped,
            ..
        } = self.own;
        let device_drops = self.device.drops();
        let fragmented = self.own.fragmented + self.carrier.fragmented();
        Counters {
            packets_in,
            bytes_in,
            packets_out,
            bytes_out,
            frames_sent,
            send_errors,
            compressed,
            unreadable,
            looped,
            device_drops,
            fragmented,
            ..*self.channel.counters()
        }
    }

    /// Sends the frames that tell the peer which runs of both ends are present.
    pub(super) fn tell_epochs(&mut self) {
        while let Some(frame) = self.compressor.as_mut().and_then(Compressor::poll_transmit) {
            self.send_frame(frame.bytes(), frame.outer_ecn());
        }
    }

    fn send_compressed(&mut self, frame: Packet) {
        let ecn = frame.outer_ecn();
        let Some(compressor) = &mut self.compressor else {
            return self.send_frame(frame.bytes(), ecn);
        };
        let (bytes, is_short) = compressor.compress(frame);
        self.own.compressed += u64::from(is_short);
        self.send_frame(&bytes, ecn);
    }

    fn send_frame(&mut self, frame: &[u8], ecn: Ecn) {
        let overhead = self.overhead();
        if frame.len() + overhead <= self.limit {
            return self.send_padded(frame, ecn);
        }
        self.own.fragmented += 1;
        self.next_number = self.next_number.wrapping_add(1);
        match parts::split(self.next_number, frame, self.limit.saturating_sub(overhead)) {
            Some(parts) => parts.for_each(|part| self.send_padded(&part.bytes(0), ecn)),
            None => self.own.send_errors += 1,
        }
    }

    fn send_padded(&mut self, frame: &[u8], ecn: Ecn) {
        let Some(padding) = self.padding else { return self.send_sealed(frame, ecn) };
        let room = self.padded_limit.saturating_sub(self.channel.overhead());
        let length = padding.length(PADDED_HEADER + frame.len(), room);
        self.send_sealed(&Message::Padded { bytes: frame }.bytes(length), ecn);
    }

    fn send_sealed(&mut self, frame: &[u8], ecn: Ecn) {
        let length = frame.len() + self.channel.overhead();
        if !self.batch.takes(length, ecn) {
            self.close_batch();
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
    fn close_batch(&mut self) {
        if self.batch.segments == 0 || self.is_full() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        self.transmit(batch);
    }

    fn transmit(&mut self, mut batch: Batch) {
        let Some(to) = self.channel.peer() else { return };
        self.longest_sent = self.longest_sent.max(batch.segment_size);
        match self.carrier.send(to, &batch) {
            Sent::Done(errors) => {
                self.own.send_errors += errors;
                if self.batch.segments == 0 {
                    // Its memory serves the next one.
                    batch.clear();
                    self.batch = batch;
                }
            }
            Sent::Full => self.waiting = Some(batch),
        }
    }
}

impl Ports for Outbound {
    fn can_send(&self, _now: Instant, side: Port) -> bool {
        side == Port::Wired || self.has_room()
    }

    fn send(&mut self, _now: Instant, side: Port, packet: Packet) {
        match side {
            Port::Air => self.send_compressed(packet),
            Port::Wired => {
                self.own.packets_out += 1;
                self.own.bytes_out += u64::from(packet.wire_len());
                if let Err(error) = self.device.send(&packet) {
                    self.device_error = Some(error);
                }
            }
        }
    }
}
