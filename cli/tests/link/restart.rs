//! How long a restarted end takes to carry packets again, between processes.

use crate::ended;
use crate::kit::{PATIENCE, Result, has_steady_clock, until};
use crate::world::{INNER, Link, RIGHT, World};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const RUNS: usize = 10;
/// What nobody should wait for.
const LONGEST: Duration = Duration::from_millis(500);

/// A byte each millisecond crosses the link while its listener is killed ten times.
pub(crate) fn restart_time(arq: &'static str) -> Result {
    let world = World::with(arq)?;
    let mut listener = world.listen("0.0.0.0:4433")?;
    let dialer = world.dial(&format!("{RIGHT}:4433"))?;
    let server = world.right.run(|| Ok(TcpListener::bind((INNER[1], 5001))))??;
    let sender = until("a connection", || {
        world.left.run(|| Ok(TcpStream::connect((INNER[1], 5001)).ok())).ok().flatten()
    })?;
    sender.set_nodelay(true)?;
    let (receiver, _) = server.accept()?;
    let (received, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| -> Result {
        scope.spawn(|| trickle(sender, &stop));
        scope.spawn(|| count(receiver, &received, &stop));
        let restarts = || -> Result {
            let mut times = Vec::new();
            for _ in 0..RUNS {
                let before = received.load(Ordering::Relaxed);
                until("the next byte", || {
                    (received.load(Ordering::Relaxed) > before).then_some(())
                })?;
                let (next, time) = restart(&world, listener, &received)?;
                listener = next;
                times.push(time);
            }
            times.sort();
            println!("from the start of the process to data, sorted: {times:.1?}");
            println!("median {:.1?}", times[RUNS / 2]);
            assert!(!has_steady_clock() || times[RUNS - 1] < LONGEST, "{times:?}");
            ended(listener)?;
            Ok(())
        };
        let result = restarts();
        stop.store(true, Ordering::Relaxed);
        result
    })?;
    ended(dialer)?;
    Ok(())
}

/// Kills the listener and starts it again; the time from that start to the next byte of data.
fn restart(world: &World, listener: Link, received: &AtomicU64) -> Result<(Link, Duration)> {
    listener.kill()?;
    // What had arrived before is read now.
    thread::sleep(Duration::from_millis(20));
    let before = received.load(Ordering::Relaxed);
    let begin = Instant::now();
    let listener = world.listen("0.0.0.0:4433")?;
    while received.load(Ordering::Relaxed) == before {
        if begin.elapsed() > PATIENCE {
            return Err("no data after the restart".into());
        }
        thread::sleep(Duration::from_micros(100));
    }
    Ok((listener, begin.elapsed()))
}

/// Neither thread waits for the other end longer than this before it looks whether to stop: while
/// there is no listener, some dozen bytes fill the sender's buffer.
const LOOK: Duration = Duration::from_millis(50);

fn trickle(mut sender: TcpStream, stop: &AtomicBool) {
    sender.set_write_timeout(Some(LOOK)).expect("a socket");
    while !stop.load(Ordering::Relaxed) && goes_on(&sender.write(b"x")) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn count(mut receiver: TcpStream, received: &AtomicU64, stop: &AtomicBool) {
    receiver.set_read_timeout(Some(LOOK)).expect("a socket");
    let mut buffer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        let read = receiver.read(&mut buffer);
        if !goes_on(&read) {
            return;
        }
        received.fetch_add(read.unwrap_or(0) as u64, Ordering::Relaxed);
    }
}

/// Whether a socket with a timeout is still at work.
fn goes_on(result: &std::io::Result<usize>) -> bool {
    let is_late = |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    result.as_ref().map_or_else(|error| is_late(error.kind()), |_| true)
}
