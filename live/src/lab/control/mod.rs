//! A laboratory that changes, and is watched, while it runs.

mod echo;
mod serve;
mod socket;

pub use echo::Echoes;
pub(crate) use serve::{Parts, Served};
pub use socket::{ControlSocket, directory, request, the_only_one};

use super::error::LabError;
use super::network::host::Host;
use super::network::host_process::enter;
use airmend_proto::Agent;
use airmend_proto::link::Conditions;
use airmend_proto::outcome::LinkReport;
use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
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

/// What a process needs in order to enter a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Place {
    /// The file of its network namespace.
    pub namespace: PathBuf,
    /// Files of the host, and the places where programs look for them.
    pub files: Vec<(PathBuf, PathBuf)>,
}

impl Place {
    fn of(host: &Host, files: &[(PathBuf, &'static str)]) -> Self {
        let files = files.iter().map(|(file, place)| (file.clone(), place.into())).collect();
        Self { namespace: host.namespace.path(), files }
    }

    /// Moves the calling process, which has one thread, to the host of the laboratory of another
    /// process.
    ///
    /// # Errors
    /// The laboratory has ended, or is another user's.
    pub fn enter(&self, pid: u32) -> io::Result<()> {
        let namespace = File::open(&self.namespace)?;
        let user = File::open(format!("/proc/{pid}/ns/user"))?;
        let own = fs::metadata("/proc/self/ns/user")?;
        // The kernel refuses to enter the one that the process is in.
        if user.metadata()?.ino() != own.ino() {
            setns(&user, CloneFlags::CLONE_NEWUSER)?;
        }
        enter(&namespace, &self.files)
    }
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
    places: Arc<OnceLock<[Place; 2]>>,
}

impl Watched {
    /// The fixed and the mobile host, once they are there.
    pub fn places(&self) -> Option<&[Place; 2]> {
        self.places.get()
    }

    /// The hosts are there, with these files in the place of others, until it is over.
    pub(crate) fn begin<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        hosts: [&Host; 2],
        files: &[(PathBuf, &'static str)],
        is_over: &'scope AtomicBool,
    ) -> Result<(), LabError> {
        // A laboratory has its hosts once.
        self.places.set(hosts.map(|host| Place::of(host, files))).ok();
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
