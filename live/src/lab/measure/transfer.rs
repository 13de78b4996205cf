//! The workload: one TCP connection per flow, every byte of which is checked on arrival.

use super::stream::ByteStream;
use crate::clock::Clock;
use crate::lab::config::{Amount, CongestionControl, LabConfig};
use crate::lab::error::LabError;
use crate::lab::outcome::TcpSample;
use crate::lab::session::{Endpoints, OnDrop};
use crate::sys;
use airmend_proto::Instant;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrStorage, sockopt};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Data that waits unsent in the kernel at most: the application stays close to the network, so
/// that a transfer stopped by time has little left to send.
const NOTSENT_LOWAT: i32 = 512 << 10;
const BUFFER: usize = 64 << 10;
/// The interval of samples of the senders' state.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// The limit of samples: beyond it every second one is removed and the interval doubled.
pub(crate) const MAX_SAMPLES: usize = 100_000;
/// The kernel's state of a sender after a retransmission timeout.
const TCP_CA_LOSS: u8 = 4;

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Application bytes received, all flows.
    pub bytes: u64,
    /// The share of the run that is done, from 0 to 1.
    pub fraction: f64,
}

/// The result of the transfers.
#[derive(Debug)]
pub(crate) struct TransferReport {
    pub(crate) completed: bool,
    pub(crate) seconds: f64,
    /// The bytes and the seconds of each flow.
    pub(crate) flows: Vec<Carried>,
    /// Seconds from the end of the warm-up on.
    pub(crate) warm_seconds: f64,
    /// The bytes of each flow in these seconds; `flows` where there is no warm-up.
    pub(crate) warm_flows: Vec<Carried>,
    /// From the end of the warm-up to the end of the transfer.
    pub(crate) measured: (Instant, Instant),
    /// Seconds from the beginning to the last byte, of each flow that carried all its bytes.
    pub(crate) completions: Vec<f64>,
    pub(crate) samples: Vec<TcpSample>,
}

/// Bytes received and seconds taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// The observations during a transfer.
#[derive(Default)]
struct Observations {
    samples: Vec<TcpSample>,
    /// The end of the warm-up, and the bytes of each flow until then.
    warm: Option<(Instant, Vec<u64>)>,
}

/// The place of a flow: its hosts, its port, and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// The number of the flow in samples and errors.
    pub(crate) number: u32,
    /// The port on which its receiver listens.
    pub(crate) port: u16,
    /// The number of its byte stream, different from that of every other flow of the run.
    pub(crate) stream: u32,
    pub(crate) endpoints: Endpoints<'a>,
}

/// The sockets of one flow, shared by its threads and the thread that stops them.
struct TransferFlow {
    number: u32,
    stream: ByteStream,
    target: SocketAddr,
    listener: TcpListener,
    sender: OwnedFd,
    accepted: OnceLock<TcpStream>,
    /// A lock, because not every machine has atomic numbers of 64 bits.
    received: Mutex<Received>,
}

#[derive(Clone, Copy)]
struct Received {
    bytes: u64,
    /// The time at which the last byte was read.
    at: Instant,
}

/// All flows of one run, ready to start.
pub(crate) struct Transfer<'a> {
    config: &'a LabConfig,
    clock: Clock,
    /// The start of the run, of which this may not be the first transfer.
    began: Instant,
    flows: Vec<TransferFlow>,
    /// Somebody stopped the run, its time is over or something failed: errors of sockets that are
    /// being shut down mean nothing any more.
    is_ending: AtomicBool,
}

