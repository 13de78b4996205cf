//! All loss patterns of a short exchange; see `link/losses.rs`.

use crate::patterns::{DELAY, LOSSY_FRAMES, Lossy, RATE_BPS, enumerate, exchange};
use airmend_proto::agents::tulip::Settings;
use airmend_proto::units::Rate;
use std::time::Duration;

#[test]
fn every_loss_pattern_full_duplex() {
    // [tulip99 §V.B S2-02 S2-04]
    enumerate(&Settings::default(), Duration::from_millis(1_200));
}

#[test]
fn every_loss_pattern_in_turns() {
    // [tulip99 §V.B S2-05]
    let settings = Settings { rate: Rate(RATE_BPS), max_propagation_delay: DELAY, ..turns() };
    enumerate(&settings, Duration::from_millis(1_200));
}

fn turns() -> Settings {
    Settings { strobe: 2, ..Settings::tulip99() }
}

#[test]
fn one_loss_costs_little() {
    // Whichever frame it is, the last one too: a round trip is 4.9 ms here.
    let clean = exchange(&Settings::default(), 0, Lossy::Both).unwrap();
    for frame in 2..LOSSY_FRAMES {
        let time = exchange(&Settings::default(), 1 << frame, Lossy::Both).unwrap();
        let cost = time.saturating_sub(clean);
        assert!(cost <= Duration::from_millis(16), "frame {frame} costs {cost:?}");
    }
}
