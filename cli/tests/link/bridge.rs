//! `--bridge`: two LANs as one.

use crate::kit::raw::open_end;
use crate::kit::{Result, until};
use crate::lans::{ADDRESS, ADDRESS_V6, Lans};
use crate::stream::{lasting, stream};
use crate::{BYTES, count, ended};
use airmend_live::lab::Namespace;
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// The destination of bridge protocol data units (IEEE 802.1D §7.12.3), and a frame to it.
const STP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];
/// Bytes of a datagram in a super-packet.
const SEGMENT: usize = 1_000;

/// The hosts find each other by ARP and neighbour discovery; frames of 1500 bytes cross a radio of
/// the same MTU.
pub(crate) fn bridged_lans(arq: &str) -> Result {
    let lans = Lans::new()?;
    let ends = [lans.link(0, arq)?, lans.link(1, arq)?];
    for address in [ADDRESS, ADDRESS_V6] {
        stream(lans.hosts(), address.parse()?, BYTES)?;
    }
    let largest: IpAddr = ADDRESS.parse()?;
    datagram(&lans, largest, &[7; 1_472])?;
    let figures = ends.into_iter().map(ended).collect::<Result<Vec<_>>>()?;
    for figures in &figures {
        assert_eq!(count(figures, "device_drops"), 0, "{figures}");
    }
    assert!(count(&figures[0], "fragmented") > 0, "the largest cross in parts: {}", figures[0]);
    Ok(())
}

/// Waits until a datagram from the first host arrives, whole.
fn datagram(lans: &Lans, to: IpAddr, bytes: &[u8]) -> Result {
    let [near, far] = &lans.hosts;
    let receiver = far.run(|| Ok(UdpSocket::bind(("0.0.0.0", 67))))??;
    let sender = near.run(|| Ok(UdpSocket::bind(("0.0.0.0", 68))))??;
    sender.set_broadcast(true)?;
    receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
    until("the datagram", || {
        sender.send_to(bytes, (to, 67)).ok()?;
        let mut buffer = [0; 2_000];
        let length = receiver.recv(&mut buffer).ok()?;
        (buffer[..length] == *bytes).then_some(())
    })
}

/// What DHCP, discovery protocols, spanning trees and others send, byte by byte.
pub(crate) fn bridged_frames(arq: &str) -> Result {
    let lans = Lans::new()?;
    let ends = [lans.link(0, arq)?, lans.link(1, arq)?];
    let [near, far] = &lans.hosts;
    let open =
        |host: &Namespace| host.run(|| Ok(open_end("eth0").map_err(|error| error.to_string())));
    let sockets = [open(near)??, open(far)??];
    let groups: [[u8; 6]; 4] = [[0xff; 6], [1, 0, 0x5e, 0, 0, 251], STP, [2, 0, 0, 0, 0, 1]];
    for (number, (group, length)) in (0..).zip(groups.into_iter().zip([46, 300, 49, 1_500])) {
        let header = [&group[..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb6, number]].concat();
        let frame = [header, vec![number; length - 1]].concat();
        crosses(&sockets, &frame, &frame).map_err(|error| format!("to {group:02x?}: {error}"))?;
    }
    // A socket sees the inner one of two VLAN tags: the kernel takes the outer one away.
    let (addresses, inner) = ([[0xff; 6], [2, 0, 0, 0, 0, 9]].concat(), [0x81, 0, 0xe0, 7]);
    let rest = [&inner[..], &[0x88, 0xb6], &[9; 100]].concat();
    let frame = [&addresses[..], &[0x88, 0xa8, 0, 8], &rest].concat();
    crosses(&sockets, &frame, &[addresses, rest].concat())
        .map_err(|error| format!("VLAN: {error}"))?;
    // As DHCP begins: a broadcast through an interface that has no address yet.
    near.ip("address flush dev eth0 scope global\nroute add default dev eth0\n")?;
    datagram(&lans, "255.255.255.255".parse()?, b"DHCPDISCOVER")?;
    ends.into_iter().try_for_each(|end| ended(end).map(drop))
}

/// Waits until a frame from the first host arrives with these bytes.
fn crosses([from, to]: &[OwnedFd; 2], frame: &[u8], expected: &[u8]) -> Result {
    until("the frame", || {
        send(from.as_raw_fd(), frame, MsgFlags::empty()).ok()?;
        thread::sleep(Duration::from_millis(20));
        let mut read = [0; 2_000];
        let next =
            || recv(to.as_raw_fd(), &mut read, MsgFlags::empty()).ok().map(|n| read[..n].to_vec());
        std::iter::from_fn(next).any(|arrived| arrived == expected).then_some(())
    })
}

/// What this machine lacks for the next test: before Linux 6.2 a packet socket has no form for
/// super-packets of UDP.
pub(crate) fn lacks_super_packets_of_udp() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (version < (6, 2)).then(|| "super-packets of UDP in packet sockets: Linux 6.2".to_owned())
}

/// Many datagrams that a host hands to its interface as one arrive one by one.
pub(crate) fn super_packets_of_udp(arq: &str) -> Result {
    let lans = Lans::new()?;
    let ends = [lans.link(0, arq)?, lans.link(1, arq)?];
    let [near, far] = &lans.hosts;
    for (address, any) in [(ADDRESS, "0.0.0.0"), (ADDRESS_V6, "::")] {
        let receiver = far.run(|| Ok(UdpSocket::bind((any, 5003))))??;
        receiver.set_read_timeout(Some(Duration::from_millis(200)))?;
        let sender = near.run(|| Ok(UdpSocket::bind((any, 0))))??;
        setsockopt(&sender, sockopt::UdpGsoSegment, &(SEGMENT as i32))?;
        let sent: Vec<u8> = (0..20 * SEGMENT + 300).map(|n| (n % 251) as u8).collect();
        until("the datagrams", || {
            sender.send_to(&sent, (address, 5003)).ok()?;
            let mut buffer = [0; 2_000];
            let read = || receiver.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec());
            let arrived: Vec<_> = std::iter::from_fn(read).collect();
            let expected = sent.chunks(SEGMENT);
            expected.eq(arrived.iter().map(Vec::as_slice)).then_some(())
        })?;
    }
    for figures in ends.into_iter().map(ended).collect::<Result<Vec<_>>>()? {
        assert_eq!(count(&figures, "device_drops"), 0, "{figures}");
    }
    Ok(())
}

/// Connections survive the loss of either station.
pub(crate) fn bridge_killed(arq: &str) -> Result {
    let lans = Lans::new()?;
    let mut ends = [0, 1].map(|station| lans.link(station, arq).map(Some));
    lasting(lans.hosts(), ADDRESS.parse()?, |received| {
        let more = || {
            let before = received();
            until("progress", || (received() >= before + BYTES / 4).then_some(()))
        };
        for station in [0, 1] {
            more()?;
            let end = ends[station].as_mut().map_err(|error| error.to_string())?;
            end.take().ok_or("not running")?.kill()?;
            ends[station] = lans.link(station, arq).map(Some);
        }
        more()
    })?;
    for end in ends {
        ended(end?.ok_or("not running")?)?;
    }
    Ok(())
}
