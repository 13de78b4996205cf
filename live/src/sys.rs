//! Every system call that neither std nor `nix` wraps, and so all unsafe code of this crate.
//!
//! Read `packet(7)`, `netdevice(7)` and the kernel's `Documentation/networking/packet_mmap.rst`
//! before working on this file.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use libc::tcp_info as TcpInfo;

/// Offloads of a network interface, by their `ETHTOOL_S…` command.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Offload {
    /// Checksums of sent packets.
    TxChecksum = 0x17,
    /// Segmentation in hardware (or, on veth, by whoever needs it).
    TcpSegmentation = 0x1f,
    /// Segmentation just before the driver.
    GenericSegmentation = 0x24,
    /// Coalescing of received packets.
    GenericReceive = 0x2c,
}

impl Offload {
    /// All that make a packet differ from what a wire would carry.
    pub(crate) const ALL: [Self; 4] =
        [Self::TxChecksum, Self::TcpSegmentation, Self::GenericSegmentation, Self::GenericReceive];
}

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Switches an offload of `interface` off, in the calling thread's network namespace.
pub(crate) fn disable_offload(interface: &str, offload: Offload) -> io::Result<()> {
    let socket = datagram_socket()?;
    let mut value = EthtoolValue { command: offload as u32, data: 0 };
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names a NUL-terminated interface and points to an `ethtool_value` that
    // outlives the call, as SIOCETHTOOL with these commands wants it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok(())
}

/// The index of `interface` in the calling thread's network namespace.
pub(crate) fn interface_index(interface: &str) -> io::Result<i32> {
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    // SAFETY: SIOCGIFINDEX reads the NUL-terminated name and writes the index into the request.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX, &raw mut request) })?;
    // SAFETY: the successful call above has set this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex })
}

/// Makes an open `/dev/net/tun` the TUN device `interface` without packet information.
pub(crate) fn attach_tun(device: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    tun_set_interface(device, interface, libc::IFF_TUN | libc::IFF_NO_PI)
}

/// The same, with a `virtio_net_hdr` before each packet, TCP segmentation left to the reader.
pub(crate) fn attach_offload_tun(device: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    tun_set_interface(device, interface, flags)?;
    let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    // SAFETY: TUNSETOFFLOAD takes the bits by value.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) })?;
    Ok(())
}

