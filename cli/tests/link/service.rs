//! A link as its service runs it: a configuration file, a service manager that is told, and
//! reloads.

use crate::interface::shown;
use crate::kit::{PATIENCE, Result, TempFile, airmend, until};
use crate::promtool;
use crate::stream::{lasting, transfer};
use crate::world::{INNER, Link, RIGHT, World};
use crate::{BYTES, count, ended};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};

/// The command line of an end with this file and this socket.
fn command(file: &TempFile, socket: &TempFile) -> std::process::Command {
    let mut command = airmend();
    command.args(["link", "mend0", "--json", "--config"]).arg(&file.0);
    command.arg("--socket").arg(&socket.0);
    command
}

/// The file of the end that knows where the other is.
fn dialing(file: &TempFile, world: &World, more: &str) -> std::io::Result<()> {
    let key = world.key.0.display();
    let peer = format!("[[peer]]\nendpoint = \"{RIGHT}:4433\"\n");
    let address = format!("address = \"{}/24\"\n", INNER[0]);
    fs::write(&file.0, format!("key-file = \"{key}\"\n{address}{more}\n{peer}"))
}

/// What `airmend status` and the metrics say there, of a link in use.
fn says_how_it_is(socket: &TempFile) -> Result {
    let output = airmend().args(["status", "--json", "--socket"]).arg(&socket.0).output()?;
    let status: Value = serde_json::from_slice(&output.stdout)?;
    assert!(status["link"] == true && status["interface"] == "mend0", "{status}");
    assert!(status["peers"][0]["path"]["round_trip_seconds"].is_f64(), "{status}");
    let metrics = metrics(socket)?;
    let up = "airmend_link_up{interface=\"mend0\",peer=\"";
    let is_up = |line: &str| line.starts_with(up) && line.ends_with("} 1");
    assert!(metrics.lines().any(is_up), "{metrics}");
    assert!(metrics.contains("# TYPE airmend_link_events_total counter\n"), "{metrics}");
    Ok(())
}

fn metrics(socket: &TempFile) -> Result<String> {
    let mut stream = UnixStream::connect(&socket.0)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, metrics) = answer.split_once("\r\n\r\n").ok_or("no end of the fields")?;
    Ok(metrics.to_owned())
}

/// `promtool check metrics` has nothing against those of a link that was used.
pub(crate) fn metrics_pass_promtool() -> Result {
    let world = World::new()?;
    let (file, socket) = (TempFile::new("left.toml"), TempFile::new("left.sock"));
    dialing(&file, &world, "")?;
    let listener = world.listen("0.0.0.0:4433")?;
    let dialer = Link::start(&world.left, command(&file, &socket))?;
    transfer(&world, BYTES / 10)?;
    promtool::check_metrics(&metrics(&socket)?, "airmend_link_")?;
    ended(dialer)?;
    ended(listener)?;
    Ok(())
}

/// A stream outlives a reload of each end: of other addresses, and of what crosses the path. A file
/// with a mistake changes nothing. What is left of the rights is to change interfaces.
pub(crate) fn reloaded() -> Result {
    let world = World::new()?;
    let (right, left) = (TempFile::new("right.toml"), TempFile::new("left.toml"));
    let key = world.key.0.display();
    let listener = |address: &str, more: &str| {
        let text = format!(
            "listen = \"{RIGHT}:4433\"\naddress = [{address}]\nkey-file = \"{key}\"\n{more}"
        );
        fs::write(&right.0, text)
    };
    let own = format!("\"{}/24\"", INNER[1]);
    listener(&own, "")?;
    let dialer = |more: &str| dialing(&left, &world, more);
    dialer("")?;
    let manager_at = TempFile::new("manager");
    let manager = UnixDatagram::bind(&manager_at.0)?;
    manager.set_read_timeout(Some(PATIENCE))?;
    let [at_right, at_left] = ["right.sock", "left.sock"].map(TempFile::new);
    let mut watched = command(&right, &at_right);
    watched.env("NOTIFY_SOCKET", &manager_at.0);
    let mut right = Link::start(&world.right, watched)?;
    let mut left = Link::start(&world.left, command(&left, &at_left))?;
    let notice = until("READY", || {
        let mut notice = [0; 1024];
        let length = manager.recv(&mut notice).ok()?;
        let notice = String::from_utf8_lossy(&notice[..length]).into_owned();
        notice.starts_with("READY=1").then_some(notice)
    })?;
    assert!(notice.contains("\nSTATUS=mend0 is up"), "{notice}");
    let process = fs::read_to_string(format!("/proc/{}/status", right.id()))?;
    // CAP_NET_ADMIN.
    assert!(process.contains("CapEff:\t0000000000001000"), "{process}");
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        let goes_on = || {
            let before = received();
            until("as much again", || (received() > before + BYTES / 4).then_some(()))
        };
        goes_on()?;
        listener(&format!("{own}, \"10.8.0.2/24\""), "")?;
        right.signal(Signal::SIGHUP)?;
        right.said("the configuration was read again")?;
        assert!(shown(&world.right, "address show mend0")?.contains("10.8.0.2/24"));
        listener(&own, "pad = 16\n")?;
        right.signal(Signal::SIGHUP)?;
        right.said("the configuration was read again")?;
        assert!(!shown(&world.right, "address show mend0")?.contains("10.8.0.2"));
        goes_on()?;
        dialer("class = \"any=reliable\"")?;
        left.signal(Signal::SIGHUP)?;
        left.said("the configuration was read again")?;
        goes_on()?;
        dialer("clas = \"any=reliable\"")?;
        left.signal(Signal::SIGHUP)?;
        let why = left.said("nothing has changed")?;
        assert!(why.contains("left.toml:3: unknown key `clas`"), "{why}");
        dialer("dev = \"mend7\"")?;
        left.signal(Signal::SIGHUP)?;
        let why = left.said("nothing has changed")?;
        assert!(why.contains("the interface stays mend0"), "{why}");
        goes_on()?;
        says_how_it_is(&at_left)
    })?;
    let (sent, received) = (ended(left)?, ended(right)?);
    // The counters go on from one configuration to the next.
    assert_eq!((count(&sent, "sessions"), count(&received, "sessions")), (3, 3));
    assert!(count(&sent, "bytes_in") > BYTES / 4 * 4);
    Ok(())
}
