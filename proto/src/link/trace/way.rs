//! What traces say of one way of a hop.

use super::error::TraceError;
use super::opportunities::Opportunities;
use super::rate::VariableRate;
use super::rows::{Cursor, Trace};
use crate::link::errors::{ErrorProcess, Fate};
use crate::link::medium::Pair;
use crate::link::variation::DelayProcess;
use crate::random::{Purpose, Stream};
use crate::time::Instant;
use alloc::boxed::Box;
use core::time::Duration;

/// Looks at a trace for a mean between two times at most: a row that is shorter may be missed.
const LOOKS: u32 = 1_000_000;

/// What varies on one way of a hop; the default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WayTrace {
    /// The rate.
    pub rate: Option<VariableRate>,
    /// A trace with a column of delays.
    pub delay: Option<Trace>,
    /// A trace with a column of losses.
    pub loss: Option<Trace>,
}

impl WayTrace {
    /// What the columns of a trace and opportunities say together.
    ///
    /// # Errors
    /// Both say what the rate is.
    pub fn new(
        trace: Option<&Trace>,
        opportunities: Option<Opportunities>,
    ) -> Result<Self, TraceError> {
        let columns = trace.map(Trace::columns).unwrap_or_default();
        if columns.rate && opportunities.is_some() {
            let message = "its column rate_bps and a Mahimahi trace both say what the rate is: \
                           leave one out";
            return Err(TraceError::of_file(message));
        }
        let with = |has: bool| trace.filter(|_| has).cloned();
        let rate = with(columns.rate).map(VariableRate::Trace);
        Ok(Self {
            rate: rate.or(opportunities.map(VariableRate::Opportunities)),
            delay: with(columns.delay),
            loss: with(columns.loss),
        })
    }

    /// Whether nothing varies.
    pub fn is_empty(&self) -> bool {
        self.rate.is_none() && self.delay.is_none() && self.loss.is_none()
    }

    /// The mean rate, in bits per second.
    pub fn mean_rate_bps(&self) -> Option<u64> {
        self.rate.as_ref().map(|rate| (libm::round(rate.mean_bps()) as u64).max(1))
    }

    /// The mean delay.
    pub fn mean_delay(&self) -> Option<Duration> {
        let mean = self.delay.as_ref()?.mean(|row| row.delay.as_secs_f64());
        Some(Duration::from_secs_f64(mean))
    }

    /// The mean loss.
    pub fn mean_loss(&self) -> Option<f64> {
        self.loss.as_ref().map(|loss| loss.mean(|row| row.loss))
    }

    /// What arrives of a link that is always busy, in the long run, in bits per second; where a
    /// trace does not say rate or loss, those are `rate_bps` and `frame_error`.
    pub fn mean_arriving_bps(&self, rate_bps: u64, frame_error: f64) -> f64 {
        match (&self.rate, &self.loss) {
            (Some(VariableRate::Trace(rate)), Some(loss)) if rate == loss => {
                rate.mean(|row| row.rate_bps as f64 * (1.0 - row.loss))
            }
            (rate, _) => {
                let loss = self.mean_loss().unwrap_or(frame_error);
                rate.as_ref().map_or(rate_bps as f64, VariableRate::mean_bps) * (1.0 - loss)
            }
        }
    }

    /// The same between two times.
    pub fn arriving_bps(&self, from: Instant, to: Instant, rate_bps: u64, frame_error: f64) -> f64 {
        let (mut at, mut bits) = (from, 0.0);
        let least = (to.since(from) / LOOKS).max(Duration::from_nanos(1));
        while at < to {
            let never = Instant::from_nanos(u64::MAX);
            let until = self.rate.as_ref().map_or(never, |rate| rate.until(at));
            let until = until.min(self.loss.as_ref().map_or(never, |loss| loss.until(at)));
            let end = until.max(at + least).min(to);
            let rate = self.rate.as_ref().map_or(rate_bps as f64, |rate| rate.between(at, end));
            let loss = self.loss.as_ref().map_or(frame_error, |loss| loss.at(at).loss);
            bits += rate * (1.0 - loss) * end.since(at).as_secs_f64();
            at = end;
        }
        bits / to.since(from).as_secs_f64().max(1e-9)
    }

