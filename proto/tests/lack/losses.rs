//! All loss patterns of a short exchange; see `link/losses.rs`.

use crate::patterns::{DELAY, LOSSY_FRAMES, Lossy, RATE_BPS, enumerate, exchange};
use airmend_proto::agents::lack::Settings;
use std::time::Duration;

/// The paper's fixed time for this link: twice the delay, a packet, a local ACK and a frame.
fn faithful() -> Settings {
    let frame = Duration::from_nanos(1_100 * 8 * 1_000_000_000 / RATE_BPS);
    Settings { adaptive: false, response_time: 2 * DELAY + 3 * frame, ..Settings::default() }
}

#[test]
fn every_loss_pattern_in_one_order() {
    // [lack §3.2 S1-13 S1-15]
    enumerate(&Settings::default(), Duration::from_millis(1_200));
    enumerate(&faithful(), Duration::from_millis(1_200));
}

#[test]
fn every_loss_pattern_in_the_order_of_flows() {
    enumerate(&Settings::flow(), Duration::from_millis(1_200));
}

#[test]
fn one_loss_costs_little() {
    // Whichever frame it is, the last one too: a round trip is 4.9 ms here.
    for settings in [faithful(), Settings::flow()] {
        let clean = exchange(&settings, 0, Lossy::Both).unwrap();
        for frame in 4..LOSSY_FRAMES {
            let time = exchange(&settings, 1 << frame, Lossy::Both).unwrap();
            let cost = time.saturating_sub(clean);
            assert!(cost <= Duration::from_millis(20), "frame {frame} costs {cost:?}");
        }
    }
}
