//! Radios that share a channel: the tables `mac` and `wifi` of a link.

use super::error::{Fault, unknown};
use super::value::{Scalar, Size, Time};
use crate::plan::{Access, Direction};
use airmend_proto::link::mac::{DcfParams, MacParams, Phy};
use serde::Deserialize;
use std::time::Duration;
use toml::Spanned;

/// Half-duplex radios, as [`MacParams`] names their times and sizes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MacTable {
    preamble: Time,
    header_bytes: u32,
    rts_bytes: u32,
    turnaround: Time,
    backoff_rts: u32,
    #[serde(default)]
    acceleration: bool,
}

/// 802.11 stations, as [`DcfParams`] names their settings. The rate of the link is that of data
/// frames.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WifiTable {
    /// The physical layer.
    phy: Spanned<Scalar>,
    retries: Option<u32>,
    rts_threshold: Option<u32>,
    aggregate: Option<usize>,
    longest_aggregate: Option<Time>,
    receive_lifetime: Option<Time>,
    /// What waits at each station at most, in bytes.
    buffer: Option<Size>,
}

const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_COUNT: u32 = 10_000;

/// Lets the stations on the channel of a link share it, if the link has one of the tables.
pub(super) fn share(
    name: &Spanned<String>,
    mac: Option<&Spanned<MacTable>>,
    wifi: Option<&Spanned<WifiTable>>,
    ways: &mut [Direction; 2],
) -> Result<(), Fault> {
    let refuse = |what: &str| Err(Fault::new(name.span(), format!("link `{name}` {what}")));
    let [down, up] = *ways;
    let (access, kind) = match (mac, wifi) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => return refuse("has both `mac` and `wifi`; give one"),
        (Some(mac), None) => (Access::FamaNcs(floor_acquisition(mac, &down)?), "mac"),
        (None, Some(wifi)) => (Access::Dcf(coordination(wifi, &down)?), "wifi"),
    };
    let same = (down.rate_bps, down.delay, down.queue_frames, down.arq)
        == (up.rate_bps, up.delay, up.queue_frames, None);
    if !same {
        return refuse(&format!(
            "has a `{kind}`: its directions share a channel and may differ in `errors` only, \
             without `arq`"
        ));
    }
    for way in ways {
        way.access = Some(access);
    }
    Ok(())
}

fn floor_acquisition(table: &Spanned<MacTable>, way: &Direction) -> Result<MacParams, Fault> {
    let mac = *table.get_ref();
    let times = [mac.preamble.0, mac.turnaround.0, way.delay];
    let counts = [mac.header_bytes, mac.rts_bytes, mac.backoff_rts];
    if times.iter().any(|time| *time > MAX_TIME) || counts.iter().any(|count| *count > MAX_COUNT) {
        let message = "times of a `mac` and the link's delay are at most 1s, its other numbers at \
                       most 10000";
        return Err(Fault::new(table.span(), message));
    }
    Ok(MacParams {
        rate_bps: way.rate_bps,
        delay: way.delay,
        preamble: mac.preamble.0,
        header_bytes: mac.header_bytes,
        rts_bytes: mac.rts_bytes,
        turnaround: mac.turnaround.0,
        backoff_rts: mac.backoff_rts,
        acceleration: mac.acceleration,
        queue_frames: way.queue_frames,
    })
}

fn coordination(table: &Spanned<WifiTable>, way: &Direction) -> Result<DcfParams, Fault> {
    let wifi = table.get_ref();
    let refuse = |message: String| Err(Fault::new(table.span(), message));
    let Scalar(name) = wifi.phy.get_ref();
    let Some(phy) = Phy::ALL.into_iter().find(|phy| phy.name == name) else {
        let known = Phy::ALL.map(|phy| phy.name);
        return Err(Fault::new(wifi.phy.span(), unknown("phy", name, &known)));
    };
    if !phy.rates.is_empty() && !phy.rates.contains(&way.rate_bps) {
        let rates: Vec<String> =
            phy.rates.iter().map(|rate| format!("{}mbit", *rate as f64 / 1e6)).collect();
        return refuse(format!("the rates of `{name}` are {}", rates.join(", ")));
    }
    if way.delay >= phy.sifs {
        return refuse(format!(
            "the delay of a `wifi` link is less than the SIFS of its phy, {:?}: all stations hear \
             each other within a slot",
            phy.sifs
        ));
    }
    let most = if phy.aggregates { DcfParams::MAX_AGGREGATE } else { 1 };
    let defaults = DcfParams::new(phy, way.rate_bps, way.delay, way.queue_frames);
    let time = |set: Option<Time>, default| set.map_or(default, |Time(time)| time);
    let params = DcfParams {
        retries: wifi.retries.unwrap_or(defaults.retries),
        rts_threshold: wifi.rts_threshold,
        aggregate: wifi.aggregate.unwrap_or(most),
        longest_aggregate: time(wifi.longest_aggregate, defaults.longest_aggregate),
        receive_lifetime: time(wifi.receive_lifetime, defaults.receive_lifetime),
        queue_bits: wifi.buffer.map_or(u64::MAX, |Size(bytes)| bytes.saturating_mul(8)),
        ..defaults
    };
    if params.retries > 255 || !(1..=most).contains(&params.aggregate) {
        return refuse(format!(
            "a `wifi` has at most 255 `retries`, and with the phy `{name}` from 1 to {most} frames \
             in an `aggregate`"
        ));
    }
    Ok(params)
}
