//! Two `airmend link` processes in namespaces of their own. Where the kernel gives this user no
//! network namespaces or no TUN device, every test is ignored.

mod accidents;
mod attack;
mod bad_input;
mod bridge;
mod clock;
mod crowd;
mod dhcp;
mod ecn;
mod encrypted;
mod flood;
mod gain;
mod honest;
mod hub;
mod icmp;
mod initial_window;
mod interface;
#[path = "../kit/mod.rs"]
mod kit;
mod lans;
mod memory;
mod narrow;
mod netem;
mod new_user;
mod options;
#[path = "../kit/promtool.rs"]
mod promtool;
mod restart;
mod routes;
mod service;
mod silence;
mod stream;
mod unread;
mod world;

use airmend_live::lab::{Namespace, enter_user_namespace};
use airmend_testkit::Suite;
use kit::{Result, TempFile, airmend, lacks_guest, until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::OpenOptions;
use std::process::ExitCode;
use stream::{lasting, transfer};
use world::{INNER, LEFT, Link, RIGHT, World};

type Test = fn() -> Result;

const TESTS: [(&str, Test); 51] = [
    ("as_a_new_user", new_user::as_a_new_user),
    ("nobody_reads", unread::nobody_reads),
    ("over_ipv4", over_ipv4),
    ("over_ipv6", over_ipv6),
    ("over_ethernet", over_ethernet),
    ("two_keys", two_keys),
    ("insecure", insecure),
    ("listener_killed_and_restarted", || listener_killed_and_restarted("tulip")),
    ("dialer_killed_and_restarted", || dialer_killed_and_restarted("tulip")),
    ("address_change", || address_change("tulip")),
    ("restart_time", || restart::restart_time("tulip")),
    ("narrow_path", || narrow::narrow_path("tulip")),
    ("narrow_path_over_ipv6", narrow::narrow_path_over_ipv6),
    ("narrow_path_with_ipv6_inside", || narrow::narrow_path_with_ipv6_inside(0)),
    ("narrow_path_over_ipv6_with_ipv6_inside", || narrow::narrow_path_with_ipv6_inside(1)),
    ("forged_icmp", icmp::forged_icmp),
    ("forged_icmp_over_ipv6", icmp::forged_icmp_over_ipv6),
    ("address_put_back", interface::address_put_back),
    ("route_through_the_link", interface::route_through_the_link),
    ("narrow_path_without_icmp", narrow::narrow_path_without_icmp),
    ("path_narrows_without_icmp", || narrow::path_narrows_without_icmp("tulip")),
    ("attacked", attack::attacked),
    ("flood_of_noise", flood::noise),
    ("flood_of_right_headers", flood::header),
    ("flood_of_replays", flood::replay),
    ("flood_from_forged_sources", || flood::forged("tulip")),
    ("flood_with_the_public_key", flood::keyed),
    ("memory_of_parts", memory::parts),
    ("memory_of_short_packets", memory::short_packets),
    ("memory_of_a_full_window", memory::full_window),
    ("lossy", || attack::lossy("tulip")),
    ("reloaded", service::reloaded),
    ("routed", routes::routed),
    ("kept_over_a_restart", routes::kept_over_a_restart),
    ("peer_lost_and_found", silence::peer_lost_and_found),
    ("stranger_and_wrong_key", silence::stranger_and_wrong_key),
    ("name_follows", silence::name_follows),
    ("hub_routed_by_address", hub::routed_by_address),
    ("hub_peers_come_and_go", hub::peers_come_and_go),
    ("wrong_key", wrong_key),
    ("pre_shared_key", options::pre_shared_key),
    ("padded", options::padded),
    ("compressed", options::compressed),
    ("bridged_lans", || bridge::bridged_lans("tulip")),
    ("bridged_frames", || bridge::bridged_frames("tulip")),
    ("bridge_killed", || bridge::bridge_killed("tulip")),
    ("figures_and_end", figures_and_end),
    ("interface_down", accidents::interface_down),
    ("radio_down", accidents::radio_down),
    ("figures_that_nobody_takes", accidents::figures_that_nobody_takes),
    ("bad_input", bad_input::bad_input),
];

/// What depends on the link protocol, with the others.
const OF_LACK: [(&str, Test); 13] = [
    ("listener_killed_with_lack", || listener_killed_and_restarted("lack")),
    ("dialer_killed_with_lack_flow", || dialer_killed_and_restarted("lack-flow")),
    ("address_change_with_lack", || address_change("lack")),
    ("restart_time_of_lack", || restart::restart_time("lack")),
    ("narrow_path_with_lack", || narrow::narrow_path("lack")),
    ("path_narrows_without_icmp_with_lack", || narrow::path_narrows_without_icmp("lack")),
    ("flood_from_forged_sources_with_lack", || flood::forged("lack")),
    ("lossy_with_lack", || attack::lossy("lack")),
    ("bridged_lans_by_lack", || bridge::bridged_lans("lack")),
    ("bridged_lans_by_lack_flow", || bridge::bridged_lans("lack-flow")),
    ("bridged_frames_by_lack", || bridge::bridged_frames("lack")),
    ("bridge_of_lack_killed", || bridge::bridge_killed("lack")),
    ("bridge_of_lack_flow_killed", || bridge::bridge_killed("lack-flow")),
];

/// What needs a DHCP server and client.
const OF_DHCP: [(&str, Test); 1] = [("bridged_dhcp", || dhcp::bridged_dhcp("lack"))];

/// What needs a kernel that hands over super-packets of UDP.
const OF_USO: [(&str, Test); 1] =
    [("bridged_super_packets_of_udp", || bridge::super_packets_of_udp("lack"))];

/// What needs Prometheus' own judge.
const OF_PROMTOOL: [(&str, Test); 1] = [("metrics_pass_promtool", service::metrics_pass_promtool)];

/// What needs nft, as a router that marks.
const OF_NFT: [(&str, Test); 5] = [
    ("mark_arrives_inside", || ecn::mark_arrives_inside("192.0.2.2:4433")),
    ("mark_arrives_inside_over_ipv6", || ecn::mark_arrives_inside("[2001:db8::2]:4433")),
    ("mark_is_answered", || ecn::mark_is_answered("192.0.2.2:4433")),
    ("mark_is_answered_over_ipv6", || ecn::mark_is_answered("[2001:db8::2]:4433")),
    ("marked_transfer", ecn::marked_transfer),
];

/// What needs modules that `tools/test-kernels` loads in its guests or sets their clock, or judges
/// times only.
const OF_GUESTS: [(&str, Test); 9] = [
    ("clock_set", clock::set_while_up),
    ("gain_told", gain::told),
    ("honest_beside_hostile", honest::beside_hostile),
    ("hub_crowded", hub::crowded),
    ("wireguard_inside", encrypted::wireguard),
    ("esp_inside", encrypted::esp),
    ("flooded_inside", crowd::flooded),
    ("initial_window", initial_window::follows_the_path),
    ("through_netem", netem::through),
];

/// A harness of its own, since a user namespace can only be entered before there are threads.
fn main() -> ExitCode {
    let entered = enter_user_namespace().map_err(|reason| reason.to_string());
    let device = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let device = device.map(drop).map_err(|error| format!("/dev/net/tun: {error}"));
    let lacks = entered.and(device).err();
    let lacks_dhcp = lacks.clone().or_else(dhcp::lacks);
    let lacks_uso = lacks.clone().or_else(bridge::lacks_super_packets_of_udp);
    let lacks_promtool = lacks.clone().or_else(promtool::lacks);
    let lacks_nft = lacks.clone().or_else(ecn::lacks);
    let lacks_guest = lacks.clone().or_else(lacks_guest);
    // Each runs several processes already.
    Suite::default()
        .tests(lacks.as_deref(), TESTS)
        .tests(lacks.as_deref(), OF_LACK)
        .tests(lacks_dhcp.as_deref(), OF_DHCP)
        .tests(lacks_uso.as_deref(), OF_USO)
        .tests(lacks_nft.as_deref(), OF_NFT)
        .tests(lacks_promtool.as_deref(), OF_PROMTOOL)
        .tests(lacks_guest.as_deref(), OF_GUESTS)
        .run(Some(1))
}

const BYTES: u64 = 5_000_000;

/// What an end counted under this name.
fn count(figures: &Value, name: &str) -> u64 {
    figures["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {figures}"))
}

