//! Half-duplex radios: the table `mac` of a link.

use super::error::Fault;
use super::value::Time;
use crate::plan::Direction;
use airmend_proto::link::mac::MacParams;
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

const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_COUNT: u32 = 10_000;

/// Makes the channel of a link half duplex.
pub(super) fn share(
    name: &Spanned<String>,
    table: &Spanned<MacTable>,
    ways: &mut [Direction; 2],
) -> Result<(), Fault> {
    let refuse = |what: &str| Err(Fault::new(name.span(), format!("link `{name}` {what}")));
    let [down, up] = *ways;
    let same = (down.rate_bps, down.delay, down.queue_frames, down.arq)
        == (up.rate_bps, up.delay, up.queue_frames, None);
    if !same {
        return refuse(
            "has a `mac`: its directions share a channel and may differ in `errors` only, without \
             `arq`",
        );
    }
    let mac = *table.get_ref();
    let times = [mac.preamble.0, mac.turnaround.0, down.delay];
    let counts = [mac.header_bytes, mac.rts_bytes, mac.backoff_rts];
    if times.iter().any(|time| *time > MAX_TIME) || counts.iter().any(|count| *count > MAX_COUNT) {
        let message = "times of a `mac` and the link's delay are at most 1s, its other numbers at \
                       most 10000";
        return Err(Fault::new(table.span(), message));
    }
    let params = MacParams {
        rate_bps: down.rate_bps,
        delay: down.delay,
        preamble: mac.preamble.0,
        header_bytes: mac.header_bytes,
        rts_bytes: mac.rts_bytes,
        turnaround: mac.turnaround.0,
        backoff_rts: mac.backoff_rts,
        acceleration: mac.acceleration,
        queue_frames: down.queue_frames,
    };
    for way in ways {
        way.mac = Some(params);
    }
    Ok(())
}
