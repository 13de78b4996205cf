//! A small packet from the fixed host to the mobile host and back, while somebody watches.

use crate::lab::error::LabError;
use crate::lab::network::host::Host;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(100);
/// Who has not asked for so long does not watch any more.
const WATCHED: Duration = Duration::from_secs(3);
/// With IPv4 and UDP headers, 64 bytes.
const PAYLOAD: usize = 36;

/// The round trips that are measured while somebody asks for them.
#[derive(Clone, Debug)]
pub struct Echoes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begin: Instant,
    /// When somebody asked last, in milliseconds since the beginning; 0 for never.
    asked_at: AtomicU64,
    /// The last round trip in nanoseconds; 0 for none.
    round_trip: AtomicU64,
}

impl Default for Echoes {
    fn default() -> Self {
        let (asked_at, round_trip) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Shared { begin: Instant::now(), asked_at, round_trip }))
    }
}

impl Echoes {
    /// The newest round trip, if there is one since somebody watches.
    pub fn newest(&self) -> Option<Duration> {
        self.0.asked_at.store(self.elapsed().max(1), Ordering::Relaxed);
        let nanos = self.0.round_trip.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.0.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_watched(&self) -> bool {
        let asked_at = self.0.asked_at.load(Ordering::Relaxed);
        asked_at > 0 && self.elapsed() - asked_at < WATCHED.as_millis() as u64
    }

    /// Measures from one host to the other until it is over, in threads of the scope.
    pub(crate) fn measure<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        [from, to]: [&Host; 2],
        is_over: &'scope AtomicBool,
    ) -> Result<(), LabError> {
        let open = |host: &Host| {
            let address = SocketAddr::new(host.address, 0);
            host.namespace.run(|| UdpSocket::bind(address).map_err(LabError::socket("bind")))
        };
        let (asking, answering) = (open(from)?, open(to)?);
        let prepare = || {
            asking.connect(answering.local_addr()?)?;
            asking.set_read_timeout(Some(INTERVAL))?;
            answering.set_read_timeout(Some(INTERVAL))
        };
        prepare().map_err(LabError::socket("setting echoes up"))?;
        scope.spawn(move || answer(&answering, is_over));
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let round_trip = if self.is_watched() { self.ask(&asking) } else { Ok(None) };
                let nanos = round_trip.ok().flatten().map_or(0, |trip| trip.as_nanos() as u64);
                self.0.round_trip.store(nanos, Ordering::Relaxed);
                thread::sleep(INTERVAL);
            }
        });
        Ok(())
    }

    /// The round trip of one packet; `None` if it is lost, which a longer silence is.
    fn ask(&self, socket: &UdpSocket) -> io::Result<Option<Duration>> {
        let sent = Instant::now();
        let stamp = u64::try_from(sent.duration_since(self.0.begin).as_nanos());
        let stamp = stamp.unwrap_or(u64::MAX).to_be_bytes();
        let mut payload = [0; PAYLOAD];
        payload[..stamp.len()].copy_from_slice(&stamp);
        socket.send(&payload)?;
        while sent.elapsed() < WATCHED {
            match socket.recv(&mut payload) {
                Ok(_) if payload.starts_with(&stamp) => return Ok(Some(sent.elapsed())),
                // An older one.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if sent.elapsed() > WATCHED / 2 || !self.is_watched() {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Sends every packet back to where it came from.
fn answer(socket: &UdpSocket, is_over: &AtomicBool) {
    let mut payload = [0; PAYLOAD];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut payload) {
            // What cannot be sent is lost.
            socket.send_to(&payload[..length], from).ok();
        }
    }
}
