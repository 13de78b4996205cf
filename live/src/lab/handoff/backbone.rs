//! The network between the base stations: a namespace for each of them, on one Ethernet.

use crate::group_socket::GroupSocket;
use crate::lab::config::MTU;
use crate::lab::error::LabError;
use crate::lab::network::interface::{INTERFACE, no_link_local};
use crate::lab::network::namespace::Namespace;
use airmend_proto::agents::handoff::DATA_OVERHEAD;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};

/// The group of the stations, of the range for one organisation (RFC 2365).
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 1), 7_395);
/// A bridge forwards by then, on a slow machine too, unless something is wrong.
const FORWARDS_WITHIN: Duration = Duration::from_secs(60);
/// The headers of a datagram.
const UDP_IP: usize = 8 + 20;

/// A host on the backbone, with a socket in the stations' group.
#[derive(Debug)]
pub(super) struct Member {
    socket: GroupSocket,
    /// Messages that the kernel took.
    pub(super) sent: u64,
    /// Their bytes, with all headers from IP on.
    pub(super) bytes: u64,
    /// Dropping it removes the host's interface.
    _namespace: Namespace,
}

/// A backbone of so many hosts. It exists as long as the namespace of its bridge, which is the
/// first result.
pub(super) fn create(hosts: u32) -> Result<(Namespace, Vec<Member>), LabError> {
    let hub = Namespace::new()?;
    let no_link_local = no_link_local();
    hub.ip(&format!("link add br0 type bridge\nlink set br0 {no_link_local} up\n"))?;
    let members = (0..hosts).map(|number| Member::new(&hub, number));
    let mut members = members.collect::<Result<Vec<_>, _>>()?;
    wait(&mut members).map_err(LabError::socket("multicast between the stations"))?;
    Ok((hub, members))
}

/// Waits until every member hears all others: a bridge begins to forward some time after its ports
/// are up.
fn wait(members: &mut [Member]) -> io::Result<()> {
    let begin = Instant::now();
    let mut heard = vec![BTreeSet::new(); members.len()];
    while heard.iter().any(|others| others.len() + 1 < members.len()) {
        if begin.elapsed() > FORWARDS_WITHIN {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for (number, member) in (0_u8..).zip(&*members) {
            member.socket.send(&[number]);
        }
        thread::sleep(Duration::from_millis(1));
        for (member, heard) in members.iter_mut().zip(&mut heard) {
            while let Some(message) = member.receive()? {
                heard.extend(message.first().copied());
            }
        }
    }
    // What was still under way.
    thread::sleep(Duration::from_millis(5));
    members.iter_mut().try_for_each(|member| {
        while member.receive()?.is_some() {}
        Ok(())
    })
}

impl Member {
    fn new(hub: &Namespace, number: u32) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        let mtu = MTU as usize + DATA_OVERHEAD + UDP_IP;
        let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 78, 0, 1)) + number);
        let mut commands = String::new();
        let no_link_local = no_link_local();
        let _ = write!(
            commands,
            "link add port{number} mtu {mtu} type veth peer name {INTERFACE} mtu {mtu} netns {}\n\
             link set port{number} master br0 {no_link_local} up\n",
            namespace.path().display(),
        );
        hub.ip(&commands)?;
        namespace.ip(&format!(
            "link set {INTERFACE} {no_link_local} up\naddress add {address}/24 dev {INTERFACE}\n"
        ))?;
        let socket = namespace.run(|| {
            GroupSocket::join(GROUP, INTERFACE, address)
                .map_err(LabError::socket("joining the stations' multicast group"))
        })?;
        Ok(Self { socket, sent: 0, bytes: 0, _namespace: namespace })
    }

    /// Sends a message to the group.
    pub(super) fn send(&mut self, message: &[u8]) {
        if self.socket.send(message) {
            self.sent += 1;
            self.bytes += (message.len() + UDP_IP) as u64;
        }
    }

    /// The next message of another member.
    pub(super) fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        self.socket.receive()
    }

    /// For `poll`.
    pub(super) fn readable(&self) -> BorrowedFd<'_> {
        self.socket.readable()
    }
}
