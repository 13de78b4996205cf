//! Two LANs that a lossy radio joins.
//!
//! ```text
//! host ── eth0, station, radio0 ══ air ══ radio0, station, eth0 ── host
//! ```

use crate::kit::raw::open_end;
use crate::kit::{Result, TempFile, airmend};
use crate::world::Link;
use airmend_live::lab::Namespace;
use airmend_proto::random::{Purpose, Stream};
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Addresses of the second host.
pub(crate) const ADDRESS: &str = "10.7.0.2";
pub(crate) const ADDRESS_V6: &str = "fd07::2";
/// Of each frame on the air, in each direction.
const LOSS: f64 = 0.05;
/// Two hosts, two stations, and the air between these.
pub(crate) struct Lans {
    pub(crate) hosts: [Namespace; 2],
    stations: [Namespace; 2],
    _air: Air,
    key: TempFile,
}

impl Lans {
    pub(crate) fn new() -> Result<Self> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        let stations = [Namespace::new()?, Namespace::new()?];
        let middle = Namespace::new()?;
        for (number, (host, station)) in (1..).zip(hosts.iter().zip(&stations)) {
            let (at, air) = (station.path(), format!("air{number}"));
            host.ip(&format!(
                "link add eth0 type veth peer name eth0 netns {}\nlink set eth0 up\n\
                 address add 10.7.0.{number}/24 dev eth0\n\
                 address add fd07::{number}/64 dev eth0 nodad\n",
                at.display()
            ))?;
            middle.ip(&format!(
                "link add {air} type veth peer name radio0 netns {}\nlink set {air} up\n",
                at.display()
            ))?;
            station.ip("link set eth0 up\nlink set radio0 up\n")?;
        }
        let open = |air: &'static str| {
            middle.run(move || Ok(open_end(air).map_err(|error| error.to_string())))
        };
        let air = Air::start([open("air1")??, open("air2")??]);
        let key = TempFile::new("key");
        assert!(airmend().arg("keygen").arg(&key.0).output()?.status.success());
        Ok(Self { hosts, stations, _air: air, key })
    }

    /// Starts the link at one of the stations, with this link protocol: the first one listens.
    pub(crate) fn link(&self, station: usize, arq: &str) -> Result<Link> {
        let mut command = airmend();
        command.args(["link", "--json", "--bridge", "eth0", "--over", "ethernet"]);
        command.args(["--interface", "radio0", "--class", "any=reliable", "--arq", arq]);
        command.args([["--listen", "any"], ["--peer", "ff:ff:ff:ff:ff:ff"]][station]);
        command.arg("--key-file").arg(&self.key.0);
        Link::start(&self.stations[station], command)
    }

    /// The first host and the second.
    pub(crate) fn hosts(&self) -> [&Namespace; 2] {
        self.hosts.each_ref()
    }
}

/// The thread that carries frames between two interfaces, but for those that it loses.
struct Air {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Air {
    fn start(ends: [OwnedFd; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut fate = Stream::new(1, 0, 0, Purpose::Loss);
            let mut frame = [0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                let mut is_idle = true;
                for (from, to) in [(0, 1), (1, 0)] {
                    let read = recv(ends[from].as_raw_fd(), &mut frame, MsgFlags::empty());
                    let Ok(length) = read else { continue };
                    is_idle = false;
                    if !fate.happens(LOSS) {
                        send(ends[to].as_raw_fd(), &frame[..length], MsgFlags::empty()).ok();
                    }
                }
                if is_idle {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}
