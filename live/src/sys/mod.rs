//! Every system call that neither std nor `nix` wraps, and so all unsafe code of this crate.
//!
//! Read `netdevice(7)` before working on this file.

mod packet_socket;
mod process;
mod rights;

pub(crate) use packet_socket::{Copied, PacketSocket, open_sending_socket};
pub(crate) use process::{spawn_inside, spawn_mortal};
pub use rights::{inherited, send_file};
pub(crate) use rights::{receive_files, send_files};

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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

/// The link layer type of `interface` (`ARPHRD_…`).
pub(crate) fn hardware_type(interface: &str) -> io::Result<u16> {
    hardware(interface).map(|hardware| hardware.sa_family)
}

/// The MAC address of `interface`, which is an Ethernet.
pub(crate) fn mac_address(interface: &str) -> io::Result<[u8; 6]> {
    let [a, b, c, d, e, f, ..] = hardware(interface)?.sa_data;
    Ok([a, b, c, d, e, f].map(libc::c_char::cast_unsigned))
}

fn hardware(interface: &str) -> io::Result<libc::sockaddr> {
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    // SAFETY: SIOCGIFHWADDR reads the NUL-terminated name and writes the address.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) })?;
    // SAFETY: the successful call above has set this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr })
}

/// The name that the interface with this index has now, in the calling thread's network namespace.
pub(crate) fn interface_name(index: i32) -> io::Result<String> {
    let socket = datagram_socket()?;
    let mut request = interface_request("");
    request.ifr_ifru.ifru_ifindex = index;
    // SAFETY: SIOCGIFNAME reads the index and writes the name into the request.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME, &raw mut request) })?;
    Ok(request_name(&request))
}

/// Makes an open `/dev/net/tun` the TUN device `interface` without packet information.
pub(crate) fn attach_tun(device: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    tun_set_interface(device, interface, libc::IFF_TUN | libc::IFF_NO_PI)?;
    Ok(())
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

/// The name of the TUN device that an open `/dev/net/tun` is.
pub(crate) fn tun_name(device: BorrowedFd<'_>) -> io::Result<String> {
    let mut request = interface_request("");
    // SAFETY: TUNGETIFF writes the `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNGETIFF, &raw mut request) })?;
    Ok(request_name(&request))
}

/// Whether the TUN device has a carrier (Linux 5.0).
pub(crate) fn set_tun_carrier(device: BorrowedFd<'_>, is_on: bool) -> io::Result<()> {
    let is_on = libc::c_int::from(is_on);
    // SAFETY: TUNSETCARRIER reads the number, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETCARRIER, &raw const is_on) })?;
    Ok(())
}

/// Makes an open `/dev/net/tun` a device with a `virtio_net_hdr` before each packet that is only
/// written to: TAP, or TUN without Ethernet headers. Fails with `EBUSY` if there is a device of
/// this name; returns the name.
pub(crate) fn attach_reinjection(
    device: BorrowedFd<'_>,
    name: &str,
    ethernet: bool,
) -> io::Result<String> {
    let kind = if ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
    let flags = libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    tun_set_interface(device, name, kind | flags)
}

fn tun_set_interface(device: BorrowedFd<'_>, interface: &str, flags: i32) -> io::Result<String> {
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes the `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(request_name(&request))
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

/// Sets how many packets wait at most to leave through `interface`.
pub(crate) fn set_interface_queue(interface: &str, packets: i32) -> io::Result<()> {
    /// libc has no name for it; see `linux/sockios.h`.
    const SIOCSIFTXQLEN: libc::Ioctl = 0x8943;
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    // `ifr_qlen`, which libc does not name either, is an integer at the same place.
    request.ifr_ifru.ifru_metric = packets;
    // SAFETY: SIOCSIFTXQLEN reads the request, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSIFTXQLEN, &raw const request) })?;
    Ok(())
}

/// Whether `interface` is up.
pub(crate) fn interface_is_up(interface: &str) -> io::Result<bool> {
    Ok(i32::from(interface_flags(interface)?) & libc::IFF_UP != 0)
}

fn interface_flags(interface: &str) -> io::Result<libc::c_short> {
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    // SAFETY: SIOCGIFFLAGS reads the NUL-terminated name and writes the flags into the request.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: the successful call above has set this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}

/// Sets `interface` up.
pub(crate) fn set_interface_up(interface: &str) -> io::Result<()> {
    let flags = interface_flags(interface)?;
    let socket = datagram_socket()?;
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads the request, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })?;
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

/// What waits in a socket to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveBuffer {
    used: u32,
    size: u32,
    /// Datagrams that were dropped since the buffer was full.
    pub(crate) drops: u32,
}

impl ReceiveBuffer {
    /// Whether more than half of the buffer is used.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used > self.size / 2
    }
}

/// The kernel's `SO_MEMINFO` of a socket (Linux 4.12), as far as it is about what is received.
pub(crate) fn receive_buffer(socket: BorrowedFd<'_>) -> io::Result<ReceiveBuffer> {
    // `SK_MEMINFO_VARS` of linux/sock_diag.h.
    let mut values = [0u32; 9];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the integers.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    let [used, size, .., drops] = values;
    Ok(ReceiveBuffer { used, size, drops })
}

/// The kernel's `TCP_INFO` of a socket; fields that it does not know are zero.
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

/// Lets the allocator keep what it has once got: packets come and go, and giving their memory back
/// to the kernel each time costs more than anything that is done with them.
pub(crate) fn keep_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt changes two numbers of the allocator; it is made for being called any time.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 256 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
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
    // SAFETY: a new descriptor without another owner.
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

fn request_name(request: &libc::ifreq) -> String {
    let name: Vec<u8> =
        request.ifr_name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&name).into_owned()
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
