//! From flags and file to the configuration.

use super::configuration::wanted;
use super::options::{OPTION_NAMES, PEER_NAMES};
use super::*;
use crate::args::{Cli, Command};
use airmend_live::tunnel::PrivateKey;
use clap::Parser;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;

/// A directory with keys, which goes with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmend-links-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        for key in ["a.key", "b.psk"] {
            PrivateKey::generate().unwrap().write(&folder.0.join(key)).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// What this file and these flags ask for.
    fn wanted(&self, file: &str, flags: &[&str]) -> Result<(Wanted, bool)> {
        let path = self.path("link.toml");
        fs::write(&path, file).unwrap();
        wanted(&parse(&[&["--config", &path], flags].concat()))
    }

    fn why(&self, file: &str) -> String {
        let why = self.wanted(file, &[]).unwrap_err().to_string();
        assert_eq!(why.lines().count(), 1, "{why}");
        why.replace(&self.path(""), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn parse(flags: &[&str]) -> LinkArgs {
    let command = ["airmend", "link"].iter().chain(flags);
    match Cli::try_parse_from(command).unwrap().command {
        Command::Link(args) => *args,
        command => panic!("{command:?}"),
    }
}

const PUBLIC: &str = "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c";

/// Every option but those of a bridge, each other than its default.
fn file() -> String {
    format!(
        r#"
arq = "lack"
dev = "m7"
address = ["10.9.0.1/24", "fd09::1/64"]
mtu = 1300
over = "udp"
key-file = "a.key"
pad = 16
no-compression = true
class = "any=reliable"
no-routes = false
no-blackholes = true
keep-carrier = true
no-initcwnd = true
socket = "/tmp/s"
metrics = "127.0.0.1:9291"
up = "a"
down = "b"

[set]
window = 99

[[peer]]
name = "oslo"
key = "{PUBLIC}"
endpoint = "192.0.2.1:4433"
allowed-ips = ["10.50.7.7/16, 10.0.0.0/8", "fd50::/16"]
psk-file = "b.psk"
"#
    )
}

fn told(wanted: &Wanted) -> String {
    format!("{wanted:?}")
}

#[test]
fn every_flag_is_a_key_and_flags_go_before() {
    let folder = Folder::new();
    let (by_file, sets) = folder.wanted(&file(), &[]).unwrap();
    assert!(sets);
    let [key, psk] = ["a.key", "b.psk"].map(|name| folder.path(name));
    let flags = [
        "--arq=lack",
        "--dev=m7",
        "--address=10.9.0.1/24",
        "--address=fd09::1/64",
        "--mtu=1300",
        "--over=udp",
        &format!("--key-file={key}"),
        "--pad=16",
        "--no-compression",
        "--class=any=reliable",
        "--no-blackholes",
        "--keep-carrier",
        "--no-initcwnd",
        "--socket=/tmp/s",
        "--metrics=127.0.0.1:9291",
        "--up=a",
        "--down=b",
        "--allowed-ips=10.50.0.0/16,10.0.0.0/8",
        "--allowed-ips=fd50::/16",
        "--set=window=99",
        &format!("--peer-key={PUBLIC}"),
        "--peer=192.0.2.1:4433",
        &format!("--psk-file={psk}"),
    ];
    let (by_flags, _) = wanted(&parse(&flags)).unwrap();
    // What people call the peer is for the file.
    let nameless = told(&by_file).replace("name: Some(\"oslo\")", "name: None");
    assert_eq!(nameless, told(&by_flags));
    for (flag, words) in [("--dev=m8", "\"m8\""), ("--address=10.8.0.1/8", "10.8.0.1, 8")] {
        let (both, _) = folder.wanted(&file(), &[flag]).unwrap();
        assert!(told(&both).contains(words) && !told(&by_file).contains(words), "{flag}");
    }
    // The keys that the file above lacks are those of the end that waits, and of a bridge.
    let missing = ["bridge", "listen", "interface", "insecure"];
    for key in OPTION_NAMES.iter().chain(&PEER_NAMES) {
        assert!(file().contains(key) != missing.contains(key), "{key}");
    }
}

/// Two LANs over Ethernet by LACK, as docs/link.md has them.
#[test]
fn a_bridge_is_a_file_too() {
    let folder = Folder::new();
    let docs = include_str!("../../../docs/link.md");
    let (_, section) = docs.split_once("## Two LANs as one").unwrap();
    let (_, file) = section.split_once("```toml\n").unwrap();
    let (file, _) = file.split_once("```").unwrap();
    let file = file.replace("PUBLIC-KEY-OF-THE-OTHER-STATION", PUBLIC);
    let key = format!("--key-file={}", folder.path("a.key"));
    let (by_file, _) = folder.wanted(&file, &["lans", &key]).unwrap();
    let flags = [
        "--bridge=eth0",
        "--over=ethernet",
        "--interface=wlan0",
        "--listen=any",
        "--arq=lack",
        &format!("--peer-key={PUBLIC}"),
        &key,
    ];
    let (by_flags, _) = wanted(&parse(&flags)).unwrap();
    assert_eq!(told(&by_file).split("server").next(), told(&by_flags).split("server").next());
    assert!(told(&by_file).contains("Bridge { interface: \"eth0\" }"));
}

#[test]
fn a_mistake_has_a_line() {
    let folder = Folder::new();
    for (text, why) in [
        ("a = ", "link.toml:1: "),
        ("listen = \"[::]:1\"", "a link needs --key-file"),
        ("\nmtu = 9", "link.toml:2: `mtu`: \"9\" is no MTU"),
        ("mtu = [9]", "link.toml:1: `mtu` must be a single value"),
        ("\n\nadress = \"10.9.0.1/24\"", "link.toml:3: unknown key `adress`; did you mean"),
        ("address = [\n\"10.9.0.1\"]", "link.toml:2: `address`: \"10.9.0.1\" is no address with"),
        ("listen = 4", "link.toml:1: `listen`: \"4\" lacks a port"),
        ("[set]\nwindw = 9", "link.toml:2: "),
        ("class = \"quic=reliable\"", "link.toml:1: `class`: "),
        ("[[peer]]\nallowed-ips = \"::/0\"", "link.toml:2: `allowed-ips`: \"::/0\" is also"),
        ("allowed-ips = \"\"", "link.toml:1: `allowed-ips` belongs into a table [[peer]]"),
        ("address = 10", "link.toml:1: `address` must be a text or a list"),
        ("peer = \"a:1\"", "link.toml:1: the peer is a table: write [[peer]]"),
        ("[peer]\nkey = \"\"", "link.toml:1: the peer is a table"),
        ("[[peer]]\nkey = \"\"", "link.toml:2: `key`: \"\" is no public key"),
        (
            "[[peer]]\nallowed = \"\"",
            "link.toml:2: unknown key `allowed`; did you mean `allowed-ips`?",
        ),
        ("[[peer]]\n[[peer]]", "link.toml:1: with several [[peer]] each needs a `key`"),
        ("peer-key = \"\"", "link.toml:1: `peer-key` is `key` in a table [[peer]]"),
        ("mtu = 1300\nbridge = \"e\"", "link.toml:2: `bridge` and `mtu` exclude each other"),
        ("insecure = 1", "link.toml:1: `insecure`: \"1\" must be true or false"),
        ("set = 1", "link.toml:1: `set` must be a table"),
        ("insecure = true\nlisten = \"[::]:1\"\n[[peer]]\nendpoint = \"[::1]:1\"", "exclude"),
        ("insecure = true", "a link needs --listen ADDR where it waits"),
        ("key-file = \"c.key\"\nlisten = \"[::]:1\"", "there is no key file c.key"),
    ] {
        let said = folder.why(text);
        assert!(said.contains(why), "{text:?}: no {why:?} in {said}");
    }
}

/// A table of a peer with this name and key, and more.
fn peer(name: &str, key: &str, more: &str) -> String {
    format!("[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\n{more}\n")
}

#[test]
fn several_peers_have_keys_and_addresses_of_their_own() {
    let folder = Folder::new();
    let keys: Vec<_> = (0..3).map(|_| PrivateKey::generate().unwrap().public()).collect();
    let [a, b, c] = [0, 1, 2].map(|at: usize| keys[at].to_string());
    let head = "listen = \"[::]:1\"\nkey-file = \"a.key\"\n";
    let oslo = peer("oslo", &a, "allowed-ips = [\"10.9.0.2/32\", \"10.50.0.0/16\"]");
    let endpoint = "endpoint = \"bergen.example.net:4433\"\nallowed-ips = \"10.9.0.3/32\"";
    let bergen = peer("bergen", &b, endpoint);
    let (both, _) = folder.wanted(&[head, &oslo, &bergen].concat(), &[]).unwrap();
    let [first, second] = &both.tunnel.peers[..] else { panic!("{both:?}") };
    assert_eq!((first.allowed.len(), first.title()), (2, "oslo".to_owned()));
    assert!(first.remote.is_none() && second.remote.is_some());
    assert!(told(&both).contains("routes: [(10.9.0.2, 32), (10.50.0.0, 16), (10.9.0.3, 32)]"));
    let why = folder.wanted(&[head, &oslo, &bergen].concat(), &["--peer=a:1"]).unwrap_err();
    assert!(why.to_string().contains("the file has several [[peer]]"), "{why}");
    for (third, why) in [
        (peer("x", &c, ""), "link.toml:12: with several [[peer]] each needs `allowed-ips`"),
        ("[[peer]]\n".to_owned(), "link.toml:12: with several [[peer]] each needs a `key`"),
        (
            peer("x", &a, "allowed-ips = \"10.9.0.4/32\""),
            "link.toml:12: this `key` is also that of the peer oslo",
        ),
        (
            peer("x", &c, "allowed-ips = \"10.50.7.7/16\""),
            "link.toml:12: `allowed-ips`: 10.50.0.0/16 is also the peer oslo's",
        ),
    ] {
        let said = folder.why(&[head, &oslo, &bergen, &third].concat());
        assert!(said.contains(why), "{third:?}: no {why:?} in {said}");
    }
    for (head, why) in [
        ("key-file = \"a.key\"\n", "`listen` is missing, or the `endpoint` of some [[peer]]"),
        ("listen = \"[::]:1\"\ninsecure = true\n", "insecure is for one [[peer]]"),
        ("listen = \"[::]:1\"\nkey-file = \"a.key\"\nbridge = \"e\"\n", "a bridge joins two"),
    ] {
        let said = folder.why(&[head, &oslo, &bergen].concat());
        assert!(said.contains(why), "no {why:?} in {said}");
    }
    let many = (0..257).map(|_| "[[peer]]\n").collect::<String>();
    assert!(folder.why(&many).contains("link.toml:257: a link has 256 [[peer]] at most"));
    let networks: Vec<_> =
        (0..257).map(|at| format!("\"10.{}.{}.0/24\"", at / 256, at % 256)).collect();
    let wide = peer("x", &c, &format!("allowed-ips = [{}]", networks.join(",")));
    assert!(folder.why(&wide).contains("`allowed-ips` may have 256 entries at most"));
}

#[test]
fn a_name_is_that_of_the_file_the_key_and_the_interface() {
    let why = wanted(&parse(&["home-9"])).unwrap_err().to_string();
    assert!(why.starts_with("/etc/airmend/link/home-9.toml: it cannot be read"), "{why}");
    let folder = Folder::new();
    let flags = ["home-9", "--insecure", "--listen=[::]:1"];
    let (wanted, sets) = folder.wanted("", &flags).unwrap();
    assert!(!sets && told(&wanted).contains("\"home-9\""));
    let why = folder.wanted("listen = \"[::]:1\"", &["home-9"]).unwrap_err().to_string();
    assert!(why.contains("/etc/airmend/link/home-9.key"), "{why}");
}

/// The example is a configuration, apart from the key that stands for the peer's.
#[test]
fn the_example_works() {
    let folder = Folder::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/home.toml");
    let text = fs::read_to_string(example).unwrap();
    let key = format!("--key-file={}", folder.path("a.key"));
    let (wanted, sets) = folder.wanted(&text, &["home", &key]).unwrap();
    assert!(sets && told(&wanted).contains("[::]:4433"));
}
