//! The share of a lossy link's rate that a bulk transfer gets; see `link/bulk.rs`.

use crate::transfer::share;
use airmend_proto::agents::lack::Settings;
use std::time::Duration;

#[test]
fn a_link_loses_little_more_than_what_is_lost() {
    for (settings, name) in [(Settings::default(), "lack"), (Settings::flow(), "lack-flow")] {
        for (loss, least) in [(0.0, 0.98), (0.01, 0.97), (0.05, 0.93), (0.1, 0.9), (0.2, 0.8)] {
            let share = share(&settings, 20_000_000, Duration::from_millis(2), loss);
            assert!(share > least, "{name}: {share:.3} of the bound at loss {loss}");
        }
    }
}
