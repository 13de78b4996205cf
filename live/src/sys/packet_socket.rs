//! Packet sockets, which receive through a ring shared with the kernel.
//!
//! Read `packet(7)` and the kernel's `Documentation/networking/packet_mmap.rst` before working on
//! this file.

use super::{check, interface_index, set_option, set_option_value};
use bytes::BytesMut;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes of one slot of the receive ring: a frame of 1500 bytes and the ring's own header.
const SLOT_BYTES: usize = 2048;
/// The same for the headers of a packet, of which a filter keeps at most 256 bytes.
const HEADERS_SLOT_BYTES: usize = 512;
/// Slots of the receive ring: more than a TCP sends in one burst, so that a loop that could not
/// run for a while loses nothing.
const SLOTS: usize = 4096;
const BLOCK_BYTES: usize = 1 << 16;
const TPACKET_V2: i32 = 1;
const PACKET_COPY_THRESH: i32 = 7;
const PACKET_VNET_HDR: i32 = 15;
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// The offset of the socket address in a slot: the slot's header, aligned to 16 bytes.
const ADDRESS_OFFSET: usize = size_of::<SlotHeader>();
/// Bytes of a `virtio_net_hdr`.
const VNET_HEADER: usize = 10;
/// The size of a socket's buffer in bytes, for packets that are too long for a slot, or wait in
/// the interface's queue.
const LONG_BUFFER: i32 = 64 << 20;
/// Longer packets do not exist; a length above is a mistake.
const LONGEST: usize = 1 << 20;
/// A VLAN tag may be put into a packet without moving it to a larger buffer.
const TAG: usize = 4;

/// `struct tpacket2_hdr`.
#[repr(C)]
struct SlotHeader {
    status: AtomicU32,
    wire_len: u32,
    captured_len: u32,
    mac_offset: u16,
    network_offset: u16,
    seconds: u32,
    nanoseconds: u32,
    vlan_tci: u16,
    vlan_tpid: u16,
    padding: [u8; 4],
}

/// `struct tpacket_req`.
#[repr(C)]
struct RingRequest {
    block_bytes: u32,
    blocks: u32,
    slot_bytes: u32,
    slots: u32,
}

/// `struct tpacket_stats`.
#[repr(C)]
struct RingStatistics {
    packets: u32,
    drops: u32,
}

/// A packet that left through the interface, as the driver took it, or came in through it.
#[derive(Debug)]
pub(crate) struct Copied {
    /// Since 1970, by the system's clock.
    pub(crate) at: Duration,
    /// The `virtio_net_hdr`: the segmentation and the checksum that are left to do.
    pub(crate) vnet_header: [u8; VNET_HEADER],
    /// A VLAN tag that stands outside the packet: its protocol and its control information.
    pub(crate) vlan: Option<(u16, u16)>,
    /// From the link layer's first byte on.
    pub(crate) bytes: BytesMut,
    /// Bytes of the packet, of which `bytes` may be fewer if the socket's buffer was full.
    pub(crate) wire_len: u32,
    /// It came in with this machine's own address.
    pub(crate) is_for_this_machine: bool,
}

/// A packet socket bound to one interface. The ring, unlike a socket's buffer, may be large for
/// ordinary users too.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    ring: NonNull<u8>,
    slot_bytes: usize,
    next_slot: usize,
    interface_index: i32,
}

// SAFETY: the ring belongs to this value alone and is reached only through `&mut self`.
unsafe impl Send for PacketSocket {}

impl PacketSocket {
    /// Opens a socket without link-layer headers ("cooked") on `interface` of the calling thread's
    /// network namespace, for packets of this EtherType (`ETH_P_ALL` for all) that come in.
    pub(crate) fn open(interface: &str, ethertype: u16) -> io::Result<Self> {
        let fd = packet_socket(libc::SOCK_DGRAM)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        let socket = Self::with_ring(fd, interface_index(interface)?, SLOT_BYTES)?;
        bind(socket.fd.as_fd(), socket.interface_index, ethertype)?;
        Ok(socket)
    }

