//! The ECN field of what carries the frames (RFC 6040): copied and combined without the rate
//! control, counted and answered with it.

use crate::common::packet::{Foreign, Tcp};
use airmend_proto::agents::Limits;
use airmend_proto::agents::tulip::frame::{Frame, FrameKind};
use airmend_proto::agents::tulip::{Settings, Tulip};
use airmend_proto::wire::edit::{ecn, mark_congestion, with_ecn};
use airmend_proto::{Agent, Ecn, Instant, Packet, Port};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
const DELAY: Duration = Duration::from_millis(5);

/// What the path does to a frame of an end: another field, or a loss.
type Path<'a> = &'a mut dyn FnMut(usize, Packet) -> Option<Packet>;

/// Two ends, and a path with a delay and no rate.
struct Ends {
    now: Instant,
    agents: [Tulip; 2],
    flights: VecDeque<(Instant, usize, Packet)>,
    delivered: Vec<Packet>,
    counters: [BTreeMap<&'static str, u64>; 2],
}

impl Ends {
    fn new(rate_control: [bool; 2]) -> Self {
        let agent = |end: usize| {
            let mut settings = Settings { rate_control: rate_control[end], ..Settings::default() };
            settings.set("classes", "tcp>0=reliable,any=unreliable").unwrap();
            Tulip::new(Limits::default(), settings, end as u64 + 1)
        };
        Self {
            now: Instant::ZERO,
            agents: [agent(0), agent(1)],
            flights: VecDeque::new(),
            delivered: Vec::new(),
            counters: Default::default(),
        }
    }

    /// Goes on for some milliseconds.
    fn run(&mut self, millis: u64, path: Path<'_>) {
        for _ in 0..millis {
            while self.flights.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, to, frame) = self.flights.pop_front().unwrap();
                self.agents[to].handle_packet(self.now, Port::Air, &frame);
            }
            for (end, agent) in self.agents.iter_mut().enumerate() {
                agent.handle_timeout(self.now);
                while let Some(frame) = agent.poll_transmit(self.now, Port::Air) {
                    if let Some(frame) = path(end, frame) {
                        self.flights.push_back((self.now + DELAY, 1 - end, frame));
                    }
                }
                self.delivered
                    .extend(std::iter::from_fn(|| agent.poll_transmit(self.now, Port::Wired)));
                while let Some(event) = agent.poll_event() {
                    *self.counters[end].entry(event.counter()).or_default() += 1;
                }
            }
            self.now += Duration::from_millis(1);
        }
    }

    fn send(&mut self, packet: &Packet) {
        self.agents[0].handle_packet(self.now, Port::Wired, packet);
    }

    fn counted(&self, end: usize, name: &str) -> u64 {
        self.counters[end].get(name).copied().unwrap_or(0)
    }
}

fn clear(_: usize, frame: Packet) -> Option<Packet> {
    Some(frame)
}

fn data(index: u32, field: Ecn) -> Packet {
    with_ecn(&Tcp::new(0, Port::Wired, index * 1_000, 1_000, 1).packet(0), field).unwrap()
}

fn datagram(field: Ecn) -> Packet {
    with_ecn(&Foreign::Udp.packet(0, 100), field).unwrap()
}

#[test]
fn without_rate_control_the_fields_are_copied_and_combined() {
    for packet in [|field| data(0, field), datagram] {
        for inner in FIELDS {
            for outer in FIELDS {
                let mut ends = Ends::new([false, false]);
                ends.run(20, &mut clear);
                ends.send(&packet(inner));
                ends.run(200, &mut |end, frame| {
                    let kind = Frame::parse(&frame).unwrap().kind;
                    let copied = if kind == FrameKind::Control { Ecn::NotEct } else { inner };
                    assert!(end == 1 || frame.outer_ecn() == copied, "{inner:?} {kind:?}");
                    let is_data = end == 0 && kind != FrameKind::Control;
                    Some(if is_data { frame.with_outer_ecn(outer) } else { frame })
                });
                let got: Vec<_> = ends.delivered.iter().map(ecn).collect();
                let expected: Vec<_> = inner.decapsulated(outer).into_iter().collect();
                assert_eq!(got, expected, "{inner:?} in {outer:?}");
                // What must be dropped is not sent again.
                assert_eq!(ends.counted(1, "link_ecn_drops"), u64::from(expected.is_empty()));
                assert_eq!(ends.counted(0, "link_retransmits") + ends.counted(0, "link_probes"), 0);
            }
        }
    }
}

