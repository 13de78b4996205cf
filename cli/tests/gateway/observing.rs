//! With `--observe`: what passes is, byte for byte, what would pass without.

use crate::daemon::{Daemon, repairs};
use crate::kit::Result;
use crate::kit::raw::open_end;
use crate::transfer::{Plan, transfer};
use crate::world::{Shape, World};
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{LinkType, Packet};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{LinkAddr, recvfrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// `PACKET_OUTGOING` of packet(7).
const OUTGOING: u8 = 4;

/// TCP segments, from their first byte of TCP on, in their order: those that came in through an
/// interface and those that left there.
#[derive(Debug, Default)]
struct Seen {
    came: Vec<Vec<u8>>,
    left: Vec<Vec<u8>>,
}

/// Every segment that comes leaves once, unchanged and in its order, and none is added; only the
/// queue towards the air may drop some, since it is as short as without a gateway.
pub(crate) fn observing() -> Result {
    let world = World::new(Shape::default())?;
    let open = |interface: &str| -> Result<OwnedFd> {
        Ok(world.base.run(|| Ok(open_end(interface).map_err(|error| error.to_string())))??)
    };
    let (air, wired) = (open("air0")?, open("wired0")?);
    let daemon = Daemon::start(&world.base, "air0", &["--observe"])?;
    let stop = AtomicBool::new(false);
    let (air, wired) = thread::scope(|scope| {
        let air = scope.spawn(|| listen(&air, &stop));
        let wired = scope.spawn(|| listen(&wired, &stop));
        let transferred = transfer(&world, &Plan::equal(4, 400_000), |_| Ok(()));
        stop.store(true, Ordering::Relaxed);
        transferred.map(|_| (air.join(), wired.join()))
    })?;
    let (Ok(air), Ok(wired)) = (air, wired) else { return Err("a listener panicked".into()) };
    println!("{} segments towards the mobile, {} from it", air.left.len(), wired.left.len());
    assert!(air.left.len() > 1_000 && wired.left.len() > 500, "they were seen");
    assert!(air.came == wired.left, "from the mobile, all of it and nothing else");
    let mut came = wired.came.iter();
    assert!(air.left.iter().all(|left| came.any(|came| came == left)), "towards the mobile");

    let final_status = daemon.end()?;
    let observed = &final_status["observation"];
    let (_, lost) = world.cables.carried(crate::world::AIR);
    println!("the air lost {lost}: {observed}");
    assert_eq!(repairs(&final_status), 0);
    let acks = ["acks_judged", "acks_returned", "repairs"]
        .map(|path| final_status["packets"][path].as_u64());
    assert_eq!(acks, [Some(0); 3]);
    assert_eq!(observed["flows_seen"], 4);
    let losses = observed["air_losses"].as_u64().ok_or("no losses")?;
    assert!(losses > 20 && losses.abs_diff(lost) <= lost / 5, "{losses} of {lost}");
    // How right the estimate is, the laboratory shows; here it must be possible.
    let [now, mended, air] = ["goodput_bps", "estimate_bps", "capacity_bps"]
        .map(|figure| observed[figure].as_f64().unwrap_or(f64::NAN));
    assert!(now <= mended && mended <= air, "{now} {mended} {air}");
    Ok(())
}

/// Collects what crosses until it is stopped and nothing more comes.
fn listen(end: &OwnedFd, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut frame = vec![0; 1 << 16];
    loop {
        let mut waited = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        let is_idle = poll(&mut waited, PollTimeout::from(200u8)).is_ok_and(|ready| ready == 0);
        if is_idle && stop.load(Ordering::Relaxed) {
            return seen;
        }
        let Ok((length, from)) = recvfrom::<LinkAddr>(end.as_raw_fd(), &mut frame) else {
            continue;
        };
        let packet = Packet::new(LinkType::Ethernet, frame[..length].to_vec().into());
        let Ok(segment) = Segment::parse(&packet) else { continue };
        let end = usize::from(segment.payload_offset) + segment.payload_len as usize;
        let bytes = packet.bytes()[usize::from(segment.transport_offset)..end].to_vec();
        match from.is_some_and(|from| from.pkttype() == OUTGOING) {
            true => seen.left.push(bytes),
            false => seen.came.push(bytes),
        }
    }
}
