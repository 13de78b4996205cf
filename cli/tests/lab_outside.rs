//! `airmend lab exec --outside`: programs over the hop reach the network of the machine, here a
//! namespace in its place, and one in that of the Internet behind it.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_live::lab::{LabError, Namespace};
use airmend_testkit::Suite;
use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;

const BYTES: usize = 300_000;
const FAR: &str = "203.0.113.2";
const CLIENT: &str = "import socket, sys; n = 0; \
                      s = socket.create_connection((sys.argv[1], 7000), timeout=300)\n\
                      while (b := s.recv(65536)): n += len(b)\n\
                      print(n)";

fn main() -> ExitCode {
    let lacks = doctor::lacks("run the laboratory");
    let root = nix::unistd::geteuid().is_root();
    let lacks = lacks.or((!root).then(|| "only root may join networks".to_owned()));
    let lacks = lacks.or_else(|| {
        let programs = ["python3", "nft"];
        let is_missing = |name: &&&str| Command::new(name).arg("--version").output().is_err();
        programs.iter().find(is_missing).map(|name| format!("{name} is not there"))
    });
    let tests: [(&str, fn()); 2] = [
        ("the_internet_and_the_machine_are_reached", the_internet_and_the_machine_are_reached),
        ("a_machine_that_does_not_forward_says_so", a_machine_that_does_not_forward_says_so),
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
    // Nothing of it is left.
    let left = |program: &str, arguments: &[&str]| {
        let child =
            world.machine.spawn(Command::new(program).args(arguments).stdout(Stdio::piped()));
        let output = child.expect(program).wait_with_output().expect(program);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let links = left("ip", &["-o", "link"]);
    assert!(links.contains("uplink") && !links.contains("airmend"), "{links}");
    assert_eq!(left("nft", &["list", "tables"]), "");
}

fn a_machine_that_does_not_forward_says_so() {
    let world = World::new(false).expect("a network");
    let output = world.exec(&[], "machine");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    assert!(report.starts_with("airmend: this machine does not forward"), "{report}");
}

/// A machine with an uplink, and a host behind that which knows no way back to the laboratory.
struct World {
    machine: Namespace,
    _far: Namespace,
}

impl World {
    fn new(forwards: bool) -> Result<Self, LabError> {
        let (machine, far) = (Namespace::new()?, Namespace::new()?);
        machine.ip(&format!(
            "link set lo up\n\
             link add uplink type veth peer name eth0 netns {}\n\
             address add 203.0.113.1/24 dev uplink\n\
             link set uplink up\n",
            far.path().display()
        ))?;
        far.ip(&format!("link set lo up\naddress add {FAR}/24 dev eth0\nlink set eth0 up\n"))?;
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
        Ok(Self { machine, _far: far })
    }

    fn exec(&self, flags: &[&str], server: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmend"));
        command
            .args(["lab", "exec", "--outside", "--agent", "plain", "--loss", "0.02", "--json"])
            .args(["--wired-delay", "2ms"])
            .args(flags)
            .arg("--")
            .args(["python3", "-c", CLIENT, server])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = self.machine.spawn(&mut command).expect("airmend runs");
        child.wait_with_output().expect("airmend runs")
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
