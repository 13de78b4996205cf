//! Datagrams as raw Ethernet frames.
//!
//! There is no IP header, and so no ECN. A frame's payload begins with the length of the datagram:
//! Ethernet pads what is shorter than 46 bytes.

use super::{Address, Batch, Carrier, Sent, Way};
use crate::sys::{self, PacketSocket};
use airmend_proto::{Ecn, Packet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Local experimental EtherType 1 (IEEE 802, RFC 9542 §3).
const ETHERTYPE: u16 = 0x88b5;
const LENGTH_FIELD: usize = 2;
/// Bytes of a slot of the receive ring.
const MAX_MTU: usize = 1900;
/// Frames taken at most in one call.
const MESSAGES: usize = 256;

/// A packet socket for one EtherType of one interface.
pub(in crate::tunnel) struct EthernetCarrier {
    socket: PacketSocket,
    interface: String,
    frame: Vec<u8>,
}

impl EthernetCarrier {
    /// Opens the socket on `interface` of the calling thread's network namespace.
    pub(in crate::tunnel) fn open(interface: &str) -> io::Result<Self> {
        let socket = PacketSocket::open(interface, ETHERTYPE)?;
        Ok(Self { socket, interface: interface.to_owned(), frame: Vec::new() })
    }
}

impl Carrier for EthernetCarrier {
    fn receive(&mut self, take: &mut dyn FnMut(Address, Ecn, &[u8])) -> io::Result<bool> {
        let mut frame = |_ethertype: u16, from: [u8; 6], bytes: &[u8]| {
            let (length, rest) =
                bytes.split_first_chunk::<LENGTH_FIELD>().unwrap_or((&[0; 2], &[]));
            let length = usize::from(u16::from_be_bytes(*length));
            // A frame that is cut is taken for what it is: nothing that authenticates.
            take(Address::Mac(from), Ecn::NotEct, rest.get(..length).unwrap_or(&[]));
        };
        let taken = (0..MESSAGES).take_while(|_| self.socket.receive(&mut frame)).count();
        if taken < MESSAGES {
            self.socket.check_interface()?;
        }
        Ok(taken == MESSAGES)
    }

    fn send(&mut self, to: Address, batch: &Batch) -> Sent {
        let Address::Mac(to) = to else { return Sent::Done(batch.segments as u64) };
        let mut errors = 0;
        for datagram in batch.bytes.chunks(batch.segment_size.max(1)) {
            self.frame.clear();
            self.frame.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
            self.frame.extend_from_slice(datagram);
            errors += u64::from(self.socket.send(ETHERTYPE, to, &self.frame).is_err());
        }
        Sent::Done(errors)
    }

    fn send_whole(&mut self, to: Address, datagram: &[u8]) {
        self.send(to, &Batch::single(datagram.to_vec()));
    }

    fn fragmented(&self) -> u64 {
        0
    }

    fn is_path_new(&self) -> bool {
        false
    }

    fn way(&mut self, _to: Address) -> Option<Way> {
        let mtu = sys::interface_mtu(&self.interface).ok()? as usize;
        let ceiling = mtu.min(MAX_MTU).saturating_sub(LENGTH_FIELD);
        Some(Way { interface: None, ceiling, report: ceiling })
    }

    fn min_datagram(&self, _to: Address) -> usize {
        // All stations of an Ethernet agree on its MTU.
        usize::MAX
    }

    fn usual_datagram(&self) -> usize {
        1500 - LENGTH_FIELD
    }

    fn is_own(&self, _to: Address, _packet: &Packet) -> bool {
        // No route leads an Ethernet frame anywhere.
        false
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
