//! The kind, the filters and the queueing disciplines of an interface, by netlink.
//!
//! Read `rtnetlink(7)`, `linux/pkt_sched.h` and the kernel's `net/sched/cls_api.c` before working
//! on this file.

use aya::programs::TcAttachType;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// The parent of clsact and of ingress, of which an interface has at most one.
const HANDLE: u32 = 0xffff_0000;
const PARENT: u32 = 0xffff_fff1;
/// The ingress and the egress hook of clsact.
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
/// The parent of the egress queue.
pub(crate) const ROOT: u32 = 0xffff_ffff;
/// The name of a kind of filter or queueing discipline.
pub(crate) const TCA_KIND: u16 = 1;
/// The attribute of an interface's driver, and in it the name of the kind.
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
/// The bits of an attribute's type without flags.
const TYPE_MASK: u16 = 0x3fff;
/// The bit of `RTNLGRP_TC`.
const TC_GROUP: u32 = 1 << (libc::RTNLGRP_TC - 1);
/// Bytes of `struct nlmsghdr`, of `struct tcmsg`, of `struct ifinfomsg` and of `struct nlattr`.
const HEADER: usize = 16;
pub(crate) const TRAFFIC_CONTROL: usize = 20;
const LINK: usize = 16;
const ATTRIBUTE: usize = 4;
/// The kernel sends no longer datagrams.
const LONGEST: usize = 1 << 15;

/// A filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) priority: u16,
    /// 0 for what all filters of one priority have in common.
    pub(crate) handle: u32,
    pub(crate) is_bpf: bool,
}

/// The filters of an interface, in this direction; none without a place for them.
pub(crate) fn filters(index: u32, direction: TcAttachType) -> io::Result<Vec<Filter>> {
    let asked = Asked { index, handle: 0, parent: parent(direction), info: 0, kind: None };
    let flags = libc::NLM_F_DUMP as u16;
    let all = ask(libc::RTM_GETTFILTER, flags, &asked.bytes())?;
    Ok(all.iter().filter_map(|message| filter(message)).collect())
}

/// Takes one filter away, if it is one of BPF.
pub(crate) fn remove_filter(index: u32, direction: TcAttachType, filter: Filter) -> io::Result<()> {
    let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
    let asked = Asked {
        index,
        handle: filter.handle,
        parent: parent(direction),
        info: u32::from(filter.priority) << 16 | protocol,
        kind: Some("bpf"),
    };
    ask(libc::RTM_DELTFILTER, libc::NLM_F_ACK as u16, &asked.bytes()).map(drop)
}

/// Takes clsact away, with all that stands in it.
pub(crate) fn remove_clsact(index: u32) -> io::Result<()> {
    let asked = Asked { index, handle: HANDLE, parent: PARENT, info: 0, kind: Some("clsact") };
    ask(libc::RTM_DELQDISC, libc::NLM_F_ACK as u16, &asked.bytes()).map(drop)
}

/// Whether what leaves through the interface waits in a queue there.
pub(crate) fn has_queue(index: u32) -> bool {
    let asked = Asked { index, handle: 0, parent: ROOT, info: 0, kind: Some("noqueue") };
    ask(libc::RTM_GETQDISC, libc::NLM_F_ACK as u16, &asked.bytes()).is_err()
}

/// The kind of a virtual interface, such as `vlan`.
pub(crate) fn kind(index: u32) -> Option<String> {
    let mut body = [0; LINK];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let answer = ask_one(SockProtocol::NetlinkRoute, libc::RTM_GETLINK, &body).ok()?;
    let all = attributes(answer.get(LINK..)?);
    let [info, kind] = [IFLA_LINKINFO, IFLA_INFO_KIND];
    let info = all.into_iter().find(|(which, _)| *which == info)?.1;
    let name = attributes(info).into_iter().find(|(which, _)| *which == kind)?.1;
    let name = std::ffi::CStr::from_bytes_until_nul(name).ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// Notifications of changes to filters or queueing disciplines. A request to the kernel instead
/// would wait for other programs that configure the network.
#[derive(Debug)]
pub(crate) struct Changes(OwnedFd);

impl Changes {
    /// Listens from now on, in the calling thread's network namespace.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self(open(SockProtocol::NetlinkRoute, TC_GROUP)?))
    }

    /// Whether there were changes since the last call, at any interface.
    pub(crate) fn happened(&mut self) -> bool {
        let mut happened = false;
        let mut buffer = [0; 64];
        loop {
            match recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                // Too many to be kept are changes, too.
                Ok(_) | Err(Errno::ENOBUFS | Errno::EINTR) => happened = true,
                Err(_) => return happened,
            }
        }
    }
}

/// A request about traffic control: `struct tcmsg`, and the kind.
pub(crate) struct Asked {
    pub(crate) index: u32,
    pub(crate) handle: u32,
    pub(crate) parent: u32,
    pub(crate) info: u32,
    pub(crate) kind: Option<&'static str>,
}

