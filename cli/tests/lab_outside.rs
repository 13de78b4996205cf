//! `airmend lab exec --outside`: programs over the hop reach the network of the machine, here a
//! namespace in its place, and one in that of the Internet behind it.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_live::lab::{LabError, Namespace};
use airmend_testkit::{Suite, until};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;
use std::time::Duration;

const BYTES: usize = 300_000;
const FAR: &str = "203.0.113.2";
const FAR_IPV6: &str = "2001:db8:7::2";
/// A host of a LAN behind the machine; its addresses are those of the laboratory's mobile host.
const LAN: [&str; 2] = ["10.77.0.2", "fd77::2"];
const CLIENT: &str = "import socket, sys; n = 0; \
                      s = socket.create_connection((sys.argv[1], 7000), timeout=300)\n\
                      while (b := s.recv(65536)): n += len(b)\n\
                      print(n)";

fn main() -> ExitCode {
    let lacks = doctor::lacks("run the laboratory");
    let root = nix::unistd::geteuid().is_root();
    let lacks = lacks.or((!root).then(|| "only root may join networks".to_owned()));
    let lacks = lacks.or_else(|| {
        let programs = ["python3", "nft", "ping"];
        let is_missing = |name: &&&str| Command::new(name).arg("--version").output().is_err();
        programs.iter().find(is_missing).map(|name| format!("{name} is not there"))
    });
    let tests: [(&str, fn()); 5] = [
        ("the_internet_and_the_machine_are_reached", the_internet_and_the_machine_are_reached),
        ("a_machine_that_does_not_forward_says_so", a_machine_that_does_not_forward_says_so),
        ("a_lan_behind_the_machine_is_left_alone", a_lan_behind_the_machine_is_left_alone),
        ("a_stranger_does_not_reach_the_fixed_host", a_stranger_does_not_reach_the_fixed_host),
        ("a_machine_without_ipv6_says_so", a_machine_without_ipv6_says_so),
    ];
    Suite::default().tests(lacks.as_deref(), tests).run(None)
}

fn the_internet_and_the_machine_are_reached() {
    let world = World::new(true).expect("a network");
    let mut losses = 0;
    for (name, flags) in [
        (FAR, &[][..]),
        ("machine", &[]),
        (FAR, &["--path", "kernel"]),
        (FAR, &["--far-queue", "100"]),
        ("machine", &["--ipv6"]),
    ] {
        let output = world.exec(flags, name);
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {report}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), BYTES.to_string(), "{name}");
        let row: serde_json::Value = serde_json::from_str(report.trim()).expect(&report);
        losses += row["links"]["air_down"]["lost"].as_u64().expect(&report);
    }
    assert!(losses > 0, "nothing has crossed the hop");
    assert!(world.has_uplink_only());
    assert_eq!(world.said("nft", &["list", "tables"]), "");
}

fn a_machine_that_does_not_forward_says_so() {
    let world = World::new(false).expect("a network");
    let output = world.exec(&[], "machine");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    assert!(report.starts_with("airmend: this machine does not forward"), "{report}");
}

fn a_lan_behind_the_machine_is_left_alone() {
    let world = World::new(true).expect("a network");
    let own: [IpAddr; 2] = LAN.map(|address| address.parse().expect("an address"));
    assert_eq!(world.lan_as_seen_by_far(), own, "without a laboratory");
    for (flags, server) in [(&[][..], FAR), (&["--ipv6"], FAR_IPV6)] {
        let line = "echo begun; read go; python3 -c \"$0\" \"$1\"; exec cat";
        let mut command = world.command(flags, &["sh", "-c", line, CLIENT, server]);
        let mut lab = world.machine.spawn(command.stdin(Stdio::piped())).expect("airmend runs");
        let (mut input, output) = (lab.stdin.take().expect("a pipe"), lab.stdout.take());
        let mut lines = BufReader::new(output.expect("a pipe")).lines();
        assert_eq!(lines.next().expect("a line").expect("a line"), "begun");
        assert_eq!(world.lan_as_seen_by_far(), own, "while the laboratory works");
        input.write_all(b"go\n").expect("it reads");
        assert_eq!(lines.next().expect("a line").expect("a line"), BYTES.to_string(), "{server}");
        assert_eq!(world.lan_as_seen_by_far(), own, "while the laboratory works");
        lab.kill().and_then(|()| lab.wait()).expect("it is killed");
        until("the end of the pair", || world.has_uplink_only().then_some(())).expect("no pair");
        assert_eq!(world.lan_as_seen_by_far(), own, "after kill -9");
    }
    // The next laboratory takes what was left with it.
    assert!(world.said("nft", &["list", "tables"]).contains("airmend"));
    for flags in [&[][..], &["--ipv6"]] {
        assert!(world.exec(flags, "machine").status.success());
    }
    assert_eq!(world.said("nft", &["list", "tables"]), "");
}

/// One who sends the machine packets for the laboratory's end of the pair.
fn a_stranger_does_not_reach_the_fixed_host() {
    let world = World::new(true).expect("a network");
    for (flags, network, machine, fixed) in [
        (&[][..], "198.18.77.0/30", "203.0.113.1", "198.18.77.2"),
        (&["--ipv6"], "fd78::/64", "2001:db8:7::1", "fd78::2"),
    ] {
        let mut command = world.command(flags, &["sh", "-c", "echo begun; read go"]);
        let mut lab = world.machine.spawn(command.stdin(Stdio::piped())).expect("airmend runs");
        let (input, output) = (lab.stdin.take().expect("a pipe"), lab.stdout.take());
        let mut lines = BufReader::new(output.expect("a pipe")).lines();
        assert_eq!(lines.next().expect("a line").expect("a line"), "begun");
        world.far.ip(&format!("route add {network} via {machine}\n")).expect("a route");
        assert!(answers(&world.machine, fixed), "the machine itself");
        assert!(!answers(&world.far, fixed), "{fixed} answers a stranger");
        drop(input);
        lab.wait().expect("airmend runs");
    }
}

