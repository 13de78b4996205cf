//! A tunnel between two namespaces, both ends in this process. Where the kernel gives this user no
//! network namespaces or no TUN device, every test is ignored.
//! `cli/tests/link` tries two processes.

mod tunnel_kit;

use airmend_live::lab::{LabError, Namespace, enter_user_namespace};
use airmend_live::tunnel::{Keys, PrivateKey, Rekey, Security, TunnelReport};
use airmend_proto::agents::tulip::Settings;
use airmend_testkit::{Result, Suite, has_steady_clock};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tunnel_kit::{failed, open, two_hosts, until};

const PATIENCE: Duration = Duration::from_secs(60);
const BYTES: usize = 20_000_000;

/// A harness of its own, since a user namespace can only be entered before there are threads.
fn main() -> ExitCode {
    let entered = enter_user_namespace().map_err(|error| error.to_string());
    let device = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let can_run = entered.and(device.map(drop).map_err(|error| format!("/dev/net/tun: {error}")));
    let test: fn() -> Result = keys_change_in_mid_stream;
    Suite::default()
        .tests(can_run.err().as_deref(), [("keys_change_in_mid_stream", test)])
        .run(None)
}

/// Many times, by bytes, while a stream goes on; each byte arrives once and in order. How often
/// depends on how much is under way during a handshake.
fn keys_change_in_mid_stream() -> Result {
    let [left, right] = two_hosts()?;
    let private = PrivateKey::generate()?;
    let keys = Keys { peer: private.public(), private, psk: None };
    let rekey = Rekey { after_bytes: 1_000_000, ..Rekey::default() };
    let stop = AtomicBool::new(false);
    let reports = thread::scope(|scope| -> Result<_> {
        let ends = [(0, &left), (1, &right)].map(|(side, namespace)| {
            let security = Security::Noise(keys.clone(), rekey);
            let stop = &stop;
            scope.spawn(move || run_end(side, namespace, security, stop))
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
        // An answer that is late is asked for again, and the second one counts as replayed.
        let replayed = if has_steady_clock() { counters.replayed } else { 0 };
        assert_eq!((counters.forged, replayed), (0, 0), "{counters:?}");
    }
    Ok(())
}

fn run_end(
    side: u8,
    namespace: &Namespace,
    security: Security,
    stop: &AtomicBool,
) -> std::result::Result<TunnelReport, LabError> {
    namespace.run(|| {
        let mut tunnel = open(side, security, &Settings::default(), 1)?;
        while !stop.load(Ordering::Relaxed) {
            tunnel.step().map_err(|error| failed(&error))?;
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