#[test]
fn with_rate_control_marks_are_counted_and_not_passed_on() {
    let mut ends = Ends::new([true, true]);
    ends.run(20, &mut clear);
    for (index, inner) in FIELDS.into_iter().cycle().take(40).enumerate() {
        ends.send(&data(index as u32, inner));
    }
    let (mut capable, mut marked) = (0, 0);
    ends.run(300, &mut |end, frame| {
        let parsed = Frame::parse(&frame).unwrap();
        let is_packet = !matches!(parsed.kind, FrameKind::Control | FrameKind::Repair);
        assert_eq!(frame.outer_ecn(), Ecn::Ect0);
        if end == 1 || !is_packet {
            return Some(frame);
        }
        capable += 1;
        // The first third is marked.
        if capable > 13 {
            return Some(frame);
        }
        marked += 1;
        mark_congestion(&frame)
    });
    let got: Vec<_> = ends.delivered.iter().map(ecn).collect();
    let sent: Vec<_> = FIELDS.into_iter().cycle().take(40).collect();
    assert_eq!(got, sent, "the fields inside stay");
    assert_eq!((capable, marked), (40, 13));
    assert!(ends.counted(0, "link_ce_reports") > 0, "{:?}", ends.counters);
    assert_eq!(ends.counted(1, "link_ecn_drops"), 0);
}

#[test]
fn every_mark_is_reported_once_though_reports_are_lost() {
    let mut ends = Ends::new([true, true]);
    ends.run(20, &mut clear);
    let (mut marks, mut number, mut last) = (0u16, 0u32, None);
    for index in 0..400 {
        ends.send(&data(index, Ecn::NotEct));
        ends.run(1, &mut |end, frame| {
            number += 1;
            if end == 1 {
                let ack = Frame::parse(&frame).unwrap().ack;
                last = ack.and_then(|ack| ack.marks).or(last);
                return (!number.is_multiple_of(3)).then_some(frame);
            }
            let marked = mark_congestion(&frame).filter(|_| number.is_multiple_of(7));
            marks += u16::from(marked.is_some());
            Some(marked.unwrap_or(frame))
        });
    }
    ends.run(100, &mut clear);
    assert!(marks > 20);
    assert!(last.is_some_and(|last| last <= marks && last + 3 > marks), "{last:?} of {marks}");
}

#[test]
fn an_end_that_reads_no_ecn_gets_none() {
    let mut ends = Ends::new([false, false]);
    // A former version: the flag is not set in what it sends.
    let mut former = |end: usize, frame: Packet| {
        let parsed = Frame::parse(&frame).unwrap();
        assert!(end == 1 || frame.outer_ecn() == Ecn::NotEct);
        Some(if end == 1 { Frame { reads_version_2: false, ..parsed }.emit() } else { frame })
    };
    ends.run(20, &mut former);
    ends.send(&data(0, Ecn::Ect0));
    ends.run(100, &mut former);
    assert_eq!(ends.delivered, [data(0, Ecn::Ect0)]);
}

#[test]
fn ends_that_differ_lose_no_mark() {
    for rate_control in [[false, true], [true, false]] {
        let mut ends = Ends::new(rate_control);
        ends.run(20, &mut clear);
        ends.send(&data(0, Ecn::Ect0));
        ends.run(100, &mut |end, frame| {
            let marked = mark_congestion(&frame).filter(|_| end == 0);
            Some(marked.unwrap_or(frame))
        });
        let inside = ends.delivered.iter().map(ecn).filter(|field| *field == Ecn::Ce).count();
        let reported = ends.counted(0, "link_ce_reports") as usize;
        assert_eq!(inside + reported, 1, "{rate_control:?}");
    }
}
