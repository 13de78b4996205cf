//! What a gateway costs on a clean link: `cargo bench -p airmend-live --bench gateway`.
//!
//! TCP from a fixed host through a base station, whose kernel forwards, to a mobile host, each a
//! namespace: with the gateway on the interface towards the mobile and without it, in alternating
//! runs; medians, and the gateway's share of what plain forwarding carries. Then its share of a
//! core at 18 Mb/s, and the delay that it adds to an echo.

use airmend_live::gateway::{Gateway, GatewayConfig};
use airmend_live::lab::{LabError, Namespace};
use airmend_proto::agents::AgentConfig;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{setsockopt, sockopt};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const SECONDS: Duration = Duration::from_secs(3);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
/// Bits per second of the slow run, and the share of a core that it may take.
const SLOW_BPS: u64 = 18_000_000;
const SLOW_SHARE: f64 = 0.02;
const ECHOES: usize = 4_000;
const ADDED_DELAY: Duration = Duration::from_micros(50);

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it builds and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("the gateway's cost is not measured: only root may attach BPF programs");
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<bool> {
    let mut all_hold = true;
    for (offloads, required) in [(true, [0.80, 0.75]), (false, [0.60, 0.60])] {
        let world = World::new(offloads)?;
        for (flows, required) in [1, 8].into_iter().zip(required) {
            all_hold &= shares(&world, offloads, flows, required)?;
        }
    }
    let world = World::new(true)?;
    all_hold &= slow(&world)?;
    all_hold &= echo(&world)?;
    Ok(all_hold)
}

/// Three hosts in a row, the middle one a router.
struct World {
    fixed: Namespace,
    station: Namespace,
    mobile: Namespace,
}

impl World {
    fn new(offloads: bool) -> Result<Self> {
        let [fixed, station, mobile] = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        station.ip(&format!(
            "link add wired0 type veth peer name eth0 netns {}\n\
             link add air0 type veth peer name eth0 netns {}\n\
             link set wired0 up\nlink set air0 up\n\
             address add 10.1.0.1/24 dev wired0\naddress add 10.2.0.1/24 dev air0\n",
            fixed.path().display(),
            mobile.path().display()
        ))?;
        for (host, address, router) in
            [(&fixed, "10.1.0.2", "10.1.0.1"), (&mobile, "10.2.0.2", "10.2.0.1")]
        {
            host.ip(&format!(
                "link set eth0 up\naddress add {address}/24 dev eth0\n\
                 route add default via {router}\n"
            ))?;
        }
        station.run(|| {
            let forward = "/proc/sys/net/ipv4/ip_forward";
            std::fs::write(forward, "1").map_err(|error| failed(&error))
        })?;
        if !offloads {
            for (host, interface) in
                [(&fixed, "eth0"), (&station, "wired0"), (&station, "air0"), (&mobile, "eth0")]
            {
                host.disable_offloads(interface)?;
            }
        }
        Ok(Self { fixed, station, mobile })
    }

    /// Does `work` beside a gateway; also says how long that was on a CPU meanwhile.
    fn with_gateway<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let stop = &stop;
            let gateway = scope.spawn(move || {
                self.station.run(|| {
                    let config = GatewayConfig {
                        socket: Default::default(),
                        ..GatewayConfig::new("air0", AgentConfig::by_name("snoop").unwrap())
                    };
                    let mut gateway = Gateway::open(config).map_err(|error| failed(&error))?;
                    let begin = cpu_time();
                    ready.send(()).ok();
                    while !stop.load(Ordering::Relaxed) {
                        gateway.step().map_err(|error| failed(&error))?;
                    }
                    Ok(cpu_time() - begin)
                })
            });
            // If it fails, its result says why.
            is_ready.recv().ok();
            let result = work();
            stop.store(true, Ordering::Relaxed);
            let cpu = gateway.join().map_err(|_| "the gateway panicked")??;
            Ok((result?, cpu))
        })
    }
}

/// What eight flows or one carry with a gateway, as a share of what they carry without.
fn shares(world: &World, offloads: bool, flows: usize, required: f64) -> Result<bool> {
    let (mut plain, mut mended) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(transfer(world, flows)?);
        mended.push(world.with_gateway(|| transfer(world, flows))?.0);
    }
    let (plain, mended) = (median(plain), median(mended));
    let share = mended / plain;
    let verdict = if share >= required { "ok" } else { "TOO SLOW" };
    let packets = if offloads { "offloads on" } else { "wire-size packets" };
    println!(
        "{packets}, {flows} flows: {verdict}, {:.2} Gb/s of {:.2}: {share:.2} \
         (wanted {required:.2})",
        mended / 1e9,
        plain / 1e9
    );
    Ok(share >= required)
}

