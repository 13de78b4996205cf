//! A peer that is gone, back, somebody else, or at another address of its name.

use crate::interface::shown;
use crate::kit::{Result, TempFile, airmend, until};
use crate::stream::transfer;
use crate::world::{INNER, LEFT, Link, RIGHT, World};
use crate::{BYTES, count, ended};
use airmend_live::lab::Namespace;
use std::fs;
use std::process::Command;
use std::time::Instant;

fn has_carrier(namespace: &Namespace) -> bool {
    !shown(namespace, "link show mend0").is_ok_and(|text| text.contains("NO-CARRIER"))
}

/// Each end says that the other is gone, and that it is back; the interface has a carrier meanwhile
/// only where that is wanted.
pub(crate) fn peer_lost_and_found() -> Result {
    let world = World::new()?;
    let at = format!("{RIGHT}:4433");
    let mut listener = world.listen(&at)?;
    let mut dialer = world.dial(&at)?;
    transfer(&world, BYTES / 10)?;
    listener.said("the peer is there")?;
    dialer.said("the peer is there")?;
    assert!(has_carrier(&world.left) && has_carrier(&world.right));
    let begin = Instant::now();
    dialer.kill()?;
    listener.said(&format!("the peer at {LEFT}"))?;
    println!("told after {:.1?}", begin.elapsed());
    assert!(!has_carrier(&world.right));
    let mut dialer = world.end(&world.left, INNER[0], &["--peer", &at, "--keep-carrier"])?;
    listener.said("the peer is there")?;
    until("the carrier", || has_carrier(&world.right).then_some(()))?;
    dialer.said("the peer is there")?;
    let begin = Instant::now();
    listener.kill()?;
    dialer.said(&format!("no answer from {at}"))?;
    println!("told after {:.1?}", begin.elapsed());
    assert!(has_carrier(&world.left));
    let listener = world.listen(&at)?;
    dialer.said("the peer is there")?;
    transfer(&world, BYTES / 10)?;
    let figures = ended(dialer)?;
    assert_eq!(figures["is_silent"], false, "{figures}");
    assert!(figures["handshake_seconds_ago"].is_f64() && figures["heard_seconds_ago"].is_f64());
    ended(listener)?;
    Ok(())
}

/// A peer with another key than this end expects is told of; a stranger is not.
pub(crate) fn stranger_and_wrong_key() -> Result {
    let world = World::new()?;
    let [expected, other] = ["expected", "other"].map(TempFile::new);
    let public = |file: &TempFile, flags: &[&str]| -> Result<String> {
        let output = airmend().arg("keygen").args(flags).arg(&file.0).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let (expected, _) = (public(&expected, &[])?, public(&other, &[])?);
    let own = public(&world.key, &["--show"])?;
    let at = format!("{RIGHT}:4433");
    let mut listener =
        world.end(&world.right, INNER[1], &["--listen", &at, "--peer-key", &expected])?;
    let end = |peer_key: &str| {
        let mut command = airmend();
        command.args(["link", "--json", "--peer", &at, "--peer-key", peer_key, "--key-file"]);
        command.arg(&other.0);
        Link::start(&world.left, command)
    };
    // It does not know the listener's key, and causes no line.
    let mut stranger = end(&expected)?;
    stranger.said("no answer from")?;
    stranger.kill()?;
    let wrong = end(&own)?;
    let line = listener.line()?;
    assert!(line.contains(&format!("refused an initiation from {LEFT}")), "{line}");
    wrong.kill()?;
    assert!(count(&ended(listener)?, "forged") > 10);
    Ok(())
}

/// A name without an address is waited for, its addresses of both families are tried, and the link
/// follows where it leads later.
pub(crate) fn name_follows() -> Result {
    let world = World::new()?;
    let hosts = TempFile::new("hosts");
    let (nobody, name) = ("192.0.2.9", "peer.airmend.example");
    fs::write(&hosts.0, "127.0.0.1 localhost\n")?;
    let command = world.command(INNER[0], &["--peer", &format!("{name}:4433")]);
    let mut shell = Command::new("unshare");
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    shell.args(["--mount", "sh", "-c", script]).arg(&hosts.0);
    shell.arg(command.get_program()).args(command.get_args());
    let mut listener = world.listen(&format!("{RIGHT}:4433"))?;
    let mut dialer = Link::start(&world.left, shell)?;
    dialer.said("the name of the peer has no address now")?;
    // The same file: it is mounted.
    let lead_to = |address: &str| fs::write(&hosts.0, format!("{address} {name}\n"));
    // At addresses of both families where nobody is, and at the peer's.
    lead_to(&format!("2001:db8::9 {name}\n{nobody} {name}\n{RIGHT}"))?;
    dialer.said("the peer is there")?;
    listener.said("the peer is there")?;
    transfer(&world, BYTES / 10)?;
    listener.kill()?;
    // The other family.
    lead_to(&format!("{nobody} {name}\n2001:db8::2"))?;
    let listener = world.listen("[2001:db8::2]:4433")?;
    transfer(&world, BYTES / 10)?;
    let figures = ended(dialer)?;
    assert_eq!(figures["peer"], "[2001:db8::2]:4433");
    ended(listener)?;
    Ok(())
}
