//! A small UDP packet to and fro every 10 ms beside the flows, over the same links and queues.

use super::config::LabConfig;
use super::error::LabError;
use super::outcome::{Ping, histogram};
use super::probe::Delay;
use super::session::{OnDrop, Roles, Session};
use super::topology::MTU;
use crate::clock::Clock;
use crate::sys;
use airmend_proto::Instant;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PORT: u16 = 4002;
const INTERVAL: Duration = Duration::from_millis(10);
/// With IPv4 and UDP headers, 64 bytes.
const PAYLOAD: usize = 36;
/// The time at which a packet was sent, in front of its payload.
const STAMP: usize = size_of::<u64>();
/// How often whoever answers looks whether it is needed any more.
const LOOK: Duration = Duration::from_millis(50);
/// How long after the last packet an answer is waited for, beyond what path and queues may take.
const GRACE: Duration = Duration::from_millis(300);
/// Whatever the queues may hold, no longer than this.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Does `work`, and pings from the mended flows' sender to their receiver meanwhile if `config`
/// asks for it.
pub(crate) fn with_ping<T>(
    config: &LabConfig,
    session: &Session<'_>,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, Option<Ping>), LabError> {
    if !config.ping {
        return Ok((work()?, None));
    }
    let Roles { sender, receiver } = session.mended;
    let bind = |address| {
        move || UdpSocket::bind(SocketAddr::new(address, PORT)).map_err(LabError::socket("bind"))
    };
    let asking = sender.namespace.run(bind(sender.address))?;
    let answering = receiver.namespace.run(bind(receiver.address))?;
    asking
        .connect(SocketAddr::new(receiver.address, PORT))
        .and_then(|()| asking.set_nonblocking(true))
        .and_then(|()| answering.set_read_timeout(Some(LOOK)))
        .map_err(LabError::socket("setting the ping up"))?;
    let clock = session.clock;
    let counted_from = clock.now() + config.warmup;
    let wait = longest_round_trip(config) + GRACE;
    let (is_done, is_answered) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let _answered = OnDrop(|| is_answered.store(true, Ordering::Relaxed));
        scope.spawn(|| answer(&answering, &is_answered));
        let ping = scope.spawn(|| ask(&asking, clock, counted_from, wait, &is_done));
        let done = OnDrop(|| is_done.store(true, Ordering::Relaxed));
        let result = work();
        drop(done);
        let ping = ping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, Some(ping.map_err(LabError::socket("pinging"))?)))
    })
}

/// A round trip through full queues on both ways.
fn longest_round_trip(config: &LabConfig) -> Duration {
    let drain = |frames: usize, rate_bps: u64| {
        let seconds = frames as f64 * f64::from(MTU) * 8.0 / rate_bps as f64;
        Duration::from_secs_f64(seconds.min(MAX_WAIT.as_secs_f64()))
    };
    let air = drain(config.queue_frames, config.air.rate_bps);
    let wired = drain(config.wired_queue_frames, config.wired.rate_bps);
    (2 * (config.path_delay(MTU) + air + wired)).min(MAX_WAIT)
}

/// Sends on schedule and receives until all is back or `wait` has passed after the last one. Of
/// what is sent before `counted_from` nothing is counted.
fn ask(
    socket: &UdpSocket,
    clock: Clock,
    counted_from: Instant,
    wait: Duration,
    is_done: &AtomicBool,
) -> io::Result<Ping> {
    nix::sys::prctl::set_timerslack(1).ok();
    // The round trip over the links is measured, not how long this thread waits for a processor.
    sys::request_real_time().ok();
    let mut round_trips = histogram();
    let mut payload = [0; PAYLOAD];
    let (mut sent, mut received) = (0, 0);
    let mut next = clock.now();
    loop {
        let now = clock.now();
        let done = is_done.load(Ordering::Relaxed);
        if done && (received == sent || now >= next + wait) {
            let round_trip = Delay::of(&round_trips);
            return Ok(Ping { sent, received, round_trip });
        }
        if !done && now >= next {
            payload[..STAMP].copy_from_slice(&now.as_nanos().to_be_bytes());
            refused_is_lost(socket.send(&payload))?;
            sent += u64::from(now >= counted_from);
            next = (next + INTERVAL).max(now);
        }
        let until = if done { LOOK } else { clock.until(next) };
        let mut readable = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut readable, Some(until.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while refused_is_lost(socket.recv(&mut payload))? == PAYLOAD {
            let mut stamp = [0; STAMP];
            stamp.copy_from_slice(&payload[..STAMP]);
            let sent_at = Instant::from_nanos(u64::from_be_bytes(stamp));
            if sent_at >= counted_from {
                let round_trip = clock.now().since(sent_at).as_nanos();
                round_trips.saturating_record(u64::try_from(round_trip).unwrap_or(u64::MAX));
                received += 1;
            }
        }
    }
}

/// Sends every packet back to where it came from.
fn answer(socket: &UdpSocket, is_over: &AtomicBool) {
    sys::request_real_time().ok();
    let mut payload = [0; PAYLOAD];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut payload) {
            // What cannot be sent is lost, which the asking side counts.
            socket.send_to(&payload[..length], from).ok();
        }
    }
}

/// Nothing to read, or no room to send: no bytes have moved.
fn refused_is_lost(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(0),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(error),
        },
        result => result,
    }
}
