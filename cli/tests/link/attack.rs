//! Somebody on the path who repeats, forges and cuts what passes.

use crate::kit::Result;
use crate::stream::transfer;
use crate::world::{RIGHT, World};
use crate::{BYTES, count, ended};
use airmend_proto::random::{Purpose, Stream};
use serde_json::Value;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How many datagrams the attacker has sent of each kind.
#[derive(Default)]
struct Sent {
    replayed: AtomicU64,
    forged: AtomicU64,
    cut: AtomicU64,
}

/// The dialer's peer is a relay that passes everything on and adds its own.
pub(crate) fn attacked() -> Result {
    let (sent, _, figures) = through_relay("tulip", 0.0)?;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    assert!(of(&sent.replayed) > 100 && of(&sent.forged) > 100 && of(&sent.cut) > 100);
    // The relay's datagrams may be lost on the way; none of them may pass.
    for (name, at_most) in
        [("replayed", &sent.replayed), ("forged", &sent.forged), ("truncated", &sent.cut)]
    {
        let counted = count(&figures, name);
        assert!(counted > 0 && counted <= of(at_most), "{name}: {counted} of {}", of(at_most));
    }
    Ok(())
}

/// The relay loses one datagram in twenty each way; TCP need not know.
pub(crate) fn lossy(arq: &'static str) -> Result {
    let (_, sender, receiver) = through_relay(arq, 0.05)?;
    let retransmits = |figures: &Value| figures["agent_counters"]["link_retransmits"].as_u64();
    assert!(retransmits(&sender) > Some(100), "{sender}");
    assert_eq!(count(&receiver, "reordered_too_far"), 0);
    Ok(())
}

/// A stream through the relay: what the attacker sent, and the figures of both ends.
fn through_relay(arq: &'static str, loss: f64) -> Result<(Sent, Value, Value)> {
    let world = World::with(arq)?;
    let listener = world.listen(&format!("{RIGHT}:4433"))?;
    let inside = |address: &'static str| world.left.run(|| Ok(UdpSocket::bind(address)));
    let (near, far) = (inside("127.0.0.1:4433")??, inside("0.0.0.0:0")??);
    world.left.run(|| Ok(far.connect((RIGHT, 4433))))??;
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    }
    let (sent, stop) = (Sent::default(), AtomicBool::new(false));
    let figures = thread::scope(|scope| -> Result<_> {
        scope.spawn(|| relay([&near, &far], loss, &sent, &stop));
        let work = || {
            let dialer = world.dial("127.0.0.1:4433")?;
            transfer(&world, BYTES)?;
            ended(dialer)
        };
        let result = work();
        stop.store(true, Ordering::Relaxed);
        Ok((result?, ended(listener)?))
    })?;
    Ok((sent, figures.0, figures.1))
}

/// Passes datagrams on in both directions, and to the listener some that nobody sent.
fn relay([near, far]: [&UdpSocket; 2], loss: f64, sent: &Sent, stop: &AtomicBool) {
    let mut dialer = None;
    let mut fate = Stream::new(1, 0, 0, Purpose::Loss);
    let (mut buffer, mut back) = ([0; 65_536], [0; 65_536]);
    near.set_nonblocking(true).expect("a socket");
    far.set_nonblocking(true).expect("a socket");
    let mut number = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let mut is_idle = true;
        if let Ok((length, from)) = near.recv_from(&mut buffer) {
            (dialer, is_idle) = (Some(from), false);
            let datagram = &mut buffer[..length];
            if !fate.happens(loss) {
                far.send(datagram).ok();
            }
            // A dialer that has waited long repeats its initiation: that is a replay, too.
            sent.replayed.fetch_add(u64::from(datagram[0] == 1), Ordering::Relaxed);
            number += 1;
            // Handshakes may be answered again, which is counted elsewhere.
            if number.is_multiple_of(10) && datagram[0] == 3 {
                attack(far, datagram, sent);
            }
        }
        if let (Ok(length), Some(dialer)) = (far.recv(&mut back), dialer) {
            is_idle = false;
            if !fate.happens(loss) {
                near.send_to(&back[..length], dialer).ok();
            }
        }
        if is_idle {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

fn attack(far: &UdpSocket, datagram: &mut [u8], sent: &Sent) {
    sent.replayed.fetch_add(1, Ordering::Relaxed);
    far.send(datagram).ok();
    sent.cut.fetch_add(1, Ordering::Relaxed);
    far.send(&datagram[..20]).ok();
    sent.forged.fetch_add(1, Ordering::Relaxed);
    // A counter that has not been used yet, so that the replay window does not see it first.
    datagram[4] ^= 0x01;
    far.send(datagram).ok();
}