fn tun_set_interface(device: BorrowedFd<'_>, interface: &str, flags: i32) -> io::Result<()> {
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes the `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(())
}

/// The MTU of `interface`, in bytes.
pub(crate) fn interface_mtu(interface: &str) -> io::Result<u32> {
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    // SAFETY: SIOCGIFMTU reads the NUL-terminated name and writes the MTU into the request.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) })?;
    // SAFETY: the successful call above has set this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
}

/// Sets the MTU of `interface`.
pub(crate) fn set_interface_mtu(interface: &str, mtu: u32) -> io::Result<()> {
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_mtu = mtu as libc::c_int;
    // SAFETY: SIOCSIFMTU reads the request, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU, &raw const request) })?;
    Ok(())
}

/// Sets `interface` up.
pub(crate) fn set_interface_up(interface: &str) -> io::Result<()> {
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    // SAFETY: SIOCGIFFLAGS reads the NUL-terminated name and writes the flags into the request.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: the successful call above has set this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads the request, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })?;
    Ok(())
}

/// Gives `interface` an address of a network with this prefix length.
pub(crate) fn add_address(interface: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    match address {
        IpAddr::V4(address) => {
            let socket = datagram_socket()?;
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            for (command, value) in
                [(libc::SIOCSIFADDR, address.to_bits()), (libc::SIOCSIFNETMASK, mask)]
            {
                let mut request = interface_request(interface);
                let value = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: 0,
                    sin_addr: libc::in_addr { s_addr: value.to_be() },
                    sin_zero: [0; 8],
                };
                // SAFETY: both are plain socket addresses of 16 bytes.
                request.ifr_ifru.ifru_addr =
                    unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(value) };
                // SAFETY: both commands read the request, which outlives the call.
                check(unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw const request) })?;
            }
        }
        IpAddr::V6(address) => {
            let socket = open_socket(libc::AF_INET6)?;
            let request = libc::in6_ifreq {
                ifr6_addr: libc::in6_addr { s6_addr: address.octets() },
                ifr6_prefixlen: u32::from(prefix),
                ifr6_ifindex: interface_index(interface)?,
            };
            // SAFETY: for IPv6 sockets, SIOCSIFADDR reads an `in6_ifreq`, which outlives the call.
            let result =
                unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR, &raw const request) };
            check(result)?;
        }
    }
    Ok(())
}

/// An integer option of a socket.
pub(crate) fn option(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    let address = (&raw mut value).cast();
    // SAFETY: the kernel writes at most `length` bytes to the integer.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, address, &raw mut length) })?;
    Ok(value)
}

/// What the kernel tells of a TCP socket; fields that it does not know are zero.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut info = MaybeUninit::<TcpInfo>::zeroed();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the structure of that size.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    // SAFETY: all fields are integers, so zeroed memory with any bytes written over it is valid.
    Ok(unsafe { info.assume_init() })
}

/// Sets an integer option of a socket.
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: i32,
) -> io::Result<()> {
    set_option_value(socket, level, name, &value)
}

/// Shuts a socket down in both directions: calls that wait on it, in any thread, return.
///
/// Unlike std's `shutdown` it also works on listening sockets and while connecting.
pub(crate) fn shutdown(socket: BorrowedFd<'_>) {
    // SAFETY: shutdown has no memory arguments; a failure means that nothing was open any more.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Asks that the calling thread be run before ordinary ones, for as long as it does not compute:
/// real-time priority, which only privileged users get.
pub(crate) fn request_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the kernel reads the structure, which outlives the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) })?;
    Ok(())
}

/// Bytes of one slot of the receive ring: a frame of 1500 bytes and the ring's own header.
const SLOT_BYTES: usize = 2048;
/// Slots of the receive ring: more than a TCP sends in one burst, so that a loop that could not
/// run for a while loses nothing.
const SLOTS: usize = 4096;
const BLOCK_BYTES: usize = 1 << 16;
const TPACKET_V2: i32 = 1;
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// Where the socket address begins in a slot: the slot's header, aligned to 16 bytes.
const ADDRESS_OFFSET: usize = size_of::<SlotHeader>();

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

/// A packet socket without link-layer headers ("cooked"), bound to one interface, that receives
/// through a ring shared with the kernel. The ring, unlike a socket's buffer, may be large for
/// ordinary users too.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    ring: NonNull<u8>,
    next_slot: usize,
    interface_index: i32,
}

// SAFETY: the ring belongs to this value alone and is reached only through `&mut self`.
unsafe impl Send for PacketSocket {}

impl PacketSocket {
    /// Opens the socket on `interface` of the calling thread's network namespace, for packets of
    /// this EtherType (`ETH_P_ALL` for all); it does not see its own packets.
    pub(crate) fn open(interface: &str, ethertype: u16) -> io::Result<Self> {
        let interface_index = interface_index(interface)?;
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: socket has no memory arguments. Protocol 0: nothing arrives before `bind`.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: a new descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, TPACKET_V2)?;
        let request = RingRequest {
            block_bytes: BLOCK_BYTES as u32,
            blocks: (SLOTS * SLOT_BYTES / BLOCK_BYTES) as u32,
            slot_bytes: SLOT_BYTES as u32,
            slots: SLOTS as u32,
        };
        set_option_value(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: maps the ring requested above at an address of the kernel's choice.
        let ring = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SLOTS * SLOT_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        let ring = NonNull::new(ring.cast::<u8>())
            .filter(|ring| ring.as_ptr().cast() != libc::MAP_FAILED)
            .ok_or_else(io::Error::last_os_error)?;
        let socket = Self { fd, ring, next_slot: 0, interface_index };
        let address = socket.address(ethertype, [0; 6]);
        // SAFETY: the address is a whole `sockaddr_ll` that outlives the call.
        check(unsafe {
            libc::bind(
                socket.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(socket)
    }

    /// Hands the next packet that has arrived to `take`: its EtherType, the sender's MAC address,
    /// and the bytes from the network header on. False if there is none, or if the packet did not
    /// fit into a slot.
    pub(crate) fn receive(&mut self, take: impl FnOnce(u16, [u8; 6], &[u8])) -> bool {
        // SAFETY: `next_slot` is below SLOTS, so the slot lies inside the mapping, which lives as
        // long as `self`.
        let slot = unsafe { self.ring.as_ptr().add(self.next_slot * SLOT_BYTES) };
        // SAFETY: slots are aligned to their size and begin with this header. The kernel writes
        // `status` atomically; the status of a slot says who may touch the rest.
        let status = unsafe { &(*slot.cast::<SlotHeader>()).status };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the status gives the whole slot to user space until it is handed back below.
        let (header, address) = unsafe {
            let address = slot.add(ADDRESS_OFFSET).cast::<libc::sockaddr_ll>();
            (&*slot.cast::<SlotHeader>(), &*address)
        };
        let begin = usize::from(header.network_offset);
        let length = header.captured_len as usize;
        let whole = header.captured_len == header.wire_len && begin + length <= SLOT_BYTES;
        if whole {
            // SAFETY: `begin + length` was just checked to lie inside the slot.
            let bytes = unsafe { std::slice::from_raw_parts(slot.add(begin), length) };
            let [a, b, c, d, e, f, ..] = address.sll_addr;
            take(u16::from_be(address.sll_protocol), [a, b, c, d, e, f], bytes);
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next_slot = (self.next_slot + 1) % SLOTS;
        whole
    }

    /// Sends a packet of this EtherType to the station with this MAC address.
    pub(crate) fn send(&self, ethertype: u16, to: [u8; 6], bytes: &[u8]) -> io::Result<()> {
        let address = self.address(ethertype, to);
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

    fn address(&self, ethertype: u16, mac: [u8; 6]) -> libc::sockaddr_ll {
        let [a, b, c, d, e, f] = mac;
        libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ethertype.to_be(),
            sll_ifindex: self.interface_index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: [a, b, c, d, e, f, 0, 0],
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `open` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), SLOTS * SLOT_BYTES) };
    }
}

fn set_option_value<T>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes from the value, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

fn datagram_socket() -> io::Result<OwnedFd> {
    open_socket(libc::AF_INET)
}

fn open_socket(family: i32) -> io::Result<OwnedFd> {
    // SAFETY: socket has no memory arguments.
    let fd = check(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An `ifreq` with this name, cut to what the kernel takes: 15 bytes and a NUL.
fn interface_request(interface: &str) -> libc::ifreq {
    // SAFETY: an `ifreq` of zeroes is valid: an empty name and a union of integers and pointers.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