impl<'a> Transfer<'a> {
    /// Opens the sockets of these flows in the hosts' namespaces; `began` is the start of the run.
    pub(crate) fn open<'b>(
        config: &'a LabConfig,
        clock: Clock,
        began: Instant,
        plans: impl IntoIterator<Item = Plan<'b>>,
    ) -> Result<Self, LabError> {
        let flows = plans.into_iter().map(|plan| TransferFlow::open(config, plan));
        let flows = flows.collect::<Result<_, _>>()?;
        Ok(Self { config, clock, began, flows, is_ending: AtomicBool::new(false) })
    }

    /// Runs all flows to their end, or until `is_over` says that it is time to stop.
    pub(crate) fn run(
        &self,
        is_over: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<TransferReport, LabError> {
        let start = self.clock.now();
        let (observations, end, stopped) = thread::scope(|scope| {
            // Also where `progress` panics: the scope waits for its threads.
            let _ending = OnDrop(|| self.end());
            let mut threads = Vec::new();
            for flow in &self.flows {
                threads.push(scope.spawn(|| self.guarded(self.send(flow))));
                threads.push(scope.spawn(|| self.guarded(self.receive(flow))));
            }
            let is_finished = || threads.iter().all(thread::ScopedJoinHandle::is_finished);
            let observations = self.watch(start, &is_finished, is_over, progress);
            // In this order: what comes while this thread has to wait counts with its time, or not.
            let received = self.received();
            let end = self.clock.now();
            // A connection accepted just now may have missed the first call.
            while !is_finished() {
                self.end();
                thread::sleep(Duration::from_millis(1));
            }
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            let stopped = self.is_ending.load(Ordering::SeqCst);
            Ok::<_, LabError>((observations, (end, received), stopped))
        })?;
        Ok(self.report(start, end, stopped, observations))
    }

    /// Makes every thread return soon.
    fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.flows.iter().for_each(TransferFlow::shutdown);
    }

    fn report(
        &self,
        start: Instant,
        (end, received): (Instant, Vec<u64>),
        stopped: bool,
        observations: Observations,
    ) -> TransferReport {
        let timed = matches!(self.config.amount, Amount::Time(time) if end.since(start) >= time);
        let (warm, before) =
            observations.warm.unwrap_or_else(|| (start, vec![0; self.flows.len()]));
        let last = |flow: &TransferFlow| flow.received().at;
        let ends = self.flows.iter().map(|flow| if stopped { end } else { last(flow) });
        let ends: Vec<Instant> = ends.collect();
        let carried = |since: Instant, before: &[u64]| {
            let flows = received.iter().zip(before).zip(&ends);
            let carried = flows.map(|((bytes, before), end)| Carried {
                bytes: bytes.saturating_sub(*before),
                seconds: end.since(since).as_secs_f64(),
            });
            carried.collect::<Vec<_>>()
        };
        let flows = carried(start, &vec![0; self.flows.len()]);
        let warm_flows = carried(warm, &before);
        let longest = |flows: &[Carried]| flows.iter().map(|flow| flow.seconds).fold(0.0, f64::max);
        let is_whole = |bytes| matches!(self.config.amount, Amount::Bytes(all) if bytes == all);
        let whole = self.flows.iter().zip(&received).filter(|(_, bytes)| is_whole(**bytes));
        TransferReport {
            completed: timed || !stopped,
            seconds: longest(&flows),
            warm_seconds: longest(&warm_flows),
            warm_flows,
            measured: (warm, ends.into_iter().max().unwrap_or(end)),
            completions: whole.map(|(flow, _)| last(flow).since(start).as_secs_f64()).collect(),
            flows,
            samples: observations.samples,
        }
    }

    /// Samples and reports until the flows have finished or have to be stopped.
    fn watch(
        &self,
        start: Instant,
        is_finished: &dyn Fn() -> bool,
        is_over: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Observations {
        let mut observations = Observations::default();
        let samples = &mut observations.samples;
        let (mut ticks, mut interval) = (0u64, 1u64);
        loop {
            let now = self.clock.now();
            let elapsed = now.since(start);
            if self.config.warmup > Duration::ZERO && elapsed >= self.config.warmup {
                observations.warm.get_or_insert_with(|| (now, self.received()));
            }
            let timed_out = match self.config.amount {
                Amount::Bytes(_) => false,
                Amount::Time(time) => elapsed >= time,
            };
            let ending = self.is_ending.load(Ordering::SeqCst);
            if is_finished()
                || ending
                || timed_out
                || now.since(self.began) >= self.config.time_limit
                || is_over()
            {
                return observations;
            }
            if ticks.is_multiple_of(interval) {
                self.sample(now.since(self.began), samples);
            }
            if samples.len() > MAX_SAMPLES {
                thin_out(samples, self.flows.len());
                interval *= 2;
            }
            progress(self.progress(elapsed));
            ticks += 1;
            thread::sleep(SAMPLE_EVERY);
        }
    }

    fn progress(&self, elapsed: Duration) -> Progress {
        let bytes = self.received().iter().sum::<u64>();
        let fraction = match self.config.amount {
            Amount::Bytes(each) => bytes as f64 / (each as f64 * self.flows.len() as f64).max(1.0),
            Amount::Time(time) => elapsed.as_secs_f64() / time.as_secs_f64(),
        };
        Progress { bytes, fraction: fraction.min(1.0) }
    }

    fn received(&self) -> Vec<u64> {
        self.flows.iter().map(|flow| flow.received().bytes).collect()
    }

    fn sample(&self, elapsed: Duration, samples: &mut Vec<TcpSample>) {
        for flow in &self.flows {
            let Ok(info) = sys::tcp_info(flow.sender.as_fd()) else { continue };
            samples.push(TcpSample {
                seconds: elapsed.as_secs_f64(),
                flow: flow.number,
                cwnd: info.tcpi_snd_cwnd,
                ssthresh: info.tcpi_snd_ssthresh,
                srtt_us: info.tcpi_rtt,
                rto_us: info.tcpi_rto,
                retransmits: info.tcpi_total_retrans,
                reordering: info.tcpi_reordering,
                after_timeout: info.tcpi_ca_state == TCP_CA_LOSS,
            });
        }
    }

    /// One flow's failure ends the run; a failure of a run that is ending is none.
    fn guarded(&self, result: Result<(), LabError>) -> Result<(), LabError> {
        let was_ending = result.is_err() && self.is_ending.swap(true, Ordering::SeqCst);
        match result {
            Err(LabError::Socket { .. } | LabError::Short { .. }) if was_ending => Ok(()),
            result => result,
        }
    }

    fn send(&self, flow: &TransferFlow) -> Result<(), LabError> {
        socket::connect(flow.sender.as_raw_fd(), &SockaddrStorage::from(flow.target))
            .map_err(LabError::socket("connecting"))?;
        let mut socket = TcpStream::from(
            flow.sender.try_clone().map_err(LabError::socket("duplicating a socket"))?,
        );
        let limit = match self.config.amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Time(_) => u64::MAX,
        };
        let mut block = vec![0; BUFFER];
        let mut sent = 0u64;
        while sent < limit {
            let count = BUFFER.min(usize::try_from(limit - sent).unwrap_or(BUFFER));
            let block = &mut block[..count];
            flow.stream.fill(sent, block);
            socket.write_all(block).map_err(LabError::socket("sending"))?;
            sent += count as u64;
        }
        socket.shutdown(std::net::Shutdown::Write).map_err(LabError::socket("shutdown"))
    }

    fn receive(&self, flow: &TransferFlow) -> Result<(), LabError> {
        let (mut socket, _) = flow.listener.accept().map_err(LabError::socket("accepting"))?;
        let shared = socket.try_clone().map_err(LabError::socket("duplicating a socket"))?;
        flow.accepted.get_or_init(|| shared);
        let (mut buffer, mut scratch) = (vec![0; BUFFER], vec![0; BUFFER]);
        let mut received = 0u64;
        let reason = loop {
            let count = match socket.read(&mut buffer) {
                Ok(0) => break "its stream ended".to_owned(),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break error.to_string(),
            };
            let bytes = &buffer[..count];
            if let Some(offset) = flow.stream.first_wrong(received, bytes, &mut scratch) {
                return Err(LabError::WrongByte { flow: flow.number, offset });
            }
            received += count as u64;
            flow.note(Received { bytes: received, at: self.clock.now() });
        };
        match self.config.amount {
            Amount::Bytes(expected) if received == expected => Ok(()),
            // A flow that sends for a time has no end of its own.
            Amount::Bytes(expected) => {
                Err(LabError::Short { flow: flow.number, received, expected, reason })
            }
            Amount::Time(_) => {
                Err(LabError::Short { flow: flow.number, received, expected: u64::MAX, reason })
            }
        }
    }
}