/// The end's figures, after it has ended well.
fn ended(link: Link) -> Result<Value> {
    let (status, figures) = link.end()?;
    assert!(status.success(), "{status}");
    Ok(figures)
}

fn over_ipv4() -> Result {
    let world = World::new()?;
    let (listener, dialer) = (world.listen("0.0.0.0:4433")?, world.dial(&format!("{RIGHT}:4433"))?);
    transfer(&world, BYTES)?;
    let (sent, received) = (ended(dialer)?, ended(listener)?);
    assert!(count(&sent, "bytes_in") > BYTES && count(&received, "bytes_out") > BYTES);
    for name in ["forged", "replayed", "truncated", "send_errors"] {
        assert_eq!(count(&received, name), 0, "{name}: {received}");
    }
    assert_eq!(received["peer"].as_str().and_then(|peer| peer.split(':').next()), Some(LEFT));
    Ok(())
}

fn over_ipv6() -> Result {
    let world = World::new()?;
    // One socket for both families.
    let (listener, dialer) = (world.listen("[::]:4433")?, world.dial("[2001:db8::2]:4433")?);
    transfer(&world, BYTES)?;
    ended(dialer)?;
    let dialer = world.dial(&format!("{RIGHT}:4433"))?;
    transfer(&world, BYTES)?;
    ended(dialer)?;
    let received = ended(listener)?;
    assert_eq!(count(&received, "sessions"), 2);
    Ok(())
}

