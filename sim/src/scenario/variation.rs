//! Delays that vary: the table `variation` of a link.

use super::error::Fault;
use super::value::{Share, Time};
use crate::plan::Direction;
use airmend_proto::link::DelayVariation;
use serde::Deserialize;
use std::time::Duration;
use toml::Spanned;

/// What varies, as [`DelayVariation`] names it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariationTable {
    every: Option<Time>,
    step: Option<Time>,
    jitter: Option<Time>,
    #[serde(default)]
    in_order: bool,
    detour: Option<Detour>,
    turns: Option<[Time; 2]>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Detour {
    share: Share,
    delay: Time,
}

const LEAST_EVERY: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(10);

/// Lets the delay of both directions of a link vary, if the link has the table.
pub(super) fn add(
    table: Option<&Spanned<VariationTable>>,
    ways: &mut [Direction; 2],
) -> Result<(), Fault> {
    let Some(table) = table else { return Ok(()) };
    let refuse = |message| Err(Fault::new(table.span(), message));
    let VariationTable { every, step, jitter, in_order, detour, turns } = *table.get_ref();
    if every.is_some() != step.is_some() {
        return refuse("a `variation` has both `every` and `step`, or neither");
    }
    let [every, step, jitter] =
        [every, step, jitter].map(|time| time.map_or(Duration::ZERO, |Time(time)| time));
    let detour = detour.map_or((0.0, Duration::ZERO), |way| (way.share.0, way.delay.0));
    if (!step.is_zero() && every < LEAST_EVERY) || step.max(jitter).max(detour.1) > MOST {
        return refuse(
            "in a `variation` `every` is at least 1ms, and `step`, `jitter` and the `delay` of a \
             `detour` are at most 10s",
        );
    }
    let turns = turns.map(|turns| turns.map(|Time(time)| time));
    if turns.is_some_and(|[least, most]| least < LEAST_EVERY || most < least || most > MOST) {
        return refuse("`turns` are two times from 1ms to 10s, the shorter one first");
    }
    let turns = turns.unwrap_or_default();
    let is_bare =
        |way: &Direction| way.arq.is_none() && way.airmail.is_none() && way.access.is_none();
    if !ways.iter().all(is_bare) {
        return refuse("a link with `variation` has no `mac`, `wifi`, `arq` and `airmail`");
    }
    for way in ways {
        way.variation = DelayVariation { every, step, jitter, in_order, detour, turns };
    }
    Ok(())
}
