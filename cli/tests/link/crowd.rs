//! Hosts that share a link: one of them floods it with UDP, which is sent once; the others' stream
//! and pings must not notice more than that there is one flow more.

use crate::ended;
use crate::kit::Result;
use crate::stream::lasting;
use crate::world::{INNER, RIGHT, World, queue};
use airmend_live::lab::Namespace;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The path of each direction.
const PATH: &str = "tbf rate 10mbit burst 20kb latency 30ms";
/// Datagrams of the flood, and their rate: three times the path's.
const DATAGRAM: usize = 1_200;
const FLOOD: f64 = 3_125.0;
/// Between two pings, and the longest time for which one is waited for.
const PINGS: Duration = Duration::from_millis(50);
const LOST: Duration = Duration::from_secs(1);
/// Until the queues stand, and how long is measured.
const TIMES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(5)];

/// What the others have of the link.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) bits_per_second: f64,
    pub(crate) median_ping: Duration,
    lost: usize,
    pings: usize,
}

pub(crate) fn flooded() -> Result {
    let world = World::new()?;
    for host in world.hosts() {
        queue(host, "eth0", PATH)?;
    }
    let listener = world.listen(&format!("{RIGHT}:4433"))?;
    let dialer = world.dial(&format!("{RIGHT}:4433"))?;
    let stop = AtomicBool::new(false);
    let echo = world.right.run(|| Ok(UdpSocket::bind((INNER[1], 5003))))??;
    let sink = (INNER[1], 5004);
    let [pinger, flooder] = [(INNER[1], 5003), sink].map(|to| connected(&world.left, to));
    let (pinger, flooder) = (pinger?, flooder?);
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        thread::scope(|scope| {
            scope.spawn(|| answer(&echo, &stop));
            let result = measure(&pinger, received, TIMES).and_then(|alone| {
                scope.spawn(|| flood(&flooder, FLOOD, &stop));
                Ok((alone, measure(&pinger, received, TIMES)?))
            });
            stop.store(true, Ordering::Relaxed);
            let (alone, flooded) = result?;
            println!("{alone:?}\n{flooded:?}");
            let share = flooded.bits_per_second / alone.bits_per_second;
            assert!(share >= 0.95 * 0.5, "{share:.3} of what the stream has alone");
            assert!(flooded.median_ping <= 2 * alone.median_ping, "a ping");
            assert!(flooded.lost <= alone.lost + flooded.pings / 50, "lost pings");
            Ok(())
        })
    })?;
    ended(dialer)?;
    ended(listener)?;
    Ok(())
}

pub(crate) fn connected(from: &Namespace, to: (&str, u16)) -> Result<UdpSocket> {
    let socket = from.run(|| Ok(UdpSocket::bind("0.0.0.0:0")))??;
    socket.connect(to)?;
    socket.set_read_timeout(Some(LOST))?;
    Ok(socket)
}

/// Answers pings.
pub(crate) fn answer(socket: &UdpSocket, stop: &AtomicBool) {
    socket.set_read_timeout(Some(PINGS)).expect("a socket");
    let mut bytes = [0; 64];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            socket.send_to(&bytes[..length], from).ok();
        }
    }
}

/// So many datagrams a second until it is told to stop.
pub(crate) fn flood(socket: &UdpSocket, per_second: f64, stop: &AtomicBool) {
    let (begin, mut sent) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let due = (begin.elapsed().as_secs_f64() * per_second) as u64;
        (sent..due).for_each(|_| drop(socket.send(&[0; DATAGRAM])));
        sent = due;
        thread::sleep(Duration::from_millis(1));
    }
}

/// Pings one after the other while the stream goes on, when it has settled and for so long.
pub(crate) fn measure(
    pinger: &UdpSocket,
    received: &dyn Fn() -> u64,
    [settles, measured]: [Duration; 2],
) -> Result<Share> {
    thread::sleep(settles);
    let (begin, before) = (Instant::now(), received());
    let (mut times, mut pings) = (Vec::new(), 0u32);
    while begin.elapsed() < measured {
        let sent = Instant::now();
        pings += 1;
        pinger.send(&pings.to_be_bytes())?;
        let mut bytes = [0; 4];
        // Answers to earlier ones are too late.
        while pinger.recv(&mut bytes).is_ok() {
            if bytes == pings.to_be_bytes() {
                times.push(sent.elapsed());
                break;
            }
        }
        thread::sleep(PINGS.saturating_sub(sent.elapsed()));
    }
    let bits = 8.0 * (received() - before) as f64;
    times.sort();
    let median_ping = times.get(times.len() / 2).copied().ok_or("no ping was answered")?;
    let pings = pings as usize;
    let lost = pings - times.len();
    Ok(Share { bits_per_second: bits / begin.elapsed().as_secs_f64(), median_ping, lost, pings })
}