/// Whether this address answers a ping of the host.
fn answers(host: &Namespace, address: &str) -> bool {
    let mut ping = Command::new("ping");
    let ping = host.spawn(ping.args(["-c1", "-W2", address]).stdout(Stdio::null()));
    ping.and_then(|mut ping| ping.wait()).expect("ping runs").success()
}

/// And only where IPv6 was asked for.
fn a_machine_without_ipv6_says_so() {
    let world = World::new(true).expect("a network");
    let off = world.machine.run(|| Ok(fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")));
    off.expect("a network").expect("a setting");
    let output = world.exec(&["--ipv6"], "machine");
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report.contains("IPv6 is off") && report.contains("leave --ipv6 out"), "{report}");
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(world.exec(&[], "machine").status.success());
}

/// A machine with a LAN and an uplink. The far host behind the uplink knows no way back to the
/// laboratory, but to the LAN.
struct World {
    machine: Namespace,
    lan: Namespace,
    far: Namespace,
}

impl World {
    fn new(forwards: bool) -> Result<Self, LabError> {
        let (machine, lan, far) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        machine.ip(&format!(
            "link set lo up\n\
             link add uplink type veth peer name eth0 netns {}\n\
             link add lan type veth peer name eth0 netns {}\n\
             address add 203.0.113.1/24 dev uplink\n\
             address add 2001:db8:7::1/64 dev uplink nodad\n\
             address add 10.77.0.254/24 dev lan\n\
             address add fd77::ff/64 dev lan nodad\n\
             link set uplink up\nlink set lan up\n",
            far.path().display(),
            lan.path().display(),
        ))?;
        let [lan_ipv4, lan_ipv6] = LAN;
        lan.ip(&format!(
            "link set lo up\nlink set eth0 up\n\
             address add {lan_ipv4}/24 dev eth0\naddress add {lan_ipv6}/64 dev eth0 nodad\n\
             route add default via 10.77.0.254\nroute add default via fd77::ff\n"
        ))?;
        far.ip(&format!(
            "link set lo up\nlink set eth0 up\n\
             address add {FAR}/24 dev eth0\naddress add {FAR_IPV6}/64 dev eth0 nodad\n\
             route add 10.77.0.0/24 via 203.0.113.1\nroute add fd77::/64 via 2001:db8:7::1\n"
        ))?;
        let forwards = u8::from(forwards).to_string();
        machine.run(|| {
            for family in ["ipv4", "ipv6"] {
                let setting = format!("/proc/sys/net/{family}/conf/all/forwarding");
                fs::write(setting, &forwards).expect("a setting");
            }
            Ok(())
        })?;
        for host in [&machine, &far] {
            let listener = host.run(|| Ok(TcpListener::bind("[::]:7000").expect("a listener")));
            serve(listener?);
        }
        Ok(Self { machine, lan, far })
    }

    fn exec(&self, flags: &[&str], server: &str) -> Output {
        let mut command = self.command(flags, &["python3", "-c", CLIENT, server]);
        let child = self.machine.spawn(command.stderr(Stdio::piped())).expect("airmend runs");
        child.wait_with_output().expect("airmend runs")
    }

    fn command(&self, flags: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmend"));
        command
            .args(["lab", "exec", "--outside", "--agent", "plain", "--loss", "0.02", "--json"])
            .args(["--wired-delay", "2ms"])
            .args(flags)
            .arg("--")
            .args(program)
            .stdout(Stdio::piped());
        command
    }

    /// What a program prints on the machine.
    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let child =
            self.machine.spawn(Command::new(program).args(arguments).stdout(Stdio::piped()));
        let output = child.expect(program).wait_with_output().expect(program);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn has_uplink_only(&self) -> bool {
        let links = self.said("ip", &["-o", "link"]);
        links.contains("uplink") && !links.contains("airmend")
    }

    /// The addresses from which the LAN's packets reach the far host.
    fn lan_as_seen_by_far(&self) -> [IpAddr; 2] {
        let socket = |host: &Namespace| {
            host.run(|| Ok(UdpSocket::bind("[::]:0").expect("a socket"))).expect("a socket")
        };
        [FAR, FAR_IPV6].map(|address| {
            let (near, far) = (socket(&self.lan), socket(&self.far));
            let port = far.local_addr().expect("a port").port();
            let to: IpAddr = address.parse().expect("an address");
            let to = match to {
                IpAddr::V4(to) => to.to_ipv6_mapped(),
                IpAddr::V6(to) => to,
            };
            far.set_read_timeout(Some(Duration::from_millis(100))).expect("a time limit");
            // One may be lost while a neighbour is looked for.
            let arrives = || {
                near.send_to(b"hello", (to, port)).expect("it is sent");
                far.recv_from(&mut [0; 8]).ok()
            };
            let (_, from) = until("the arrival of a datagram", arrives).expect("it arrives");
            from.ip().to_canonical()
        })
    }
}

/// Sends to each client, until the process ends.
fn serve(listener: TcpListener) {
    thread::spawn(move || {
        for client in listener.incoming() {
            client?.write_all(&vec![b'x'; BYTES])?;
        }
        Ok::<_, io::Error>(())
    });
}
