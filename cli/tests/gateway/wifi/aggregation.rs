//! Block-acknowledgment sessions, as mac80211's tracepoints tell of them.

use crate::kit::Result;
use std::fs;
use std::process::Command;

const TRACING: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/mac80211/drv_ampdu_action/enable";
/// `IEEE80211_AMPDU_TX_OPERATIONAL`: from here on frames are sent in aggregates.
const OPERATIONAL: &str = " action 6";

/// Watches one radio until it is dropped.
pub(super) struct Sessions<'a> {
    radio: &'a str,
}

impl<'a> Sessions<'a> {
    pub(super) fn watch(radio: &'a str) -> Result<Self> {
        if !fs::exists(format!("{TRACING}/trace"))? {
            let mount =
                Command::new("mount").args(["-t", "tracefs", "tracefs", TRACING]).status()?;
            assert!(mount.success(), "the guest has no tracefs");
        }
        fs::write(format!("{TRACING}/trace"), "")?;
        fs::write(format!("{TRACING}/{EVENT}"), "1")?;
        Ok(Self { radio })
    }

    /// The traffic identifiers that this radio has sent in aggregates.
    pub(super) fn begun(&self) -> Result<Vec<u8>> {
        let trace = fs::read_to_string(format!("{TRACING}/trace"))?;
        let of_radio = format!(" {} ", self.radio);
        let is_begin = |line: &&str| line.contains(&of_radio) && line.ends_with(OPERATIONAL);
        let tid = |line: &str| line.split_once(" tid ")?.1.split_once(',')?.0.parse().ok();
        let mut begun: Vec<u8> = trace.lines().filter(is_begin).filter_map(tid).collect();
        begun.sort_unstable();
        begun.dedup();
        Ok(begun)
    }
}

impl Drop for Sessions<'_> {
    fn drop(&mut self) {
        fs::write(format!("{TRACING}/{EVENT}"), "0").ok();
    }
}
