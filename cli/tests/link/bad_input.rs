//! Whatever is wrong ends in one sentence that says what would be right.

use crate::kit::{Result, TempFile, airmend};
use crate::world::{Link, World};
use airmend_live::lab::Namespace;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// What this command line ends with: the exit status, and the sentence.
fn ends(namespace: &Namespace, args: &[&str]) -> Result<(Option<i32>, String)> {
    let output = namespace.run(|| Ok(airmend().args(args).output()))??;
    let sentence = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(sentence.lines().count(), 1, "{args:?}: {sentence}");
    assert!(sentence.starts_with("airmend: ") && output.stdout.is_empty(), "{sentence}");
    Ok((output.status.code(), sentence))
}

/// A command line, what its sentence must hold, and the exit status.
type Case<'a> = (Vec<&'a str>, &'a str, i32);

fn check(world: &World, cases: &[Case<'_>]) -> Result {
    for (args, right, status) in cases {
        let (code, sentence) = ends(&world.left, args)?;
        assert!(sentence.contains(right), "{args:?}: no {right:?} in {sentence}");
        assert_eq!(code, Some(*status), "{args:?}: {sentence}");
    }
    Ok(())
}

const LISTEN: [&str; 3] = ["link", "--listen", "0.0.0.0:4433"];

pub(crate) fn bad_input() -> Result {
    let world = World::new()?;
    keys(&world)?;
    flags(&world)?;
    addresses(&world)?;
    busy(&world)?;
    no_ipv6(&world)
}

fn keys(world: &World) -> Result {
    let (good, open, broken) = (&world.key.0, TempFile::new("open"), TempFile::new("broken"));
    fs::copy(good, &open.0)?;
    fs::set_permissions(&open.0, fs::Permissions::from_mode(0o644))?;
    fs::write(&broken.0, "no key\n")?;
    fs::set_permissions(&broken.0, fs::Permissions::from_mode(0o600))?;
    let [good, open, broken] =
        [good, &open.0, &broken.0].map(|path| path.to_string_lossy().into_owned());
    let inside = format!("{good}/key");
    let key = |file, more: &[&'static str]| [&LISTEN[..], &["--key-file", file], more].concat();
    let shown = airmend().args(["keygen", "--show", &good]).output()?;
    let public = String::from_utf8(shown.stdout)?;
    let own = [&key(&good, &[])[..], &["--peer-key", public.trim()]].concat();
    check(
        world,
        &[
            (LISTEN.to_vec(), "airmend keygen", 2),
            (key(&open, &[]), "chmod 600", 1),
            (key(&broken, &[]), "64 hexadecimal digits", 1),
            (key("/nowhere/key", &[]), "airmend keygen /nowhere/key", 1),
            (key(&good, &["--insecure"]), "exclude each other", 2),
            (key(&good, &["--peer-key", "12"]), "64 hexadecimal digits", 2),
            (own, "public key of --key-file itself", 2),
            (key(&good, &["--psk-file", "/nowhere/psk"]), "there is no key file", 1),
            (key(&inside, &[]), "(Not a directory (os error 20)): it must be a file", 1),
            (key(&good, &["--pad", "0"]), "write 16", 2),
            ([&LISTEN[..], &["--psk-file", &good]].concat(), "--key-file", 2),
            (vec!["keygen", &good], "exists already", 1),
            (vec!["keygen", "/nowhere/key"], "cannot write", 1),
        ],
    )?;
    assert_eq!(fs::metadata(&good)?.permissions().mode() & 0o777, 0o600);
    Ok(())
}

fn flags(world: &World) -> Result {
    let with = |flags: &[&'static str]| [&LISTEN[..], &["--insecure"], flags].concat();
    check(
        world,
        &[
            (with(&["--peer", "192.0.2.2:1"]), "exclude each other", 2),
            (with(&["--dev", "a/b"]), "1 to 15 letters", 1),
            (with(&["--dev", "sixteen-letters-x"]), "1 to 15 letters", 1),
            (with(&["--dev", "eth0"]), "exists already", 1),
            (with(&["--address", "10.9.0.1"]), "10.9.0.1/24", 2),
            (with(&["--allowed-ips", "0.0.0.0/0"]), "128.0.0.0/1", 2),
            (with(&["--up", "false"]), "`up` failed", 1),
            (with(&["--mtu", "9"]), "from 68 to 65000", 2),
            (with(&["--mtu", "1279", "--address", "fd09::1/64"]), "needs 1280", 2),
            (with(&["--interface", "eth0"]), "--over ethernet", 2),
            (with(&["--over", "wifi"]), "udp or ethernet", 2),
            (with(&["--arq", "magic"]), "mends no link", 2),
            (with(&["--arq", "plain", "--class", "udp=reliable"]), "--arq tulip", 2),
            (with(&["--class", "quic=reliable"]), "udp:443>0=100ms", 2),
            (with(&["--set", "windw=9"]), "it has profile, adaptive, window", 2),
            (with(&["--set", "half_duplex=true"]), "full duplex", 2),
        ],
    )
}

fn addresses(world: &World) -> Result {
    let peer = |peer| vec!["link", "--insecure", "--peer", peer];
    let ethernet =
        |flags: &[&'static str]| [&["link", "--insecure", "--over", "ethernet"], flags].concat();
    let bridge = |flags: &[&'static str]| {
        ethernet(&[&["--interface", "eth0", "--listen", "any"], flags].concat())
    };
    check(
        world,
        &[
            (vec!["link", "--insecure", "--listen", "198.51.100.1:1"], "no address of this", 1),
            (peer("192.0.2.2"), "192.0.2.1:4433", 2),
            (peer("2001:db8::1"), "[2001:db8::1]:4433", 2),
            (peer("no such host:4433"), "no address and no name", 2),
            (ethernet(&["--listen", "any"]), "--interface IF", 2),
            (ethernet(&["--interface", "eth7", "--listen", "any"]), "no interface eth7", 1),
            (ethernet(&["--interface", "eth0", "--peer", "192.0.2.2"]), "02:00:00:00:00:01", 2),
            (bridge(&["--bridge", "eth0"]), "eth0 carries the frames", 1),
            (bridge(&["--bridge", "lo"]), "lo is no Ethernet", 1),
            (bridge(&["--bridge", "eth7"]), "no interface eth7", 1),
            (bridge(&["--bridge", "lo", "--mtu", "1500"]), "exclude each other", 2),
            (ethernet(&["--interface", "eth0", "--listen", "eth0"]), "write any", 2),
        ],
    )
}

/// IPv6 that is switched off is in nobody's way who asks for none.
fn no_ipv6(world: &World) -> Result {
    let sysctl = "net.ipv6.conf.all.disable_ipv6";
    let file = format!("/proc/sys/{}", sysctl.replace('.', "/"));
    world.left.run(|| Ok(fs::write(file, "1")))??;
    let link = ["link", "--insecure", "--listen", "0.0.0.0:4433", "--address"];
    let (code, sentence) = ends(&world.left, &[&link[..], &["fd09::1/64"]].concat())?;
    assert!(code == Some(1) && sentence.contains("IPv6 is off here"), "{sentence}");
    assert!(sentence.contains("--address fd09::1/64") && sentence.contains(sysctl), "{sentence}");
    let mut command = airmend();
    command.args(link).arg("10.9.0.1/24");
    Link::start(&world.left, command)?.kill()
}

/// A second link on the same port, and one on the same interface.
fn busy(world: &World) -> Result {
    let start = |args: &[&str]| {
        let mut command = airmend();
        command.args(["link", "--insecure"]).args(args);
        Link::start(&world.left, command)
    };
    let first = start(&["--listen", "0.0.0.0:4433"])?;
    let port = ["link", "--insecure", "--dev", "mend1", "--listen", "0.0.0.0:4433"];
    let (code, sentence) = ends(&world.left, &port)?;
    assert!(code == Some(1) && sentence.contains("0.0.0.0:4433 is in use"), "{sentence}");
    let device = ["link", "--insecure", "--listen", "0.0.0.0:4434"];
    let (code, sentence) = ends(&world.left, &device)?;
    assert!(code == Some(1) && sentence.contains("mend0 exists already"), "{sentence}");
    first.kill()
}
