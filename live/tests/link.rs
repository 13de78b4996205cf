//! A tunnel between two namespaces, both ends in this process. Where the kernel gives this user no
//! network namespaces or no TUN device, each test says that it is skipped, and why.
//! `cli/tests/link` tries two processes.

use airmend_live::lab::{LabError, Namespace, enter_user_namespace};
use airmend_live::tunnel::{
    CarrierConfig, Keys, PrivateKey, Rekey, Security, Tunnel, TunnelConfig, TunnelReport,
};
use airmend_proto::agents::Limits;
use airmend_proto::agents::tulip::{PROTOCOL, Settings, Tulip};
use libtest_mimic::{Arguments, Trial};
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(60);
const BYTES: usize = 20_000_000;

/// A harness of its own, since a user namespace can only be entered before there are threads.
fn main() -> ExitCode {
    let entered = enter_user_namespace().map_err(|error| error.to_string());
    let device = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let can_run = entered.and(device.map(drop).map_err(|error| format!("/dev/net/tun: {error}")));
    let test = Trial::test("keys_change_in_mid_stream", move || match can_run {
        Err(reason) => {
            println!("skipped: {reason}");
            Ok(())
        }
        Ok(()) => keys_change_in_mid_stream().map_err(|error| error.to_string().into()),
    });
    libtest_mimic::run(&Arguments::from_args(), vec![test]).exit_code()
}

/// Many times, by bytes, while a stream goes on; each byte arrives once and in order. How often
/// depends on how much is under way during a handshake.
fn keys_change_in_mid_stream() -> Result {
    let (left, right) = (Namespace::new()?, Namespace::new()?);
    left.ip(&format!(
        "link add eth0 type veth peer name eth0 netns {}\n\
         link set eth0 up\naddress add 192.0.2.1/24 dev eth0\n",
        right.path().display()
    ))?;
    right.ip("link set eth0 up\naddress add 192.0.2.2/24 dev eth0\n")?;
    let private = PrivateKey::generate()?;
    let keys = Keys { peer: private.public(), private };
    let rekey = Rekey { after_bytes: 1_000_000, ..Rekey::default() };
    let stop = AtomicBool::new(false);
    let reports = thread::scope(|scope| -> Result<_> {
        let ends = [(0, &left), (1, &right)].map(|(side, namespace)| {
            let config = config(side, Security::Noise(keys.clone(), rekey));
            let stop = &stop;
            scope.spawn(move || run_end(namespace, &config, stop))
        });
        let result = stream(&left, &right);
        stop.store(true, Ordering::Relaxed);
        let [left, right] = ends.map(|end| end.join().expect("no panic"));
        result?;
        Ok([left?, right?])
    })?;
    for report in &reports {
        let counters = &report.counters;
        assert!(counters.sessions >= 5, "{counters:?}");
        assert_eq!((counters.forged, counters.replayed), (0, 0), "{counters:?}");
    }
    Ok(())
}

fn config(side: u8, security: Security) -> TunnelConfig {
    let listener = SocketAddr::from(([192, 0, 2, 2], 4433));
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let (local, peer) = if side == 0 { (any, Some(listener)) } else { (listener, None) };
    TunnelConfig {
        device: "mend0".to_owned(),
        addresses: vec![([10, 9, 0, side + 1].into(), 24)],
        mtu: None,
        carrier: CarrierConfig::Udp { local, peer },
        security,
    }
}

fn run_end(
    namespace: &Namespace,
    config: &TunnelConfig,
    stop: &AtomicBool,
) -> std::result::Result<TunnelReport, LabError> {
    namespace.run(|| {
        let failed =
            |error: airmend_live::tunnel::TunnelError| LabError::Interfaces(error.to_string());
        let agent = Tulip::new(Limits::default(), Settings::default(), 1);
        let mut tunnel = Tunnel::open(config, Box::new(agent), Some(&PROTOCOL)).map_err(failed)?;
        while !stop.load(Ordering::Relaxed) {
            tunnel.step().map_err(failed)?;
        }
        Ok(tunnel.report())
    })
}

fn stream(left: &Namespace, right: &Namespace) -> Result {
    let to = SocketAddr::from(([10, 9, 0, 2], 5001));
    let listener = until(|| right.run(|| Ok(TcpListener::bind(to).ok())))?;
    let mut sender =
        until(|| left.run(|| Ok(TcpStream::connect_timeout(&to, Duration::from_secs(1)).ok())))?;
    let (mut receiver, _) = listener.accept()?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    sender.set_write_timeout(Some(PATIENCE))?;
    let bytes: Vec<u8> = (0..BYTES as u64)
        .map(|offset| (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect();
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            sender.write_all(&bytes).and_then(|()| sender.shutdown(std::net::Shutdown::Write))
        });
        let mut received = Vec::new();
        receiver.read_to_end(&mut received)?;
        sending.join().expect("no panic")?;
        assert!(received == bytes, "{} bytes, not all of them right", received.len());
        Ok(())
    })
}

/// Tries for as long as the patience lasts: addresses and peers come up in their own time.
fn until<T>(mut attempt: impl FnMut() -> std::result::Result<Option<T>, LabError>) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err("the tunnel does not come up".into())
}
