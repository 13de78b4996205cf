//! A Wi-Fi cell: a fixed host, an access point and stations, a namespace each, with radios that
//! the kernel emulates (`mac80211_hwsim`). The medium between them is perfect, so the stations lose
//! IP packets themselves, behind the access point's driver.

use super::process::Process;
use crate::daemon::{Daemon, default_command, socket};
use crate::kit::{Result, until};
use crate::transfer::Hosts;
use crate::world::{air_queue, fixed_address, forwarding, pair, run};
use airmend_live::lab::Namespace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The wire's delay, each way.
const WIRE: &str = "25ms";
/// The air's, each way.
const AIR: &str = "2ms";
/// What an access point's own queue may hold where it stands behind the interface.
const QUEUE_BEHIND: u32 = 100;
/// Repairs keep the priority that a gateway gives them on 802.11 by itself (the access category
/// voice), and their mark chooses the fast class. A priority that names the class does not get
/// there where mac80211 has no queues of its own (hwsim before Linux 6.2): it writes its own first.
const MARKED: &str = "filter add dev wlan0 parent 1: handle 0x6d656e64 fw classid 1:1\n";
/// `/sys` shows the interfaces of the namespace that it was mounted in.
const WITH_SYSFS: &str = "mount -t sysfs sysfs /sys && exec \"$@\"";
const MODULES: [&str; 9] = [
    "veth",
    "tun",
    "bridge",
    "ifb",
    "sch_netem",
    "sch_htb",
    "cls_fw",
    "cls_matchall",
    "act_mirred",
];

/// Where the air's rate is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// In the queue of the access point's interface, which has a class for repairs.
    Interface,
    /// Behind the driver, where nobody overtakes.
    Driver,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) stations: usize,
    pub(super) is_bridge: bool,
    pub(super) rate_bps: u64,
    pub(super) limit: Limit,
    /// 802.11n: with it the kernel aggregates (A-MPDU).
    pub(super) is_ht: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            stations: 1,
            is_bridge: false,
            rate_bps: 10_000_000,
            limit: Limit::Interface,
            is_ht: true,
        }
    }
}

pub(super) struct Cell {
    pub(super) shape: Shape,
    hostapd: Process,
    supplicants: Vec<Process>,
    /// The access point's radio, then the stations'.
    radios: Vec<String>,
    pub(super) fixed: Namespace,
    pub(super) base: Namespace,
    pub(super) stations: Vec<Namespace>,
    folder: PathBuf,
}

impl Cell {
    pub(super) fn new(shape: Shape) -> Result<Self> {
        println!("{shape:?}");
        let radios = load(shape.stations + 1)?;
        let (fixed, base) = (Namespace::new()?, Namespace::new()?);
        let mut stations = Vec::new();
        for _ in 0..shape.stations {
            stations.push(Namespace::new()?);
        }
        for (namespace, radio) in [&base].into_iter().chain(&stations).zip(&radios) {
            give(radio, namespace)?;
        }
        wire(&fixed, &base)?;
        if shape.is_bridge {
            base.ip("link add br0 type bridge\nlink set br0 up\nlink set wired0 master br0\n")?;
        }
        let folder = folder()?;
        let hostapd = start_hostapd(&base, &folder, shape)?;
        let mut supplicants = Vec::new();
        for (station, number) in stations.iter().zip(0..) {
            supplicants.push(start_supplicant(station, &folder, number)?);
        }
        let cell = Self { shape, hostapd, supplicants, radios, fixed, base, stations, folder };
        for number in 0..shape.stations {
            cell.connected(number, 1)?;
        }
        cell.give_addresses()?;
        cell.set_up_air()?;
        Ok(cell)
    }

