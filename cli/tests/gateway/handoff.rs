//! Two base stations with a gateway each, and a mobile host that moves between them [S0-45].

use crate::daemon::{Daemon, socket};
use crate::kit::{Process, Result, TempFile, airmend, has_steady_clock, until};
use crate::transfer::{Hosts, Plan, Progress, transfer};
use crate::world::{RATE_BPS, air_queue, fixed_address, forwarding, pair, quiet, run, veth};
use airmend_live::lab::Namespace;
use serde_json::Value;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Moves in a transfer, and the time between them.
const MOVES: usize = 6;
const STAY: Duration = Duration::from_millis(500);
/// The fixed network learns of a move so much later.
const ROUTE_DELAY: Duration = Duration::from_millis(30);
/// The mobile host has new data after so much at the median: what the targets of the laboratory
/// allow, and a queue of the fixed host's kernel.
const MOST_MEDIAN: Duration = Duration::from_millis(25);
const GROUP: &str = "239.192.77.2";
const PORT: u16 = 7_395;

/// How the base stations forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Routers,
    Bridges,
    /// Routers that get super-packets, and send them as they are.
    RoutersWithOffloads,
}

/// A fixed host and two base stations on a switch; the mobile host is in the cell of one of them.
struct Cells {
    kind: Kind,
    fixed: Namespace,
    bases: Vec<Namespace>,
    mobile: Vec<Namespace>,
    ether: Namespace,
}

impl Cells {
    fn new(kind: Kind) -> Result<Self> {
        println!("{kind:?}");
        let ether = Namespace::new()?;
        quiet(&ether)?;
        ether.ip("link add switch type bridge\nlink set switch up\n")?;
        let (fixed, bases) = (Namespace::new()?, vec![Namespace::new()?, Namespace::new()?]);
        let cells = Self { kind, fixed, bases, mobile: vec![Namespace::new()?], ether };
        cells.cable("fixed", &cells.fixed, "eth0", "switch")?;
        for (number, base) in cells.bases.iter().enumerate() {
            let cell = format!("cell{number}");
            cells.ether.ip(&format!("link add {cell} type bridge\nlink set {cell} up\n"))?;
            cells.cable(&format!("wired{number}"), base, "wired0", "switch")?;
            cells.cable(&format!("air{number}"), base, "air0", &cell)?;
            run(base, "tc", &["-batch", "-"], &air_queue("air0", RATE_BPS))?;
            if kind == Kind::RoutersWithOffloads {
                // A hundred super-packets would take two seconds.
                let queue = "qdisc replace dev air0 parent 1:2 bfifo limit 150000\n";
                run(base, "tc", &["-batch", "-"], queue)?;
            }
            cells.set_up(base, number)?;
        }
        cells.cable("mobile", &cells.mobile[0], "eth0", "cell0")?;
        for (host, address) in
            [(&cells.fixed, fixed_address(false)), (&cells.mobile[0], cells.mobile_address())]
        {
            host.ip(&format!(
                "link set lo up\nlink set eth0 up\naddress add {address}/24 dev eth0\n"
            ))?;
        }
        if kind != Kind::Bridges {
            cells.mobile[0].ip("route add default via 10.77.2.1\n")?;
        }
        cells.route(0)?;
        Ok(cells)
    }

    fn mobile_address(&self) -> &'static str {
        if self.kind == Kind::Bridges { "10.77.1.3" } else { "10.77.2.2" }
    }

    fn cable(&self, end: &str, host: &Namespace, interface: &str, bridge: &str) -> Result {
        match self.kind {
            Kind::RoutersWithOffloads => veth((&self.ether, end), (host, interface))?,
            _ => pair((&self.ether, end), (host, interface))?,
        }
        Ok(self.ether.ip(&format!("link set {end} master {bridge}\nlink set {end} up\n"))?)
    }

    fn set_up(&self, base: &Namespace, number: usize) -> Result {
        let address = 11 + number;
        match self.kind {
            Kind::Bridges => base.ip(&format!(
                "link add br0 type bridge\nlink set wired0 master br0\nlink set air0 master br0\n\
                 link set wired0 up\nlink set air0 up\nlink set br0 up\n\
                 address add 10.77.1.{address}/24 dev br0\n"
            ))?,
            _ => {
                base.run(|| Ok(forwarding()))??;
                // Both are the same router to the mobile host.
                base.ip(&format!(
                    "link set lo up\nlink set air0 address 02:00:00:77:00:01\n\
                     link set wired0 up\nlink set air0 up\n\
                     address add 10.77.1.{address}/24 dev wired0\n\
                     address add 10.77.2.1/24 dev air0\n"
                ))?;
            }
        }
        Ok(())
    }

    /// The fixed host sends to this station.
    fn route(&self, to: usize) -> Result {
        match self.kind {
            // The switch learns from what the mobile host sends.
            Kind::Bridges => Ok(()),
            _ => Ok(self
                .fixed
                .ip(&format!("route replace 10.77.2.0/24 via 10.77.1.{}\n", 11 + to))?),
        }
    }

    /// The mobile host's radio leaves one cell for the other, and says hello there.
    fn enter(&self, to: usize) -> Result {
        self.ether.ip(&format!("link set mobile master cell{to}\n"))?;
        let hello = || -> std::io::Result<()> {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.send_to(b"hello", (fixed_address(false), 9)).map(drop)
        };
        Ok(self.mobile[0].run(|| Ok(hello()))??)
    }

    fn hosts(&self) -> Hosts<'_> {
        Hosts { fixed: &self.fixed, addresses: [fixed_address(false); 2], mobiles: &self.mobile }
    }

    fn gateways(&self, key: &str) -> Result<Vec<Daemon>> {
        let interface = if self.kind == Kind::Bridges { "br0" } else { "wired0" };
        let handoff = format!("group={GROUP},key-file={key},interface={interface}");
        let start = |base| Daemon::start(base, "air0", &["--handoff", &handoff]);
        let gateways = self.bases.iter().map(start).collect::<Result<Vec<_>>>()?;
        for gateway in &gateways {
            until("the other station", || {
                let status = gateway.status().ok()?;
                (status["handoff"]["stations_known"] == 1).then_some(())
            })?;
        }
        Ok(gateways)
    }
}