impl TransferFlow {
    fn open(config: &LabConfig, plan: Plan<'_>) -> Result<Self, LabError> {
        let Plan { number, port, stream, endpoints: Endpoints { sender, receiver } } = plan;
        let target = SocketAddr::new(receiver.address, port);
        let listener = receiver
            .namespace
            .run(|| TcpListener::bind(target).map_err(LabError::socket("listening")))?;
        Ok(Self {
            number,
            stream: ByteStream::new(config.seed, stream),
            target,
            listener,
            sender: sender.namespace.run(|| open_sender(config))?,
            accepted: OnceLock::new(),
            received: Mutex::new(Received { bytes: 0, at: Instant::from_nanos(0) }),
        })
    }

    fn received(&self) -> Received {
        *self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, received: Received) {
        *self.received.lock().unwrap_or_else(PoisonError::into_inner) = received;
    }

    /// Wakes the threads that wait on one of the flow's sockets.
    fn shutdown(&self) {
        sys::shutdown(self.sender.as_fd());
        sys::shutdown(self.listener.as_fd());
        if let Some(accepted) = self.accepted.get() {
            sys::shutdown(accepted.as_fd());
        }
    }
}

fn open_sender(config: &LabConfig) -> Result<OwnedFd, LabError> {
    let family = if config.ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let sender = socket::socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .map_err(LabError::socket("opening a TCP socket"))?;
    set_congestion_control(&sender, config.cc)?;
    sys::set_option(sender.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, NOTSENT_LOWAT)
        .map_err(LabError::socket("setting TCP_NOTSENT_LOWAT"))?;
    Ok(sender)
}

fn set_congestion_control(socket: &OwnedFd, cc: CongestionControl) -> Result<(), LabError> {
    let wanted = cc.name();
    let set = socket::setsockopt(socket, sockopt::TcpCongestion, &OsString::from(wanted));
    // The kernel answers with what it has; some are for privileged users only.
    let is = socket::getsockopt(socket, sockopt::TcpCongestion).unwrap_or_default();
    let is = is.to_string_lossy();
    if set.is_ok() && is.trim_end_matches('\0') == wanted {
        return Ok(());
    }
    let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let available = fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    Err(LabError::CongestionControl { wanted, available })
}

/// Forgets every second sampling of all `flows`.
fn thin_out(samples: &mut Vec<TcpSample>, flows: usize) {
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        ((index - 1) / flows.max(1)).is_multiple_of(2)
    });
}
