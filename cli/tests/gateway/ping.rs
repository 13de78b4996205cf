//! Pings from the fixed host to the mobile one beside whatever else passes: datagrams, which are
//! not mended.

use crate::kit::Result;
use airmend_live::lab::Namespace;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ECHO_PORT: u16 = 7007;
/// From an answer to the next ping; and the longest time for which an answer is waited for.
const INTERVAL: Duration = Duration::from_millis(10);
const LOST: Duration = Duration::from_millis(500);
/// Fewer answers tell nothing.
const LEAST: usize = 20;

/// The median time of pings one after the other for so long.
pub(crate) fn median_ping(
    fixed: &Namespace,
    mobile: &Namespace,
    time: Duration,
) -> Result<Duration> {
    let bind = |namespace: &Namespace| -> Result<UdpSocket> {
        let socket = namespace.run(|| Ok(UdpSocket::bind(("0.0.0.0", ECHO_PORT))))??;
        socket.set_read_timeout(Some(LOST))?;
        Ok(socket)
    };
    let (near, far) = (bind(fixed)?, bind(mobile)?);
    near.connect(("10.77.2.2", ECHO_PORT))?;
    let is_done = AtomicBool::new(false);
    let mut times = thread::scope(|scope| -> Result<Vec<Duration>> {
        scope.spawn(|| {
            let mut buffer = [0; 8];
            while !is_done.load(Ordering::Relaxed) {
                if let Ok((length, from)) = far.recv_from(&mut buffer) {
                    far.send_to(&buffer[..length], from).ok();
                }
            }
        });
        let times = ping(&near, time);
        is_done.store(true, Ordering::Relaxed);
        times
    })?;
    times.sort();
    assert!(times.len() > LEAST, "{times:?}");
    Ok(times[times.len() / 2])
}

/// One after the other; a lost one costs its timeout.
fn ping(socket: &UdpSocket, time: Duration) -> Result<Vec<Duration>> {
    let (begin, mut times) = (Instant::now(), Vec::new());
    for number in 0_u64.. {
        if begin.elapsed() >= time {
            break;
        }
        let sent = Instant::now();
        socket.send(&number.to_be_bytes())?;
        let mut buffer = [0; 8];
        while socket.recv(&mut buffer).is_ok() {
            if buffer == number.to_be_bytes() {
                times.push(sent.elapsed());
                break;
            }
        }
        thread::sleep(INTERVAL);
    }
    Ok(times)
}
