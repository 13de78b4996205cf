//! Whatever arrives from the link, in whatever order and at whatever time: memory stays within its
//! limits, timers make progress, and what leaves towards the network layer had arrived, or was
//! recovered from what the other end says are combinations of packets.

use super::kit::{Frame, QUEUES, Settings, Station};
use airmend_proto::EgressLimits;
use airmend_proto::agents::Limits;
use airmend_proto::{Agent, Instant, LinkSignal, LinkType, Packet, Port};
use std::time::Duration;

pub(crate) const LIMITS: Limits =
    Limits { flows: 1, cache_bytes: 2_000, egress: EgressLimits { air: 5, wired: 5 } };

/// One thing that happens to an end.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Wait(Duration),
    Frame(Frame),
    Bytes(Vec<u8>),
    Packet(Packet),
    Signal(LinkSignal),
    /// A frame arrives damaged, with so many of its bytes.
    Damaged(Frame, usize),
    /// The link takes so many frames, the network layer so many packets.
    Take(usize, usize),
}

/// What may leave towards the network layer.
#[derive(Default)]
struct Known {
    arrived: Vec<Packet>,
    /// Packets that were recovered, of which only the other end knows what is in them.
    recovered: usize,
}

impl Known {
    fn take_events(&mut self, agent: &mut Station) {
        let events = core::iter::from_fn(|| agent.poll_event());
        self.recovered += events.filter(|event| event.counter() == "link_recovered").count();
    }

    fn releases(&mut self, packet: &Packet) -> bool {
        let is_known = self.arrived.contains(packet);
        let is_recovered = !is_known && self.recovered > 0;
        self.recovered -= usize::from(is_recovered);
        is_known || is_recovered
    }
}

/// Plays the steps against an end in epoch 1; the error is a sentence.
pub(crate) fn play(settings: &Settings, steps: &[Step]) -> Result<(), String> {
    let mut agent = Station::new(LIMITS, settings.clone(), 1);
    let mut now = Instant::ZERO;
    let mut known = Known::default();
    for step in steps {
        match step {
            Step::Wait(time) => {
                let end = now + *time;
                // An end that is not answered probes for ever, but not for nothing.
                for _ in 0..100 {
                    let Some(due) = agent.poll_timeout().filter(|due| due.at <= end) else { break };
                    now = now.max(due.at);
                    agent.handle_timeout(now);
                    if agent.poll_timeout().is_some_and(|next| next.at <= now) {
                        return Err(format!("`{}` is due again at once", due.why));
                    }
                    take(&mut agent, now, 10, 0, &mut known)?;
                }
                now = end;
                agent.handle_timeout(now);
            }
            Step::Frame(frame) => {
                known.arrived.extend(frame.payload.clone());
                agent.handle_packet(now, Port::Air, &frame.emit());
            }
            Step::Bytes(bytes) => {
                let packet = Packet::new(LinkType::Frame, bytes.clone().into());
                let frame = Frame::parse(&packet).ok();
                known.arrived.extend(frame.and_then(|frame| frame.payload));
                agent.handle_packet(now, Port::Air, &packet);
            }
            Step::Packet(packet) => {
                agent.handle_packet(now, Port::Wired, packet);
            }
            Step::Signal(signal) => agent.handle_link(now, *signal),
            Step::Damaged(frame, intact) => {
                let frame = frame.emit();
                let bytes = frame.shared_bytes().slice(..frame.bytes().len().min(*intact));
                let frame = Packet::truncated(LinkType::Frame, bytes, frame.wire_len());
                agent.handle_damaged(now, &frame);
            }
            Step::Take(frames, packets) => take(&mut agent, now, *frames, *packets, &mut known)?,
        }
        // What packets are recovered from may take an eighth as much (`DECODER_SHARE`). One packet
        // may be in hand when the limit is reached.
        let held = agent.held_bytes();
        if held > LIMITS.cache_bytes * 9 / 8 + 1_500 {
            return Err(format!("{held} bytes are held"));
        }
        let (queued, _) = agent.backlog();
        // Each queue is bounded, and what the window spans takes none of the places of the normal
        // class. After a restart a window of packets goes before them again.
        let window = settings.window as usize;
        if queued > QUEUES * LIMITS.egress.air + 2 * window {
            return Err(format!("{queued} packets wait"));
        }
        known.take_events(&mut agent);
    }
    take(&mut agent, now, 10_000, 10_000, &mut known)
}

fn take(
    agent: &mut Station,
    now: Instant,
    frames: usize,
    packets: usize,
    known: &mut Known,
) -> Result<(), String> {
    for _ in 0..frames {
        let Some(frame) = agent.poll_transmit(now, Port::Air) else { break };
        Frame::parse(&frame)
            .map_err(|why| format!("sent a frame that is refused: {}", why.sentence()))?;
    }
    if frames >= 10_000 && agent.poll_transmit(now, Port::Air).is_some() {
        return Err("it sends without end".into());
    }
    for _ in 0..packets {
        let Some(packet) = agent.poll_transmit(now, Port::Wired) else { break };
        if !known.releases(&packet) {
            return Err(format!("released what never arrived: {packet:?}"));
        }
    }
    Ok(())
}
