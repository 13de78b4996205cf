//! Everything that two ends and a bad channel can do; see `link/model.rs`.

use crate::exploration::{Budget, CALM, check, check_skips};
use airmend_proto::agents::tulip::{Order, Settings};
use airmend_proto::units::Rate;
use std::time::Duration;

fn settings(window: u32, order: Order, half_duplex: bool) -> Settings {
    Settings {
        adaptive: false,
        window,
        half_duplex,
        order,
        max_propagation_delay: Duration::ZERO,
        turnaround: Duration::ZERO,
        rate: Rate(u64::MAX),
        ack_every: 1,
        ack_delay: Duration::ZERO,
        ..Settings::default()
    }
}

#[test]
fn losses_and_timeouts() {
    for order in [Order::Destination, Order::Flow] {
        let budget = Budget { losses: 2, timeouts: 1, ..CALM };
        check(settings(2, order, false), [3, 0], budget, 100);
        check(settings(2, order, false), [1, 1], budget, 100);
    }
}

#[test]
fn reordering_and_duplicates() {
    for order in [Order::Destination, Order::Flow] {
        let budget = Budget { overtakings: 1, duplicates: 1, losses: 1, ..CALM };
        check(settings(3, order, false), [3, 0], budget, 100);
    }
}

#[test]
fn copies() {
    let settings = Settings { idle_copies: 1, ..settings(2, Order::Flow, false) };
    check(settings.clone(), [2, 0], Budget { losses: 2, ..CALM }, 100);
    check(settings, [2, 0], Budget { overtakings: 1, losses: 1, ..CALM }, 100);
}

#[test]
fn restarts() {
    for restarts in [[1, 0], [0, 1], [0, 2], [1, 1]] {
        let budget = Budget { losses: 1, restarts, ..CALM };
        check(settings(2, Order::Destination, false), [2, 0], budget, 100);
    }
    // What former runs had sent comes late, or twice.
    for restarts in [[1, 0], [0, 1]] {
        let budget = Budget { overtakings: 1, duplicates: 1, restarts, ..CALM };
        check(settings(2, Order::Flow, false), [1, 0], budget, 100);
    }
}

#[test]
fn turns() {
    // [tulip99 §III S2-05]
    let budget = Budget { losses: 1, timeouts: 1, ..CALM };
    check(settings(2, Order::Destination, true), [2, 1], budget, 100);
}

/// What is given up at once when it would be sent again: skips are lost too.
#[test]
fn skips_are_never_waited_for() {
    for order in [Order::Destination, Order::Flow] {
        let mut settings = settings(2, order, false);
        settings.set("classes", "any=1ns").expect("a class");
        check_skips(settings, [2, 0], Budget { losses: 2, timeouts: 1, ..CALM }, 100);
    }
}
