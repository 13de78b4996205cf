//! One laboratory run through passthrough, as the library offers it:
//! `cargo run --release -p airmend-live --example transfer -- [RATE_MBPS [LOSS [SECONDS]]]`.

use airmend_live::lab::config::{Amount, Hop, LabConfig};
use airmend_live::lab::{LabError, enter_user_namespace, run};
use airmend_proto::agents::plain::Plain;
use airmend_proto::link::ErrorModel;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn main() -> Result<(), LabError> {
    enter_user_namespace()?;
    let number = |index| std::env::args().nth(index).and_then(|text| text.parse::<f64>().ok());
    let mut config = LabConfig::default();
    config.air = Hop { rate_bps: (number(1).unwrap_or(20.0) * 1e6) as u64, ..config.air };
    config.errors = number(2).filter(|loss| *loss > 0.0).map_or(ErrorModel::None, ErrorModel::Loss);
    config.amount = Amount::Time(Duration::from_secs_f64(number(3).unwrap_or(5.0)));
    config.queue_frames = config.default_queue_frames();
    let agent = Box::new(Plain);
    let outcome = run(&config, agent, &AtomicBool::new(false), &mut |_| ())?;
    println!(
        "{:.3} Mb/s, {:.1} % of the bound; {:?}; lateness {:?} us; {} dropped at the ports",
        outcome.goodput_bps / 1e6,
        outcome.goodput_bps / outcome.bound_bps * 100.0,
        outcome.sender,
        outcome.lateness_us,
        outcome.port_drops,
    );
    println!("{:#?}\n{:?}", outcome.links, outcome.tcp_ext);
    Ok(())
}
