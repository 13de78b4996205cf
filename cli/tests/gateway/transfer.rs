//! TCP connections between hosts, every byte checked.

use crate::kit::bytes::{self, patient};
use crate::kit::{PATIENCE, Result};
use crate::world::{World, fixed_address};
use airmend_live::lab::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where the fixed host listens for the first mobile host; each further one has the next port.
pub(crate) const PORT: u16 = 5001;

/// Transfers from the fixed host to a mobile one, which asks for them.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bytes of each, and when it begins.
    pub(crate) transfers: Vec<(u64, Duration)>,
    pub(crate) is_ipv6: bool,
    /// The number of the mobile host.
    pub(crate) mobile: usize,
    /// The congestion control of the sender; the machine's own by default.
    pub(crate) congestion: Option<&'static str>,
}

impl Plan {
    /// 20 transfers, short and long in turns, that begin one after the other.
    pub(crate) fn mixed() -> Self {
        let bytes = |n: u64| if n.is_multiple_of(2) { 30_000 + 20_000 * n } else { 800_000 };
        let begin = |n: u64| Duration::from_millis(60 * n);
        Self {
            transfers: (0..20).map(|n| (bytes(n), begin(n))).collect(),
            is_ipv6: false,
            mobile: 0,
            congestion: None,
        }
    }

    /// A few of the same length, all at once.
    pub(crate) fn equal(count: usize, bytes: u64) -> Self {
        let transfers = vec![(bytes, Duration::ZERO); count];
        Self { transfers, is_ipv6: false, mobile: 0, congestion: None }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.transfers.iter().map(|(bytes, _)| bytes).sum()
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
}

impl Progress {
    /// Waits until this share of all bytes has arrived.
    pub(crate) fn reach(&self, plan: &Plan, share: f64) -> Result {
        let wanted = (plan.bytes() as f64 * share) as u64;
        crate::kit::until("progress", || (self.received() >= wanted).then_some(()))
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
        let serving = scope.spawn(|| serve(&listener, plan.transfers.len()));
        let receiving: Vec<_> = plan
            .transfers
            .iter()
            .zip(0..)
            .map(|(&(bytes, delay), number)| {
                let (progress, mobile) = (&progress, &hosts.mobiles[plan.mobile]);
                scope.spawn(move || {
                    thread::sleep(delay);
                    let received = receive(mobile, at, number, bytes, progress);
                    received.map_err(|error| format!("transfer {number}: {error}"))
                })
            })
            .collect();
        let done = meanwhile(&progress);
        let broken: Vec<String> =
            receiving.into_iter().filter_map(|thread| join(thread.join()).err()).collect();
        if !broken.is_empty() {
            // Some may never have come, and the server waits for each.
            for _ in &broken {
                drop(hosts.fixed.run(|| Ok(TcpStream::connect(at))));
            }
            return Err(format!("{} of {} broken: {broken:?}", broken.len(), plan.transfers.len()));
        }
        join(serving.join())?;
        done.map_err(|error| error.to_string())
    })?;
    Ok(begin.elapsed())
}

fn join<T>(
    joined: thread::Result<std::result::Result<T, String>>,
) -> std::result::Result<T, String> {
    joined.unwrap_or_else(|_| Err("a panic".to_owned()))
}

/// Answers so many clients: each sends a number and a length, and gets so many bytes.
fn serve(listener: &TcpListener, clients: usize) -> std::result::Result<(), String> {
    thread::scope(|scope| {
        for _ in 0..clients {
            let (stream, _) = listener.accept().map_err(|error| error.to_string())?;
            // Who asked tells of an error; it misses something then.
            scope.spawn(|| send(stream).ok());
        }
        Ok(())
    })
}

fn send(mut stream: TcpStream) -> Result {
    patient(&stream)?;
    let mut request = [[0; 8]; 2];
    stream.read_exact(request.as_flattened_mut())?;
    let [number, bytes] = request.map(u64::from_be_bytes);
    bytes::send(stream, number, bytes)
}

fn receive(
    mobile: &Namespace,
    at: SocketAddr,
    number: u64,
    bytes: u64,
    progress: &Progress,
) -> Result {
    let mut stream = mobile.run(|| Ok(TcpStream::connect_timeout(&at, PATIENCE)))??;
    patient(&stream)?;
    stream.write_all([number, bytes].map(u64::to_be_bytes).as_flattened())?;
    bytes::receive(stream, number, bytes, &progress.received)
}
