//! The metrics by TCP, where every user of the machine can ask.

use crate::daemon::Daemon;
use crate::kit::{PATIENCE, Process, Result, until};
use crate::promtool;
use crate::world::veth;
use airmend_live::lab::Namespace;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

const METRICS: &str = "127.0.0.1:9290";
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\n\r\n";
const SCRAPES: usize = 24;
/// Connects all the time from addresses of its own, says nothing, half of a request, or a request
/// whose response it does not read, and keeps the connections.
const STRANGER: &str = "\
import os, random, socket, sys, time
os.setgid(65534)
os.setuid(65534)
kept = []
for number in range(sys.maxsize):
    if number == 64: print('ready', flush=True)
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s.bind(('127.0.%d.%d' % (random.randrange(256), random.randrange(1, 255)), 0))
    try:
        s.connect(('127.0.0.1', 9290))
        s.send([b'', b'GET /metrics HT', b'GET /metrics HTTP/1.1\\r\\n\\r\\n'][number % 3])
    except OSError: pass
    kept = kept[-500:] + [s]
    time.sleep(0.001)
";

/// Another user's connections keep no scrape from its answer.
pub(crate) fn beside_a_stranger() -> Result {
    let base = Namespace::new()?;
    base.ip("link set lo up\nlink add air0 type veth peer name other\nlink set air0 up\n")?;
    let daemon = Daemon::start(&base, "air0", &["--metrics", METRICS])?;
    let mut stranger = Command::new("python3");
    stranger.args(["-c", STRANGER]).current_dir("/");
    let mut stranger = Process(base.spawn(stranger.stdout(Stdio::piped()))?);
    let out = stranger.0.stdout.take().ok_or("stdout is piped")?;
    BufReader::new(out).read_line(&mut String::new())?;
    let scrapes: Vec<_> = (0..SCRAPES).map(|_| ask(&base, METRICS)).collect::<Result<_>>()?;
    let answered = scrapes.iter().filter(|answer| answer.starts_with("HTTP/1.1 200 ")).count();
    assert_eq!(answered, SCRAPES, "{:?}", scrapes.last());
    drop(stranger);
    daemon.end().map(drop)
}

/// Other machines of the network that is named, and this one, are answered; others are not.
pub(crate) fn for_a_network() -> Result {
    let (base, other) = (Namespace::new()?, Namespace::new()?);
    veth((&base, "air0"), (&other, "other"))?;
    base.ip("link set lo up\nlink set air0 up\naddress add 10.0.5.1/16 dev air0\n")?;
    other.ip("link set other up\n")?;
    let flags = ["--metrics", "0.0.0.0:9290,from=10.0.5.0/24"];
    let daemon = Daemon::start(&base, "air0", &flags)?;
    for (address, is_answered) in [("10.0.5.2/16", true), ("10.0.6.2/16", false)] {
        other.ip(&format!("address add {address} dev other\n"))?;
        let answer = ask(&other, "10.0.5.1:9290")?;
        assert_eq!(answer.starts_with("HTTP/1.1 200 "), is_answered, "{address}: {answer}");
        assert!(is_answered || answer.is_empty(), "{answer}");
        other.ip(&format!("address del {address} dev other\n"))?;
    }
    let answer = ask(&base, METRICS)?;
    assert!(answer.starts_with("HTTP/1.1 200 "));
    // The other machine is on the air: what it asked came from there, and its answer went there.
    until("both directions", || {
        let goodput = &daemon.status().ok()?["goodput"];
        let bytes = |direction: &str| goodput[direction].as_u64().unwrap_or(0) as usize;
        let (from, to) = (bytes("from_mobiles_bytes"), bytes("to_mobiles_bytes"));
        (from >= REQUEST.len() && from <= 2 * REQUEST.len() && to > answer.len() / 2).then_some(())
    })?;
    daemon.end().map(drop)
}

/// `promtool check metrics` has nothing against them, whether it mends or only observes.
pub(crate) fn pass_promtool() -> Result {
    let base = Namespace::new()?;
    base.ip("link set lo up\nlink add air0 type veth peer name other\nlink set air0 up\n")?;
    for flags in [&["--metrics", METRICS][..], &["--metrics", METRICS, "--observe"]] {
        let daemon = Daemon::start(&base, "air0", flags)?;
        let answer = ask(&base, METRICS)?;
        let (_, metrics) = answer.split_once("\r\n\r\n").ok_or("no end of the fields")?;
        promtool::check_metrics(metrics, "airmend_")?;
        daemon.end()?;
    }
    Ok(())
}

fn ask(client: &Namespace, address: &str) -> Result<String> {
    let mut stream = client.run(|| Ok(TcpStream::connect(address)))??;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    // What a server refuses, it may close in mid-request.
    stream.read_to_end(&mut answer).ok();
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
