//! Sets up the queueing discipline of the air interface with `tc`.

use super::interface::AIR;
use super::iproute::tc;
use crate::lab::config::{AirQueue, Hop, MTU};
use crate::lab::error::LabError;
use std::fmt::Write as _;

/// The class for repairs, as a priority (`SO_PRIORITY`) and as `tc` write it.
const FAST_CLASS: &str = "1:1";
/// The class of everything else.
const CLASS: &str = "1:2";
/// Frames are counted without Ethernet's header: a frame of the laboratory's air is an IP packet.
const HEADER: &str = "stab overhead -14";

/// The priority of repairs that the gateway must be given; `None` where the gateway's
/// own choice is right.
pub(crate) fn priority(queue: AirQueue) -> Option<&'static str> {
    (queue == AirQueue::FastBand).then_some(FAST_CLASS)
}

/// Sets it up in the calling thread's network namespace; see `commands`.
pub(super) fn set_up(queue: AirQueue, hop: Hop, frames: usize) -> Result<(), LabError> {
    tc(&commands(queue, hop, frames)).map_err(|error| match error {
        // The others are of modules that a kernel may lack.
        LabError::Interfaces(said) if !matches!(queue, AirQueue::FastBand | AirQueue::Fifo) => {
            LabError::AirQueue { queue: queue.name(), said }
        }
        error => error,
    })
}

/// Commands for `tc -batch`: a queue of at most `frames` where it has a limit of its own kind,
/// and the kernel's default for those that manage their delay.
fn commands(queue: AirQueue, hop: Hop, frames: usize) -> String {
    let Hop { rate_bps, .. } = hop;
    let bucket = bucket(hop);
    match queue {
        AirQueue::FastBand => {
            let fifo = format!("pfifo limit {frames}");
            htb(hop, &[(FAST_CLASS, &fifo), (CLASS, &fifo)])
        }
        AirQueue::Fifo => htb(hop, &[(CLASS, &format!("pfifo limit {frames}"))]),
        AirQueue::Codel => htb(hop, &[(CLASS, "codel")]),
        AirQueue::FqCodel => htb(hop, &[(CLASS, "fq_codel")]),
        AirQueue::Prio => {
            let mut text = htb(hop, &[(CLASS, "handle 2: prio")]);
            for band in 1..=3 {
                let _ = writeln!(text, "qdisc add dev {AIR} parent 2:{band} pfifo limit {frames}");
            }
            text
        }
        AirQueue::Tbf => {
            let limit = frames * (MTU as usize + 14);
            format!(
                "qdisc add dev {AIR} root {HEADER} tbf rate {rate_bps} burst {bucket} \
                 limit {limit}\n"
            )
        }
        AirQueue::Netem => {
            format!("qdisc add dev {AIR} root netem rate {rate_bps} -14 limit {frames}\n")
        }
        // With any overhead given, it counts from the network header on.
        AirQueue::Cake => {
            format!("qdisc add dev {AIR} root cake bandwidth {rate_bps}bit overhead 0 noatm\n")
        }
    }
}

/// HTB at the air's rate with these classes, the first of which goes first, each with its queue;
/// the last one is everybody's.
///
/// - HTB picks the class whose handle is the packet's priority, or else the default.
/// - The classes may borrow all of the parent's rate and have next to none of their own: whenever
///   the parent may send, the first in priority does.
fn htb(hop: Hop, classes: &[(&str, &str)]) -> String {
    let bucket = bucket(hop);
    let Hop { rate_bps, .. } = hop;
    let class = format!("htb ceil {rate_bps} burst {bucket} cburst {bucket} quantum {MTU}");
    let mut commands = format!(
        "qdisc add dev {AIR} root handle 1: {HEADER} htb default 2\n\
         class add dev {AIR} parent 1: classid 1:3 {class} rate {rate_bps}\n",
    );
    for (prio, (id, queue)) in classes.iter().enumerate() {
        let _ = writeln!(
            commands,
            "class add dev {AIR} parent 1:3 classid {id} {class} rate 8 prio {prio}\n\
             qdisc add dev {AIR} parent {id} {queue}",
        );
    }
    commands
}

/// Bytes that may leave ahead of time: as much as a radio of the in-line path is handed ahead, so
/// that a late timer leaves no gap on the air. A bucket of one frame lets two go back to back.
fn bucket(hop: Hop) -> u64 {
    let ahead = hop.rate_bps as f64 * hop.lookahead().as_secs_f64() / 8.0;
    (ahead as u64).saturating_sub(u64::from(MTU)).max(u64::from(MTU))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_bucket_holds_what_a_link_is_handed_ahead() {
        let bucket = |rate_bps| bucket(Hop { rate_bps, delay: Duration::ZERO });
        // Two frames, of which HTB lets the second go for nothing; or a millisecond.
        assert_eq!(bucket(1_000_000), 1_500);
        assert_eq!(bucket(20_000_000), 1_500);
        assert_eq!(bucket(100_000_000), 11_000);
    }

    #[test]
    fn every_queue_sends_at_the_rate_of_the_air() {
        let hop = Hop { rate_bps: 7_654_321, delay: Duration::ZERO };
        for &queue in AirQueue::ALL {
            let commands = commands(queue, hop, 77);
            assert!(commands.contains(" 7654321"), "{commands}");
            let classes = commands.matches("class add").count();
            let is_htb = commands.contains("htb");
            assert_eq!(
                classes,
                if is_htb { 2 + usize::from(priority(queue).is_some()) } else { 0 }
            );
            assert!(commands.lines().all(|line| line.contains("dev air0")), "{commands}");
        }
    }
}
