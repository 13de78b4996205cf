//! The TCP of smoltcp as the sender of a transfer: tools/stacks-bench runs it beside the kernel's.
//!
//! ```text
//! smoltcp-sender INTERFACE ADDRESS PORT SECONDS CONGESTION-CONTROL
//! ```
//!
//! It opens the TUN device INTERFACE, waits at ADDRESS:PORT, and sends to whoever connects.

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::error::Error;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

/// That of a small device. It resends all behind a loss, and so wants no more in flight.
const SEND_BUFFER: usize = 128 << 10;
const RECEIVE_BUFFER: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [interface, address, port, seconds, control] = &words[..] else {
        return Err("usage: INTERFACE ADDRESS PORT SECONDS CONGESTION-CONTROL".into());
    };
    let address: Ipv4Addr = address.parse()?;
    let port: u16 = port.parse()?;
    let time = Duration::from_secs(seconds.parse()?);
    let mut device = TunTapInterface::new(interface, Medium::Ip)?;
    let fd = device.as_raw_fd();
    let mut stack = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
    stack.update_ip_addrs(|all| _ = all.push(IpCidr::new(IpAddress::Ipv4(address), 32)));
    stack.routes_mut().add_default_ipv4_route(address)?;
    let mut sockets = SocketSet::new(Vec::new());
    let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
    let mut socket = Socket::new(buffer(RECEIVE_BUFFER), buffer(SEND_BUFFER));
    socket.set_congestion_control(match control.as_str() {
        "cubic" => CongestionControl::Cubic,
        "reno" => CongestionControl::Reno,
        _ => return Err("the congestion control is cubic or reno".into()),
    });
    socket.listen(port).map_err(|error| error.to_string())?;
    let handle = sockets.add(socket);
    let (block, mut end) = ([0; 1 << 14], None);
    loop {
        let now = Instant::now();
        stack.poll(now, &mut device, &mut sockets);
        let socket = sockets.get_mut::<Socket>(handle);
        if end.is_none() && socket.may_send() {
            end = Some(now + time);
        }
        if end.is_some_and(|end| now < end) {
            while socket.can_send() && socket.send_slice(&block).is_ok_and(|bytes| bytes > 0) {}
        } else if end.is_some() {
            socket.close();
        }
        wait(fd, stack.poll_delay(Instant::now(), &sockets))?;
    }
}
