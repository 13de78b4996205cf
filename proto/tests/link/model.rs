//! Model checking: everything that two ends and a channel that loses, reorders and duplicates
//! frames can do, and runs that end and begin anew, within small budgets.
//!
//! In every state that can be reached: what was delivered of a flow is the beginning of what was
//! sent, in order and each packet once. And from every such state, once the channel behaves, all
//! arrives and both ends come to rest: there is no deadlock.
//!
//! All times are zero, so that any timer may run out at any moment.

use crate::kit::{Settings, Station};
use airmend_proto::agents::Limits;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Agent, Instant, LinkSignal, LinkType, Packet, Port};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Flows in each direction; packets of a transfer take turns.
const FLOWS: u16 = 2;

/// Few flows are remembered, so that a state is small.
fn limits() -> Limits {
    Limits { flows: 4, ..Limits::default() }
}

/// What may go wrong in one run, how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) losses: u8,
    pub(crate) duplicates: u8,
    pub(crate) overtakings: u8,
    pub(crate) timeouts: u8,
    pub(crate) restarts: [u8; 2],
    /// Frames that arrive damaged, with a header that is right.
    pub(crate) damages: u8,
}

/// One thing that may happen next.
#[derive(Clone, Copy, Debug)]
enum Action {
    Deliver(usize),
    Duplicate(usize),
    Lose(usize),
    Damage(usize),
    TimeOut(usize),
    Restart(usize),
    Send(usize),
}

#[derive(Clone, Hash)]
struct World {
    ends: [Station; 2],
    epochs: [u32; 2],
    /// Frames on their way, by the end to which they go, in the order in which they were sent.
    channel: Vec<(usize, Packet)>,
    /// Packets handed to each end, and packets that it shall get.
    sent: [u32; 2],
    to_send: [u32; 2],
    /// For each end, and each flow towards it, what it was given, by number.
    delivered: [[Vec<u32>; FLOWS as usize]; 2],
    budget: Budget,
    /// How often each end has begun anew.
    restarts: [u8; 2],
    /// Whether packets may be given up, and so be missing: time goes on with the first loss.
    may_skip: bool,
    now: Instant,
}

struct Search {
    settings: Settings,
    seen: HashSet<u64>,
    states: usize,
}

fn packet(from: usize, number: u32) -> Packet {
    let flow = (number % u32::from(FLOWS)) as u16;
    let ends = [([10, 0, 0, 1], 80), ([10, 9, 0, 1], 5000 + flow)];
    let segment = SegmentBuilder::new(ends[from], ends[1 - from]);
    segment.seq(SeqNumber(number)).ack(SeqNumber(0)).payload_len(1).build(LinkType::Ip)
}

impl World {
    fn new(settings: &Settings, to_send: [u32; 2], budget: Budget) -> Self {
        let end = |epoch| Station::new(limits(), settings.clone(), epoch);
        Self {
            ends: [end(10), end(20)],
            epochs: [10, 20],
            channel: Vec::new(),
            sent: [0; 2],
            to_send,
            delivered: Default::default(),
            budget,
            restarts: [0; 2],
            may_skip: false,
            now: Instant::ZERO,
        }
    }

    fn actions(&self) -> Vec<Action> {
        let Budget { losses, duplicates, overtakings, timeouts, restarts, damages } = self.budget;
        let mut actions = Vec::new();
        for index in 0..self.channel.len() {
            let (to, _) = self.channel[index];
            let overtakes = self.channel[..index].iter().any(|(other, _)| *other == to);
            // Frames of one direction keep their order, unless the budget says otherwise.
            if overtakes && overtakings == 0 {
                continue;
            }
            actions.push(Action::Deliver(index));
            if duplicates > 0 {
                actions.push(Action::Duplicate(index));
            }
            if losses > 0 && !overtakes {
                actions.push(Action::Lose(index));
            }
            if damages > 0 && !overtakes {
                actions.push(Action::Damage(index));
            }
        }
        for (end, restarts) in restarts.into_iter().enumerate() {
            if self.sent[end] < self.to_send[end] {
                actions.push(Action::Send(end));
            }
            if timeouts > 0 && self.is_armed(end) {
                actions.push(Action::TimeOut(end));
            }
            if restarts > 0 {
                actions.push(Action::Restart(end));
            }
        }
        actions
    }

    fn act(&mut self, action: Action, settings: &Settings) {
        match action {
            Action::Deliver(index) => {
                let overtakes =
                    self.channel[..index].iter().any(|(to, _)| *to == self.channel[index].0);
                self.budget.overtakings -= u8::from(overtakes);
                let (to, frame) = self.channel.remove(index);
                self.ends[to].handle_packet(self.now, Port::Air, &frame);
            }
            Action::Duplicate(index) => {
                self.budget.duplicates -= 1;
                let (to, frame) = self.channel[index].clone();
                self.ends[to].handle_packet(self.now, Port::Air, &frame);
            }
            Action::Lose(index) => {
                self.pass_time();
                self.budget.losses -= 1;
                self.channel.remove(index);
            }
            Action::Damage(index) => {
                self.pass_time();
                self.budget.damages -= 1;
                let (to, frame) = self.channel.remove(index);
                self.ends[to].handle_damaged(self.now, &frame);
            }
            Action::TimeOut(end) => {
                self.budget.timeouts -= 1;
                self.time_out(end);
            }
            Action::Restart(end) => {
                self.budget.restarts[end] -= 1;
                self.restarts[end] += 1;
                // Later or earlier than the one before it, by turns.
                self.epochs[end] = if self.budget.restarts[end].is_multiple_of(2) {
                    self.epochs[end] + 3
                } else {
                    5
                };
                self.ends[end] = Station::new(limits(), settings.clone(), self.epochs[end].into());
            }
            Action::Send(end) => {
                let packet = packet(end, self.sent[end]);
                self.sent[end] += 1;
                self.ends[end].handle_packet(self.now, Port::Wired, &packet);
            }
        }
        self.drain();
    }

