//! Everything that two stations and a bad channel can do; see `link/model.rs`.

use crate::exploration::{Budget, CALM, check, check_skips};
use airmend_proto::agents::lack::{Order, Settings};
use std::time::Duration;

/// The settings of the paper, or with an order for each flow and EACKs for gaps.
fn settings(window: u32, order: Order) -> Settings {
    let profile = match order {
        Order::Destination => Settings::default(),
        Order::Flow => Settings { ack_every: 1, ..Settings::flow() },
    };
    Settings {
        adaptive: false,
        window,
        response_time: Duration::ZERO,
        ack_delay: Duration::ZERO,
        ..profile
    }
}

const ORDERS: [Order; 2] = [Order::Destination, Order::Flow];

#[test]
fn lost_packets_cacks_and_timeouts() {
    // [S1-13 S1-15 S1-22 S1-23]
    for order in ORDERS {
        let budget = Budget { losses: 2, timeouts: 1, ..CALM };
        check(settings(2, order), [3, 0], budget, 100);
        check(settings(2, order), [1, 1], budget, 100);
    }
}

#[test]
fn damaged_packets_and_lost_eacks() {
    // [S1-14 S1-20]
    for order in ORDERS {
        let budget = Budget { damages: 2, losses: 1, timeouts: 1, ..CALM };
        check(settings(2, order), [2, 0], budget, 100);
        check(settings(2, order), [1, 1], Budget { damages: 1, ..budget }, 100);
    }
}

#[test]
fn reordering_and_duplicates() {
    for order in ORDERS {
        let budget = Budget { overtakings: 1, duplicates: 1, losses: 1, ..CALM };
        check(settings(3, order), [3, 0], budget, 100);
    }
}

#[test]
fn restarts() {
    for restarts in [[1, 0], [0, 1], [0, 2], [1, 1]] {
        let budget = Budget { losses: 1, restarts, ..CALM };
        check(settings(2, Order::Destination), [2, 0], budget, 100);
    }
    // What former runs had sent comes late, or twice.
    for restarts in [[1, 0], [0, 1]] {
        let budget = Budget { overtakings: 1, duplicates: 1, restarts, ..CALM };
        check(settings(2, Order::Flow), [1, 0], budget, 100);
    }
}

/// What is given up at once when it would be sent again: skips are lost too.
#[test]
fn skips_are_never_waited_for() {
    for order in ORDERS {
        let mut settings = settings(2, order);
        settings.set("classes", "any=1ns").expect("a class");
        check_skips(settings.clone(), [2, 0], Budget { losses: 2, timeouts: 1, ..CALM }, 100);
        check_skips(settings, [1, 1], Budget { losses: 1, damages: 1, ..CALM }, 100);
    }
}
