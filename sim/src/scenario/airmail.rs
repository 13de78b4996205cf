//! The link layer of AIRMAIL: the table `airmail` of a link.

use super::error::Fault;
use super::value::Time;
use crate::plan::{AirmailSpec, Direction};
use airmend_proto::link::{DropRates, ErrorModel};
use serde::Deserialize;
use std::time::Duration;
use toml::Spanned;

/// Its settings, with defaults.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AirmailTable {
    /// From one report of the mobile to the next.
    #[serde(default = "status")]
    status: Time,
    /// Frames that may be sent and not yet known to have arrived.
    #[serde(default = "window")]
    window: u32,
    /// Whether frames bear a code.
    #[serde(default = "yes")]
    fec: bool,
}

const MOST_STATUS: Duration = Duration::from_secs(10);

fn status() -> Time {
    Time(Duration::from_millis(20))
}

fn window() -> u32 {
    32
}

fn yes() -> bool {
    true
}

/// Gives both directions of a link its link layer, if the link has one of AIRMAIL. `is_alone`: no
/// other pair of nodes is on its channel.
pub(super) fn add(
    table: Option<&Spanned<AirmailTable>>,
    is_alone: bool,
    ways: &mut [Direction; 2],
) -> Result<(), Fault> {
    let Some(table) = table else { return Ok(()) };
    let refuse = |message: String| Err(Fault::new(table.span(), message));
    let AirmailTable { status: Time(status), window, fec } = *table.get_ref();
    let most = AirmailSpec::MOST_WINDOW;
    if !(1..=most).contains(&window) || status.is_zero() || status > MOST_STATUS {
        return refuse(format!(
            "an `airmail` has a `window` from 1 to {most}, and a `status` of more than 0 and at \
             most 10s"
        ));
    }
    let is_bare = ways.iter().all(|way| {
        way.arq.is_none() && way.access.is_none() && way.generator == DropRates::default()
    });
    if !is_alone || !is_bare {
        return refuse(
            "a link with `airmail` joins one pair of nodes, without `shared`, `channel`, `arq`, \
             `mac`, `wifi` and `generator`"
                .to_owned(),
        );
    }
    let corrects = |way: &Direction| matches!(way.errors, ErrorModel::None | ErrorModel::Ber(_));
    if !ways.iter().all(corrects) {
        return refuse("the code of `airmail` corrects bits: `errors` must be `ber`".to_owned());
    }
    for way in ways {
        way.airmail = Some(AirmailSpec { status, window, fec });
    }
    Ok(())
}
