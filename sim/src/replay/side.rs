//! The side from which each packet of a capture came.

use super::capture::{Capture, Crossing, Record};
use super::encapsulation::{Encapsulation, tcp_in};
use super::error::ReplayError;
use super::left_out::{LeftOut, Reason};
use super::open_checksum::closed;
use super::prefix::Prefix;
use super::unread::Unread;
use airmend_proto::wire::flow::{Endpoint, FlowKey};
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet, Port};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The rule that determines the side of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// The interface names of airmend's recordings: `wired` and `air`.
    Recorded,
    /// This interface leads to the air, all others to the wired side.
    AirInterface(String),
    /// These addresses are mobile hosts.
    Mobile(Prefix),
    /// In each connection, the end that receives more payload is taken for the mobile host.
    Payload,
}

impl Sides {
    /// The rule that the content of the capture permits.
    pub fn of(capture: &Capture) -> Self {
        let has_inbound = |name| {
            let inbound = (Some(name), Some(Crossing::Inbound));
            let place = |record| (capture.interface(record), record.crossing);
            capture.records.iter().any(|record| place(record) == inbound)
        };
        let is_directed = capture.records.iter().all(|record| record.crossing.is_some());
        let is_recording = is_directed && has_inbound("wired") && has_inbound("air");
        if is_recording { Self::Recorded } else { Self::Payload }
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.write_str("the sides are those that were recorded"),
            Self::AirInterface(name) => write!(f, "the air is behind the interface {name}"),
            Self::Mobile(prefix) => write!(f, "the mobile hosts are {prefix}"),
            Self::Payload => f.write_str(
                "in each connection the end that receives more payload is taken for the mobile \
                 host (--mobile says better)",
            ),
        }
    }
}

/// One step of a replay.
#[derive(Clone, Debug)]
pub enum Step {
    /// A host's packet arrived at the agent.
    Enters(Instant, Port, Packet),
    /// A copy of a host's packet, which had departed already, reached the recorded agent.
    Copied(Instant, Port, Packet),
    /// The recorded agent sent a packet.
    Leaves(Instant, Port, Packet),
    /// A packet that the recorded agent had sent departed from a queue of the kernel.
    Departed(Instant, Port, Packet),
    /// The recorded agent's timers ran.
    TimersRan(Instant),
}

/// A capture as an agent at its place sees it.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The packets of the capture that are in none of them, and those whose headers were cut.
    pub left_out: LeftOut,
    /// The packets that were read in another protocol, by protocol.
    pub within: BTreeMap<Encapsulation, u64>,
    /// The segments whose checksum the network card had not filled in; they count as right.
    pub open_checksums: u64,
}

/// The steps at the position of the agent.
pub fn steps(capture: &Capture, sides: &Sides) -> Result<Steps, ReplayError> {
    if !capture.records.iter().any(|record| tcp_in(&record.packet).is_ok()) {
        return Err(ReplayError::NoTcp { left_out: by_address(capture, |_| None).left_out });
    }
    match sides {
        Sides::Recorded => by_interface(capture, "air", true),
        Sides::AirInterface(name) => by_interface(capture, name, false),
        Sides::Mobile(prefix) => {
            let mobile = |end: Endpoint| prefix.contains(end.ip());
            let steps = by_address(capture, |segment| {
                if mobile(segment.source) {
                    Some(Port::Air)
                } else {
                    mobile(segment.destination).then_some(Port::Wired)
                }
            });
            if steps.steps.is_empty() { Err(ReplayError::NoMobile(*prefix)) } else { Ok(steps) }
        }
        Sides::Payload => {
            let mobiles = receivers(capture);
            Ok(by_address(capture, |segment| {
                let mobile = mobiles.get(&connection(segment))?;
                Some(if *mobile == segment.source { Port::Air } else { Port::Wired })
            }))
        }
    }
}

