//! A fixed host, a base station whose kernel forwards, and mobile hosts: a namespace each. Nothing
//! has a name, so nothing is left behind.

use crate::cable::{Cables, Ends, Quality};
use crate::kit::Result;
use crate::kit::raw::open_end;
use airmend_live::lab::Namespace;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The number of the cable to the first mobile host; other mobiles' follow, then the fixed host's.
pub(crate) const AIR: usize = 0;
/// The air's bits per second, as the interface's queue sends them.
pub(crate) const RATE_BPS: u64 = 30_000_000;
/// And as the cable carries them: the queue is in the interface.
const RADIO_BPS: u64 = RATE_BPS / 10 * 11;
/// The class of the air interface's queue that repairs take.
pub(crate) const FAST_CLASS: &str = "1:1";

/// Bits per second of a modem, frames in its queue, and its interface with that queue.
pub(crate) const MODEM_BPS: u64 = 10_000_000;
pub(crate) const MODEM_FRAMES: usize = 70;
const MODEM_INTERFACE: &str = "out";

/// How a world differs from the usual one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Of each frame on the air, in both directions.
    pub(crate) loss: f64,
    pub(crate) seed: u64,
    /// One way: of the cable to the fixed host, and of the air.
    pub(crate) wired_delay: Duration,
    pub(crate) air_delay: Duration,
    /// Mobile hosts, each behind an air interface of its own: `air0`, `air1`.
    pub(crate) mobiles: usize,
    /// The base station bridges instead of routing.
    pub(crate) is_bridge: bool,
    /// All frames at the base station are in this VLAN.
    pub(crate) vlan: Option<u16>,
    /// The fixed host is next to the base station, without a cable, and sends super-packets; the
    /// base station's air interface sends them as they are.
    pub(crate) has_offloads: bool,
    /// See [`Quality::is_forged`], of the air.
    pub(crate) is_forged: bool,
    /// The air's queue is a FIFO of [`MODEM_FRAMES`] in a modem beyond the base station, whose own
    /// interface has the kernel's default.
    pub(crate) has_modem: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            loss: 0.05,
            seed: 6,
            wired_delay: Duration::from_millis(5),
            air_delay: Duration::from_millis(2),
            mobiles: 1,
            is_bridge: false,
            vlan: None,
            has_offloads: false,
            is_forged: false,
            has_modem: false,
        }
    }
}

/// Three machines or more, with cables between them.
pub(crate) struct World {
    pub(crate) fixed: Namespace,
    pub(crate) base: Namespace,
    pub(crate) mobiles: Vec<Namespace>,
    pub(crate) cables: Cables,
    modem: Option<Namespace>,
    /// Where the cables' ends are, and what splits super-packets before them.
    _cabling: Vec<Namespace>,
}

impl World {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        println!("{shape:?}");
        let (fixed, base, ether) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let mobiles: Vec<Namespace> =
            (0..shape.mobiles).map(|_| Namespace::new()).collect::<std::result::Result<_, _>>()?;
        quiet(&ether)?;
        let mut world =
            Builder { shape, base: &base, ether: &ether, cabling: Vec::new(), modem: None };
        let delay = shape.wired_delay;
        let wired = Quality { delay, vlan: shape.vlan, ..Quality::default() };
        let air = Quality {
            rate_bps: RADIO_BPS,
            delay: shape.air_delay,
            loss: shape.loss,
            vlan: shape.vlan,
            is_forged: shape.is_forged,
            ..Quality::default()
        };
        let mut cables = Vec::new();
        for (number, mobile) in mobiles.iter().enumerate() {
            cables.push((world.cable(mobile, AIR + number, &format!("air{number}"))?, air));
        }
        match shape.has_offloads {
            true => veth((&fixed, "eth0"), (&base, "wired0"))?,
            false => cables.push((world.cable(&fixed, mobiles.len(), "wired0")?, wired)),
        }
        world.forward(&fixed, &mobiles)?;
        let (mut cabling, modem) = (world.cabling, world.modem);
        cabling.push(ether);
        let cables = Cables::start(cables, shape.seed);
        Ok(Self { fixed, base, mobiles, cables, modem, _cabling: cabling })
    }

    /// The number of the fixed host's cable.
    pub(crate) fn wired(&self) -> usize {
        self.mobiles.len()
    }

    /// Changes the rate of the modem, in bits per second.
    pub(crate) fn change_modem(&self, rate_bps: u64) -> Result {
        let modem = self.modem.as_ref().ok_or("this world has no modem")?;
        let change = format!(
            "class change dev {MODEM_INTERFACE} parent 1: classid 1:1 {}\n",
            modem_class(rate_bps)
        );
        run(modem, "tc", &["-batch", "-"], &change).map(drop)
    }

    /// Runs a program with its standard input in the base station; what it printed.
    pub(crate) fn at_base(&self, program: &str, arguments: &[&str], input: &str) -> Result<String> {
        run(&self.base, program, arguments, input)
    }
}

