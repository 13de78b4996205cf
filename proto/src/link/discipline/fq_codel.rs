//! FQ-CoDel (RFC 8290): a queue with CoDel for each flow, and turns of as many bytes.

use super::codel::Dropping;
use super::queue::{Discipline, Drops, Packets, Waiting};
use crate::codel::{CoDelParams, Control};
use crate::drr::{Turn, Turns};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::ip::Network;
use alloc::vec::Vec;

/// The number of queues (RFC 8290 §5.2.4).
const QUEUES: usize = 1024;

/// The queues of all flows, with a common limit in packets.
pub(super) struct FqCoDel {
    limit: usize,
    params: CoDelParams,
    /// What makes the hash of flows differ from run to run.
    perturbation: u64,
    queues: Vec<Flow>,
    turns: Turns,
    /// Packets of all queues.
    len: usize,
}

struct Flow {
    packets: Packets,
    control: Control,
    turn: Turn,
}

impl FqCoDel {
    pub(super) fn new(limit: usize, params: CoDelParams, perturbation: u64) -> Self {
        let flow = || Flow {
            packets: Packets::default(),
            control: Control::default(),
            turn: Turn::default(),
        };
        let queues = core::iter::repeat_with(flow).take(QUEUES).collect();
        Self { limit, params, perturbation, queues, turns: Turns::default(), len: 0 }
    }

    /// Drops the first packet of the queue with the most bytes; which queue that was.
    fn drop_from_fattest(&mut self, drops: &mut Drops) -> Option<usize> {
        let (number, fattest) =
            self.queues.iter_mut().enumerate().max_by_key(|(_, flow)| flow.packets.bytes())?;
        drops.add(&fattest.packets.pop()?);
        self.len -= 1;
        Some(number)
    }
}

impl Discipline for FqCoDel {
    fn enqueue(&mut self, waiting: Waiting, drops: &mut Drops) -> bool {
        let number = (flow_hash(&waiting.packet, self.perturbation) % QUEUES as u64) as usize;
        let flow = &mut self.queues[number];
        flow.packets.push(waiting);
        self.len += 1;
        self.turns.join(number, &mut flow.turn);
        if self.len <= self.limit {
            return true;
        }
        // Of the packets of its own queue it is the last, so it is dropped only if it is alone.
        let fattest = self.drop_from_fattest(drops);
        fattest != Some(number) || self.queues[number].packets.len() > 0
    }

    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Option<Waiting> {
        loop {
            let number = self.turns.next(&mut self.queues, |flow| &mut flow.turn, |_| true)?;
            let flow = &mut self.queues[number];
            let before = flow.packets.len();
            let mut queue = Dropping { packets: &mut flow.packets, drops };
            let next = flow.control.dequeue(now, self.params, &mut queue);
            self.len -= before - flow.packets.len();
            if let Some(waiting) = next {
                flow.turn.spend(waiting.packet.wire_len());
                return Some(waiting);
            }
            self.turns.leave(number, &mut flow.turn);
        }
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A hash of addresses, protocol and ports; of what has none, one for all.
fn flow_hash(packet: &Packet, perturbation: u64) -> u64 {
    let Ok(network) = Network::walk(packet) else { return 0 };
    let at = usize::from(network.transport_offset);
    let ports = match network.is_fragment {
        true => &[],
        false => packet.bytes().get(at..at + 4).unwrap_or_default(),
    };
    let tuple = network.source.iter().chain(&network.destination).chain([&network.protocol]);
    // FNV-1a; its high bits are the better ones.
    let hash = tuple.chain(ports).fold(0xcbf2_9ce4_8422_2325 ^ perturbation, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 32
}
