//! The laboratory's part: it answers the lines of clients.

use super::changes::Changes;
use super::client::{ENTER, REFUSED, SET, STARTING, WATCH};
use super::history::{History, Made};
use crate::args::setup::NetworkArgs;
use crate::lab_run::limits;
use crate::text;
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::control::{Answer, Change, Controller, Sample, Watched};
use airmend_live::lab::exec::At;
use airmend_proto::agents::AgentConfig;
use serde::Serialize;
use std::fs::File;

/// What answers, with what is in force.
pub(crate) struct Served {
    controller: Controller,
    watched: Watched,
    network: NetworkArgs,
    config: LabConfig,
    agent: AgentConfig,
    history: History,
}

/// What `airmend lab watch` is told.
#[derive(Serialize)]
struct Watch<'a> {
    agent: &'a str,
    air: String,
    /// The newest round trip between the hosts, if there is one.
    ping_ms: Option<f64>,
    #[serde(flatten)]
    sample: Sample,
}

impl Served {
    pub(crate) fn new(
        controller: Controller,
        watched: Watched,
        network: NetworkArgs,
        config: LabConfig,
        agent: AgentConfig,
        history: History,
    ) -> Self {
        Self { controller, watched, network, config, agent, history }
    }

    /// The answer to a line.
    pub(crate) fn answer(&mut self, line: &str) -> Answer {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let answer = match word {
            SET => self.set(rest).map(Answer::from),
            ENTER => self.enter(rest),
            WATCH => self.watch().map(Answer::from),
            _ => Err("this laboratory is one of another version".to_owned()),
        };
        answer.unwrap_or_else(|why| format!("{REFUSED}{why}\n").into())
    }

    fn set(&mut self, line: &str) -> Result<String, String> {
        let changes = Changes::parse(line)?;
        let air = changes.air();
        let agent = changes.agent.map(|agent| self.prepared(agent)).transpose()?;
        let seed = self.config.seed;
        let built = agent.as_ref().map(|agent| agent.build(limits(&self.config), seed));
        self.controller.change(Change { air, agent: built })?;
        self.config.air.rate_bps = air.rate_bps.unwrap_or(self.config.air.rate_bps);
        self.config.air.delay = air.delay.unwrap_or(self.config.air.delay);
        self.config.errors = air.errors.unwrap_or(self.config.errors);
        self.agent = agent.unwrap_or_else(|| self.agent.clone());
        // One that has ended meanwhile has nothing to add to its report.
        if let Ok(sample) = self.controller.sample() {
            self.history.add(Made { seconds: sample.seconds, set: line.trim().to_owned() });
        }
        Ok("done\n".to_owned())
    }

    /// The agent as at the beginning: with the settings of the command line that it has.
    fn prepared(&self, agent: AgentConfig) -> Result<AgentConfig, String> {
        let mut agents = [self.agent.clone(), agent];
        let set = self.network.set(LabConfig::default(), &mut agents);
        set.map_err(|error| error.to_string())?;
        let [_, agent] = agents;
        Ok(agent)
    }

    /// The namespaces of a host.
    fn enter(&self, host: &str) -> Result<Answer, String> {
        let at: At = host.parse()?;
        let Some(namespaces) = self.watched.namespaces() else {
            return Ok(STARTING.to_owned().into());
        };
        let files = namespaces[usize::from(at == At::Mobile)].files().map(File::try_clone);
        let files = files.into_iter().collect::<Result<_, _>>();
        let files = files.map_err(|error| format!("the namespaces cannot be given: {error}"))?;
        Ok(Answer { text: "entered\n".to_owned(), files })
    }

    fn watch(&self) -> Result<String, String> {
        let watch = Watch {
            agent: self.agent.name(),
            air: format!("{}, {}", text::hops(&self.config), text::errors(&self.config.errors)),
            ping_ms: self.watched.echoes.newest().map(|trip| trip.as_secs_f64() * 1e3),
            sample: self.controller.sample()?,
        };
        serde_json::to_string(&watch).map_err(|error| error.to_string())
    }
}
