//! The contexts of both ends: headers that the other end is known to hold, to which the headers of
//! later packets are written as differences.
//!
//! A frame may say that its packet becomes a context. The sender uses it only once a report has
//! shown that the frame arrived, so every packet is read whatever was lost before it, and in
//! whatever order frames arrive.

use super::headers::Headers;
use super::layout::Layout;
use crate::agents::tulip::frame::Ack;
use crate::packet::Packet;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;

/// Contexts at most: their numbers are one byte long, and the oldest one makes room.
const CONTEXTS: usize = 256;
/// Flows that have contexts; one that is new takes the place of another one.
const FLOWS: usize = 128;
/// Packets after which a flow gets a new context, since differences grow: of those without payload,
/// which are as short as their differences, and of the others.
const REFRESH: [u32; 2] = [16, 256];

/// The contexts of the sender.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    contexts: Vec<Option<Context>>,
    /// The number of the next context.
    next: u8,
    flows: Vec<Flow>,
    hasher: FixedState,
    /// Contexts of whose arrival nothing is known: serial number and context.
    pending: VecDeque<(SeqNumber, u8)>,
}

#[derive(Clone, Debug)]
struct Context {
    headers: Headers,
    flow: u8,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    /// The context that the other end holds.
    usable: Option<u8>,
    pending: Option<u8>,
    /// Packets since the usable context was made.
    packets: u32,
}

/// How the headers of a packet cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// The context of the differences; `None` for whole headers.
    pub(super) by: Option<u8>,
    /// The context that the packet becomes.
    pub(super) becomes: Option<u8>,
    /// The length of the headers that cross as differences.
    pub(super) headers_len: usize,
}

impl Sender {
    pub(super) fn new(hash_seed: u64) -> Self {
        Self {
            contexts: vec![None; CONTEXTS],
            hasher: FixedState::with_seed(hash_seed),
            next: 0,
            flows: vec![Flow::default(); FLOWS],
            pending: VecDeque::new(),
        }
    }

    /// Appends what stands for the headers of a packet to `out`, in the form that is returned;
    /// `serial` is the number of its transmission.
    pub(super) fn write(&mut self, serial: SeqNumber, packet: &Packet, out: &mut Vec<u8>) -> Form {
        let Some(layout) = Layout::of(packet).filter(|layout| is_lasting(*layout, packet)) else {
            return Form::default();
        };
        let hash = self.hasher.hash_one(layout.flow(packet.bytes()));
        let place = hash as usize % FLOWS;
        let headers = Headers::new(packet, layout);
        let wire_len = packet.wire_len() as usize;
        let begin = out.len();
        let mut form = Form::default();
        let usable = self.flows[place].usable;
        let context = usable.and_then(|number| Some((number, self.context(number)?)));
        if let Some((number, Context { headers: old, .. })) = context {
            out.push(number);
            if old.write(&headers, wire_len, out) {
                form = Form { by: Some(number), headers_len: layout.len, ..form };
                debug_assert!(old.reads(&out[begin + 1..], wire_len - layout.len, &headers));
            } else {
                out.truncate(begin);
            }
        }
        let flow = &mut self.flows[place];
        flow.packets += 1;
        let is_old = flow.packets > REFRESH[usize::from(wire_len > layout.len)];
        if flow.pending.is_none() && (form.by.is_none() || is_old) {
            let number = self.make(serial, place, headers);
            form.becomes = Some(number);
            out.insert(begin, number);
        }
        form
    }

    /// A report of the other end.
    pub(super) fn acknowledge(&mut self, ack: &Ack) {
        let mut waiting = core::mem::take(&mut self.pending);
        waiting.retain(|(serial, number)| {
            if *serial > ack.highest_serial {
                return true;
            }
            let has_arrived = ack.has_arrived(*serial) == Some(true);
            self.settle(*number, has_arrived);
            false
        });
        self.pending = waiting;
    }

    fn context(&self, number: u8) -> Option<&Context> {
        self.contexts[usize::from(number)].as_ref()
    }

    /// Makes a context in the place of the oldest one.
    fn make(&mut self, serial: SeqNumber, place: usize, headers: Headers) -> u8 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        if let Some(old) = self.contexts[usize::from(number)].take() {
            let flow = &mut self.flows[usize::from(old.flow)];
            flow.usable.take_if(|usable| *usable == number);
            flow.pending.take_if(|pending| *pending == number);
            self.pending.retain(|(_, pending)| *pending != number);
        }
        self.contexts[usize::from(number)] = Some(Context { headers, flow: place as u8 });
        self.flows[place].pending = Some(number);
        self.pending.push_back((serial, number));
        number
    }

    /// The other end holds a context, or perhaps not.
    fn settle(&mut self, number: u8, has_arrived: bool) {
        let Some(flow) = self.context(number).map(|context| usize::from(context.flow)) else {
            return;
        };
        let flow = &mut self.flows[flow];
        if flow.pending.take_if(|pending| *pending == number).is_some() && has_arrived {
            flow.usable = Some(number);
            flow.packets = 0;
        }
    }
}

/// Whether packets like this one will follow: a SYN or RST has other options than what follows.
fn is_lasting(layout: Layout, packet: &Packet) -> bool {
    !layout.is_tcp || packet.bytes().get(layout.transport + 13).is_some_and(|flags| flags & 6 == 0)
}

/// The contexts of the receiver, each with the serial number of the frame that it came in.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    contexts: Vec<Option<(SeqNumber, Headers)>>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self { contexts: vec![None; CONTEXTS] }
    }

    /// The context with this number.
    pub(super) fn get(&self, number: u8) -> Option<&Headers> {
        self.contexts[usize::from(number)].as_ref().map(|(_, headers)| headers)
    }

    /// These headers become a context, unless a later frame has brought one of this number.
    pub(super) fn set(&mut self, number: u8, serial: SeqNumber, headers: Headers) {
        let context = &mut self.contexts[usize::from(number)];
        if context.as_ref().is_none_or(|(at, _)| *at < serial) {
            *context = Some((serial, headers));
        }
    }
}
