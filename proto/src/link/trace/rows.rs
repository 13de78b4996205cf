//! The rows of a trace, and which of them is valid when.

use crate::time::Instant;
use alloc::sync::Arc;
use core::time::Duration;

/// What a trace says of one moment. What it has no column for is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// The time since the first row.
    pub at: Duration,
    /// Bits per second.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
    /// The probability that a frame is lost.
    pub loss: f64,
}

/// The columns that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// `rate_bps`.
    pub rate: bool,
    /// `delay_ms`.
    pub delay: bool,
    /// `loss`.
    pub loss: bool,
}

/// Values over time. Each row is valid until the next one; at the time of the last row the trace
/// begins again. A trace of one row holds for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    columns: Columns,
    /// In ascending order of time, the first one at 0; those that are ever valid.
    rows: Arc<[Row]>,
    /// From one beginning to the next, in nanoseconds.
    period: u64,
}

impl Trace {
    /// The trace of these rows: at least one, in ascending order of time, the first at 0.
    pub(super) fn new(columns: Columns, rows: &[Row]) -> Self {
        let (valid, period) = match rows {
            [valid @ .., last] if !valid.is_empty() => (valid, nanos(last.at)),
            rows => (rows, u64::MAX),
        };
        Self { columns, rows: valid.into(), period }
    }

    /// What it says something about.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// From one beginning to the next; `None` where it never changes.
    pub fn period(&self) -> Option<Duration> {
        (self.period < u64::MAX).then(|| Duration::from_nanos(self.period))
    }

    /// What is valid at a time.
    pub fn at(&self, time: Instant) -> Row {
        self.rows.get(Cursor::new(self.clone()).seek(time)).copied().unwrap_or_default()
    }

    /// Until when that is valid.
    pub(super) fn until(&self, time: Instant) -> Instant {
        let mut cursor = Cursor::new(self.clone());
        cursor.seek(time);
        cursor.until()
    }

    /// The mean of something over a period.
    pub fn mean(&self, value: impl Fn(&Row) -> f64) -> f64 {
        let Some(period) = self.period() else { return self.rows.first().map_or(0.0, value) };
        let ends = self.rows.iter().skip(1).map(|row| row.at).chain([period]);
        let parts = self.rows.iter().zip(ends);
        let sum: f64 = parts.map(|(row, end)| value(row) * (end - row.at).as_secs_f64()).sum();
        sum / period.as_secs_f64()
    }

    /// What the rates carry in a period, in units of a billionth of a bit; `None` where it never
    /// changes.
    pub(super) fn bits_of_period(&self) -> Option<u128> {
        let period = self.period()?;
        let ends = self.rows.iter().skip(1).map(|row| row.at).chain([period]);
        let parts = self.rows.iter().zip(ends);
        Some(parts.map(|(row, end)| u128::from(row.rate_bps) * (end - row.at).as_nanos()).sum())
    }
}

/// A place in a trace.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    trace: Trace,
    index: usize,
    /// From when to when its row is valid, in nanoseconds.
    from: u64,
    until: u64,
}

impl Cursor {
    pub(super) fn new(trace: Trace) -> Self {
        Self { trace, index: 0, from: 0, until: 0 }
    }

    /// What is valid at a time.
    pub(super) fn at(&mut self, time: Instant) -> Row {
        let index = self.seek(time);
        self.trace.rows.get(index).copied().unwrap_or_default()
    }

    /// Until when that is valid.
    pub(super) fn until(&self) -> Instant {
        Instant::from_nanos(self.until)
    }

    fn seek(&mut self, time: Instant) -> usize {
        let time = time.as_nanos();
        if (self.from..self.until).contains(&time) {
            return self.index;
        }
        let Trace { rows, period, .. } = &self.trace;
        let begin = time - time % period;
        let phase = Duration::from_nanos(time - begin);
        let next = rows.partition_point(|row| row.at <= phase);
        let end = rows.get(next).map_or(*period, |row| nanos(row.at));
        self.index = next.saturating_sub(1);
        self.from = begin + rows.get(self.index).map_or(0, |row| nanos(row.at));
        self.until = begin.saturating_add(end);
        self.index
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(rows: &[(u64, u64)]) -> Trace {
        let row = |&(millis, rate_bps): &(u64, u64)| Row {
            at: Duration::from_millis(millis),
            rate_bps,
            ..Row::default()
        };
        let rows: alloc::vec::Vec<Row> = rows.iter().map(row).collect();
        Trace::new(Columns { rate: true, ..Columns::default() }, &rows)
    }

    #[test]
    fn a_row_is_valid_until_the_next_and_the_trace_begins_again_at_its_last() {
        let trace = trace(&[(0, 10), (500, 30), (1_000, 7), (2_000, 99)]);
        let rate = |millis| trace.at(Instant::from_millis(millis)).rate_bps;
        assert_eq!([0, 499, 500, 999, 1_000, 1_999].map(rate), [10, 10, 30, 30, 7, 7]);
        assert_eq!([2_000, 2_500, 20_000, 21_999].map(rate), [10, 30, 10, 7]);
        assert_eq!(trace.mean(|row| row.rate_bps as f64), 13.5);
        assert_eq!(trace.bits_of_period(), Some(27_000_000_000));
        let mut cursor = Cursor::new(trace.clone());
        for millis in (0..7_000).step_by(130) {
            let now = Instant::from_millis(millis);
            assert_eq!(cursor.at(now), trace.at(now), "{millis}");
            assert!(now < cursor.until());
        }
    }

    #[test]
    fn one_row_holds_for_ever() {
        let trace = trace(&[(0, 5)]);
        assert_eq!((trace.period(), trace.bits_of_period()), (None, None));
        assert_eq!(trace.at(Instant::from_nanos(u64::MAX - 1)).rate_bps, 5);
        assert_eq!(trace.mean(|row| row.rate_bps as f64), 5.0);
    }
}