/// Determines sides by interfaces. Where only the air was captured, outgoing packets came from the
/// wired side. What the recorded agent saw stays as it is.
fn by_interface(capture: &Capture, air: &str, is_recorded: bool) -> Result<Steps, ReplayError> {
    if !capture.interfaces.iter().any(|interface| interface.name.as_deref() == Some(air)) {
        return Err(ReplayError::NoInterface { name: air.to_owned(), known: names(capture) });
    }
    let is_air = |record: &Record| capture.interface(record) == Some(air);
    let is_only_air = capture.records.iter().all(is_air);
    let mut steps = Vec::with_capacity(capture.records.len());
    let (mut left_out, mut within) = (capture.left_out.clone(), BTreeMap::new());
    let mut open_checksums = 0;
    for record in &capture.records {
        let Record { at, ref packet, .. } = *record;
        let read = if is_recorded { Ok((packet.clone(), None)) } else { tcp_in(packet) };
        if let Err((outer, Unread::Truncated)) = read {
            left_out.count(Reason::Unread(outer, Unread::Truncated));
        }
        let (packet, outer) = read.unwrap_or_else(|_| (packet.clone(), None));
        count_within(&mut within, outer);
        let (packet, is_open) = if is_recorded { (packet, false) } else { closed(packet) };
        open_checksums += u64::from(is_open);
        let side = if is_air(record) { Port::Air } else { Port::Wired };
        for &before in &record.timers {
            let nanos = u64::try_from(before.as_nanos()).unwrap_or(u64::MAX);
            steps.push(Step::TimersRan(Instant::from_nanos(at.as_nanos().saturating_sub(nanos))));
        }
        steps.push(match record.crossing.ok_or(ReplayError::NoDirection)? {
            Crossing::Inbound if record.is_copy => Step::Copied(at, side, packet.clone()),
            Crossing::Inbound => Step::Enters(at, side, packet.clone()),
            Crossing::Outbound if record.is_departure => Step::Departed(at, side, packet.clone()),
            Crossing::Outbound if is_only_air => Step::Enters(at, Port::Wired, packet.clone()),
            Crossing::Outbound => Step::Leaves(at, side, packet.clone()),
        });
    }
    Ok(Steps { steps, left_out, within, open_checksums })
}

/// The names of all interfaces, each once.
fn names(capture: &Capture) -> String {
    let mut names: Vec<_> = capture.interfaces.iter().map(|i| i.name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| name.unwrap_or("one unnamed")).collect::<Vec<_>>().join(", ")
}

/// Determines sides by addresses; packets without one are left out. A machine that forwards may
/// have captured a packet twice: each direction of a connection is taken from the interface on
/// which it was first seen.
fn by_address(capture: &Capture, side: impl Fn(&Segment) -> Option<Port>) -> Steps {
    let mut first_seen = FirstSeen::new();
    let mut steps = Steps { left_out: capture.left_out.clone(), ..Steps::default() };
    for record in &capture.records {
        match taken(record, &mut first_seen, &side) {
            Ok((from, packet, outer)) => {
                count_within(&mut steps.within, outer);
                let (packet, is_open) = closed(packet);
                steps.open_checksums += u64::from(is_open);
                steps.steps.push(Step::Enters(record.at, from, packet));
            }
            Err(reason) => steps.left_out.count(reason),
        }
    }
    steps
}

/// Where each direction of a connection was first seen: the interface, the way through it, and what
/// the packets were in.
type FirstSeen = HashMap<(Endpoint, Endpoint), (usize, Option<Crossing>, Option<Encapsulation>)>;

/// The side from which a packet came, and the packet as it is read.
fn taken(
    record: &Record,
    first_seen: &mut FirstSeen,
    side: impl Fn(&Segment) -> Option<Port>,
) -> Result<(Port, Packet, Option<Encapsulation>), Reason> {
    let unread = |(outer, unread)| Reason::Unread(outer, unread);
    let (packet, outer) = tcp_in(&record.packet).map_err(unread)?;
    let segment = Segment::parse(&packet).map_err(|error| unread((outer, error.into())))?;
    let from = side(&segment).ok_or(Reason::OtherHosts)?;
    let place = (record.interface, record.crossing, outer);
    let ends = (segment.source, segment.destination);
    let is_first = *first_seen.entry(ends).or_insert(place) == place;
    if is_first { Ok((from, packet, outer)) } else { Err(Reason::Again) }
}

fn count_within(within: &mut BTreeMap<Encapsulation, u64>, outer: Option<Encapsulation>) {
    if let Some(outer) = outer {
        *within.entry(outer).or_default() += 1;
    }
}

/// A connection regardless of direction: the lower end is in the place of the wired one.
fn connection(segment: &Segment) -> FlowKey {
    let order = |end: Endpoint| (end.address, end.port);
    let is_ordered = order(segment.source) <= order(segment.destination);
    FlowKey::of(segment, if is_ordered { Port::Wired } else { Port::Air })
}

/// The end of each connection that receives more payload; without payload, the end that sent the
/// first packet.
fn receivers(capture: &Capture) -> HashMap<FlowKey, Endpoint> {
    // The bytes that the lower end received less those that it sent; and the end that sent the
    // first packet.
    let mut balances: HashMap<FlowKey, (i64, Endpoint)> = HashMap::new();
    for record in &capture.records {
        let Ok((packet, _)) = tcp_in(&record.packet) else { continue };
        let Ok(segment) = Segment::parse(&packet) else { continue };
        let key = connection(&segment);
        let (balance, _) = balances.entry(key).or_insert((0, segment.source));
        let payload = i64::from(segment.payload_len);
        *balance += if segment.destination == key.wired { payload } else { -payload };
    }
    let receiver = |(key, (balance, first)): (FlowKey, (i64, Endpoint))| match balance {
        0 => (key, first),
        1.. => (key, key.wired),
        _ => (key, key.air),
    };
    balances.into_iter().map(receiver).collect()
}
