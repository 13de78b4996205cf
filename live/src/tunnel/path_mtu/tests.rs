use super::*;
use airmend_proto::random::{Purpose, Stream};
use std::collections::VecDeque;

const FLOOR: usize = 548;
const CEILING: usize = 1472;
const MILLISECOND: Duration = Duration::from_millis(1);

/// A path, and whether there is somebody who answers.
struct Path {
    now: Instant,
    machine: PathMtu,
    /// The longest datagram that passes.
    width: usize,
    delay: Duration,
    /// Probability, each way.
    loss: f64,
    answers: bool,
    fate: Stream,
    under_way: VecDeque<(Instant, MtuProbe)>,
    probes: u32,
}

impl Path {
    fn new(width: usize) -> Self {
        let now = Instant::from_millis(5);
        Self {
            now,
            machine: PathMtu::new(now, FLOOR, CEILING),
            width,
            delay: 30 * MILLISECOND,
            loss: 0.0,
            answers: true,
            fate: Stream::new(7, 0, 0, Purpose::Loss),
            under_way: VecDeque::new(),
            probes: 0,
        }
    }

    /// Lets time go on, a millisecond at a time, with data of the settled length all the while.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MILLISECOND;
            self.machine.handle_sent(self.machine.limit());
            let arrived = |at: &mut (Instant, MtuProbe)| at.0 <= self.now;
            while let Some((_, probe)) = self.under_way.pop_front_if(arrived) {
                self.machine.handle_answer(self.now, probe.number, probe.length);
            }
            while let Some(probe) = self.machine.poll_probe(self.now) {
                self.probes += 1;
                let is_lost = self.fate.happens(self.loss) || self.fate.happens(self.loss);
                if self.answers && !is_lost && probe.length <= self.width {
                    self.under_way.push_back((self.now + self.delay, probe));
                }
            }
            assert!(self.machine.poll_timeout().is_none_or(|at| at > self.now), "it spins");
        }
    }

    fn seconds(&mut self, seconds: u64) -> [usize; 2] {
        self.run(Duration::from_secs(seconds));
        [self.machine.limit(), self.machine.settled()]
    }
}

#[test]
fn a_path_as_wide_as_believed_stays() {
    let mut path = Path::new(CEILING);
    assert_eq!(path.seconds(60), [CEILING; 2]);
    assert!(path.probes <= 2 * 61, "{} probes", path.probes);
}

#[test]
fn every_narrow_path_is_measured_to_the_byte() {
    for width in [FLOOR, FLOOR + 1, 1000, 1271, CEILING - 1] {
        let mut path = Path::new(width);
        assert_eq!(path.seconds(10), [width; 2]);
    }
}

#[test]
fn a_path_that_narrows_is_noticed_and_announced_once() {
    let mut path = Path::new(CEILING);
    path.seconds(5);
    path.width = 1272;
    let began = path.now;
    let mut announced = vec![];
    while path.machine.settled() != 1272 && path.now - began < Duration::from_secs(10) {
        path.run(MILLISECOND);
        announced.push((path.machine.limit(), path.machine.settled()));
    }
    let fell = announced.iter().position(|(limit, _)| *limit == FLOOR);
    assert!(fell.is_some_and(|milliseconds| milliseconds < 1300), "{fell:?}");
    assert!(announced.len() < 3000, "measured after {} ms", announced.len());
    announced.pop();
    assert!(announced.iter().all(|(_, settled)| *settled == CEILING), "only what is measured");
}

#[test]
fn a_path_that_widens_is_used_after_ten_minutes() {
    let mut path = Path::new(1000);
    path.seconds(10);
    path.width = CEILING;
    assert_eq!(path.seconds(580), [1000; 2]);
    assert_eq!(path.seconds(20), [CEILING; 2]);
}

#[test]
fn a_peer_that_answers_no_probes_changes_nothing() {
    let mut path = Path::new(1000);
    path.answers = false;
    assert_eq!(path.seconds(600), [CEILING; 2]);
    assert!(path.probes <= 2 * 70, "{} probes", path.probes);
    // Only the interface decides then.
    path.machine.set_report(path.now, 1000);
    assert_eq!(path.seconds(600)[1], CEILING);
    path.machine.set_ceiling(path.now, 1272);
    assert_eq!(path.seconds(1)[1], 1272);
    path.machine.set_ceiling(path.now, CEILING);
    assert_eq!(path.seconds(1), [CEILING; 2]);
}

#[test]
fn loss_is_no_black_hole() {
    for seed in 0..20 {
        let mut path = Path::new(CEILING);
        (path.loss, path.fate) = (0.2, Stream::new(seed, 0, 0, Purpose::Loss));
        path.seconds(600);
        // Bad luck twice in a row would show here.
        assert_eq!(path.machine.settled(), CEILING, "seed {seed}");
        path.width = 1272;
        path.seconds(60);
        let found = path.machine.settled();
        assert!((1000..=1272).contains(&found), "seed {seed}: {found}");
    }
}

