//! What transfers through a cell are like.

use super::cell::Cell;
use crate::daemon::{Daemon, repairs};
use crate::kit::{PATIENCE, Result, until};
use crate::transfer::{Plan, transfer};
use std::thread;
use std::time::{Duration, Instant};

/// Without a gateway a transfer is slow, and needs less to be measured.
pub(super) const PLAIN_BYTES: u64 = 1_200_000;

pub(super) struct Figures {
    /// From the first byte to the last.
    pub(super) mbps: f64,
    /// Bytes on the air for each byte that arrived.
    pub(super) sent: f64,
    pub(super) repairs: u64,
    pub(super) lost: u64,
}

/// One transfer; `meanwhile` is called again and again.
pub(super) fn measure(
    cell: &Cell,
    bytes: u64,
    is_mended: bool,
    meanwhile: &dyn Fn() -> Result,
) -> Result<Figures> {
    let daemon = is_mended.then(|| cell.gateway()).transpose()?;
    let (sent, lost) = (cell.sent()?, cell.lost(0)?);
    let plan = Plan::equal(1, bytes);
    let mut began = None;
    transfer(cell.hosts(), &plan, |progress| {
        // What the mobile says at first may be lost before the gateway sees it: not mended.
        until("the first byte", || (progress.received() > 0).then_some(()))?;
        let begin = Instant::now();
        began = Some(begin);
        while progress.received() < bytes && begin.elapsed() < PATIENCE {
            meanwhile()?;
        }
        Ok(())
    })?;
    let took = began.ok_or("it did not begin")?.elapsed();
    let (sent, lost) = (cell.sent()? - sent, cell.lost(0)? - lost);
    let final_status = daemon.map(Daemon::end).transpose()?;
    Ok(Figures {
        mbps: bytes as f64 * 8e-6 / took.as_secs_f64(),
        sent: sent as f64 / bytes as f64,
        repairs: final_status.as_ref().map_or(0, repairs),
        lost,
    })
}

/// Nothing is done meanwhile.
pub(super) fn idle() -> Result {
    thread::sleep(Duration::from_millis(5));
    Ok(())
}

/// One row of the table: a transfer without a gateway, and the median of `runs` with it.
pub(super) fn compare(cell: &Cell, loss: f64, bytes: u64, runs: usize) -> Result<[Figures; 2]> {
    cell.lose(loss)?;
    let plain = measure(cell, PLAIN_BYTES, false, &idle)?;
    let mended = (0..runs).map(|_| measure(cell, bytes, true, &idle));
    let mut mended = mended.collect::<Result<Vec<_>>>()?;
    mended.sort_by(|one, other| one.mbps.total_cmp(&other.mbps));
    let mended = mended.swap_remove(runs / 2);
    println!(
        "limit at {:?}, {} Mb/s, {} % loss: plain {:.2} Mb/s, mended {:.2} Mb/s; \
         on the air {:.3} and {:.3} bytes per byte; {} repairs of {} losses",
        cell.shape.limit,
        cell.shape.rate_bps / 1_000_000,
        loss * 100.0,
        plain.mbps,
        mended.mbps,
        plain.sent,
        mended.sent,
        mended.repairs,
        mended.lost,
    );
    Ok([plain, mended])
}
