//! A hub: one process, one interface and one socket for many peers, each in a namespace of its own
//! with a cable to the hub.

use crate::crowd::flood;
use crate::interface::{mtu, shown};
use crate::kit::{Result, TempFile, airmend, has_steady_clock, until};
use crate::stream::{lasting, stream, until_stopped};
use crate::world::{Link, queue};
use crate::{count, ended};
use airmend_live::lab::Namespace;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The hub's address on the link.
pub(crate) const HUB: &str = "10.9.0.1";
/// An address that no peer has.
const NOBODY: &str = "10.9.0.200";

pub(crate) struct Hub {
    pub(crate) namespace: Namespace,
    pub(crate) key: TempFile,
    public: String,
    file: TempFile,
    socket: TempFile,
    pub(crate) peers: Vec<Peer>,
}

pub(crate) struct Peer {
    pub(crate) namespace: Namespace,
    number: usize,
    pub(crate) key: TempFile,
    public: String,
}

/// A new key in this file; its public half.
fn keygen(file: &TempFile) -> Result<String> {
    let output = airmend().arg("keygen").arg(&file.0).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

impl Peer {
    fn new(hub: &Namespace, number: usize) -> Result<Self> {
        let namespace = Namespace::new()?;
        hub.ip(&format!(
            "link add v{number} type veth peer name eth0 netns {}\n\
             link set v{number} up\naddress add 10.77.{number}.1/24 dev v{number}\n",
            namespace.path().display()
        ))?;
        namespace.ip(&format!(
            "link set lo up\nlink set eth0 up\naddress add 10.77.{number}.2/24 dev eth0\n"
        ))?;
        let key = TempFile::new("peer.key");
        let public = keygen(&key)?;
        Ok(Self { namespace, number, key, public })
    }

    /// Its address on the link.
    fn inner(&self) -> String {
        format!("10.9.0.{}", self.number + 10)
    }

    fn name(&self) -> String {
        format!("peer{}", self.number)
    }

    /// Starts its end.
    pub(crate) fn dial(&self, hub: &Hub) -> Result<Link> {
        let mut command = airmend();
        command.args(["link", "--json", "--address", &format!("{}/24", self.inner())]);
        command.args(["--peer", &format!("10.77.{}.1:4433", self.number)]);
        command.args(["--peer-key", &hub.public, "--key-file"]).arg(&self.key.0);
        Link::start(&self.namespace, command)
    }
}

impl Hub {
    pub(crate) fn new(peers: usize) -> Result<Self> {
        let namespace = Namespace::new()?;
        namespace.ip("link set lo up\n")?;
        let [key, file, socket] = ["hub.key", "hub.toml", "hub.sock"].map(TempFile::new);
        let public = keygen(&key)?;
        let peers = (0..peers).map(|number| Peer::new(&namespace, number));
        let peers = peers.collect::<Result<_>>()?;
        let hub = Self { namespace, key, public, file, socket, peers };
        hub.configure(|_| true)?;
        Ok(hub)
    }

    /// Writes the file with these of the peers.
    fn configure(&self, is_there: impl Fn(usize) -> bool) -> Result {
        let key = self.key.0.display();
        let mut text =
            format!("listen = \"0.0.0.0:4433\"\naddress = \"{HUB}/24\"\nkey-file = \"{key}\"\n");
        for peer in self.peers.iter().filter(|peer| is_there(peer.number)) {
            let (name, key, inner) = (peer.name(), &peer.public, peer.inner());
            writeln!(
                text,
                "[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\nallowed-ips = \"{inner}/32\""
            )?;
        }
        Ok(fs::write(&self.file.0, text)?)
    }

    pub(crate) fn start(&self) -> Result<Link> {
        let mut command = airmend();
        command.args(["link", "mend0", "--json", "--config"]).arg(&self.file.0);
        command.arg("--socket").arg(&self.socket.0);
        Link::start(&self.namespace, command)
    }

    fn dial(&self) -> Result<Vec<Link>> {
        self.peers.iter().map(|peer| peer.dial(self)).collect()
    }

    /// What the hub says of its peers, in their order.
    fn statuses(&self) -> Result<Vec<Value>> {
        let output =
            airmend().args(["status", "--json", "--socket"]).arg(&self.socket.0).output()?;
        let status: Value = serde_json::from_slice(&output.stdout)?;
        Ok(status["peers"].as_array().ok_or("no peers")?.clone())
    }

    /// What it says of this one.
    fn status(&self, number: usize) -> Result<Value> {
        let name = self.peers[number].name();
        let peer = self.statuses()?.into_iter().find(|peer| peer["name"] == *name);
        Ok(peer.ok_or_else(|| format!("it has no {name}"))?)
    }

    pub(crate) fn until_up(&self, number: usize) -> Result {
        let is_up = |status: &Value| status["endpoint"].is_string() && status["is_silent"] == false;
        until("a peer", || self.status(number).ok().filter(is_up).map(drop))
    }

    /// Makes the path of a peer one of this queueing discipline, each way.
    pub(crate) fn shape(&self, number: usize, path: &str) -> Result {
        let [peer, center] = self.hosts(number);
        queue(peer, "eth0", path)?;
        queue(center, &format!("v{number}"), path)
    }

    /// The hosts of a stream from a peer to the hub.
    pub(crate) fn hosts(&self, number: usize) -> [&Namespace; 2] {
        [&self.peers[number].namespace, &self.namespace]
    }
}

/// A datagram from one of a namespace's addresses.
fn send(from: &Namespace, source: &str, to: &str) -> Result {
    let socket = from.run(|| Ok(UdpSocket::bind((source, 0))))??;
    socket.send_to(b"hello", (to, 5005))?;
    Ok(())
}

/// Each packet goes to the peer that has its address, and a peer has no other address than its own.
pub(crate) fn routed_by_address() -> Result {
    let hub = Hub::new(3)?;
    hub.namespace.ip("link set v2 mtu 1300\n")?;
    hub.peers[2].namespace.ip("link set eth0 mtu 1300\n")?;
    let link = hub.start()?;
    let mut dialers = hub.dial()?;
    (0..3).try_for_each(|number| hub.until_up(number))?;
    assert_eq!(mtu(&hub.namespace)?, 1422, "a narrow path is that peer's alone");
    for number in 0..3 {
        let to = hub.peers[number].inner().parse()?;
        let [peer, center] = hub.hosts(number);
        stream([center, peer], to, 300_000)?;
    }
    // From an address of another peer, and from one of nobody; then from its own.
    let liar = &hub.peers[0].namespace;
    let receiver = hub.namespace.run(|| Ok(UdpSocket::bind((HUB, 5005))))??;
    receiver.set_read_timeout(Some(crate::kit::PATIENCE))?;
    for source in [hub.peers[1].inner(), NOBODY.to_owned()] {
        liar.ip(&format!("address add {source}/32 dev mend0\n"))?;
        send(liar, &source, HUB)?;
    }
    send(liar, &hub.peers[0].inner(), HUB)?;
    let (_, from) = receiver.recv_from(&mut [0; 9])?;
    assert_eq!(from.ip().to_string(), hub.peers[0].inner());
    // The kernel's own datagrams of IPv6 may be among them.
    until("two lies", || (count(&hub.status(0).ok()?, "wrong_source") >= 2).then_some(()))?;
    receiver.set_nonblocking(true)?;
    assert!(receiver.recv_from(&mut [0; 9]).is_err(), "a lie came through");
    // For nobody, and for a peer that has gone.
    send(&hub.namespace, HUB, NOBODY)?;
    dialers.pop().ok_or("three peers")?.kill()?;
    until("silence", || hub.status(2).ok().filter(|status| status["is_silent"] == true))?;
    send(&hub.namespace, HUB, &hub.peers[2].inner())?;
    until("a drop", || (count(&hub.status(2).ok()?, "no_peer") > 0).then_some(()))?;
    let figures = ended(link)?;
    assert!(count(&figures, "no_peer") >= 2, "{figures}");
    let sent: u64 = (0..3).map(|number| count(&figures["peers"][number], "packets_in")).sum();
    assert_eq!(sent, count(&figures, "packets_in"));
    Ok(())
}

/// While a stream of one peer goes on, others move, end, come, are taken away and given a wrong
/// key; it notices nothing. A hub that restarts has all of them again.
pub(crate) fn peers_come_and_go() -> Result {
    let hub = Hub::new(4)?;
    hub.configure(|number| number != 3)?;
    let mut link = hub.start()?;
    let mut dialers = hub.dial()?;
    (0..3).try_for_each(|number| hub.until_up(number))?;
    let line = link.said("refused an initiation from 10.77.3.2")?;
    assert!(line.contains("is none of the peers"), "{line}");
    let mut again = None;
    lasting(hub.hosts(0), HUB.parse()?, |received| {
        let goes_on = || {
            let before = received();
            until("more of the stream", || (received() > before + 300_000).then_some(()))
        };
        goes_on()?;
        hub.peers[1]
            .namespace
            .ip("address del 10.77.1.2/24 dev eth0\naddress add 10.77.1.77/24 dev eth0\n")?;
        link.said("peer1: the peer has moved to 10.77.1.77")?;
        goes_on()?;
        hub.configure(|number| number != 2)?;
        link.signal(Signal::SIGHUP)?;
        link.said("peer3: the peer is there")?;
        let gone = hub.status(2);
        assert!(gone.is_err(), "it was taken away: {gone:?}");
        goes_on()?;
        dialers.remove(1).kill()?;
        link.said("peer1: the peer at 10.77.1.77")?;
        goes_on()?;
        assert_eq!(count(&hub.status(0)?, "sessions"), 1, "its session has never changed");
        assert!(!shown(&hub.namespace, "link show mend0")?.contains("NO-CARRIER"));
        link.kill()?;
        again = Some(hub.start()?);
        goes_on()
    })?;
    [0, 3].into_iter().try_for_each(|number| hub.until_up(number))?;
    let figures = ended(again.ok_or("no restart")?)?;
    assert_eq!(figures["peers"].as_array().map(Vec::len), Some(3));
    Ok(())
}

/// Peers of the crowd, those whose rates are measured, the path of each, and the bytes a second of
/// a stream that fills it: headers take 7 %.
const CROWD: usize = 20;
const MEASURED: usize = 4;
const PATH: &str = "tbf rate 4mbit burst 20kb latency 50ms";
const FULL: f64 = 0.93 * 500_000.0;
/// Until the rates stand, and how long they are measured: the bytes of a quarter of a second may
/// arrive together, before the end of the time or after it.
const SETTLES: Duration = Duration::from_secs(3);
const MEASURES: Duration = Duration::from_secs(12);
/// What the one that floods sends: 20 Mb/s of datagrams over a path without a limit.
const FLOOD: f64 = 2_000.0;

/// Twenty peers, of which one floods, one is dead and one loses 10 %: the others have what their
/// paths carry.
pub(crate) fn crowded() -> Result {
    let hub = Hub::new(CROWD)?;
    (0..MEASURED).try_for_each(|number| hub.shape(number, PATH))?;
    let [flooding, dead, lossy] = [MEASURED, MEASURED + 1, MEASURED + 2];
    if has_steady_clock() {
        hub.shape(lossy, "netem rate 4mbit delay 5ms loss 10% limit 1000")?;
    }
    let link = hub.start()?;
    let mut dialers = hub.dial()?;
    (0..CROWD).try_for_each(|number| hub.until_up(number))?;
    let received: Vec<AtomicU64> = (0..MEASURED).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let sink = hub.namespace.run(|| Ok(UdpSocket::bind((HUB, 5004))))??;
    let flooder = hub.peers[flooding].namespace.run(|| Ok(UdpSocket::bind("0.0.0.0:0")))??;
    flooder.connect((HUB, 5004))?;
    let (rates, seen) = thread::scope(|scope| -> Result<_> {
        let streams: Vec<_> = (0..MEASURED)
            .map(|number| {
                let (hub, received, stop) = (&hub, &received[number], &stop);
                scope.spawn(move || upload(hub, number, received, stop))
            })
            .collect();
        let result = (|| -> Result<_> {
            dialers.remove(dead).kill()?;
            let (hub, stop) = (&hub, &stop);
            scope.spawn(move || download(hub, lossy, stop).ok());
            scope.spawn(|| flood(&flooder, FLOOD, stop));
            let rates = rates(&received)?;
            // While all goes on.
            Ok((rates, hub.statuses()?))
        })();
        stop.store(true, Ordering::Relaxed);
        for stream in streams {
            stream.join().map_err(|_| "a panic")??;
        }
        result
    })?;
    drop(sink);
    let shares: Vec<_> = rates.iter().map(|rate| rate / FULL).collect();
    println!("bytes a second {rates:.0?}, of what the paths carry {shares:.3?}");
    each_is_shown(&seen, &rates);
    for share in shares {
        assert!(!has_steady_clock() || share >= 0.95, "{share:.3} of what its path carries");
        // Nobody stands still, however slow the machine.
        assert!(share > 0.0);
    }
    ended(link)?;
    Ok(())
}

/// What `status` and `top` show of each peer of the crowd: who is dead is silent, and where the
/// clock can tell rates, nobody else; those that are measured have what was measured, in bytes a
/// second, the flood has more than any of them, and of what the lossy one is sent enough is sent
/// again or made up for.
fn each_is_shown(seen: &[Value], measured: &[f64]) {
    let figure = |number: usize, name: &str| seen[number][name].as_f64().unwrap_or(f64::NAN);
    let [flooding, dead, lossy] = [MEASURED, MEASURED + 1, MEASURED + 2];
    assert!(count(&seen[flooding], "packets_out") > 0, "the flood crossed");
    assert!(seen[dead]["is_silent"] == true, "{}", seen[dead]);
    let mended = figure(lossy, "retransmitted_share") + figure(lossy, "coded_share");
    let (rate, flood) = (|number| figure(number, "received_bps"), figure(flooding, "received_bps"));
    let shown: Vec<_> = measured.iter().zip(0..).map(|(has, n)| rate(n) / 8.0 / has).collect();
    println!("shown {shown:.3?} of the rates, {flood:.0} b/s of flood, {mended:.3} of the lossy");
    if has_steady_clock() {
        let silent = seen.iter().filter(|peer| peer["is_silent"] == true).count();
        assert_eq!(silent, 1);
        // With headers of 52 bytes in 1,400.
        assert!(shown.iter().all(|share| (0.9..1.2).contains(share)), "{shown:.3?}");
        assert!((0..MEASURED).all(|number| rate(number) < flood), "{}", seen[flooding]);
        assert!(mended > 0.05, "{mended:.3}: {}", seen[lossy]);
        assert!(rate(dead) < 1.0 && figure(dead, "heard_seconds_ago") > 2.5, "{}", seen[dead]);
    }
}

/// A stream from a peer to the hub until it is told to stop.
fn upload(
    hub: &Hub,
    number: usize,
    received: &AtomicU64,
    stop: &AtomicBool,
) -> std::result::Result<(), String> {
    let port = 6_000 + number as u16;
    let stream = until_stopped(hub.hosts(number), HUB.parse().expect("one"), port, received, stop);
    stream.map_err(|error| error.to_string())
}

/// A stream from the hub to a peer: the hub measures the path.
fn download(hub: &Hub, number: usize, stop: &AtomicBool) -> Result {
    let [peer, center] = hub.hosts(number);
    let (to, received) = (hub.peers[number].inner().parse()?, AtomicU64::new(0));
    until_stopped([center, peer], to, 6_000, &received, stop)
}

/// Bytes a second of each stream, when it has settled.
fn rates(received: &[AtomicU64]) -> Result<Vec<f64>> {
    let read = || received.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect::<Vec<_>>();
    until("all streams", || read().iter().all(|bytes| *bytes > 100_000).then_some(()))?;
    thread::sleep(SETTLES);
    let (begin, before) = (Instant::now(), read());
    thread::sleep(MEASURES);
    // However slow the machine, each has moved.
    until("more of all streams", || {
        read().iter().zip(&before).all(|(now, before)| now > before).then_some(())
    })?;
    let (after, seconds) = (read(), begin.elapsed().as_secs_f64());
    Ok(after.iter().zip(&before).map(|(now, before)| (now - before) as f64 / seconds).collect())
}