#[test]
fn an_outage_says_nothing_about_lengths() {
    let mut path = Path::new(CEILING);
    path.seconds(5);
    path.answers = false;
    assert_eq!(path.seconds(60), [CEILING; 2]);
    path.answers = true;
    path.width = 1272;
    assert_eq!(path.seconds(20), [1272; 2]);
}

#[test]
fn a_long_path_is_measured_too() {
    let mut path = Path::new(1272);
    path.delay = Duration::from_secs(1);
    assert_eq!(path.seconds(120), [1272; 2]);
}

#[test]
fn the_interface_is_believed_at_once_also_in_a_search() {
    let mut path = Path::new(1272);
    path.run(Duration::from_millis(400));
    assert!(path.machine.search.is_some());
    path.machine.set_ceiling(path.now, 1200);
    assert!(path.machine.limit() <= 1200 && path.machine.settled() <= 1200);
    assert_eq!(path.seconds(10), [1200; 2]);
    // What it no longer knows is asked for, at no risk.
    path.machine.set_ceiling(path.now, CEILING);
    assert_eq!(path.machine.limit(), 1200);
    assert_eq!(path.seconds(10), [1272; 2]);
    // Below the floor there is nothing to ask.
    path.machine.set_ceiling(path.now, 400);
    assert_eq!([path.machine.limit(), path.machine.settled()], [400; 2]);
}

#[test]
fn answers_that_nobody_asked_for_do_nothing() {
    let mut machine = PathMtu::new(Instant::ZERO, FLOOR, CEILING);
    for number in 0..100 {
        machine.handle_answer(Instant::ZERO, number, FLOOR);
    }
    assert_eq!(machine.limit(), CEILING);
    assert!(machine.poll_probe(Instant::ZERO).is_some());
    for number in 2..100 {
        machine.handle_answer(Instant::ZERO, number, FLOOR);
    }
    assert_eq!(machine.limit(), CEILING);
}

#[test]
fn an_idle_path_is_not_probed() {
    let mut machine = PathMtu::new(Instant::ZERO, FLOOR, CEILING);
    let probe = machine.poll_probe(Instant::ZERO).expect("the first one");
    assert_eq!(
        (probe.length, machine.poll_probe(Instant::ZERO).map(|p| p.length)),
        (CEILING, Some(FLOOR))
    );
    machine.handle_answer(Instant::from_millis(9), probe.number, CEILING);
    machine.handle_sent(FLOOR);
    assert_eq!(machine.poll_timeout(), None);
    machine.handle_sent(CEILING);
    assert!(machine.poll_timeout().is_some());
}

/// Reports by whoever likes, one a second and each another, while data flows.
#[test]
fn a_false_report_changes_nothing() {
    for seed in 0..20 {
        let mut path = Path::new(CEILING);
        path.fate = Stream::new(seed, 0, 0, Purpose::Loss);
        path.seconds(5);
        let mut below = Stream::new(seed, 1, 0, Purpose::Loss);
        let mut in_parts = 0;
        for _ in 0..600 {
            let report = (below.uniform() * CEILING as f64) as usize;
            path.machine.set_report(path.now, report);
            for _ in 0..1000 {
                path.run(MILLISECOND);
                in_parts += u32::from(path.machine.limit() < CEILING);
                assert_eq!(path.machine.settled(), CEILING, "seed {seed}, {report}");
            }
        }
        // For a round trip each, at most.
        assert!(in_parts <= 600 * 31, "seed {seed}: {in_parts} ms");
    }
}

/// A stranger is as little believed where the path is lossy.
#[test]
fn a_false_report_changes_nothing_beside_loss() {
    for seed in 0..20 {
        let mut path = Path::new(CEILING);
        (path.loss, path.fate) = (0.1, Stream::new(seed, 0, 0, Purpose::Loss));
        path.seconds(5);
        for report in (FLOOR..CEILING).step_by(100) {
            path.machine.set_report(path.now, report);
            path.seconds(10);
            assert_eq!(path.machine.settled(), CEILING, "seed {seed}, {report}");
        }
    }
}

#[test]
fn a_true_report_is_confirmed_within_a_dozen_round_trips() {
    for width in [FLOOR, 1000, 1271, CEILING - 1] {
        let mut path = Path::new(CEILING);
        path.seconds(5);
        path.width = width;
        path.machine.set_report(path.now, width);
        assert_eq!((path.machine.limit(), path.machine.settled()), (width, CEILING), "in parts");
        path.run(13 * path.delay);
        assert_eq!([path.machine.limit(), path.machine.settled()], [width; 2]);
        assert_eq!(path.seconds(60), [width; 2]);
    }
}

#[test]
fn a_report_that_is_nearly_right_shortens_nothing_and_costs_nothing() {
    for report in [600, 999, 1001, 1400] {
        let mut path = Path::new(1000);
        path.machine.set_report(path.now, report);
        assert_eq!(path.seconds(10), [1000; 2], "{report}");
    }
}

#[test]
fn a_report_below_what_every_path_carries_says_nothing() {
    let mut path = Path::new(CEILING);
    path.seconds(5);
    for report in [0, 68, FLOOR - 1, CEILING, usize::MAX] {
        path.machine.set_report(path.now, report);
        assert_eq!(path.machine.limit(), CEILING);
    }
}