    pub(super) fn hosts(&self) -> Hosts<'_> {
        let addresses = [false, true].map(fixed_address);
        Hosts { fixed: &self.fixed, addresses, mobiles: &self.stations }
    }

    pub(super) fn address(&self, station: usize) -> &'static str {
        let [routed, bridged] =
            [["10.77.2.10", "10.77.1.10"], ["10.77.2.11", "10.77.1.11"]][station];
        if self.shape.is_bridge { bridged } else { routed }
    }

    /// A gateway on the access point's interface.
    pub(super) fn gateway(&self) -> Result<Daemon> {
        let socket = socket();
        let inner = default_command("wlan0", &socket);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", WITH_SYSFS, "sh"]);
        command.arg(inner.get_program()).args(inner.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Daemon::launch(&self.base, command, socket)
    }

    /// From now on the air loses this share of the IP packets, in both directions.
    pub(super) fn lose(&self, share: f64) -> Result {
        let rate = match self.shape.limit {
            Limit::Interface => "limit 10000".to_owned(),
            Limit::Driver => format!("rate {} limit {QUEUE_BEHIND}", self.shape.rate_bps),
        };
        let loss = format!("netem delay {AIR} loss {}%", share * 100.0);
        let commands = format!(
            "qdisc replace dev heard root {loss} {rate}\n\
             qdisc replace dev said root {loss} limit 10000\n",
        );
        self.stations.iter().try_for_each(|station| tc(station, &commands).map(drop))
    }

    /// Packets that were lost on their way to this station, since the beginning.
    pub(super) fn lost(&self, station: usize) -> Result<u64> {
        let text =
            run(&self.stations[station], "tc", &["-s", "qdisc", "show", "dev", "heard"], "")?;
        let dropped = text.split_once("dropped ").and_then(|(_, rest)| rest.split_once(','));
        Ok(dropped.ok_or("no statistics")?.0.parse()?)
    }

    /// Bytes of the frames that left through the access point's interface.
    pub(super) fn sent(&self) -> Result<u64> {
        let text = self.base.run(|| Ok(fs::read_to_string("/proc/thread-self/net/dev")))??;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("wlan0:"));
        // The ninth figure: bytes sent.
        Ok(line.and_then(|line| line.split_whitespace().nth(8)).ok_or("no wlan0")?.parse()?)
    }

    /// Frames that the access point sent to its stations as voice (TID 6).
    pub(super) fn voice(&self) -> Result<u64> {
        let text = run(&self.base, "iw", &["dev", "wlan0", "station", "dump", "-v"], "")?;
        // TID, received, sent, retries, failed; a table of the queues follows, with more columns.
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let sent =
            rows.filter(|row| row.len() == 5 && row[0] == "6").map(|row| row[2].parse::<u64>());
        Ok(sent.sum::<std::result::Result<u64, _>>()?)
    }

    /// What payload the air can carry, in Mb/s: segments of 1448 bytes in frames of 1514.
    pub(super) fn capacity_mbps(&self, loss: f64) -> f64 {
        self.shape.rate_bps as f64 * 1e-6 * (1.0 - loss) * 1448.0 / 1514.0
    }

    /// The access point's radio.
    pub(super) fn radio(&self) -> &str {
        &self.radios[0]
    }

    /// Waits until this station has connected for the so-many-th time.
    pub(super) fn connected(&self, station: usize, times: usize) -> Result {
        self.supplicants[station].says("CTRL-EVENT-CONNECTED", times)
    }

    /// What an operator types into `wpa_cli`.
    pub(super) fn wpa_cli(&self, station: usize, words: &str) -> Result {
        let folder = self.folder.join(format!("station{station}"));
        control("wpa_cli", &folder, words)
    }

    pub(super) fn hostapd_cli(&self, words: &str) -> Result {
        control("hostapd_cli", &self.folder.join("hostapd"), words)
    }

    /// The link address of a station.
    pub(super) fn mac(&self, station: usize) -> Result<String> {
        let text = run(&self.stations[station], "ip", &["-br", "link", "show", "wlan0"], "")?;
        Ok(text.split_whitespace().nth(2).ok_or("no address")?.to_owned())
    }

    /// Writes a file of a station's radio: `group` (a mask of media: who shares none with another
    /// does not hear it) or `ps` (0: awake, 1: asleep).
    pub(super) fn set_radio(&self, station: usize, file: &str, value: &str) -> Result {
        let radio = &self.radios[1 + station];
        Ok(fs::write(format!("/sys/kernel/debug/ieee80211/{radio}/hwsim/{file}"), value)?)
    }

    /// The route of a station, which does not outlive its interface's being down.
    pub(super) fn set_route(&self, station: usize) -> Result {
        match self.shape.is_bridge {
            true => Ok(()),
            false => {
                Ok(self.stations[station].ip("route replace default via 10.77.2.1 dev wlan0\n")?)
            }
        }
    }

    fn give_addresses(&self) -> Result {
        self.fixed.run(|| Ok(set_up_sender()))??;
        self.fixed.ip("link set lo up\nlink set eth0 up\naddress add 10.77.1.2/24 dev eth0\n")?;
        self.base.ip("link set lo up\nlink set wired0 up\n")?;
        if !self.shape.is_bridge {
            self.base.run(|| Ok(forwarding()))??;
            self.base.ip("address add 10.77.1.1/24 dev wired0\n\
                 address add 10.77.2.1/24 dev wlan0\n")?;
            self.fixed.ip("route add default via 10.77.1.1\n")?;
        }
        for (station, number) in self.stations.iter().zip(0..) {
            station.ip(&format!(
                "link set lo up\naddress add {}/24 dev wlan0\n",
                self.address(number)
            ))?;
            self.set_route(number)?;
        }
        Ok(())
    }

    /// The queue of the access point, and what loses packets at the stations.
    fn set_up_air(&self) -> Result {
        if self.shape.limit == Limit::Interface {
            tc(&self.base, &air_queue("wlan0", self.shape.rate_bps))?;
            tc(&self.base, MARKED)?;
        }
        for station in &self.stations {
            station.ip("link add heard type ifb\nlink add said type ifb\n\
                 link set heard up\nlink set said up\n")?;
            let mut commands = "qdisc add dev wlan0 clsact\n".to_owned();
            for (hook, to) in [("ingress", "heard"), ("egress", "said")] {
                commands += &format!(
                    "filter add dev wlan0 {hook} protocol ip matchall \
                     action mirred egress redirect dev {to}\n"
                );
            }
            tc(station, &commands)?;
        }
        self.lose(0.0)
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.supplicants.clear();
        self.hostapd.end();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Loads the modules, those of the radios again; returns the names of the radios.
fn load(count: usize) -> Result<Vec<String>> {
    let here = |program: &str, arguments: &[&str]| -> Result<()> {
        let output = Command::new(program).args(arguments).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    };
    here("modprobe", &[&["--all"][..], &MODULES].concat())?;
    until("taking the radios away", || here("modprobe", &["--remove", "mac80211_hwsim"]).ok())?;
    here("modprobe", &["mac80211_hwsim", &format!("radios={count}")])?;
    let mut radios = Vec::new();
    for entry in fs::read_dir("/sys/class/ieee80211")? {
        let name = entry?.file_name().into_string().map_err(|_| "an odd name")?;
        let number: u32 = name.strip_prefix("phy").ok_or("no phy")?.parse()?;
        radios.push((number, name));
    }
    radios.sort_unstable();
    assert_eq!(radios.len(), count, "{radios:?}");
    Ok(radios.into_iter().map(|(_, name)| name).collect())
}

/// Moves a radio; its interface is `wlan0` there.
fn give(radio: &str, namespace: &Namespace) -> Result {
    let folder = format!("/sys/class/ieee80211/{radio}/device/net");
    let interface = fs::read_dir(folder)?.next().ok_or("a radio without an interface")??;
    let interface = interface.file_name().into_string().map_err(|_| "an odd name")?;
    let path = namespace.path();
    let output =
        Command::new("iw").args(["phy", radio, "set", "netns", "name"]).arg(&path).output()?;
    if !output.status.success() {
        return Err(format!("iw: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    match interface.as_str() {
        "wlan0" => Ok(()),
        other => Ok(namespace.ip(&format!("link set {other} name wlan0\n"))?),
    }
}

fn wire(fixed: &Namespace, base: &Namespace) -> Result {
    pair((fixed, "eth0"), (base, "wired0"))?;
    for (namespace, end) in [(fixed, "eth0"), (base, "wired0")] {
        tc(namespace, &format!("qdisc add dev {end} root netem delay {WIRE} limit 10000\n"))?;
    }
    Ok(())
}

/// What the sender's TCP is, whatever the machine's default.
fn set_up_sender() -> std::io::Result<()> {
    fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic")?;
    // One transfer must not begin where another ended.
    fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")
}

fn start_hostapd(base: &Namespace, folder: &Path, shape: Shape) -> Result<Process> {
    let bridge = if shape.is_bridge { "bridge=br0" } else { "" };
    let configuration = format!(
        "interface=wlan0\n{bridge}\ndriver=nl80211\nctrl_interface={0}/hostapd\n\
         ssid=airmend\nhw_mode=g\nchannel=1\nwmm_enabled=1\nieee80211n={1}\n\
         wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase=a lossy hop\n",
        folder.display(),
        u8::from(shape.is_ht),
    );
    let file = folder.join("hostapd.conf");
    fs::write(&file, configuration)?;
    let process = Process::start(base, Command::new("hostapd").arg(&file))?;
    process.says("AP-ENABLED", 1)?;
    Ok(process)
}

fn start_supplicant(station: &Namespace, folder: &Path, number: usize) -> Result<Process> {
    let configuration = format!(
        "ctrl_interface={}/station{number}\np2p_disabled=1\n\
         network={{\n ssid=\"airmend\"\n psk=\"a lossy hop\"\n scan_freq=2412\n}}\n",
        folder.display(),
    );
    let file = folder.join(format!("station{number}.conf"));
    fs::write(&file, configuration)?;
    let mut command = Command::new("wpa_supplicant");
    Process::start(station, command.args(["-D", "nl80211", "-i", "wlan0", "-c"]).arg(&file))
}

/// A path of its own.
fn folder() -> Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("airmend-wifi-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder)?;
    Ok(folder)
}

fn tc(namespace: &Namespace, commands: &str) -> Result<String> {
    run(namespace, "tc", &["-batch", "-"], commands)
}

fn control(program: &str, folder: &Path, words: &str) -> Result {
    let mut command = Command::new(program);
    let output =
        command.arg("-p").arg(folder).args(["-i", "wlan0"]).args(words.split(' ')).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.trim() {
        "OK" => Ok(()),
        other => Err(format!("{program} {words}: {other}").into()),
    }
}
