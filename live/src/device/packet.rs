//! A veth pair and a packet socket: needs no device node, works for ordinary users.
//!
//! One end of the pair is the host's interface, the other is read and written here. Nobody answers
//! ARP or neighbour discovery behind this port: the host's interface must be set `arp off`, which
//! makes its kernel address every frame to the interface's own MAC address. Frames that are not IP
//! therefore do not occur, and are ignored.

use super::{BATCH, Device, ethertype, is_loss};
use crate::sys::PacketSocket;
use airmend_proto::{LinkType, Packet};
use bytes::Bytes;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The base station's end of a veth pair.
#[derive(Debug)]
pub struct PacketDevice {
    socket: PacketSocket,
    host_mac: [u8; 6],
    drops: u64,
}

impl PacketDevice {
    /// Opens the port on `interface` of the calling thread's network namespace; packets are sent
    /// to `host_mac`, the address of the interface at the other end.
    pub fn open(interface: &str, host_mac: [u8; 6]) -> io::Result<Self> {
        let socket = PacketSocket::open(interface, libc::ETH_P_ALL as u16)?;
        Ok(Self { socket, host_mac, drops: 0 })
    }
}

impl Device for PacketDevice {
    fn receive(&mut self, batch: &mut Vec<Packet>) -> io::Result<bool> {
        let mut take = |protocol: u16, _from: [u8; 6], bytes: &[u8]| {
            if ethertype(bytes) == Some(protocol) {
                batch.push(Packet::new(LinkType::Ip, Bytes::copy_from_slice(bytes)));
            }
        };
        for _ in 0..BATCH {
            if !self.socket.receive(&mut take) {
                return self.socket.check_interface().map(|()| false);
            }
        }
        Ok(true)
    }

    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        let Some(protocol) = ethertype(packet.bytes()) else { return Ok(()) };
        match self.socket.send(protocol, self.host_mac, packet.bytes()) {
            Err(error) if is_loss(&error) => self.drops += 1,
            result => result?,
        }
        Ok(())
    }

    fn drops(&mut self) -> u64 {
        self.drops += self.socket.drops().unwrap_or(0);
        self.drops
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
