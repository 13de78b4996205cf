//! A small UDP packet to and fro every 10 ms beside the flows, over the same links and queues.

use crate::clock::Clock;
use crate::lab::config::LabConfig;
use crate::lab::error::LabError;
use crate::lab::outcome::{Delay, Ping, histogram};
use crate::lab::session::{Endpoints, OnDrop, Session};
use crate::sys;
use airmend_proto::Instant;
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::collections::BTreeSet;
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
/// The interval at which the answering thread checks whether the run is over.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A packet without an answer for this time is lost.
const LOST_AFTER: Duration = Duration::from_secs(5);

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
    let Endpoints { sender, receiver } = session.first();
    let bind = |address| {
        move || UdpSocket::bind(SocketAddr::new(address, PORT)).map_err(LabError::socket("bind"))
    };
    let asking = sender.namespace.run(bind(sender.address))?;
    let answering = receiver.namespace.run(bind(receiver.address))?;
    asking
        .connect(SocketAddr::new(receiver.address, PORT))
        .and_then(|()| asking.set_nonblocking(true))
        .and_then(|()| answering.set_read_timeout(Some(POLL_INTERVAL)))
        .map_err(LabError::socket("setting the ping up"))?;
    let clock = session.clock;
    let counted_from = clock.now() + config.warmup;
    let (is_done, is_answered) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let _answered = OnDrop(|| is_answered.store(true, Ordering::Relaxed));
        scope.spawn(|| answer(&answering, &is_answered));
        let ping = scope.spawn(|| ask(&asking, clock, counted_from, &is_done));
        let done = OnDrop(|| is_done.store(true, Ordering::Relaxed));
        let result = work();
        drop(done);
        let ping = ping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, Some(ping.map_err(LabError::socket("pinging"))?)))
    })
}

/// Sends on schedule and receives until it is done. Of what is sent before `counted_from` nothing
/// is counted.
fn ask(
    socket: &UdpSocket,
    clock: Clock,
    counted_from: Instant,
    is_done: &AtomicBool,
) -> io::Result<Ping> {
    nix::sys::prctl::set_timerslack(1).ok();
    // The round trip over the links is measured, not how long this thread waits for a processor.
    sys::request_real_time().ok();
    let mut trips = Trips::default();
    let mut payload = [0; PAYLOAD];
    let mut next = clock.now();
    while !is_done.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= next {
            payload[..STAMP].copy_from_slice(&now.as_nanos().to_be_bytes());
            refused_is_lost(socket.send(&payload))?;
            if now >= counted_from {
                trips.sent(now);
            }
            next = (next + INTERVAL).max(now);
        }
        let mut readable = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut readable, Some(clock.until(next).into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while refused_is_lost(socket.recv(&mut payload))? == PAYLOAD {
            let mut stamp = [0; STAMP];
            stamp.copy_from_slice(&payload[..STAMP]);
            trips.returned(Instant::from_nanos(u64::from_be_bytes(stamp)), clock.now());
        }
    }
    Ok(trips.finish(clock.now()))
}

/// The packets that are counted.
struct Trips {
    /// The times at which the packets in flight were sent, lost ones included.
    under_way: BTreeSet<Instant>,
    lost: u64,
    round_trips: Histogram<u64>,
}

impl Default for Trips {
    fn default() -> Self {
        Self { under_way: BTreeSet::new(), lost: 0, round_trips: histogram() }
    }
}

impl Trips {
    fn sent(&mut self, now: Instant) {
        self.under_way.insert(now);
        while self.under_way.first().is_some_and(|sent| now.since(*sent) > LOST_AFTER) {
            self.under_way.pop_first();
            self.lost += 1;
        }
    }

    fn returned(&mut self, sent: Instant, now: Instant) {
        if self.under_way.remove(&sent) {
            let nanos = u64::try_from(now.since(sent).as_nanos()).unwrap_or(u64::MAX);
            self.round_trips.saturating_record(nanos);
        }
    }

    /// The result. A packet that was sent less than the longest round trip ago is not counted.
    fn finish(self, now: Instant) -> Ping {
        let longest = Duration::from_nanos(self.round_trips.max());
        let overdue = self.under_way.iter().filter(|sent| now.since(**sent) > longest).count();
        let received = self.round_trips.len();
        let sent = received + self.lost + overdue as u64;
        Ping { sent, received, round_trip: Delay::of(&self.round_trips) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overdue_is_lost_and_what_is_under_way_is_not_counted() {
        let at = Instant::from_millis;
        let mut trips = Trips::default();
        for millis in [0, 10, 20, 30, 6_000] {
            trips.sent(at(millis));
        }
        // 0 to 30 ms are lost by 6 s; an answer after that changes nothing.
        trips.returned(at(30), at(6_001));
        trips.returned(at(6_000), at(6_090));
        // One that is overdue at the end, and one that is not.
        trips.sent(at(6_100));
        trips.sent(at(6_200));
        let ping = trips.finish(at(6_260));
        assert_eq!((ping.sent, ping.received), (6, 1));
        let millis = ping.round_trip.p50.as_secs_f64() * 1e3;
        assert!((millis - 90.0).abs() < 0.1, "{millis}");
        assert_eq!(Trips::default().finish(at(1)).sent, 0);
    }
}
