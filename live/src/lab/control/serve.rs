//! The loop's part: it serves requests between two turns.

use super::{Change, Request, Sample};
use crate::guard::Guard;
use crate::lab::config::{AIR_STREAM, LabConfig, Path};
use crate::lab::data_path::DataPath;
use crate::lab::links::Links;
use airmend_proto::Instant;
use airmend_proto::link::Conditions;
use std::sync::mpsc::Receiver;

/// The requests that a loop serves, and what it must know for them.
pub(crate) struct Served {
    requests: Receiver<Request>,
    seed: u64,
    /// The rate of the air is that of a kernel's queue too, which no request changes.
    has_kernel_queue: bool,
    /// The air varies by itself.
    has_trace: bool,
    /// A recording is of one agent.
    is_recorded: bool,
    /// The agents are the ends of a link.
    is_link: bool,
}

impl Served {
    pub(crate) fn new(config: &LabConfig, requests: Receiver<Request>) -> Self {
        let is_link = config.recorded_agent.as_ref().is_some_and(|agent| agent.config.is_link());
        Self {
            requests,
            seed: config.seed,
            has_kernel_queue: config.path != Path::Inline || config.far_queue.is_some(),
            has_trace: config.trace.is_some(),
            is_recorded: config.pcap.is_some(),
            is_link,
        }
    }
}

/// What requests are about.
pub(crate) struct Parts<'a> {
    pub(crate) links: &'a mut Links,
    pub(crate) data_path: &'a mut DataPath,
    pub(crate) has_mobile_agent: bool,
}

impl Served {
    /// Serves what was requested since the last turn.
    pub(crate) fn serve(&mut self, now: Instant, mut parts: Parts<'_>) {
        while let Ok(request) = self.requests.try_recv() {
            // Who has not waited for the answer does not get it.
            match request {
                Request::Change(change, answer) => {
                    answer.send(self.change(now, *change, &mut parts)).ok();
                }
                Request::Sample(answer) => {
                    answer.send(sample(now, &parts)).ok();
                }
            }
        }
    }

    /// All of the change is possible, or nothing is changed.
    fn change(
        &mut self,
        now: Instant,
        Change { air, agent }: Change,
        parts: &mut Parts<'_>,
    ) -> Result<(), &'static str> {
        if air.rate_bps.is_some() && self.has_kernel_queue {
            return Err("a kernel's queue sends at the rate of the air here: only with --path \
                        inline and without --far-queue can the rate change");
        }
        if air != Conditions::default() && self.has_trace {
            return Err("the air varies as a trace says: leave that out, and change it here");
        }
        if agent.is_some() && (parts.has_mobile_agent || self.is_link) {
            return Err("the agents are at both ends of the air, or in the mobile host: they \
                        cannot be exchanged while the laboratory runs");
        }
        if agent.is_some() && self.is_recorded {
            return Err("a recording is of one agent: leave --pcap out");
        }
        if agent.is_some() && parts.data_path.agent().is_none() {
            return Err("the base station is a kernel: only with --path inline can the agent be \
                        exchanged");
        }
        if air != Conditions::default() {
            // Another seed, so that the same losses do not come again.
            self.seed = self.seed.wrapping_add(1);
            if !parts.links.air.change(&air, self.seed, AIR_STREAM) {
                return Err("half-duplex radios share this air: it cannot change while it is used");
            }
        }
        if let (Some(agent), DataPath::Agent(at_base)) = (agent, &mut *parts.data_path) {
            at_base.replace(now, Box::new(Guard::new(agent)));
        }
        Ok(())
    }
}

fn sample(now: Instant, parts: &Parts<'_>) -> Sample {
    let recorder = parts.data_path.agent().map(|agent| &agent.recorder);
    Sample {
        seconds: now.as_secs_f64(),
        links: parts.links.report().unwrap_or_default(),
        repairs: recorder.map_or(0, |recorder| recorder.repairs),
        agent_counters: recorder.map(|recorder| recorder.counters.clone()).unwrap_or_default(),
    }
}