    fn pass_time(&mut self) {
        if self.may_skip {
            self.now = Instant::from_nanos(1);
        }
    }

    fn is_armed(&self, end: usize) -> bool {
        self.ends[end].poll_timeout().is_some()
    }

    fn time_out(&mut self, end: usize) {
        let agent = &mut self.ends[end];
        if let Some(deadline) = agent.poll_timeout() {
            agent.handle_timeout(deadline.at.max(self.now));
        }
    }

    fn drain(&mut self) {
        for end in 0..2 {
            while let Some(packet) = self.ends[end].poll_transmit(self.now, Port::Wired) {
                let segment = Segment::parse(&packet).expect("what was sent is TCP");
                let number = segment.seq.0;
                self.delivered[end][(number % u32::from(FLOWS)) as usize].push(number);
            }
            while let Some(frame) = self.ends[end].poll_transmit(self.now, Port::Air) {
                self.channel.push((1 - end, frame));
                self.ends[end].handle_link(self.now, LinkSignal::Sent);
            }
            while self.ends[end].poll_event().is_some() {}
        }
    }

    /// Each flow is delivered from its beginning, in order and each packet once. A new run of the
    /// receiver may begin with packets that the former one had; what a former run of the sender
    /// had may be missing.
    fn check_order(&self) -> Result<(), String> {
        for (end, flows) in self.delivered.iter().enumerate() {
            for (flow, numbers) in flows.iter().enumerate() {
                let step = u32::from(FLOWS);
                let mut expected = flow as u32;
                let mut repetitions = 0;
                for &number in numbers {
                    repetitions += u8::from(number < expected);
                    if number > expected && self.restarts[1 - end] == 0 && !self.may_skip {
                        return Err(format!("end {end} was given {numbers:?} of flow {flow}"));
                    }
                    expected = number + step;
                }
                if repetitions > self.restarts[0] + self.restarts[1] {
                    return Err(format!("end {end} was given {numbers:?} of flow {flow}"));
                }
            }
        }
        Ok(())
    }

    /// The channel behaves from now on, and the ends' timers run out by turns: all must arrive, and
    /// both ends come to rest.
    fn check_completion(&self, settings: &Settings) -> Result<(), String> {
        let mut world = self.clone();
        for end in 0..2 {
            while world.sent[end] < world.to_send[end] {
                world.act(Action::Send(end), settings);
            }
        }
        let mut turn = 0;
        for _ in 0..1_000 {
            world.drain();
            if !world.channel.is_empty() {
                world.act(Action::Deliver(0), settings);
            } else if let Some(end) = [turn, 1 - turn].into_iter().find(|end| world.is_armed(*end))
            {
                world.time_out(end);
                turn = 1 - end;
            } else {
                return world.check_rest();
            }
            world.check_order()?;
        }
        Err(format!("no rest after 1000 steps: {:?}", world.ends.map(|end| end.poll_timeout())))
    }

    fn check_rest(&self) -> Result<(), String> {
        for end in 0..2 {
            let (queued, unacknowledged) = self.ends[end].backlog();
            if queued > 0 || unacknowledged > 0 {
                return Err(format!("end {end} rests with {queued} and {unacknowledged} packets"));
            }
            let from = 1 - end;
            for number in 0..self.sent[from] {
                let flow = (number % u32::from(FLOWS)) as usize;
                let arrived = self.delivered[end][flow].contains(&number);
                if !arrived && self.restarts[from] == 0 && !self.may_skip {
                    return Err(format!("packet {number} never came to end {end}"));
                }
            }
        }
        Ok(())
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl Search {
    fn new(settings: Settings) -> Self {
        Self { settings, seen: HashSet::new(), states: 0 }
    }

    /// Visits all states from this one on, and fails with the way to the first wrong one.
    fn explore(&mut self, start: World) {
        let mut open = vec![(start, Vec::new())];
        while let Some((world, path)) = open.pop() {
            if !self.seen.insert(world.fingerprint()) {
                continue;
            }
            self.states += 1;
            let result = world.check_order().and_then(|()| world.check_completion(&self.settings));
            if let Err(error) = result {
                panic!("{error}\nafter {path:?}\n{:#?}", world.ends);
            }
            for action in world.actions() {
                let mut next = world.clone();
                next.act(action, &self.settings);
                let mut path: Vec<Action> = path.clone();
                path.push(action);
                open.push((next, path));
            }
        }
    }
}

pub(crate) const CALM: Budget =
    Budget { losses: 0, duplicates: 0, overtakings: 0, timeouts: 0, restarts: [0; 2], damages: 0 };

/// Explores everything from the beginning on.
fn search(start: World, settings: Settings, least_states: usize) {
    let (to_send, budget) = (start.to_send, start.budget);
    let mut search = Search::new(settings);
    search.explore(start);
    println!("{} states, {to_send:?} packets, {budget:?}", search.states);
    assert!(search.states >= least_states, "only {} states were reached", search.states);
}

pub(crate) fn check(settings: Settings, to_send: [u32; 2], budget: Budget, least_states: usize) {
    search(World::new(&settings, to_send, budget), settings, least_states);
}

/// The same where a packet may be given up after a nanosecond: none comes twice or too early, and
/// nothing is waited for in vain.
pub(crate) fn check_skips(
    settings: Settings,
    to_send: [u32; 2],
    budget: Budget,
    least_states: usize,
) {
    let start = World { may_skip: true, ..World::new(&settings, to_send, budget) };
    search(start, settings, least_states);
}