/// Moves the mobile host while it receives, to gateways that were told of it if `primed` has them;
/// the times from each move to new data.
fn moves(cells: &Cells, progress: &Progress, primed: &[Daemon]) -> Result<Vec<Duration>> {
    let mut gaps = Vec::new();
    while gaps.len() < MOVES {
        let to = (gaps.len() + 1) % 2;
        thread::sleep(STAY / 2);
        if let Some(gateway) = primed.get(to) {
            tell(gateway, "approaching", cells.mobile_address())?;
        }
        thread::sleep(STAY / 2);
        cells.enter(to)?;
        let (begin, before) = (Instant::now(), progress.received());
        thread::scope(|scope| -> Result {
            let routed = scope.spawn(|| {
                thread::sleep(ROUTE_DELAY);
                cells.route(to).map_err(|error| error.to_string())
            });
            until("new data", || (progress.received() > before).then_some(()))?;
            gaps.push(begin.elapsed());
            Ok(routed.join().map_err(|_| "a panic")??)
        })?;
    }
    gaps.sort_unstable();
    Ok(gaps)
}

/// What an operator's program does that knows more than the gateway.
fn tell(gateway: &Daemon, movement: &str, mobile: &str) -> Result {
    let mut airmend = airmend();
    airmend.args(["handoff", movement, mobile, "--socket"]).arg(gateway.socket());
    let output = airmend.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

fn key() -> Result<TempFile> {
    let file = TempFile::new("handoff.key");
    let made = airmend().args(["keygen", "--psk"]).arg(&file.0).output()?;
    assert!(made.status.success(), "{made:?}");
    Ok(file)
}

/// The sum of a counter of all stations.
fn sum(statuses: &[Value], name: &str) -> u64 {
    let counters = statuses.iter().map(|status| &status["handoff"]["counters"][name]);
    counters.filter_map(Value::as_u64).sum()
}

/// A transfer goes on as the mobile host moves; every byte arrives, and no move costs a timeout.
/// The last status of each gateway.
fn hands_over(cells: &Cells, is_primed: bool) -> Result<Vec<Value>> {
    let key = key()?;
    let gateways = cells.gateways(key.0.to_str().ok_or("a path of text")?)?;
    let plan = Plan { congestion: Some("cubic"), ..Plan::lasting(1) };
    let primed = if is_primed { &gateways[..] } else { &[] };
    let mut gaps = Vec::new();
    let took = transfer(cells.hosts(), &plan, |progress| {
        gaps = moves(cells, progress, primed)?;
        Ok(())
    });
    let took = took.inspect_err(|_| {
        for gateway in &gateways {
            println!("{:?}: {:?}", gateway.status(), gateway.said());
        }
    })?;
    println!("{took:.1?}, new data after {gaps:.1?}");
    let statuses: Vec<Value> = gateways.into_iter().map(Daemon::end).collect::<Result<_>>()?;
    for status in &statuses {
        println!("{}", status["handoff"]);
    }
    assert_eq!(sum(&statuses, "handoffs_completed"), gaps.len() as u64);
    assert_eq!(sum(&statuses, "handoffs_away"), gaps.len() as u64);
    assert!(sum(&statuses, "handoff_packets_relayed") > 0);
    assert!(!has_steady_clock() || gaps[MOVES / 2] <= MOST_MEDIAN, "{gaps:?}");
    Ok(statuses)
}

/// Somebody on the stations' network sends messages without the key.
pub(crate) fn between_routers() -> Result {
    let cells = Cells::new(Kind::Routers)?;
    cells.fixed.ip("route add 239.0.0.0/8 dev eth0\n")?;
    let intruder = cells.fixed.run(|| Ok(UdpSocket::bind(("0.0.0.0", 0))))??;
    let over = AtomicBool::new(false);
    let statuses = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let message = [&[1, 4, 0, 0], &number.to_be_bytes()[..], &[7; 60]].concat();
                intruder.send_to(&message, (GROUP, PORT)).ok();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let statuses = hands_over(&cells, false).map_err(|error| error.to_string());
        over.store(true, Ordering::Relaxed);
        statuses
    })?;
    assert!(sum(&statuses, "handoff_messages_forged") > 1_000);
    Ok(())
}

