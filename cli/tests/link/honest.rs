//! An honest peer of a hub beside whoever wishes it ill: strangers at the hub's port, forged ICMP,
//! and a peer that has a key. It keeps its goodput, and its pings do not wait.

use crate::crowd::{answer, connected, flood as flood_inside, measure};
use crate::ended;
use crate::flood::{Kind, PORT, Target, flood, forge, initiation, refused};
use crate::hub::{HUB, Hub};
use crate::icmp::tell_narrow;
use crate::kit::{PATIENCE, Result};
use crate::stream::lasting;
use airmend_live::lab::Namespace;
use airmend_live::tunnel::{Address, Endpoint, Keys, PrivateKey, Rekey, Security};
use airmend_proto::Instant as Now;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The peers: the one that is measured, the one that is hostile, and one that is away, from whose
/// network strangers send.
const HONEST: usize = 0;
const HOSTILE: usize = 1;
const AWAY: usize = 2;
/// The path of the one that is measured.
const PATH: &str = "tbf rate 20mbit burst 20kb latency 30ms";
/// Until the stream has settled, and how long is measured.
const TIMES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// Of its goodput and of a ping's time without attack.
const GOODPUT: f64 = 0.95;
const PING: f64 = 2.0;
/// Datagrams a second of strangers.
const STRANGE_RATE: f64 = 5_000.0;
/// Datagrams a second of the hostile peer, and of the flood that it sends through the link.
const HOSTILE_RATE: f64 = 2_000.0;
/// Frames in parts of which one is missing.
const PART: u8 = 0xf3;

/// What is sent until it is told to stop: the datagrams so far.
type Attack<'a> = Box<dyn Fn(&AtomicU64, &AtomicBool) -> Sent + Send + Sync + 'a>;
/// What makes the frame with a number.
type Content = fn(u32) -> Vec<u8>;
/// What becomes of an attack, in its own thread.
type Sent = std::result::Result<(), String>;

pub(crate) fn beside_hostile() -> Result {
    let hub = Hub::new(3)?;
    hub.shape(HONEST, PATH)?;
    // Answers to forged sources leave, and nobody takes them; and the hub is a router.
    hub.namespace.ip(&format!("route add 198.18.0.0/15 via 10.77.{AWAY}.2\n"))?;
    hub.namespace.run(|| Ok(std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")))??;
    let link = hub.start()?;
    let honest = hub.peers[HONEST].dial(&hub)?;
    hub.until_up(HONEST)?;
    let stop = AtomicBool::new(false);
    let echo = hub.namespace.run(|| Ok(UdpSocket::bind((HUB, 5003))))??;
    let pinger = connected(&hub.peers[HONEST].namespace, (HUB, 5003))?;
    let mut strangers = 0;
    lasting(hub.hosts(HONEST), HUB.parse()?, |received| {
        thread::scope(|scope| {
            scope.spawn(|| answer(&echo, &stop));
            let mut table = || -> Result {
                let alone = measure(&pinger, received, TIMES)?;
                println!("alone: {alone:?}");
                let mut faults = Vec::new();
                for (name, rate, attack) in attacks(&hub)? {
                    let (beside, sent) = during(&attack, || measure(&pinger, received, TIMES))?;
                    let goodput = beside.bits_per_second / alone.bits_per_second;
                    let ping = beside.median_ping.div_duration_f64(alone.median_ping);
                    println!("{name}: goodput {goodput:.3}, ping {ping:.2}, {sent} sent");
                    let least = 0.5 * rate * (TIMES[0] + TIMES[1]).as_secs_f64();
                    assert!(sent as f64 >= least, "{name}: {sent} sent, that is no attack");
                    strangers += if rate == STRANGE_RATE { sent } else { 0 };
                    if goodput < GOODPUT || ping > PING {
                        faults.push(name);
                    }
                }
                assert!(faults.is_empty(), "{faults:?} cost more than they may");
                Ok(())
            };
            let result = table();
            stop.store(true, Ordering::Relaxed);
            result
        })
    })?;
    ended(honest)?;
    let figures = ended(link)?;
    let refused = refused(&figures);
    println!("{refused} of {strangers} datagrams of strangers were counted");
    assert!(refused > strangers / 2, "{figures}");
    Ok(())
}

/// Each with its name and its rate.
fn attacks(hub: &Hub) -> Result<Vec<(String, f64, Attack<'_>)>> {
    let away = &hub.peers[AWAY];
    let target = Target {
        listener: Ipv4Addr::new(10, 77, AWAY as u8, 1),
        peer: Ipv4Addr::new(10, 77, AWAY as u8, 2),
    };
    let public = PrivateKey::read(&hub.key.0)?.public();
    let keys = |key| Ok::<_, String>(Keys { private: key, peer: public, psk: None });
    let genuine = keys(PrivateKey::read(&away.key.0)?)?;
    let recorded = vec![initiation(&genuine, target.listener).ok_or("no initiation")?];
    let forged = forge(public, target.listener)?;
    let mut all: Vec<(String, f64, Attack<'_>)> = Vec::new();
    for kind in [Kind::Noise, Kind::Header, Kind::Replay, Kind::Forged, Kind::Keyed] {
        let recorded = if kind == Kind::Keyed { forged.clone() } else { recorded.clone() };
        let attack = move |sent: &AtomicU64, stop: &AtomicBool| {
            within(&away.namespace, || {
                Ok(flood((kind, STRANGE_RATE), target, &recorded, sent, stop)?)
            })
        };
        all.push((format!("strangers, {kind:?}"), STRANGE_RATE, Box::new(attack)));
    }
    let honest = Ipv4Addr::new(10, 77, HONEST as u8, 2);
    let icmp = move |sent: &AtomicU64, stop: &AtomicBool| {
        within(&away.namespace, || {
            while !stop.load(Ordering::Relaxed) {
                tell_narrow(target.listener, honest)?;
                sent.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        })
    };
    all.push(("forged ICMP".to_owned(), 50.0, Box::new(icmp)));
    for (name, content) in [("garbage", garbage as Content), ("parts", part)] {
        let own = keys(PrivateKey::read(&hub.peers[HOSTILE].key.0)?)?;
        let attack = move |sent: &AtomicU64, stop: &AtomicBool| {
            let sealed = || with_key(&own, content, sent, stop);
            within(&hub.peers[HOSTILE].namespace, sealed)
        };
        all.push((format!("a peer, {name}"), HOSTILE_RATE, Box::new(attack)));
    }
    for (name, to) in [("to the hub", HUB.to_owned()), ("to a third", format!("10.77.{AWAY}.2"))] {
        let attack = move |sent: &AtomicU64, stop: &AtomicBool| {
            inside(hub, &to, sent, stop).map_err(|error| error.to_string())
        };
        all.push((format!("a peer, flood {name}"), HOSTILE_RATE, Box::new(attack)));
    }
    Ok(all)
}

/// Runs in a namespace.
fn within(namespace: &Namespace, work: impl FnOnce() -> Result + Send) -> Sent {
    let run = namespace.run(|| Ok(work().map_err(|error| error.to_string())));
    run.map_err(|error| error.to_string())?
}

/// What is measured while an attack goes on, and how much it has sent.
fn during<T>(attack: &Attack<'_>, measured: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let attacker = scope.spawn(|| attack(&sent, &stop));
        let result = measured();
        stop.store(true, Ordering::Relaxed);
        attacker.join().map_err(|_| "a panic")??;
        Ok((result?, sent.load(Ordering::Relaxed)))
    })
}

/// Bytes that are no frame of any kind, or one that says anything.
fn garbage(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) | 1 << 40;
    let next = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(number.into());
        (state >> 33) as u8
    };
    (0..1 + number as usize * 37 % 900).map(next).collect()
}

