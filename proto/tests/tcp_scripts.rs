//! Runs `tcp_scripts/<behaviour>.script`: what arrives at a TCP endpoint, and what must leave it.
//!
//! ```text
//! profile linux                       // default bsd95
//! set mss 1000                        // a knob of the profile, by its name
//! isn 0xfffffff0                      // what the endpoint's relative 0 stands for; default 0
//! +0    connect                       // or: listen
//! +0    > S 0:0(0) <mss 1000>         // leaves the endpoint at this very time
//! +.1   < S. 0:0(0) ack 1 <mss 1000>  // arrives
//! +0    write 5000                    // the application writes
//! +0    close                         // and writes no more
//! +0    silence                       // nothing has left until now
//! +0    stat cwnd 2000                // a number of `Stats`; `rto_ms` and `srtt_ms` in ms
//! +0    timer tcp-rto +1.5            // the next deadline; or `timer none`
//! +0    state Established
//! ```
//!
//! Times are seconds since the line before, segments read as in the agents' scripts: see
//! `script/mod.rs`. Every packet that leaves must be expected, in order and at its time.

mod common;
#[path = "script/notation.rs"]
mod notation;

use airmend_proto::tcp::{Endpoint, Profile};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Instant, Packet, Port};
use common::packet::Tcp;
use libtest_mimic::{Arguments, Failed, Trial};
use notation::{Bases, Pattern, number};
use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp_scripts");
    let files = fs::read_dir(folder).expect("the folder of the scripts");
    let mut paths: Vec<_> = files.map(|file| file.expect("a readable folder").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts");
    let trial = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || {
            let text = fs::read_to_string(&path)?;
            play(&text).map_err(|error| Failed::from(format!("{}:{error}", path.display())))
        })
    };
    let trials = paths.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The endpoint under test, and what left it and was not yet expected.
struct Stage {
    profile: Profile,
    bases: Bases,
    now: Instant,
    endpoint: Option<Endpoint>,
    left: VecDeque<(Instant, Tcp)>,
}

fn play(text: &str) -> Result<(), String> {
    let (profile, bases) = (Profile::bsd95(), Bases::default());
    let (endpoint, left) = (None, VecDeque::new());
    let mut stage = Stage { profile, bases, now: Instant::ZERO, endpoint, left };
    for (index, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let place = |error| format!("{}: {line}: {error}", index + 1);
        let outcome = match line.strip_prefix('+').and_then(|timed| timed.split_once(' ')) {
            Some((time, action)) => seconds(time).and_then(|time| stage.act(time, action.trim())),
            None => stage.setting(line),
        };
        outcome.map_err(place)?;
    }
    stage.silence()
}

