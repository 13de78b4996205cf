//! A laboratory whose air varies.

use super::config::{AirQueue, AirTrace, Direction, LabConfig, Path};
use airmend_proto::Instant;
use airmend_proto::link::ErrorModel;

impl LabConfig {
    /// Lets the air vary. Its rate, delay and errors become the means of what the data meets.
    ///
    /// # Errors
    /// What cannot vary, in one sentence.
    pub fn follow(mut self, trace: AirTrace) -> Result<Self, &'static str> {
        let way = &trace.ways[self.data_way()];
        if let Some(loss) = way.mean_loss() {
            if self.errors != ErrorModel::None {
                return Err("its column loss says what is lost: give no other errors of the air");
            }
            self.errors = ErrorModel::Loss(loss);
        }
        self.air.rate_bps = way.mean_rate_bps().unwrap_or(self.air.rate_bps);
        self.air.delay = way.mean_delay().unwrap_or(self.air.delay);
        self.trace = Some(trace);
        self.check_trace()?;
        Ok(self)
    }

    /// Refuses what has no place beside an air that varies.
    pub(crate) fn check_trace(&self) -> Result<(), &'static str> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let has_queue = self.far_queue.is_some() || self.air_queue != AirQueue::default();
        if self.turnaround.is_some() {
            Err("half-duplex radios have one rate and one delay: make them full duplex")
        } else if self.handoff.is_some() {
            Err("it is that of one base station: leave the others out")
        } else if trace.has_rates() && self.path != Path::Inline && has_queue {
            Err("the rates of the air vary, and a kernel's queue sends at one: leave the queue out")
        } else {
            Ok(())
        }
    }

    /// Whether the queue for the air stands in the emulated air, since its rate varies and a
    /// kernel's own queue would send at one.
    pub(crate) fn has_queue_in_air(&self) -> bool {
        self.path != Path::Inline && self.trace.as_ref().is_some_and(AirTrace::has_rates)
    }

    /// What arrives of an air that varies and is always busy, in bits per second: in the long run,
    /// or between two times.
    pub(crate) fn arriving_bps(&self, frame_error: f64, time: Option<[Instant; 2]>) -> Option<f64> {
        let way = &self.trace.as_ref()?.ways[self.data_way()];
        let rate = self.air.rate_bps;
        Some(match time {
            None => way.mean_arriving_bps(rate, frame_error),
            Some([from, to]) => way.arriving_bps(from, to, rate, frame_error),
        })
    }

    fn data_way(&self) -> usize {
        usize::from(self.direction == Direction::Up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::link::trace::{WayTrace, parse_trace};
    use std::time::Duration;

    fn trace(csv: &str) -> AirTrace {
        let way = || WayTrace::new(parse_trace(csv).ok().as_ref(), None).unwrap();
        AirTrace { ways: [way(), way()], name: "walk.csv".to_owned() }
    }

    #[test]
    fn the_bound_is_that_of_the_trace() {
        let walk = trace("time_s,rate_bps,delay_ms,loss\n0,8e6,5,0\n1,2e6,15,0.5\n2,0,0,0\n");
        let config = LabConfig::default().follow(walk.clone()).unwrap();
        assert_eq!((config.air.rate_bps, config.air.delay), (5_000_000, Duration::from_millis(10)));
        assert_eq!(config.errors, ErrorModel::Loss(0.25));
        let useful = 1448.0 / 1500.0;
        assert_eq!(config.bound_bps(), 4.5e6 * useful);
        let [from, to] = [1_000, 2_000].map(Instant::from_millis);
        let bound = config.bound_between_bps(from, to);
        assert!((bound - 1e6 * useful).abs() < 2.0, "{bound}");
        assert_eq!(config.realised_bound_bps(from, to), None);
        let lossy = LabConfig { errors: ErrorModel::Loss(0.1), ..LabConfig::default() };
        assert!(lossy.follow(walk).is_err());
    }

    #[test]
    fn what_has_one_rate_is_refused() {
        let walk = trace("time_s,rate_bps\n0,8e6\n");
        let half = LabConfig { turnaround: Some(Duration::ZERO), ..LabConfig::default() };
        assert!(half.follow(walk.clone()).is_err());
        let kernel = LabConfig { path: Path::Kernel, ..LabConfig::default() };
        assert!(kernel.clone().follow(walk.clone()).is_ok());
        let queue = LabConfig { air_queue: AirQueue::Codel, ..kernel };
        assert!(queue.clone().follow(walk).is_err());
        assert!(queue.follow(trace("time_s,loss\n0,0.1\n")).is_ok());
    }
}