/// A part of a frame that never comes whole.
fn part(number: u32) -> Vec<u8> {
    let (frame, part) = (number / 254, (number % 254) as u8);
    [&[PART][..], &frame.to_be_bytes(), &[part, 255], &[0; 1_000]].concat()
}

/// A peer with its own key whose frames have such a content.
fn with_key(keys: &Keys, content: Content, sent: &AtomicU64, stop: &AtomicBool) -> Result {
    let to = (Ipv4Addr::new(10, 77, HOSTILE as u8, 1), PORT);
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    let security = Security::Noise(keys.clone(), Rekey::default());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut end = Endpoint::new(&security, Some(Address::Udp(to.into())), since_1970);
    let (begin, mut bytes, mut number, mut up) = (Instant::now(), [0; 2_048], 0, None);
    while !stop.load(Ordering::Relaxed) {
        let now = Now::ZERO + begin.elapsed();
        while let Ok(length) = socket.recv(&mut bytes) {
            end.receive(now, Address::Udp(to.into()), &bytes[..length]);
        }
        end.handle_timeout(now);
        while let Some((_, message)) = end.poll_transmit() {
            socket.send(&message).ok();
        }
        if end.peer().is_some() {
            let since: Instant = *up.get_or_insert_with(Instant::now);
            let due = (since.elapsed().as_secs_f64() * HOSTILE_RATE) as u32;
            for number in number..due {
                socket.send(&end.seal(now, &content(number))).ok();
            }
            number = due;
            sent.store(due.into(), Ordering::Relaxed);
        } else if begin.elapsed() > PATIENCE {
            return Err("the hub does not take a peer".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A peer that floods through the link itself.
fn inside(hub: &Hub, to: &str, sent: &AtomicU64, stop: &AtomicBool) -> Result {
    let peer = &hub.peers[HOSTILE];
    let link = peer.dial(hub)?;
    peer.namespace.ip(&format!("route replace 10.77.{AWAY}.0/24 dev mend0\n"))?;
    hub.until_up(HOSTILE)?;
    let socket = connected(&peer.namespace, (to, 5004))?;
    let begin = Instant::now();
    flood_inside(&socket, HOSTILE_RATE, stop);
    sent.store((begin.elapsed().as_secs_f64() * HOSTILE_RATE) as u64, Ordering::Relaxed);
    link.kill()
}
