//! A probe of the emulated path: numbered UDP packets at a set rate, each with the time at which it
//! was sent.

use crate::clock::Clock;
use crate::lab::config::{LabConfig, MTU, Path};
use crate::lab::error::LabError;
use crate::lab::outcome::{Delay, Lateness, LinkReport, histogram};
use crate::lab::session::{Agents, Endpoints, Forwarding, Session, with_station};
use crate::sys;
use airmend_proto::Instant;
use airmend_proto::agents::plain::Plain;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PORT: u16 = 4001;
/// Bytes that the probe needs for its time stamp.
const STAMP: usize = size_of::<u64>();
/// A silence this much longer than the path's delay means that nothing more is under way.
const SILENCE: Duration = Duration::from_millis(300);

/// The packets that are sent through the path, in the direction of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Bits per second on the wire, IP headers included.
    pub rate_bps: u64,
    /// Bytes of each packet, IP header included; from 60 to the path's MTU of 1500.
    pub packet_bytes: u32,
    /// The duration of the probe.
    pub duration: Duration,
}

/// The measurements of a probe.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Bits per second on the wire between the first and the last arrival.
    pub received_bps: f64,
    /// One-way delays.
    pub delay: Delay,
    /// The delay without queueing: serialisation and propagation.
    pub path_delay: Duration,
    /// The lateness of frames that left the emulated links, in microseconds.
    pub lateness_us: Lateness,
    /// The counters of the links, by name.
    pub links: BTreeMap<&'static str, LinkReport>,
    /// Packets lost between a host's kernel and the emulated links; must be 0.
    pub port_drops: u64,
}

/// Sends `probe` through the path of `config`, with passthrough: of an agent, or of a kernel at the
/// base station.
///
/// # Errors
/// A resource that the machine lacks, or a packet size that cannot be sent.
pub fn probe(
    config: &LabConfig,
    probe: &Probe,
    stop: &AtomicBool,
) -> Result<ProbeOutcome, LabError> {
    if !(60..=MTU).contains(&probe.packet_bytes) || probe.rate_bps == 0 {
        return Err(LabError::Config("a probe has 60 to 1500 bytes and a rate above 0"));
    }
    let forwarding = match config.path {
        Path::Inline => Forwarding::Agents(Agents::One(Box::new(Plain))),
        Path::Kernel | Path::Gateway => Forwarding::Kernel(None),
    };
    let ((sent, arrivals), station) =
        with_station(config, forwarding, None, |session| exchange(config, probe, session, stop))?;
    let seconds = arrivals.last.since(arrivals.first).as_secs_f64();
    let later = arrivals.count.saturating_sub(1) as f64;
    Ok(ProbeOutcome {
        sent,
        received: arrivals.count,
        received_bps: if seconds > 0.0 {
            later * f64::from(probe.packet_bytes) * 8.0 / seconds
        } else {
            0.0
        },
        delay: Delay::of(&arrivals.delays),
        path_delay: config.path_delay(probe.packet_bytes),
        lateness_us: station.lateness,
        links: station.links,
        port_drops: station.port_drops,
    })
}

struct Arrivals {
    count: u64,
    first: Instant,
    last: Instant,
    delays: Histogram<u64>,
}

fn exchange(
    config: &LabConfig,
    probe: &Probe,
    session: &Session<'_>,
    stop: &AtomicBool,
) -> Result<(u64, Arrivals), LabError> {
    let Endpoints { sender: sending, receiver: receiving } = session.first();
    let bind = |address| {
        move || UdpSocket::bind(SocketAddr::new(address, PORT)).map_err(LabError::socket("bind"))
    };
    let sender = sending.namespace.run(bind(sending.address))?;
    let receiver = receiving.namespace.run(bind(receiving.address))?;
    sender
        .connect(SocketAddr::new(receiving.address, PORT))
        .map_err(LabError::socket("connecting"))?;
    let silence = config.path_delay(probe.packet_bytes) + SILENCE;
    receiver.set_read_timeout(Some(silence)).map_err(LabError::socket("setting a timeout"))?;
    let is_sent = AtomicBool::new(false);
    let clock = session.clock;
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, clock, &is_sent));
        let is_over = || stop.load(Ordering::Relaxed) || (session.is_over)();
        let headers = if config.ipv6 { 48 } else { 28 };
        let sent = send(&sender, probe, probe.packet_bytes as usize - headers, clock, &is_over);
        is_sent.store(true, Ordering::Relaxed);
        let arrivals = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((sent?, arrivals?))
    })
}

/// Sends packets on a strict schedule; one that is late does not delay those after it.
fn send(
    socket: &UdpSocket,
    probe: &Probe,
    payload_bytes: usize,
    clock: Clock,
    is_over: &dyn Fn() -> bool,
) -> Result<u64, LabError> {
    nix::sys::prctl::set_timerslack(1).ok();
    let interval = f64::from(probe.packet_bytes) * 8.0 / probe.rate_bps as f64;
    let count = (probe.duration.as_secs_f64() / interval) as u64;
    let start = clock.now();
    let mut payload = vec![0; payload_bytes];
    for number in 0..count {
        if is_over() {
            return Ok(number);
        }
        thread::sleep(clock.until(start + Duration::from_secs_f64(number as f64 * interval)));
        payload[..STAMP].copy_from_slice(&clock.now().as_nanos().to_be_bytes());
        socket.send(&payload).map_err(LabError::socket("sending"))?;
    }
    Ok(count)
}

fn receive(socket: &UdpSocket, clock: Clock, is_sent: &AtomicBool) -> Result<Arrivals, LabError> {
    // The delay of the links is measured, not how long this thread waits for a processor.
    sys::request_real_time().ok();
    let mut arrivals =
        Arrivals { count: 0, first: Instant::ZERO, last: Instant::ZERO, delays: histogram() };
    let mut buffer = [0; MTU as usize];
    loop {
        let was_sent = is_sent.load(Ordering::Relaxed);
        match socket.recv(&mut buffer) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if was_sent {
                    return Ok(arrivals);
                }
                continue;
            }
            Err(error) => return Err(LabError::socket("receiving")(error)),
        }
        let now = clock.now();
        let mut stamp = [0; STAMP];
        stamp.copy_from_slice(&buffer[..STAMP]);
        let sent = Instant::from_nanos(u64::from_be_bytes(stamp));
        arrivals.delays.saturating_record(now.since(sent).as_nanos() as u64);
        if arrivals.count == 0 {
            arrivals.first = now;
        }
        arrivals.last = now;
        arrivals.count += 1;
    }
}
