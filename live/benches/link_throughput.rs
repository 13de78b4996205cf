//! What a tunnel costs: `cargo bench -p airmend-live --bench link_throughput`.
//!
//! TCP between two namespaces, one core for each side: over the bare veth pair, through the tunnel
//! without encryption, and with it, in alternating runs; medians, and the ratio to the bare pair.
//! Then how long a tunnel whose one end was restarted needs to carry packets again.

#[path = "../tests/tunnel_kit/mod.rs"]
mod tunnel_kit;

use airmend_live::lab::{LabError, Namespace, enter_user_namespace};
use airmend_live::tunnel::{Keys, PrivateKey, Rekey, Security};
use airmend_proto::agents::tulip::Settings;
use airmend_testkit::Result;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tunnel_kit::{failed, open, two_hosts, until};

const ROUNDS: usize = 5;
const SECONDS: Duration = Duration::from_secs(3);
const RESTARTS: usize = 20;
/// Bits per second that must be reached, without encryption and with it.
const REQUIRED: [f64; 2] = [2e9, 1e9];
const RESUME: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it builds and starts.
    if std::env::args().any(|argument| argument == "--test") {
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
    enter_user_namespace()?;
    let world = World::new()?;
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        rates[0].push(transfer(&world, [192, 0, 2, 2])?);
        for (encrypted, rates) in [false, true].into_iter().zip(&mut rates[1..]) {
            let security = || security(encrypted, &world.key);
            rates.push(with_tunnel(&world, security, || transfer(&world, [10, 9, 0, 2]))?);
        }
    }
    let [bare, plain, encrypted] = rates.map(median);
    println!("veth: {:.2} Gb/s", bare / 1e9);
    let mut all_hold = true;
    for (what, rate, required) in
        [("link, insecure", plain, REQUIRED[0]), ("link, encrypted", encrypted, REQUIRED[1])]
    {
        let holds = rate >= required;
        all_hold &= holds;
        let verdict = if holds { "ok" } else { "TOO SLOW" };
        let (gbps, ratio) = (rate / 1e9, rate / bare);
        println!("{what}: {verdict}, {gbps:.2} Gb/s, {ratio:.3} of the veth pair");
    }
    let mut times = with_tunnel(&world, || security(true, &world.key), || restarts(&world))?;
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let verdict = if worst <= RESUME { "ok" } else { "TOO SLOW" };
    println!(
        "restarted end carries again after: {verdict}, median {median:.1?}, worst {worst:.1?}"
    );
    Ok(all_hold && worst <= RESUME)
}

/// Two namespaces with a veth pair between them, and the key that both ends share.
struct World {
    left: Namespace,
    right: Namespace,
    key: PrivateKey,
}

impl World {
    fn new() -> Result<Self> {
        let [left, right] = two_hosts()?;
        Ok(Self { left, right, key: PrivateKey::generate()? })
    }
}

fn security(encrypted: bool, key: &PrivateKey) -> Security {
    if encrypted {
        let keys = Keys { peer: key.public(), private: key.clone(), psk: None };
        Security::Noise(keys, Rekey::default())
    } else {
        Security::Insecure
    }
}

/// Does `work` while both ends run, each on its side's core.
fn with_tunnel<T>(
    world: &World,
    security: impl Fn() -> Security,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = [(0, &world.left), (1, &world.right)].map(|(side, namespace)| {
            let (security, stop) = (security(), &stop);
            scope.spawn(move || run_end(side, namespace, &security, stop))
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        for end in ends {
            end.join().map_err(|_| "a tunnel panicked")??;
        }
        result
    })
}