fn over_ethernet() -> Result {
    let world = World::new()?;
    let end = |namespace: &Namespace, inner: &str, flags: [&str; 2]| {
        let mut command = airmend();
        command.args(["link", "--json", "--over", "ethernet", "--interface", "eth0"]);
        command.args(["--address", &format!("{inner}/24")]).args(flags);
        command.arg("--key-file").arg(&world.key.0);
        Link::start(namespace, command)
    };
    let listener = end(&world.right, INNER[1], ["--listen", "any"])?;
    let dialer = end(&world.left, INNER[0], ["--peer", "ff:ff:ff:ff:ff:ff"])?;
    transfer(&world, BYTES)?;
    let (sent, received) = (ended(dialer)?, ended(listener)?);
    assert_eq!(count(&received, "forged"), 0);
    let peer = sent["peer"].as_str().ok_or("no peer")?;
    assert!(peer != "ff:ff:ff:ff:ff:ff", "the peer's own address is learnt: {peer}");
    Ok(())
}

fn two_keys() -> Result {
    let world = World::new()?;
    let other = TempFile::new("other-key");
    let made = airmend().arg("keygen").arg(&other.0).output()?;
    let shown = airmend().arg("keygen").arg("--show").arg(&world.key.0).output()?;
    let [other_public, own_public] =
        [made, shown].map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let end = |namespace: &Namespace, flags: [&str; 2], inner: &str, file, peer: &str| {
        let mut command = airmend();
        command.args(["link", "--json"]).args(flags).args(["--address", &format!("{inner}/24")]);
        command.arg("--key-file").arg(file).args(["--peer-key", peer]);
        Link::start(namespace, command)
    };
    let at = format!("{RIGHT}:4433");
    let listener = end(&world.right, ["--listen", &at], INNER[1], &other.0, &own_public)?;
    let dialer = end(&world.left, ["--peer", &at], INNER[0], &world.key.0, &other_public)?;
    transfer(&world, 1_000_000)?;
    ended(dialer)?;
    ended(listener)?;
    Ok(())
}

fn insecure() -> Result {
    let world = World::new()?;
    let end = |namespace: &Namespace, flags: [&str; 2], inner: &str| {
        let mut command = airmend();
        command.args(["link", "--json", "--insecure"]).args(flags);
        command.args(["--address", &format!("{inner}/24")]);
        Link::start(namespace, command)
    };
    let listener = end(&world.right, ["--listen", "0.0.0.0:4433"], INNER[1])?;
    let dialer = end(&world.left, ["--peer", &format!("{RIGHT}:4433")], INNER[0])?;
    transfer(&world, BYTES)?;
    ended(dialer)?;
    ended(listener)?;
    Ok(())
}

