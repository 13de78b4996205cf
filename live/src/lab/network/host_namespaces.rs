//! What a program on a host is in: the network of the host, and files by which hosts have names.

use super::host::Host;
use crate::lab::error::LabError;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;

const HOSTS: &str = "/etc/hosts";
/// A directory of every system, over which a file system is mounted for a moment.
const PLACE: &str = "/proc";
const RESOLVERS: &str = "/etc/resolv.conf";
/// Those that systemd-resolved asks, where it listens on the loopback interface itself.
const UPSTREAM_RESOLVERS: &str = "/run/systemd/resolve/resolv.conf";

/// The namespaces of a host, held by open files.
#[derive(Debug)]
pub struct HostNamespaces {
    user: File,
    network: File,
    mounts: File,
}

impl HostNamespaces {
    /// The network of the host, and mounts of its own with the files of `names`.
    pub(crate) fn new(host: &Host, names: &HostNames) -> Result<Self, LabError> {
        let open = || -> io::Result<Self> {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let none = None::<&Path>;
            // What is mounted here must not be seen elsewhere.
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            names.mount()?;
            Ok(Self {
                user: File::open("/proc/thread-self/ns/user")?,
                network: host.namespace.file().try_clone()?,
                mounts: File::open("/proc/thread-self/ns/mnt")?,
            })
        };
        let opened = thread::scope(|scope| scope.spawn(open).join());
        let opened = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        opened.map_err(LabError::socket("preparing the files of a host"))
    }

    /// The open files, for another process.
    pub fn files(&self) -> [&File; 3] {
        [&self.user, &self.network, &self.mounts]
    }

    /// Namespaces that another process has opened: [`Self::files`].
    pub fn from_files([user, network, mounts]: [File; 3]) -> Self {
        Self { user, network, mounts }
    }

    /// Moves the calling thread to the host. A process that is outside of the user namespace must
    /// have one thread.
    ///
    /// # Errors
    /// Something among the files is no namespace of its kind, or this user may not enter it.
    pub fn enter(&self) -> io::Result<()> {
        let here = env::current_dir();
        // The kernel refuses to enter the one that the thread is in.
        if self.user.metadata()?.ino() != fs::metadata("/proc/thread-self/ns/user")?.ino() {
            setns(&self.user, CloneFlags::CLONE_NEWUSER)?;
        }
        self.enter_network()?;
        // Threads have one working directory together, which is another in other mounts.
        unshare(CloneFlags::CLONE_FS)?;
        setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
        // One that was removed is nowhere.
        here.and_then(env::set_current_dir).or_else(|_| env::set_current_dir("/"))
    }

    /// Moves the calling thread to the network of the host alone.
    pub(crate) fn enter_network(&self) -> io::Result<()> {
        Ok(setns(&self.network, CloneFlags::CLONE_NEWNET)?)
    }
}

/// The names of the hosts.
#[derive(Debug)]
pub(crate) struct HostNames {
    hosts: String,
    /// The servers that resolve other names, if they are not those of the machine's own file.
    resolvers: Option<PathBuf>,
}

impl HostNames {
    /// `asks_others` says that the hosts can reach the machine's network: not its loopback
    /// interface, where a local resolver listens.
    pub(crate) fn new(names: &[(&str, IpAddr)], asks_others: bool) -> Self {
        let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for &(name, address) in names {
            let _ = writeln!(hosts, "{address} {name}");
        }
        let configured = fs::read_to_string(RESOLVERS).unwrap_or_default();
        let is_local = configured.lines().any(|line| line.starts_with("nameserver 127."));
        let upstream = Path::new(UPSTREAM_RESOLVERS).to_owned();
        let resolvers = Some(upstream).filter(|file| asks_others && is_local && file.exists());
        Self { hosts, resolvers }
    }

    /// Mounts the files in the mount namespace of the calling thread.
    ///
    /// That of the names is in a file system of its own, which is detached again: nobody else can
    /// write to it or take its name, and nothing is left of it, however the process ends.
    fn mount(&self) -> io::Result<()> {
        let none = None::<&Path>;
        if let Some(file) = &self.resolvers {
            mount(Some(file), RESOLVERS, none, MsFlags::MS_BIND, none)?;
        }
        let tmpfs = Some("tmpfs");
        mount(tmpfs, PLACE, tmpfs, MsFlags::empty(), Some("size=64k,mode=755"))?;
        let file = Path::new(PLACE).join("hosts");
        fs::write(&file, &self.hosts)?;
        fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        mount(Some(&file), HOSTS, none, MsFlags::MS_BIND, none)?;
        Ok(umount2(PLACE, MntFlags::MNT_DETACH)?)
    }
}