    /// Opens a socket for copies of what leaves through an interface, super-packets whole. Nothing
    /// arrives before [`Self::listen`], so that a filter can be attached first.
    pub(crate) fn open_copies(interface_index: i32) -> io::Result<Self> {
        let fd = packet_socket(libc::SOCK_RAW)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_COPY_THRESH, 1)?;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, LONG_BUFFER)?;
        Self::with_ring(fd, interface_index, SLOT_BYTES)
    }

    /// Opens a socket for all frames that come in through an interface, also those that are for
    /// other machines.
    pub(crate) fn open_promiscuous(interface_index: i32) -> io::Result<Self> {
        let socket = Self::open_copies(interface_index)?;
        set_option(socket.fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        let membership = libc::packet_mreq {
            mr_ifindex: interface_index,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let option = libc::PACKET_ADD_MEMBERSHIP;
        set_option_value(socket.fd.as_fd(), libc::SOL_PACKET, option, &membership)?;
        socket.listen()?;
        Ok(socket)
    }

    /// Opens a socket for copies of the headers of what leaves: the filter must keep at most 256
    /// bytes of a packet.
    pub(crate) fn open_headers(interface_index: i32) -> io::Result<Self> {
        let fd = packet_socket(libc::SOCK_RAW)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
        Self::with_ring(fd, interface_index, HEADERS_SLOT_BYTES)
    }

    /// Lets packets of all protocols arrive.
    pub(crate) fn listen(&self) -> io::Result<()> {
        bind(self.fd.as_fd(), self.interface_index, libc::ETH_P_ALL as u16)
    }

    /// Whether the interface is the one that the socket was bound to. One that was removed, or
    /// moved to another network namespace, never becomes that again, even with the same name and
    /// index.
    pub(crate) fn is_bound(&self) -> bool {
        let mut address = link_address(0, 0, [0; 6]);
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let socket = self.fd.as_raw_fd();
        // SAFETY: the kernel writes at most `length` bytes to the address of that size.
        let result =
            unsafe { libc::getsockname(socket, (&raw mut address).cast(), &raw mut length) };
        result == 0 && address.sll_ifindex == self.interface_index
    }

    fn with_ring(fd: OwnedFd, interface_index: i32, slot_bytes: usize) -> io::Result<Self> {
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, TPACKET_V2)?;
        let request = RingRequest {
            block_bytes: BLOCK_BYTES as u32,
            blocks: (SLOTS * slot_bytes / BLOCK_BYTES) as u32,
            slot_bytes: slot_bytes as u32,
            slots: SLOTS as u32,
        };
        set_option_value(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: maps the ring requested above at an address of the kernel's choice.
        let ring = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SLOTS * slot_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        let ring = NonNull::new(ring.cast::<u8>())
            .filter(|ring| ring.as_ptr().cast() != libc::MAP_FAILED)
            .ok_or_else(io::Error::last_os_error)?;
        Ok(Self { fd, ring, slot_bytes, next_slot: 0, interface_index })
    }

    /// Hands the next packet that has arrived to `take`: its EtherType, the sender's MAC address,
    /// and the bytes from the network header on. False if there is none, or if the packet did not
    /// fit into a slot.
    pub(crate) fn receive(&mut self, take: impl FnOnce(u16, [u8; 6], &[u8])) -> bool {
        let Some(Slot { header, address, slot }) = self.next() else { return false };
        let begin = usize::from(header.network_offset);
        let length = header.captured_len as usize;
        let whole = header.captured_len == header.wire_len && begin + length <= slot.len();
        if whole {
            let [a, b, c, d, e, f, ..] = address.sll_addr;
            let bytes = &slot[begin..begin + length];
            take(u16::from_be(address.sll_protocol), [a, b, c, d, e, f], bytes);
        }
        self.hand_back();
        whole
    }

    /// The next copy, if there is one.
    pub(crate) fn receive_copy(&mut self) -> Option<Copied> {
        let Slot { header, address, slot } = self.next()?;
        let is_for_this_machine = address.sll_pkttype == libc::PACKET_HOST;
        let status = header.status.load(Ordering::Relaxed);
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let at = Duration::new(header.seconds.into(), header.nanoseconds);
        let vlan = tagged.then_some((header.vlan_tpid, header.vlan_tci));
        let wire_len = header.wire_len;
        let is_long = status & libc::TP_STATUS_COPY != 0;
        let long = is_long.then(|| self.receive_long(wire_len as usize)).flatten();
        let (vnet_header, bytes) = long.unwrap_or_else(|| short(slot, header));
        self.hand_back();
        Some(Copied { at, vnet_header, vlan, bytes, wire_len, is_for_this_machine })
    }

    /// Reads a packet that was too long for its slot, straight into a buffer of its own.
    fn receive_long(&self, length: usize) -> Option<([u8; VNET_HEADER], BytesMut)> {
        let mut header = [0; VNET_HEADER];
        let mut bytes = BytesMut::with_capacity(length.min(LONGEST) + TAG);
        let room = bytes.spare_capacity_mut();
        let parts = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
            libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() },
        ];
        // SAFETY: both parts are writable for their lengths and outlive the call.
        let read = || unsafe { libc::readv(self.fd.as_raw_fd(), parts.as_ptr(), 2) };
        // The first call may return the error that the interface was set down. The packet is
        // still there, and if it stayed, every later one would come in its place.
        let read = Some(read()).filter(|read| *read >= 0).unwrap_or_else(read);
        let read = usize::try_from(read).ok()?.checked_sub(VNET_HEADER)?;
        // SAFETY: the kernel has written so many bytes behind the header, and not more than there
        // was room for.
        unsafe { bytes.set_len(read) };
        Some((header, bytes))
    }

    fn next(&mut self) -> Option<Slot<'static>> {
        // SAFETY: `next_slot` is below SLOTS, so the slot lies inside the mapping, which lives as
        // long as `self`; the callers let go of the slot before they hand it back.
        let slot = unsafe { self.ring.as_ptr().add(self.next_slot * self.slot_bytes) };
        // SAFETY: slots are aligned to their size and begin with this header. The kernel writes
        // `status` atomically; the status of a slot decides who may access the rest.
        let status = unsafe { &(*slot.cast::<SlotHeader>()).status };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status gives the whole slot to user space until it is handed back.
        unsafe {
            Some(Slot {
                header: &*slot.cast::<SlotHeader>(),
                address: &*slot.add(ADDRESS_OFFSET).cast::<libc::sockaddr_ll>(),
                slot: std::slice::from_raw_parts(slot, self.slot_bytes),
            })
        }
    }

    fn hand_back(&mut self) {
        // SAFETY: as in `next`.
        let status = unsafe {
            let slot = self.ring.as_ptr().add(self.next_slot * self.slot_bytes);
            &(*slot.cast::<SlotHeader>()).status
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next_slot = (self.next_slot + 1) % SLOTS;
    }

    /// Sends a packet of this EtherType to the station with this MAC address.
    pub(crate) fn send(&self, ethertype: u16, to: [u8; 6], bytes: &[u8]) -> io::Result<()> {
        let address = link_address(self.interface_index, ethertype, to);
        // SAFETY: bytes and address outlive the call and their lengths are right.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                0,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Takes the error that the socket reports, such as an interface set down: until then it would
    /// seem readable.
    pub(crate) fn take_error(&self) -> io::Result<()> {
        super::option(self.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR).map(drop)
    }

    /// To be called when nothing is there: takes the error that an interface leaves which was set
    /// down. An error if the interface has vanished.
    pub(crate) fn check_interface(&self) -> io::Result<()> {
        self.take_error()?;
        match self.is_bound() {
            true => Ok(()),
            false => Err(io::Error::other("the interface has vanished")),
        }
    }

    /// Packets that arrived while the ring was full since the last call.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        let mut statistics = RingStatistics { packets: 0, drops: 0 };
        let mut length = size_of::<RingStatistics>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to the structure of that size.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        })?;
        Ok(u64::from(statistics.drops))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `with_ring` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), SLOTS * self.slot_bytes) };
    }
}

