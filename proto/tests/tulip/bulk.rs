//! The share of a lossy link's rate that a bulk transfer gets; see `link/bulk.rs`.

use crate::transfer::share;
use airmend_proto::agents::tulip::Settings;
use std::time::Duration;

#[test]
fn a_full_duplex_link_loses_little_more_than_what_is_lost() {
    // [tulip99 §V.B S2-02 S2-03 S2-04 S2-09]
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2] {
        let share = share(&Settings::default(), 20_000_000, Duration::from_millis(2), loss);
        assert!(share > 0.96, "{share:.3} of the bound at loss {loss}");
    }
}

#[test]
fn half_duplex_radios_in_turn_go_on_at_any_loss() {
    // [tulip99 §V.B S2-05 S2-07]
    for (loss, least) in [(0.0, 0.95), (0.05, 0.85), (0.2, 0.7), (0.5, 0.4)] {
        let delay = Duration::from_micros(20);
        let share = share(&Settings::tulip99(), 1_000_000, delay, loss);
        assert!(share > least, "{share:.3} of the bound at loss {loss}");
    }
}
