//! An end with several peers whose interface and socket are in the caller's hands.

use crate::device::Device;
use crate::tunnel::carrier::{Address, Batch, Carrier, Sent, Way};
use crate::tunnel::interface::Interface;
use crate::tunnel::outbound::Io;
use crate::tunnel::peers::Peers;
use crate::tunnel::{Counters, DeviceConfig, Protocol, TunnelConfig};
use airmend_proto::agents::Limits;
use airmend_proto::agents::plain::Plain;
use airmend_proto::{Agent, Ecn, Instant, LinkType, Packet};
use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What has left on one side.
type Left<T> = Arc<Mutex<Vec<T>>>;

fn take<T>(left: &Left<T>) -> Vec<T> {
    std::mem::take(&mut left.lock().unwrap_or_else(PoisonError::into_inner))
}

fn put<T>(left: &Left<T>, item: T) {
    left.lock().unwrap_or_else(PoisonError::into_inner).push(item);
}

/// The end.
pub struct Hub {
    peers: Peers,
    io: Io,
    interface: Interface,
    packets: Left<Bytes>,
    datagrams: Left<(Address, Vec<u8>)>,
}

impl Hub {
    /// An end that mends nothing. `since_1970` is the time at `Instant::ZERO`.
    ///
    /// # Errors
    /// This machine has no loopback interface, or no `/dev/null`.
    pub fn new(config: &TunnelConfig, since_1970: Duration) -> io::Result<Self> {
        let peers = Peers::new(config, &PLAIN, since_1970);
        let (packets, datagrams) = (Left::default(), Left::default());
        let device = FakeDevice { file: File::open("/dev/null")?, packets: Arc::clone(&packets) };
        let carrier =
            FakeCarrier { file: File::open("/dev/null")?, datagrams: Arc::clone(&datagrams) };
        let io = Io::new(Box::new(device), Box::new(carrier), peers.routing());
        let interface = Interface::new(&DeviceConfig::Bridge { interface: "lo".to_owned() })?;
        Ok(Self { peers, io, interface, packets, datagrams })
    }

    /// Other peers from now on.
    pub fn reload(&mut self, now: Instant, config: &TunnelConfig) {
        self.peers.reload(now, &mut self.io, config, &PLAIN, false);
    }

    /// Takes any bytes as a datagram from this address.
    pub fn receive(&mut self, now: Instant, from: Address, datagram: &[u8]) {
        let mut buffer = BytesMut::new();
        self.peers.receive(now, (from, Ecn::NotEct), datagram, &mut buffer);
    }

    /// Takes any bytes as a packet of the hosts.
    pub fn take(&mut self, now: Instant, packet: Bytes) {
        self.peers.take(now, &self.io, false, Packet::new(LinkType::Ip, packet));
    }

    /// Lets all peers do what they have to do; the datagrams and the packets that left.
    pub fn turn(&mut self, now: Instant) -> (Vec<(Address, Vec<u8>)>, Vec<Bytes>) {
        self.peers.turns(now, &mut self.io, &self.interface);
        // A device that fails, which this one does not.
        self.io.flush().ok();
        self.peers.notices.clear();
        for peer in self.peers.iter_mut() {
            while peer.poll_notice(now).is_some() {}
        }
        (take(&self.datagrams), take(&self.packets))
    }

    /// Bytes that packets of each peer may take, in the order of their places.
    pub fn cache_bytes(&self) -> Vec<usize> {
        self.peers.iter().map(|peer| peer.limits.cache_bytes).collect()
    }

    /// A read of the socket begins, whose buffer is crowded or not.
    pub fn begin_read(&mut self, is_crowded: bool) {
        self.peers.shares.begin(is_crowded);
    }

    /// The counters of the peer with this name; without one, of what is nobody's.
    pub fn counters(&self, name: Option<&str>) -> Counters {
        let is_it = |config: &Option<String>| config.as_deref() == name;
        let peer = self.peers.iter().find(|peer| name.is_some() && is_it(&peer.config.name));
        peer.map_or(self.peers.strangers.counters, |peer| peer.counters())
    }
}

const PLAIN: Protocol<'static> = Protocol { agent: &plain, link: None };

fn plain(_limits: Limits) -> Box<dyn Agent + Send> {
    Box::new(Plain)
}

struct FakeDevice {
    file: File,
    packets: Left<Bytes>,
}

impl Device for FakeDevice {
    fn receive(&mut self, _batch: &mut Vec<Packet>) -> io::Result<bool> {
        Ok(false)
    }

    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        put(&self.packets, Bytes::copy_from_slice(packet.bytes()));
        Ok(())
    }

    fn drops(&mut self) -> u64 {
        0
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

struct FakeCarrier {
    file: File,
    datagrams: Left<(Address, Vec<u8>)>,
}

impl Carrier for FakeCarrier {
    fn receive(&mut self, _take: &mut dyn FnMut(Address, Ecn, &[u8])) -> io::Result<bool> {
        Ok(false)
    }

    fn send(&mut self, to: Address, batch: &Batch) -> Sent {
        for datagram in batch.bytes.chunks(batch.segment_size.max(1)) {
            put(&self.datagrams, (to, datagram.to_vec()));
        }
        Sent::Done(0)
    }

    fn send_whole(&mut self, to: Address, datagram: &[u8]) {
        put(&self.datagrams, (to, datagram.to_vec()));
    }

    fn fragmented(&self) -> u64 {
        0
    }

    fn is_path_new(&self) -> bool {
        false
    }

    fn way(&mut self, _to: Address) -> Option<Way> {
        None
    }

    fn min_datagram(&self, _to: Address) -> usize {
        0
    }

    fn usual_datagram(&self) -> usize {
        1_472
    }

    fn is_own(&self, _to: Address, _packet: &Packet) -> bool {
        false
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