/// A socket that sends whole frames, each behind a `virtio_net_hdr`, through one interface.
pub(crate) fn open_sending_socket(interface_index: i32) -> io::Result<OwnedFd> {
    let fd = packet_socket(libc::SOCK_RAW)?;
    set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
    // Protocol 0: nothing is received.
    bind(fd.as_fd(), interface_index, 0)?;
    // The interface's queue decides how much may wait.
    set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, LONG_BUFFER)?;
    Ok(fd)
}

/// A packet, or the part of it, that lies in its slot.
fn short(slot: &[u8], header: &SlotHeader) -> ([u8; VNET_HEADER], BytesMut) {
    let begin = usize::from(header.mac_offset);
    let end = begin.saturating_add(header.captured_len as usize);
    let captured = slot.get(begin..end).unwrap_or(&[]);
    let mut bytes = BytesMut::with_capacity(captured.len() + TAG);
    bytes.extend_from_slice(captured);
    let vnet_header = begin.checked_sub(VNET_HEADER).and_then(|at| slot.get(at..begin));
    (vnet_header.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default(), bytes)
}

struct Slot<'a> {
    header: &'a SlotHeader,
    address: &'a libc::sockaddr_ll,
    slot: &'a [u8],
}

fn packet_socket(kind: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket has no memory arguments. Protocol 0: nothing arrives before `bind`.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(fd: BorrowedFd<'_>, interface_index: i32, ethertype: u16) -> io::Result<()> {
    let address = link_address(interface_index, ethertype, [0; 6]);
    // SAFETY: the address is a whole `sockaddr_ll` that outlives the call.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

fn link_address(interface_index: i32, ethertype: u16, mac: [u8; 6]) -> libc::sockaddr_ll {
    let [a, b, c, d, e, f] = mac;
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: interface_index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [a, b, c, d, e, f, 0, 0],
    }
}