    /// Lets delay and loss of one way of a pair be those of the trace, whose random stream is that
    /// of `link` under `seed`. Losses take the place of the pair's error process.
    pub fn apply(&self, pair: &mut Pair, way: usize, seed: u64, link: u32) {
        if let Some(trace) = &self.delay {
            let cursor = Cursor::new(trace.clone());
            pair.delay[way] = Duration::ZERO;
            pair.variation[way] = Some(Box::new(Delays { cursor, last: Instant::ZERO }));
        }
        if let Some(trace) = &self.loss {
            let stream = Stream::new(seed, link, way as u8, Purpose::Loss);
            pair.errors[way] = Box::new(Losses { cursor: Cursor::new(trace.clone()), stream });
        }
    }
}

/// Delays of a trace. Where one decreases, frames wait for those before them: a hop keeps their
/// order.
struct Delays {
    cursor: Cursor,
    /// The arrival of the last frame.
    last: Instant,
}

impl DelayProcess for Delays {
    fn draw(&mut self, _start: Instant, end: Instant) -> Duration {
        self.last = self.last.max(end + self.cursor.at(end).delay);
        self.last.since(end)
    }
}

/// Independent losses with the probabilities of a trace.
struct Losses {
    cursor: Cursor,
    stream: Stream,
}

impl ErrorProcess for Losses {
    fn draw(&mut self, start: Instant, _airtime: Duration, _bits: u64) -> Fate {
        let loss = self.cursor.at(start).loss;
        // Zero is never drawn, and one is the most.
        if self.stream.uniform() <= loss { Fate::Lost } else { Fate::Intact }
    }
}

#[cfg(test)]
mod tests {
    use super::super::csv::parse_trace;
    use super::*;

    fn way(csv: &str) -> WayTrace {
        WayTrace::new(Some(&parse_trace(csv).unwrap()), None).unwrap()
    }

    #[test]
    fn frames_keep_their_order_where_the_delay_decreases() {
        let delay = way("time_s,delay_ms\n0,50\n1,10\n2,0\n").delay.unwrap();
        let mut delays = Delays { cursor: Cursor::new(delay), last: Instant::ZERO };
        let mut arrives = |millis| {
            let end = Instant::from_millis(millis);
            end + delays.draw(end, end)
        };
        let millis = Instant::from_millis;
        assert_eq!(arrives(990), millis(1_040));
        assert_eq!([arrives(1_000), arrives(1_029)], [millis(1_040); 2]);
        assert_eq!([arrives(1_031), arrives(2_000)], [millis(1_041), millis(2_050)]);
    }

    #[test]
    fn losses_are_those_of_the_time() {
        let loss = way("time_s,loss\n0,0\n1,1\n2,0.25\n3,0\n").loss.unwrap();
        let stream = Stream::new(1, 0, 0, Purpose::Loss);
        let mut losses = Losses { cursor: Cursor::new(loss), stream };
        let mut lost = |from: u64| {
            let fates = (0..1_000).map(|n| {
                let start = Instant::from_millis(from + n);
                losses.draw(start, Duration::ZERO, 12_000)
            });
            fates.filter(|fate| *fate == Fate::Lost).count()
        };
        assert_eq!([lost(0), lost(1_000)], [0, 1_000]);
        assert!((200..300).contains(&lost(2_000)));
    }

    #[test]
    fn means_take_rate_and_loss_of_the_same_moment() {
        let both = way("time_s,rate_bps,loss\n0,8e6,0\n1,2e6,0.5\n3,0,0\n");
        assert_eq!((both.mean_rate_bps(), both.mean_delay()), (Some(4_000_000), None));
        assert_eq!(both.mean_arriving_bps(1, 1.0), 1e7 / 3.0);
        let [from, to] = [500, 2_000].map(Instant::from_millis);
        assert!((both.arriving_bps(from, to, 1, 1.0) - 1e7 / 3.0).abs() < 1e4);
        let loss = way("time_s,loss\n0,0\n1,0.5\n2,0\n");
        assert_eq!(loss.mean_arriving_bps(8, 1.0), 6.0);
        let opportunities = Opportunities::parse("1\n").unwrap();
        let mahimahi = WayTrace::new(None, Some(opportunities.clone())).unwrap();
        assert_eq!(mahimahi.mean_arriving_bps(1, 0.5), 6e6);
        assert!((mahimahi.arriving_bps(from, to, 1, 0.5) - 6e6).abs() < 1e4);
        assert!(WayTrace::new(both.loss.as_ref(), Some(opportunities)).is_err());
    }
}