impl Stage {
    fn setting(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["profile", name] => self.profile = Profile::named(name)?,
            ["set", name, value] => self.profile.set(name, value)?,
            ["isn", base] => self.bases.wired = number(base)?,
            _ => return Err("none of: profile, set, isn, +time action".into()),
        }
        Ok(())
    }

    fn act(&mut self, after: Duration, action: &str) -> Result<(), String> {
        self.advance(after)?;
        let words: Vec<&str> = action.split_whitespace().collect();
        match words[..] {
            ["connect" | "listen"] => {
                let (local, remote) = (([10, 0, 0, 1], 80).into(), ([10, 9, 0, 1], 10_000).into());
                let isn = SeqNumber(self.bases.wired);
                self.endpoint = Some(match words[0] {
                    "connect" => Endpoint::connect(self.profile, local, remote, isn),
                    _ => Endpoint::listen(self.profile, local, isn),
                });
            }
            ["<", ..] => {
                let pattern = self.pattern(action, Port::Air)?;
                let now = self.now;
                self.endpoint()?.handle_packet(now, &pattern.tcp.packet(0));
            }
            [">", ..] => return self.expect(&self.pattern(action, Port::Wired)?),
            ["write", bytes] => {
                let bytes = u64::from(number(bytes)?);
                let accepted = self.endpoint()?.write(bytes);
                if accepted != bytes {
                    return Err(format!("the send buffer took {accepted}"));
                }
            }
            ["close"] => self.endpoint()?.close(),
            ["silence"] => return self.silence(),
            ["stat", name, value] => return self.stat(name, value),
            ["state", name] => {
                let state = format!("{:?}", self.endpoint()?.state());
                return if state == name { Ok(()) } else { Err(format!("it is {state}")) };
            }
            ["timer", "none"] => return self.timer("none"),
            ["timer", why, time] => {
                let after = seconds(time.strip_prefix('+').ok_or("a timer ends with +seconds")?)?;
                return self.timer(&format!("{why} {}", self.now + after));
            }
            _ => return Err("no such action".into()),
        }
        self.drain();
        Ok(())
    }

    /// Lets time pass; timers fire on the way.
    fn advance(&mut self, after: Duration) -> Result<(), String> {
        let until = self.now + after;
        if self.now < until {
            self.silence()?;
        }
        while let Some(endpoint) = &mut self.endpoint
            && let Some(deadline) = endpoint.poll_timeout().filter(|due| due.at <= until)
        {
            self.now = self.now.max(deadline.at);
            endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(endpoint) = &mut self.endpoint
            && let Some(packet) = endpoint.poll_transmit(self.now)
        {
            self.left.push_back((self.now, as_written(&packet)));
        }
    }

    fn silence(&self) -> Result<(), String> {
        match self.left.front() {
            None => Ok(()),
            Some((at, tcp)) => {
                Err(format!("nobody expected {} at {at}", notation::write(tcp, self.bases)))
            }
        }
    }

    fn expect(&mut self, wanted: &Pattern) -> Result<(), String> {
        let Some((at, tcp)) = self.left.pop_front() else { return Err("nothing left".into()) };
        let written = notation::write(&tcp, self.bases);
        if at != self.now {
            return Err(format!("it is {}, but {written} left at {at}", self.now));
        }
        if wanted.matches(&tcp) { Ok(()) } else { Err(format!("but {written} left")) }
    }

    fn stat(&mut self, name: &str, value: &str) -> Result<(), String> {
        let stats = self.endpoint()?.stats();
        let actual = match name {
            "cwnd" => stats.cwnd,
            "ssthresh" => stats.ssthresh,
            "in_flight" => stats.in_flight,
            "srtt_ms" => stats.srtt.ok_or("no sample yet")?.as_millis() as u64,
            "rto_ms" => stats.rto.as_millis() as u64,
            "retransmits" => stats.sender.retransmits,
            "timeouts" => stats.sender.timeouts,
            "recoveries" => stats.sender.recoveries,
            "undone_recoveries" => stats.sender.undone_recoveries,
            "undone_timeouts" => stats.sender.undone_timeouts,
            "spurious_timeouts" => stats.sender.spurious_timeouts,
            "loss_probes" => stats.sender.loss_probes,
            "loss_probe_recoveries" => stats.sender.loss_probe_recoveries,
            "reorderings" => stats.sender.reorderings,
            "dsacks" => stats.sender.dsacks,
            "delivered" => stats.delivered,
            "acked" => stats.acked,
            _ => return Err("no such number".into()),
        };
        let wanted = u64::from(number(value)?);
        if actual == wanted { Ok(()) } else { Err(format!("it is {actual}")) }
    }

    fn timer(&mut self, wanted: &str) -> Result<(), String> {
        let timer = self.endpoint()?.poll_timeout();
        let actual = timer.map_or("none".into(), |due| format!("{} {}", due.why, due.at));
        if actual == wanted { Ok(()) } else { Err(format!("it is {actual}, not {wanted}")) }
    }

    fn endpoint(&mut self) -> Result<&mut Endpoint, String> {
        self.endpoint.as_mut().ok_or("neither `connect` nor `listen` came before".into())
    }

    fn pattern(&self, action: &str, sender: Port) -> Result<Pattern, String> {
        Pattern::parse(&action[1..], sender, false, self.bases)
    }
}

/// A packet of the endpoint in the scripts' terms.
fn as_written(packet: &Packet) -> Tcp {
    let segment = Segment::parse(packet).expect("a TCP segment");
    let at = usize::from(segment.transport_offset);
    let options = &packet.bytes()[at + 20..usize::from(segment.payload_offset)];
    Tcp {
        flow: 0,
        ipv6: false,
        sender: Port::Wired,
        seq: segment.seq.0,
        len: segment.payload_len as u16,
        ack: segment.flags.intersects(Flags::ACK).then_some(segment.ack.0),
        flags: Flags(segment.flags.0 & !Flags::ACK.0),
        window: segment.window,
        options: options.to_vec(),
        ecn: 0,
        dscp: 0,
        segment_size: packet.segment_size(),
        is_other: false,
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no time in seconds"))?;
    // Written in at most nine decimals: exact to the nanosecond.
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}