/// Bits per second that reach the mobile.
fn transfer(world: &World, flows: usize) -> Result<f64> {
    let listener = world.mobile.run(|| listen().map_err(|error| failed(&error)))?;
    let address = listener.local_addr()?;
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..flows {
            scope.spawn(move || -> Result {
                let mut stream = connect(&world.fixed, address)?;
                let (begin, block) = (Instant::now(), vec![0; 1 << 18]);
                while begin.elapsed() < SECONDS && stream.write_all(&block).is_ok() {}
                Ok(())
            });
        }
        let receivers: Vec<_> = (0..flows)
            .map(|_| {
                let (mut receiver, _) = listener.accept()?;
                receiver.set_read_timeout(Some(Duration::from_secs(10)))?;
                Ok(scope.spawn(move || drain(&mut receiver)))
            })
            .collect::<std::io::Result<_>>()?;
        let mut bytes = 0;
        for receiver in receivers {
            bytes += receiver.join().map_err(|_| "a receiver panicked")??;
        }
        Ok(bytes as f64 * 8.0 / begin.elapsed().as_secs_f64())
    })
}

fn drain(receiver: &mut TcpStream) -> std::io::Result<u64> {
    let (mut block, mut bytes) = (vec![0; 1 << 18], 0);
    loop {
        match receiver.read(&mut block)? {
            0 => return Ok(bytes),
            length => bytes += length as u64,
        }
    }
}

/// The gateway's share of a core beside a flow of 18 Mb/s in frames of wire size.
fn slow(world: &World) -> Result<bool> {
    let listener = world.mobile.run(|| listen().map_err(|error| failed(&error)))?;
    let address = listener.local_addr()?;
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        let (elapsed, cpu) = world.with_gateway(|| {
            let mut stream = connect(&world.fixed, address)?;
            let (mut receiver, _) = listener.accept()?;
            thread::scope(|scope| {
                scope.spawn(move || drain(&mut receiver));
                let (begin, frame) = (Instant::now(), [0; 1448]);
                let mut sent = 0;
                while begin.elapsed() < SECONDS {
                    stream.write_all(&frame)?;
                    sent += frame.len() as u64;
                    let due = Duration::from_secs_f64(sent as f64 * 8.0 / SLOW_BPS as f64);
                    thread::sleep(due.saturating_sub(begin.elapsed()));
                }
                drop(stream);
                Ok(begin.elapsed())
            })
        })?;
        shares.push(cpu.as_secs_f64() / elapsed.as_secs_f64());
    }
    let share = median(shares);
    let verdict = if share <= SLOW_SHARE { "ok" } else { "TOO MUCH" };
    println!("at 18 Mb/s: {verdict}, {:.2} % of a core (wanted 2 %)", 100.0 * share);
    Ok(share <= SLOW_SHARE)
}

/// How much longer an echo of a few bytes takes.
fn echo(world: &World) -> Result<bool> {
    let listener = world.mobile.run(|| listen().map_err(|error| failed(&error)))?;
    let address = listener.local_addr()?;
    let (mut plain, mut mended) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(echoes(world, &listener, address)?);
        mended.push(world.with_gateway(|| echoes(world, &listener, address))?.0);
    }
    let at = |rounds: &[Vec<Duration>], quantile: f64| {
        let each = rounds.iter().map(|times| times[(times.len() as f64 * quantile) as usize]);
        median(each.map(|time| time.as_secs_f64()).collect())
    };
    let added = |quantile| at(&mended, quantile) - at(&plain, quantile);
    let verdict = if added(0.99) <= ADDED_DELAY.as_secs_f64() { "ok" } else { "TOO MUCH" };
    println!(
        "an echo of {:.0} us: {verdict}, {:+.1} us in the median, {:+.1} us at p99 (wanted 50)",
        at(&plain, 0.5) * 1e6,
        added(0.5) * 1e6,
        added(0.99) * 1e6
    );
    Ok(added(0.99) <= ADDED_DELAY.as_secs_f64())
}

/// Times of single echoes with pauses between them, in order.
fn echoes(world: &World, listener: &TcpListener, address: SocketAddr) -> Result<Vec<Duration>> {
    let mut client = connect(&world.fixed, address)?;
    let (mut server, _) = listener.accept()?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(length @ 1..) = server.read(&mut buffer) {
                if server.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
        });
        let mut times = Vec::new();
        let mut buffer = [0; 8];
        for _ in 0..ECHOES / ROUNDS {
            let begin = Instant::now();
            client.write_all(&buffer)?;
            client.read_exact(&mut buffer)?;
            times.push(begin.elapsed());
            thread::sleep(Duration::from_millis(1));
        }
        drop(client);
        times.sort();
        Ok(times)
    })
}

fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind((MOBILE, 0))?;
    setsockopt(&listener, sockopt::TcpCongestion, &"cubic".into())?;
    Ok(listener)
}

fn connect(from: &Namespace, to: SocketAddr) -> Result<TcpStream> {
    let stream = from.run(|| Ok(TcpStream::connect_timeout(&to, Duration::from_secs(5))))??;
    setsockopt(&stream, sockopt::TcpCongestion, &"cubic".into())?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Time that the calling thread has spent on a CPU, in user space and in the kernel.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    [usage.user_time(), usage.system_time()]
        .map(|time| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000))
        .into_iter()
        .sum()
}

fn failed(error: &impl ToString) -> LabError {
    LabError::Interfaces(error.to_string())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