/// The address of the fixed host.
pub(crate) fn fixed_address(is_ipv6: bool) -> &'static str {
    if is_ipv6 { "fd77:1::2" } else { "10.77.1.2" }
}

/// Runs a program in a namespace, to its end.
pub(crate) fn run(
    namespace: &Namespace,
    program: &str,
    arguments: &[&str],
    input: &str,
) -> Result<String> {
    // Ordinary users often lack the sbin directories in their PATH.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new(program);
    command.env("PATH", path).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = namespace.run(|| Ok(command.spawn()))??;
    child.stdin.take().ok_or("stdin is piped")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// What sets a world up.
struct Builder<'a> {
    shape: Shape,
    base: &'a Namespace,
    ether: &'a Namespace,
    cabling: Vec<Namespace>,
    modem: Option<Namespace>,
}

impl Builder<'_> {
    /// Connects `eth0` of a host with an interface of the base station, by way of two ends that
    /// are to be joined.
    fn cable(&mut self, host: &Namespace, number: usize, interface: &str) -> Result<Ends> {
        let (host_end, station_end) = (format!("host{number}"), format!("station{number}"));
        pair((self.ether, &host_end), (host, "eth0"))?;
        let is_air = number < self.shape.mobiles;
        if is_air && self.shape.has_modem {
            let modem = Namespace::new()?;
            quiet(&modem)?;
            pair((self.ether, &station_end), (&modem, MODEM_INTERFACE))?;
            pair((&modem, "in"), (self.base, interface))?;
            join(&modem)?;
            let queue = format!(
                "qdisc add dev {MODEM_INTERFACE} root handle 1: htb default 1\n\
                 class add dev {MODEM_INTERFACE} parent 1: classid 1:1 {}\n\
                 qdisc add dev {MODEM_INTERFACE} parent 1:1 pfifo limit {MODEM_FRAMES}\n",
                modem_class(MODEM_BPS)
            );
            run(&modem, "tc", &["-batch", "-"], &queue)?;
            self.modem = Some(modem);
        } else if is_air && self.shape.has_offloads {
            // What leaves the bridge for an interface without offloads is split there.
            let splitter = Namespace::new()?;
            quiet(&splitter)?;
            pair((self.ether, &station_end), (&splitter, "out"))?;
            veth((&splitter, "in"), (self.base, interface))?;
            join(&splitter)?;
            self.cabling.push(splitter);
        } else {
            pair((self.ether, &station_end), (self.base, interface))?;
        }
        if is_air && !self.shape.has_modem {
            run(self.base, "tc", &["-batch", "-"], &air_queue(interface, RATE_BPS))?;
        }
        for end in [&host_end, &station_end] {
            self.ether.ip(&format!("link set {end} up promisc on\n"))?;
        }
        let open = |end: &str| -> Result<_> {
            Ok(self.ether.run(|| Ok(open_end(end).map_err(|error| error.to_string())))??)
        };
        Ok(Ends { host: open(&host_end)?, station: open(&station_end)? })
    }

    fn forward(&self, fixed: &Namespace, mobiles: &[Namespace]) -> Result {
        match self.shape.is_bridge {
            true => self.bridge(fixed, mobiles),
            false => self.route(fixed, mobiles),
        }
    }

    /// All in one network.
    fn bridge(&self, fixed: &Namespace, mobiles: &[Namespace]) -> Result {
        let mut commands = "link add br0 type bridge\nlink set br0 up\n".to_owned();
        let airs = (0..mobiles.len()).map(|number| format!("air{number}"));
        for interface in ["wired0".to_owned()].into_iter().chain(airs) {
            commands += &format!("link set {interface} master br0\nlink set {interface} up\n");
        }
        self.base.ip(&commands)?;
        for (host, number) in [fixed].into_iter().chain(mobiles).zip(2..) {
            host.ip(&format!(
                "link set lo up\nlink set eth0 up\n\
                 address add 10.77.1.{number}/24 dev eth0\n\
                 address add fd77:1::{number}/64 dev eth0 nodad\n",
            ))?;
        }
        Ok(())
    }

    /// A network on each side.
    fn route(&self, fixed: &Namespace, mobiles: &[Namespace]) -> Result {
        self.base.run(|| Ok(forwarding()))??;
        self.base.ip("link set lo up\n")?;
        let airs = (0..mobiles.len()).map(|number| format!("air{number}"));
        let interfaces = ["wired0".to_owned()].into_iter().chain(airs);
        let hosts = [fixed].into_iter().chain(mobiles);
        for ((interface, host), net) in interfaces.zip(hosts).zip(1..) {
            self.base.ip(&format!(
                "link set {interface} up\naddress add 10.77.{net}.1/24 dev {interface}\n\
                 address add fd77:{net}::1/64 dev {interface} nodad\n",
            ))?;
            host.ip(&format!(
                "link set lo up\nlink set eth0 up\n\
                 address add 10.77.{net}.2/24 dev eth0\n\
                 address add fd77:{net}::2/64 dev eth0 nodad\n\
                 route add default via 10.77.{net}.1\n\
                 route add default via fd77:{net}::1 dev eth0\n",
            ))?;
        }
        Ok(())
    }
}