fn listener_killed_and_restarted(arq: &'static str) -> Result {
    let world = World::with(arq)?;
    let dial = format!("{RIGHT}:4433");
    let (listener, dialer) = (world.listen("0.0.0.0:4433")?, world.dial(&dial)?);
    let mut again = None;
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        until("the beginning", || (received() > BYTES).then_some(()))?;
        listener.kill()?;
        let killed = received();
        again = Some(world.listen("0.0.0.0:4433")?);
        until("as much again", || (received() > killed + BYTES).then_some(()))
    })?;
    ended(again.ok_or("no restart")?)?;
    assert_eq!(count(&ended(dialer)?, "sessions"), 2);
    Ok(())
}

fn dialer_killed_and_restarted(arq: &'static str) -> Result {
    let world = World::with(arq)?;
    let dial = format!("{RIGHT}:4433");
    let (listener, dialer) = (world.listen("0.0.0.0:4433")?, world.dial(&dial)?);
    let mut again = None;
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        until("the beginning", || (received() > BYTES).then_some(()))?;
        dialer.kill()?;
        let killed = received();
        again = Some(world.dial(&dial)?);
        until("as much again", || (received() > killed + BYTES).then_some(()))
    })?;
    ended(again.ok_or("no restart")?)?;
    let figures = ended(listener)?;
    assert_eq!((count(&figures, "sessions"), count(&figures, "peer_moves")), (2, 1));
    Ok(())
}

fn address_change(arq: &'static str) -> Result {
    let world = World::with(arq)?;
    let dial = format!("{RIGHT}:4433");
    let (listener, dialer) = (world.listen("0.0.0.0:4433")?, world.dial(&dial)?);
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        until("the beginning", || (received() > BYTES).then_some(()))?;
        world
            .left
            .ip(&format!("address del {LEFT}/24 dev eth0\naddress add 192.0.2.77/24 dev eth0\n"))?;
        let moved = received();
        until("as much again", || (received() > moved + BYTES).then_some(()))
    })?;
    ended(dialer)?;
    let figures = ended(listener)?;
    assert!(figures["peer"].as_str().is_some_and(|peer| peer.starts_with("192.0.2.77:")));
    assert_eq!((count(&figures, "sessions"), count(&figures, "peer_moves")), (1, 1));
    Ok(())
}

fn wrong_key() -> Result {
    let world = World::new()?;
    let other = World::new()?;
    let listener = world.listen("0.0.0.0:4433")?;
    let mut command = airmend();
    command.args(["link", "--json", "--peer", &format!("{RIGHT}:4433")]);
    command.arg("--key-file").arg(&other.key.0);
    let mut dialer = Link::start(&world.left, command)?;
    let line = dialer.line()?;
    assert!(line.contains("no answer from") && line.contains("the key"), "{line}");
    assert_eq!(ended(dialer)?["peer"], Value::Null);
    let figures = ended(listener)?;
    assert!(count(&figures, "forged") > 0 && count(&figures, "sessions") == 0, "{figures}");
    Ok(())
}

fn figures_and_end() -> Result {
    let world = World::new()?;
    let interfaces = || -> Result<String> {
        let list = || Ok(airmend_link_names());
        Ok(world.left.run(list)??)
    };
    let mut command = airmend();
    command.args(["link", "--peer", &format!("{RIGHT}:4433"), "--insecure", "--json"]);
    let link = Link::start(&world.left, command)?;
    assert!(interfaces()?.contains("mend0"));
    link.signal(Signal::SIGUSR1)?;
    let (status, figures) = link.end()?;
    assert!(status.success());
    assert_eq!(figures["interface"], "mend0");
    assert!(!interfaces()?.contains("mend0"), "the interface goes with the process");
    let mut command = airmend();
    command.args(["link", "--peer", &format!("{RIGHT}:4433"), "--insecure"]);
    Link::start(&world.left, command)?.kill()?;
    assert!(!interfaces()?.contains("mend0"), "the interface goes with the process");
    Ok(())
}

/// The interfaces of the calling thread's namespace.
fn airmend_link_names() -> std::io::Result<String> {
    std::fs::read_to_string("/proc/thread-self/net/dev")
}