/// Runs an end, also again after RESTART, until STOP.
fn run_end(
    side: u8,
    namespace: &Namespace,
    security: &Security,
    stop: &AtomicBool,
) -> std::result::Result<(), LabError> {
    static EPOCH: AtomicU32 = AtomicU32::new(1);
    namespace.run(|| {
        pin(side);
        while !stop.load(Ordering::Relaxed) {
            let epoch = EPOCH.fetch_add(1, Ordering::Relaxed);
            let settings = Settings { max_frame: 1200, ..Settings::default() };
            let restart = &RESTART[usize::from(side)];
            restart.store(false, Ordering::Release);
            let mut tunnel = open(side, security.clone(), &settings, epoch)?;
            while !stop.load(Ordering::Relaxed) && !restart.load(Ordering::Relaxed) {
                tunnel.step().map_err(|error| failed(&error))?;
            }
        }
        Ok(())
    })
}

/// Asks a side to restart.
static RESTART: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// Bits per second of one TCP from left to right.
fn transfer(world: &World, to: [u8; 4]) -> Result<f64> {
    let to = SocketAddr::from((to, 5001));
    let listener = until(|| world.right.run(|| Ok(TcpListener::bind(to).ok())))?;
    let stream = until(|| {
        world.left.run(|| Ok(TcpStream::connect_timeout(&to, Duration::from_secs(1)).ok()))
    })?;
    let (mut receiver, _) = listener.accept()?;
    receiver.set_read_timeout(Some(Duration::from_secs(5)))?;
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            let (begin, block) = (Instant::now(), vec![0; 1 << 18]);
            let mut stream = stream;
            while begin.elapsed() < SECONDS && stream.write_all(&block).is_ok() {}
        });
        let receiving = scope.spawn(move || -> std::io::Result<f64> {
            pin(1);
            let (mut block, mut bytes) = (vec![0; 1 << 18], 0);
            let mut begin = None;
            loop {
                let length = receiver.read(&mut block)?;
                let since = *begin.get_or_insert_with(Instant::now);
                bytes += length;
                if length == 0 {
                    return Ok(bytes as f64 * 8.0 / since.elapsed().as_secs_f64());
                }
            }
        });
        Ok(receiving.join().map_err(|_| "the receiver panicked")??)
    })
}

/// How long after the beginning of its restart each end carries an echo again.
fn restarts(world: &World) -> Result<Vec<Duration>> {
    let echo = until(|| world.right.run(|| Ok(UdpSocket::bind("10.9.0.2:7").ok())))?;
    let client = world.left.run(|| Ok(UdpSocket::bind("0.0.0.0:0")))??;
    client.set_nonblocking(true)?;
    echo.set_read_timeout(Some(Duration::from_millis(100)))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                    echo.send_to(&buffer[..length], from).ok();
                }
            }
        });
        let mut times = Vec::new();
        let mut run = || -> Result {
            let mut number = 0;
            echoed(&client, &mut number)?;
            for round in 0..RESTARTS {
                let restart = &RESTART[round % 2];
                restart.store(true, Ordering::Relaxed);
                // It falls when the old end has gone.
                while restart.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                times.push(echoed(&client, &mut number)?);
                thread::sleep(Duration::from_millis(300));
            }
            Ok(())
        };
        let result = run();
        stop.store(true, Ordering::Relaxed);
        result.map(|()| times)
    })
}

/// Sends a number every millisecond until one sent since now comes back.
fn echoed(client: &UdpSocket, number: &mut u64) -> Result<Duration> {
    let (begin, first) = (Instant::now(), *number);
    let mut buffer = [0; 8];
    while begin.elapsed() < Duration::from_secs(10) {
        client.send_to(&number.to_be_bytes(), "10.9.0.2:7").ok();
        *number += 1;
        thread::sleep(Duration::from_millis(1));
        while client.recv(&mut buffer).is_ok() {
            if u64::from_be_bytes(buffer) >= first {
                return Ok(begin.elapsed());
            }
        }
    }
    Err("no echo within ten seconds".into())
}

/// Keeps the calling thread on its side's core, where there are two.
fn pin(side: u8) {
    let mut cpus = CpuSet::new();
    if cpus.set(usize::from(side)).is_ok() {
        sched_setaffinity(Pid::from_raw(0), &cpus).ok();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