/// Of the calling thread's namespace.
pub(crate) fn forwarding() -> std::io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
}

/// Nothing speaks of itself there.
pub(crate) fn quiet(namespace: &Namespace) -> Result {
    let write = || -> std::io::Result<()> {
        fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")?;
        fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
    };
    Ok(namespace.run(|| Ok(write()))??)
}

/// A bridge between `in` and `out`.
fn join(namespace: &Namespace) -> Result {
    Ok(namespace.ip("link add br0 type bridge\nlink set br0 up\nlink set in master br0\n\
         link set out master br0\nlink set in up\nlink set out up\n")?)
}

fn modem_class(rate_bps: u64) -> String {
    format!("htb rate {rate_bps} ceil {rate_bps} burst 2k cburst 2k quantum 1514")
}

type Place<'a> = (&'a Namespace, &'a str);

/// A pair of interfaces in two namespaces.
pub(crate) fn veth(near: Place<'_>, far: Place<'_>) -> Result {
    let path = far.0.path();
    let (near_name, far_name) = (near.1, far.1);
    Ok(near.0.ip(&format!(
        "link add {near_name} type veth peer name {far_name} netns {}\n",
        path.display()
    ))?)
}

/// The same, for frames as a wire carries them.
pub(crate) fn pair(near: Place<'_>, far: Place<'_>) -> Result {
    veth(near, far)?;
    for (namespace, name) in [near, far] {
        namespace.disable_offloads(name)?;
    }
    Ok(())
}

/// A radio's queue: 100 frames, and a class that goes first.
pub(crate) fn air_queue(interface: &str, rate_bps: u64) -> String {
    let class = format!("htb ceil {rate_bps} burst 6k cburst 6k quantum 1514");
    format!(
        "qdisc add dev {interface} root handle 1: htb default 2\n\
         class add dev {interface} parent 1: classid 1:3 {class} rate {rate_bps}\n\
         class add dev {interface} parent 1:3 classid {FAST_CLASS} {class} rate 8 prio 0\n\
         class add dev {interface} parent 1:3 classid 1:2 {class} rate 8 prio 1\n\
         qdisc add dev {interface} parent {FAST_CLASS} pfifo limit 100\n\
         qdisc add dev {interface} parent 1:2 pfifo limit 100\n",
    )
}
