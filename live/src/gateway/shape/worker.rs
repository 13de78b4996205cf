//! The thread that keeps the gateway's own queue. Requests about queues wait for other programs
//! that configure the network, which the gateway's loop must not; and of the gateway's threads only
//! this one keeps a capability, CAP_NET_ADMIN.

use super::super::privileges;
use crate::qdisc::{self, Leaf};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often it looks at the queue.
const LOOK: Duration = Duration::from_millis(100);

/// The thread, and the queue: both end with this value.
#[derive(Debug)]
pub(super) struct Worker {
    /// `None` at its end.
    rates: Option<Sender<u64>>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

/// What it saw last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Bytes that have left the queue.
    pub(super) sent: u64,
    /// The rate in bits per second; `None` if another program has removed the queue.
    pub(super) rate_bps: Option<u64>,
}

impl Worker {
    /// Starts the thread for a queue that has been set up on the interface, with this rate.
    pub(super) fn start(
        index: u32,
        interface: String,
        leaf: Leaf,
        rate_bps: u64,
    ) -> io::Result<Self> {
        let (rates, commands) = channel();
        let seen = Arc::new(Mutex::new(Seen { sent: 0, rate_bps: Some(rate_bps) }));
        let shared = Arc::clone(&seen);
        let thread = thread::Builder::new().name("shaper".to_owned()).spawn(move || {
            if let Err(error) = privileges::keep_net_admin() {
                tracing::warn!(interface, %error, "the shaper keeps all of its capabilities");
            }
            keep(index, &interface, leaf, &commands, &shared);
            if let Err(error) = qdisc::remove(index) {
                tracing::warn!(interface, %error, "the gateway's queue could not be removed");
            }
        });
        match thread {
            Ok(thread) => Ok(Self { rates: Some(rates), seen, thread: Some(thread) }),
            Err(error) => {
                qdisc::remove(index).ok();
                Err(error)
            }
        }
    }

    /// Asks for another rate, in bits per second.
    pub(super) fn set_rate(&self, rate_bps: u64) {
        // It fails only where the thread has ended.
        self.rates.iter().for_each(|rates| rates.send(rate_bps).unwrap_or_default());
    }

    pub(super) fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.rates = None;
        self.thread.take().map(JoinHandle::join);
    }
}

/// Sets rates, and looks at the queue, until the sender of rates is dropped.
fn keep(index: u32, interface: &str, leaf: Leaf, rates: &Receiver<u64>, seen: &Mutex<Seen>) {
    let mut rate_bps = lock(seen).rate_bps;
    let mut is_there = true;
    loop {
        match rates.recv_timeout(LOOK) {
            Ok(first) => {
                // Only the last of those that wait.
                let wanted = rates.try_iter().last().unwrap_or(first);
                if qdisc::set_rate(index, wanted, leaf).is_ok() {
                    rate_bps = Some(wanted);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let sent = qdisc::sent(index);
        if is_there && sent.is_none() {
            tracing::warn!(
                interface,
                "another program has removed the gateway's queue: nothing is shaped until a restart"
            );
        }
        is_there = sent.is_some();
        let mut seen = lock(seen);
        seen.sent = sent.unwrap_or(seen.sent);
        seen.rate_bps = rate_bps.filter(|_| is_there);
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
