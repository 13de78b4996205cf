//! A laboratory that changes, and is watched, while it runs.

mod echo;
mod serve;
mod socket;

pub use echo::Echoes;
pub(crate) use serve::{Parts, Served};
pub use socket::{Answer, ControlSocket, directory, request, the_only_one};

use super::error::LabError;
use super::network::host::Host;
pub use super::network::host_namespaces::HostNamespaces;
use airmend_proto::Agent;
use airmend_proto::link::Conditions;
use airmend_proto::outcome::LinkReport;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Requests that wait for the loop at most.
const MAX_REQUESTS: usize = 16;
/// The loop serves a request within [`super::station::IDLE`], unless it has ended, or the machine
/// has no time for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A change of a laboratory that runs.
#[derive(Default)]
pub struct Change {
    /// The conditions of the air.
    pub air: Conditions,
    /// Another agent at the base station.
    pub agent: Option<Box<dyn Agent + Send>>,
}

/// What has happened since the beginning.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Seconds since the beginning.
    pub seconds: f64,
    /// The links, by name.
    pub links: BTreeMap<&'static str, LinkReport>,
    /// Retransmissions of the agents.
    pub repairs: u64,
    /// The counters of the agents that have been at the base station.
    pub agent_counters: BTreeMap<&'static str, u64>,
}

/// What others may do with a laboratory that runs.
pub struct Control {
    /// What its loop is asked.
    pub requests: Requests,
    /// What is seen of its hosts.
    pub watched: Watched,
}

/// The hosts of a laboratory that runs.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Round trips between them, while they are asked for.
    pub echoes: Echoes,
    namespaces: Arc<OnceLock<[Arc<HostNamespaces>; 2]>>,
}

impl Watched {
    /// The namespaces of the fixed and of the mobile host, once they are there.
    pub fn namespaces(&self) -> Option<&[Arc<HostNamespaces>; 2]> {
        self.namespaces.get()
    }

    /// The hosts are there, until it is over.
    pub(crate) fn begin<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        hosts: [&Host; 2],
        namespaces: [&Arc<HostNamespaces>; 2],
        is_over: &'scope AtomicBool,
    ) -> Result<(), LabError> {
        // A laboratory has its hosts once.
        self.namespaces.set(namespaces.map(Arc::clone)).ok();
        self.echoes.measure(scope, hosts, is_over)
    }
}

/// A request to the loop.
pub(crate) enum Request {
    /// Answered by a sentence if it cannot be done.
    Change(Box<Change>, SyncSender<Result<(), &'static str>>),
    Sample(SyncSender<Sample>),
}

/// Asks the loop.
#[derive(Clone, Debug)]
pub struct Controller(SyncSender<Request>);

/// The requests of controllers, for the loop.
pub struct Requests(pub(crate) Receiver<Request>);

/// A controller, and what its laboratory takes.
pub fn controller() -> (Controller, Requests) {
    let (sender, receiver) = sync_channel(MAX_REQUESTS);
    (Controller(sender), Requests(receiver))
}

impl Controller {
    /// Changes the laboratory.
    ///
    /// # Errors
    /// What cannot change in this set-up, in one sentence.
    pub fn change(&self, change: Change) -> Result<(), &'static str> {
        let (answer, answered) = sync_channel(1);
        self.send(Request::Change(Box::new(change), answer))?;
        answered.recv_timeout(PATIENCE).map_err(|_| GONE)?
    }

    /// What has happened so far.
    ///
    /// # Errors
    /// There is no laboratory any more.
    pub fn sample(&self) -> Result<Sample, &'static str> {
        let (answer, answered) = sync_channel(1);
        self.send(Request::Sample(answer))?;
        answered.recv_timeout(PATIENCE).map_err(|_| GONE)
    }

    fn send(&self, request: Request) -> Result<(), &'static str> {
        self.0.try_send(request).map_err(|_| GONE)
    }
}

const GONE: &str = "the laboratory is not ready, or has ended";
