//! TCP connections between hosts, every byte checked.

use crate::kit::bytes::{self, Amount, patient};
use crate::kit::{PATIENCE, Result, until};
use crate::world::{World, fixed_address};
use airmend_live::lab::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where the fixed host listens for the first mobile host; each further one has the next port.
pub(crate) const PORT: u16 = 5001;

/// One transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Without a number it goes on until what is done meanwhile is over: however slow the machine,
    /// that happens in the middle of it.
    pub(crate) bytes: Option<u64>,
    /// When it begins.
    pub(crate) begin: Duration,
}

/// Transfers from the fixed host to a mobile one, which asks for them.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) is_ipv6: bool,
    /// The number of the mobile host.
    pub(crate) mobile: usize,
    /// The congestion control of the sender; the machine's own by default.
    pub(crate) congestion: Option<&'static str>,
}

impl Plan {
    /// 20 transfers that begin one after the other: short ones and lasting ones in turns.
    pub(crate) fn mixed() -> Self {
        let bytes = |n: u64| n.is_multiple_of(2).then_some(15_000 + 10_000 * n);
        let begin = |n| Duration::from_millis(30 * n);
        Self::of((0..20).map(|n| Transfer { bytes: bytes(n), begin: begin(n) }).collect())
    }

    /// A few of the same length, all at once.
    pub(crate) fn equal(count: usize, bytes: u64) -> Self {
        Self::of(vec![Transfer { bytes: Some(bytes), begin: Duration::ZERO }; count])
    }

    /// A few that go on until what is done meanwhile is over.
    pub(crate) fn lasting(count: usize) -> Self {
        Self::of(vec![Transfer { bytes: None, begin: Duration::ZERO }; count])
    }

    fn of(transfers: Vec<Transfer>) -> Self {
        Self { transfers, is_ipv6: false, mobile: 0, congestion: None }
    }
}

/// Who transfers: one host sends at these addresses (IPv4, IPv6), others ask it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts<'a> {
    pub(crate) fixed: &'a Namespace,
    pub(crate) addresses: [&'static str; 2],
    pub(crate) mobiles: &'a [Namespace],
}

impl<'a> From<&'a World> for Hosts<'a> {
    fn from(world: &'a World) -> Self {
        let addresses = [false, true].map(fixed_address);
        Self { fixed: &world.fixed, addresses, mobiles: &world.mobiles }
    }
}

/// How the transfers come along.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    received: AtomicU64,
    /// What was done meanwhile is over.
    is_over: AtomicBool,
}

impl Progress {
    /// Waits until so many bytes have arrived.
    pub(crate) fn reach(&self, bytes: u64) -> Result {
        until("progress", || (self.received() >= bytes).then_some(()))
    }

    /// Waits until so many more bytes have arrived.
    pub(crate) fn more(&self, bytes: u64) -> Result {
        self.reach(self.received() + bytes)
    }

    /// Bytes so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// Carries them out; `meanwhile` is called at their beginning. How long the whole took.
pub(crate) fn transfer<'a>(
    hosts: impl Into<Hosts<'a>>,
    plan: &Plan,
    meanwhile: impl FnOnce(&Progress) -> Result,
) -> Result<Duration> {
    let hosts = hosts.into();
    let address: IpAddr = hosts.addresses[usize::from(plan.is_ipv6)].parse()?;
    let port = PORT + u16::try_from(plan.mobile)?;
    let at = SocketAddr::new(address, port);
    let listener = hosts.fixed.run(|| Ok(TcpListener::bind(at)))??;
    if let Some(name) = plan.congestion {
        // Its connections inherit it.
        setsockopt(&listener, sockopt::TcpCongestion, &name.into())?;
    }
    let progress = Progress::default();
    let begin = Instant::now();
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener, plan, &progress.is_over));
        let receiving: Vec<_> = (0..)
            .zip(&plan.transfers)
            .map(|(number, transfer)| {
                let (progress, mobile) = (&progress, &hosts.mobiles[plan.mobile]);
                scope.spawn(move || {
                    thread::sleep(transfer.begin);
                    let received = receive(mobile, at, number, progress);
                    received.map_err(|error| format!("transfer {number}: {error}"))
                })
            })
            .collect();
        let done = meanwhile(&progress);
        progress.is_over.store(true, Ordering::Relaxed);
        let received: Vec<_> = receiving.into_iter().map(|thread| join(thread.join())).collect();
        let broken: Vec<_> = received.iter().filter_map(|one| one.as_ref().err()).collect();
        if !broken.is_empty() {
            // Some may never have come, and the server waits for each.
            for _ in &broken {
                drop(hosts.fixed.run(|| Ok(TcpStream::connect(at))));
            }
            return Err(format!("{} of {} broken: {broken:?}", broken.len(), plan.transfers.len()));
        }
        let sent = join(serving.join())?;
        for (number, bytes) in sent {
            let received = received[number].as_ref().ok();
            assert_eq!(received, Some(&bytes), "the bytes of transfer {number}");
        }
        done.map_err(|error| error.to_string())
    })?;
    Ok(begin.elapsed())
}

fn join<T>(
    joined: thread::Result<std::result::Result<T, String>>,
) -> std::result::Result<T, String> {
    joined.unwrap_or_else(|_| Err("a panic".to_owned()))
}

/// Answers all clients: each sends its number, and gets its bytes. How many each was sent.
fn serve(
    listener: &TcpListener,
    plan: &Plan,
    is_over: &AtomicBool,
) -> std::result::Result<Vec<(usize, u64)>, String> {
    thread::scope(|scope| {
        let mut sending = Vec::new();
        for _ in &plan.transfers {
            let (stream, _) = listener.accept().map_err(|error| error.to_string())?;
            let send = || send(stream, plan, is_over).map_err(|error| error.to_string());
            sending.push(scope.spawn(send));
        }
        sending.into_iter().map(|thread| join(thread.join())).collect()
    })
}

fn send(mut stream: TcpStream, plan: &Plan, is_over: &AtomicBool) -> Result<(usize, u64)> {
    patient(&stream)?;
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    let number = u64::from_be_bytes(number);
    let transfer = plan.transfers.get(number as usize).ok_or("there is no such transfer")?;
    let amount = transfer.bytes.map_or(Amount::Until(is_over), Amount::Bytes);
    Ok((number as usize, bytes::send(stream, number, amount)?))
}

fn receive(mobile: &Namespace, at: SocketAddr, number: u64, progress: &Progress) -> Result<u64> {
    let mut stream = mobile.run(|| Ok(TcpStream::connect_timeout(&at, PATIENCE)))??;
    patient(&stream)?;
    stream.write_all(&number.to_be_bytes())?;
    bytes::receive(stream, number, &progress.received)
}
