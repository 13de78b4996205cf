//! Network namespaces without names: the kernel removes them with the process.

use super::interface::disable_offloads;
use super::iproute;
use crate::lab::error::LabError;
use crate::sys;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, as bits of `/proc/self/status`.
const NEEDED_CAPABILITIES: u64 = 1 << 12 | 1 << 21;

/// Makes this process root of a user namespace of its own, unless it already may create network
/// namespaces. To be called at the very start of the program, while it has one thread.
pub fn enter_user_namespace() -> Result<(), LabError> {
    if is_privileged() {
        return Ok(());
    }
    let user = nix::unistd::geteuid();
    let group = nix::unistd::getegid();
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| match error {
        nix::Error::EINVAL => LabError::Threaded,
        error => LabError::UserNamespace(error.into()),
    })?;
    // The kernel requires setgroups to be denied before an ordinary user may map a group.
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("0 {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("0 {group} 1")))
        .map_err(LabError::UserNamespace)?;
    // AppArmor lets the namespace be created but takes its capabilities away.
    if is_privileged() {
        Ok(())
    } else {
        Err(LabError::UserNamespace(io::ErrorKind::PermissionDenied.into()))
    }
}

/// A network namespace, held by an open file.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new, empty network namespace.
    pub fn new() -> Result<Self, LabError> {
        let open = || -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        };
        let file = thread::scope(|scope| join(scope.spawn(open)));
        Ok(Self { file: file.map_err(LabError::NetworkNamespace)? })
    }

    /// Does `work` inside, in a thread of its own. Sockets opened there stay in the namespace,
    /// whichever thread uses them later.
    pub fn run<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send,
    ) -> Result<T, LabError> {
        let inside = || {
            setns(&self.file, CloneFlags::CLONE_NEWNET)
                .map_err(|error| LabError::NetworkNamespace(error.into()))?;
            work()
        };
        thread::scope(|scope| join(scope.spawn(inside)))
    }

    /// Runs `ip -batch` with these commands inside.
    pub fn ip(&self, commands: &str) -> Result<(), LabError> {
        self.run(|| iproute::ip(commands))
    }

    /// Starts a program inside, with real-time priority if this user may ask for that. The kernel
    /// kills it when the calling thread ends.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        sys::spawn_inside(command, &self.file)
    }

    /// Makes everything that leaves through an interface of this namespace be of wire size and
    /// whole: no segmentation, and no checksum, is left to a card.
    pub fn disable_offloads(&self, interface: &str) -> Result<(), LabError> {
        self.run(|| disable_offloads(interface))
    }

    /// The open file, for `setns`.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The path at which other processes, such as `ip`, find the namespace.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// Whether root here is the machine's own: no user namespace may attach BPF programs.
pub(crate) fn is_initial_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & NEEDED_CAPABILITIES == NEEDED_CAPABILITIES)
}

/// A panic in a namespace's thread is a panic of the caller.
fn join<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
