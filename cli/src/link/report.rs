//! The figures of a link, for people and for programs.

use crate::row::{self, line};
use crate::text;
use airmend_live::tunnel::{
    CarrierConfig, DeviceConfig, Keys, PeerStatus, Security, TunnelConfig, TunnelReport,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::panic::PanicHookInfo;

/// The description of the tunnel.
pub(super) fn begins(config: &TunnelConfig, mtu: u32) -> String {
    let device = match &config.device {
        DeviceConfig::Tun(tun) => tun.name.clone(),
        DeviceConfig::Bridge { interface } => format!("the bridge of {interface}"),
    };
    let listening = match &config.carrier {
        CarrierConfig::Udp { local } if local.port() == 0 => None,
        CarrierConfig::Udp { local } => Some(format!("listening on {local}")),
        CarrierConfig::Ethernet { interface } => Some(format!("over Ethernet on {interface}")),
    };
    let [peer] = &config.peers[..] else {
        let listening = listening.map_or(String::new(), |listening| format!(", {listening}"));
        return format!("{device} is up, MTU {mtu}, {} peers{listening}", config.peers.len());
    };
    let how = match &peer.security {
        Security::Noise(keys, _) if keys.peer == keys.private.public() => "with a shared key",
        Security::Noise(..) => "with the peer's key",
        Security::Insecure => "WITHOUT ENCRYPTION",
    };
    let remote = peer.remote.as_ref().map(|remote| format!("the peer is {remote}"));
    let whereto = match &config.carrier {
        CarrierConfig::Udp { .. } => remote.or(listening),
        CarrierConfig::Ethernet { .. } => listening,
    };
    let whereto = whereto.unwrap_or_default();
    let psk = match &peer.security {
        Security::Noise(Keys { psk: Some(_), .. }, _) => " and a pre-shared key",
        _ => "",
    };
    format!("{device} is up, MTU {mtu}, {whereto}, {how}{psk}")
}

/// The figures: as one JSON object on one line, or one figure a line. Those of one peer are the
/// link's; of several each has its own, too.
pub(super) fn lines(report: &TunnelReport, as_json: bool) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let TunnelReport { device, mtu, peers, counters, agent_counters } = report;
    if as_json {
        let mut all = json!({
            "interface": device,
            "mtu": mtu,
            "counters": counters,
            "agent_counters": agent_counters,
        });
        match &peers[..] {
            [peer] => merge(&mut all, state(peer)),
            several => all["peers"] = several.iter().map(whole).collect(),
        }
        return row::write(&mut out, &all).map(|()| out);
    }
    match &peers[..] {
        [peer] => {
            writeln!(out, "{device}: MTU {mtu}, peer {}", seen(peer))?;
            times(&mut out, peer)?;
        }
        several => {
            writeln!(out, "{device}: MTU {mtu}, {} peers", several.len())?;
            for peer in several {
                writeln!(out, "{}: {}", peer.name, seen(peer))?;
                times(&mut out, peer)?;
                counts(&mut out, &peer.counters, &peer.agent_counters)?;
            }
            writeln!(out, "all together, and what is nobody's")?;
        }
    }
    counts(&mut out, counters, agent_counters)?;
    Ok(out)
}

/// A peer's state and counters.
fn whole(peer: &PeerStatus) -> Value {
    let mut all = json!({
        "name": peer.name,
        "counters": peer.counters,
        "agent_counters": peer.agent_counters,
    });
    merge(&mut all, state(peer));
    all
}

fn state(peer: &PeerStatus) -> Value {
    json!({
        "peer": peer.endpoint,
        "route_loop": peer.route_loop,
        "is_silent": peer.is_silent,
        "handshake_seconds_ago": peer.handshake_seconds_ago,
        "heard_seconds_ago": peer.heard_seconds_ago,
    })
}

fn merge(all: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (all, more) {
        all.extend(more);
    }
}

fn seen(peer: &PeerStatus) -> String {
    let address = peer.endpoint.as_deref().unwrap_or("none yet");
    let silent = if peer.is_silent { " (silent)" } else { "" };
    let route = match peer.route_loop {
        true => ", the route to the peer leads through the link itself",
        false => "",
    };
    format!("{address}{silent}{route}")
}

fn times(out: &mut Vec<u8>, peer: &PeerStatus) -> io::Result<()> {
    for (what, ago) in
        [("handshake", peer.handshake_seconds_ago), ("heard", peer.heard_seconds_ago)]
    {
        let ago = ago.map_or("never".to_owned(), |ago| format!("{ago:.1} s ago"));
        writeln!(out, "  {what:<24} {ago:>16}")?;
    }
    Ok(())
}

fn counts(out: &mut Vec<u8>, counters: &impl Serialize, agent: &impl Serialize) -> io::Result<()> {
    for (name, value) in line([json!(counters), json!(agent)]) {
        let count = text::count(value.as_u64().unwrap_or(0));
        writeln!(out, "  {:<24} {count:>16}", name.replace('_', " "))?;
    }
    Ok(())
}

/// A panic in one sentence.
pub(super) fn defect(defect: &PanicHookInfo<'_>) -> String {
    let what = defect.payload_as_str().unwrap_or("no reason given").replace('\n', " ");
    let at = defect.location().map_or_else(String::new, |at| format!(" at {at}"));
    format!(
        "a defect ended the link ({what}{at}): start it again, and please report this; the peer \
         waits, and connections inside go on"
    )
}