/// The stations are told that the mobile host may come, and keep its packets.
pub(crate) fn primed() -> Result {
    let statuses = hands_over(&Cells::new(Kind::Routers)?, true)?;
    assert!(sum(&statuses, "handoff_packets_primed") > 0);
    Ok(())
}

pub(crate) fn between_bridges() -> Result {
    hands_over(&Cells::new(Kind::Bridges)?, false).map(drop)
}

pub(crate) fn with_offloads() -> Result {
    hands_over(&Cells::new(Kind::RoutersWithOffloads)?, false).map(drop)
}

/// Somebody in each cell sends packets with invented addresses, from one link-layer address. They
/// go no further than the base station, whose kernel need not ask where their senders are.
const FLOOD: &str = "\
import random, socket, struct, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('eth0', 0))
link = bytes.fromhex('020000770001 020000006666 0800')
to = bytes([10, 77, 1, 2])
while True:
    for _ in range(40):
        source = bytes([10, 98 + int(sys.argv[1])]) + random.randbytes(2)
        head = struct.pack('>BBHHHBBH', 69, 0, 20, 0, 0, 1, 253, 0)
        words = struct.unpack('>10H', head + source + to)
        total = sum(words)
        check = ~(total + (total >> 16)) & 0xffff
        head = struct.pack('>BBHHHBBH', 69, 0, 20, 0, 0, 1, 253, check)
        s.send(link + head + source + to)
    time.sleep(0.002)
";

/// A host is claimed though somebody in its cell invents hosts faster than a station lets them
/// attach.
pub(crate) fn beside_invented_hosts() -> Result {
    let cells = Cells::new(Kind::Routers)?;
    let mut floods = Vec::new();
    for cell in 0..cells.bases.len() {
        let intruder = Namespace::new()?;
        cells.cable(&format!("flood{cell}"), &intruder, "eth0", &format!("cell{cell}"))?;
        intruder.ip("link set eth0 up\n")?;
        let flood =
            intruder.spawn(Command::new("python3").args(["-c", FLOOD, &cell.to_string()]))?;
        floods.push((Process(flood), intruder));
    }
    let key = key()?;
    let gateways = cells.gateways(key.0.to_str().ok_or("a path of text")?)?;
    let mobiles = |gateway: &Daemon| {
        let status = gateway.status().ok()?;
        status["handoff"]["mobiles"].as_u64()
    };
    for gateway in &gateways {
        until("the flood", || mobiles(gateway).filter(|mobiles| *mobiles > 200))?;
    }
    let away = || {
        let statuses = gateways.iter().map(Daemon::status).collect::<Result<Vec<_>>>().ok()?;
        Some(sum(&statuses, "handoffs_away"))
    };
    cells.enter(0)?;
    for number in 1..=MOVES {
        let begin = Instant::now();
        until("the host in its next cell", || {
            // It says something ten times a second.
            thread::sleep(Duration::from_millis(100));
            cells.enter(number % 2).ok()?;
            away().filter(|away| *away >= number as u64)
        })?;
        println!("claimed after {:.1?}", begin.elapsed());
    }
    drop(floods);
    for gateway in gateways {
        println!("{}", gateway.end()?["handoff"]);
    }
    Ok(())
}

/// What is wrong gets a sentence, and nothing is attached.
pub(crate) fn bad_handoffs() -> Result {
    let cells = Cells::new(Kind::Routers)?;
    let key = key()?;
    let key = key.0.display();
    let none = socket();
    for (handoff, words) in [
        (format!("group={GROUP},key-file={}", none.display()), "there is no key file"),
        (format!("group={GROUP},key-file={key}"), "there is no route to 239.192.77.2"),
        (format!("group={GROUP},key-file={key},interface=eth7"), "eth7"),
    ] {
        let refused = Daemon::start(&cells.bases[0], "air0", &["--handoff", &handoff]);
        let refused = refused.err().ok_or("it began")?.to_string();
        assert!(refused.contains(words) && refused.lines().count() == 1, "{refused}");
    }
    let alone = Daemon::start(&cells.bases[0], "air0", &[])?;
    let why = tell(&alone, "attached", "10.77.2.2").err().ok_or("it took the word")?.to_string();
    assert!(why.contains("start it with --handoff"), "{why}");
    let why = tell(&alone, "gone", "10.77.2.2").err().ok_or("it took the word")?.to_string();
    assert!(why.contains("approaching"), "{why}");
    alone.end().map(drop)
}