fn parent(direction: TcAttachType) -> u32 {
    match direction {
        TcAttachType::Ingress => INGRESS,
        TcAttachType::Egress => EGRESS,
        TcAttachType::Custom(parent) => parent,
    }
}

/// Sends a request; the messages of the answer, without their headers.
pub(crate) fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    ask_of(SockProtocol::NetlinkRoute, kind, flags, body)
}

/// Asks a protocol of netlink about one thing: the message that tells of it.
pub(crate) fn ask_one(protocol: SockProtocol, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    // The ACK ends the answer.
    let answer = ask_of(protocol, kind, libc::NLM_F_ACK as u16, body)?;
    answer.into_iter().next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The address family of `struct rtmsg` and its like.
pub(crate) fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn ask_of(protocol: SockProtocol, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = open(protocol, 0)?;
    send(socket.as_raw_fd(), &request(kind, flags, body), MsgFlags::empty())?;
    let mut buffer = vec![0; LONGEST];
    let mut answer = Vec::new();
    loop {
        let length = match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            received => received?,
        };
        let mut rest = &buffer[..length];
        while let Some((kind, message, after)) = next(rest) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(answer),
                libc::NLMSG_ERROR => return error(message).map(|()| answer),
                _ => answer.push(message.to_vec()),
            }
            rest = after;
        }
    }
}

fn open(protocol: SockProtocol, groups: u32) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(socket)
}

fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Sequence number and port: one request is under way, from a socket of its own.
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

/// An attribute of this type, as long as its value.
pub(crate) fn attribute(which: u16, value: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE + value.len();
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&which.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

impl Asked {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // No family.
        let words = [0, self.index, self.handle, self.parent, self.info];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        if let Some(kind) = self.kind {
            bytes.extend(attribute(TCA_KIND, &[kind.as_bytes(), b"\0"].concat()));
        }
        bytes
    }
}

/// The first of these messages: its kind, what follows its header, and the messages after it.
fn next(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = word(bytes, 0)? as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let message = bytes.get(HEADER..length)?;
    Some((kind, message, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

fn error(message: &[u8]) -> io::Result<()> {
    match word(message, 0).unwrap_or(0) as i32 {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

fn filter(message: &[u8]) -> Option<Filter> {
    let handle = word(message, 8)?;
    let priority = (word(message, 16)? >> 16) as u16;
    let all = attributes(message.get(TRAFFIC_CONTROL..)?);
    Some(Filter { priority, handle, is_bpf: all.contains(&(TCA_KIND, b"bpf\0")) })
}

/// The attributes in a message, by type.
pub(crate) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut all = Vec::new();
    while let Some(header) = word(bytes, 0) {
        let [low, high, which @ ..] = header.to_ne_bytes();
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let Some(value) = bytes.get(ATTRIBUTE..length) else { break };
        all.push((u16::from_ne_bytes(which) & TYPE_MASK, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    all
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_the_kernel_reads() {
        let asked = Asked { index: 7, handle: HANDLE, parent: PARENT, info: 0, kind: Some("bpf") };
        let bytes = request(libc::RTM_DELTFILTER, libc::NLM_F_ACK as u16, &asked.bytes());
        assert_eq!(bytes.len(), 44);
        assert_eq!(word(&bytes, 0), Some(44));
        let (kind, message, rest) = next(&bytes).unwrap();
        assert_eq!((kind, rest), (libc::RTM_DELTFILTER, &[][..]));
        assert_eq!((word(message, 4), word(message, 12)), (Some(7), Some(PARENT)));
        let read = filter(message).unwrap();
        assert_eq!(read, Filter { priority: 0, handle: HANDLE, is_bpf: true });
    }

    #[test]
    fn nothing_is_read_from_what_is_cut_short() {
        let asked =
            Asked { index: 7, handle: 1, parent: INGRESS, info: 3 << 16, kind: Some("u32") };
        let bytes = request(libc::RTM_NEWTFILTER, 0, &asked.bytes());
        let whole = Filter { priority: 3, handle: 1, is_bpf: false };
        for length in 0..bytes.len() {
            assert_eq!(next(&bytes[..length]), None);
            let cut = bytes.get(HEADER..length).and_then(filter);
            assert!(cut.is_none_or(|cut| cut == whole), "{cut:?}");
        }
        assert_eq!(filter(&bytes[HEADER..]), Some(whole));
        // An attribute that claims to have no length.
        assert_eq!(attributes(&[0; 8]), []);
    }

    #[test]
    fn an_interface_that_is_not_there_has_no_filters() {
        let none = u32::MAX >> 1;
        assert!(!filters(none, TcAttachType::Ingress).is_ok_and(|all| !all.is_empty()));
        assert!(remove_clsact(none).is_err());
        assert_eq!(kind(none), None);
    }
}
