//! The figures of a link, for people and for programs.

use crate::row::{self, line};
use crate::text;
use airmend_live::tunnel::{
    CarrierConfig, DeviceConfig, Keys, Security, TunnelConfig, TunnelReport,
};
use serde_json::json;
use std::io::{self, Write};
use std::panic::PanicHookInfo;

/// The description of the tunnel.
pub(super) fn begins(config: &TunnelConfig, mtu: u32) -> String {
    let how = match &config.security {
        Security::Noise(keys, _) if keys.peer == keys.private.public() => "with a shared key",
        Security::Noise(..) => "with the peer's key",
        Security::Insecure => "WITHOUT ENCRYPTION",
    };
    let whereto = match &config.carrier {
        CarrierConfig::Udp { peer: Some(peer), .. } => format!("the peer is {peer}"),
        CarrierConfig::Udp { local, peer: None } => format!("listening on {local}"),
        CarrierConfig::Ethernet { interface, .. } => format!("over Ethernet on {interface}"),
    };
    let psk = match &config.security {
        Security::Noise(Keys { psk: Some(_), .. }, _) => " and a pre-shared key",
        _ => "",
    };
    let device = match &config.device {
        DeviceConfig::Tun(tun) => tun.name.clone(),
        DeviceConfig::Bridge { interface } => format!("the bridge of {interface}"),
    };
    format!("{device} is up, MTU {mtu}, {whereto}, {how}{psk}")
}

/// The figures: as one JSON object on one line, or one figure a line.
pub(super) fn lines(report: &TunnelReport, as_json: bool) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let TunnelReport { device, mtu, peer, route_loop, counters, agent_counters, .. } = report;
    let peer = peer.map(|peer| peer.to_string());
    if as_json {
        let all = json!({
            "interface": device,
            "mtu": mtu,
            "peer": peer,
            "route_loop": route_loop,
            "is_silent": report.is_silent,
            "handshake_seconds_ago": report.handshake_seconds_ago,
            "heard_seconds_ago": report.heard_seconds_ago,
            "counters": counters,
            "agent_counters": agent_counters,
        });
        return row::write(&mut out, &all).map(|()| out);
    }
    let peer = peer.as_deref().unwrap_or("none yet");
    let route =
        if *route_loop { ", the route to the peer leads through the link itself" } else { "" };
    let silent = if report.is_silent { " (silent)" } else { "" };
    writeln!(out, "{device}: MTU {mtu}, peer {peer}{silent}{route}")?;
    for (what, ago) in
        [("handshake", report.handshake_seconds_ago), ("heard", report.heard_seconds_ago)]
    {
        let ago = ago.map_or("never".to_owned(), |ago| format!("{ago:.1} s ago"));
        writeln!(out, "  {what:<24} {ago:>16}")?;
    }
    for (name, value) in line([json!(counters), json!(agent_counters)]) {
        let count = text::count(value.as_u64().unwrap_or(0));
        writeln!(out, "  {:<24} {count:>16}", name.replace('_', " "))?;
    }
    Ok(out)
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
