//! Traces as text: CSV with the header `time_s,rate_bps,delay_ms,loss`, of which columns but the
//! first may be left out; or, as many public traces of rates are, `seconds Mbit/s` without a
//! header.

use super::error::TraceError;
use super::rows::{Columns, Row, Trace};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The columns, in the order in which they are written.
pub const COLUMNS: [&str; 4] = ["time_s", "rate_bps", "delay_ms", "loss"];
/// Rows at most.
pub const MAX_ROWS: usize = 1_000_000;

const MAX_SECONDS: f64 = 366.0 * 86_400.0;
const MAX_RATE: f64 = 1e12;
const MAX_DELAY_MS: f64 = 60_000.0;

/// The header of a trace with all columns.
pub fn header() -> String {
    COLUMNS.join(",")
}

/// A row of a trace with all columns, as [`parse_trace`] reads it.
pub fn row(row: &Row) -> String {
    let Row { at, rate_bps, delay, loss } = row;
    let delay_ms = delay.as_secs_f64() * 1e3;
    format!("{:.3},{rate_bps},{delay_ms:.3},{loss:.5}", at.as_secs_f64())
}

/// Reads a trace. Times count from the first row; they ascend, and values are what a link can have.
pub fn parse_trace(text: &str) -> Result<Trace, TraceError> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let mut lines = lines.peekable();
    let Some(&(number, line)) = lines.peek() else {
        return Err(TraceError::of_file(format!("the file is empty; it begins with {}", header())));
    };
    let places = if is_pair(line) {
        PAIRS
    } else {
        lines.next();
        places(line).map_err(|message| TraceError::at_line(number, message))?
    };
    let [_, rate, delay, loss] = places.of.map(|place| place.is_some());
    let columns = Columns { rate, delay, loss };
    let mut rows: Vec<Row> = Vec::new();
    let mut first = 0;
    for (number, line) in lines {
        let refuse = |message: String| Err(TraceError::at_line(number, message));
        if rows.len() == MAX_ROWS {
            return refuse(format!("a trace has at most {MAX_ROWS} rows"));
        }
        let row = places.read(line).map_err(|message| TraceError::at_line(number, message))?;
        let at = row.at.as_nanos();
        if rows.is_empty() {
            first = at;
        }
        let since = at.checked_sub(first).and_then(|since| u64::try_from(since).ok());
        let Some(at) = since.map(Duration::from_nanos) else {
            return refuse(format!("the times must ascend, and {} s does not", seconds(row.at)));
        };
        if rows.last().is_some_and(|last| at <= last.at) {
            return refuse(format!("the times must ascend, and {} s does not", seconds(row.at)));
        }
        rows.push(Row { at, ..row });
    }
    let valid = match &rows[..] {
        [] => return Err(TraceError::of_file("there is no row below the header")),
        [valid @ .., _] if !valid.is_empty() => valid,
        all => all,
    };
    if columns.rate && valid.iter().all(|row| row.rate_bps == 0) {
        let message = "rate_bps is 0 for ever, so nothing would arrive; the last of several rows \
                       is only the end";
        return Err(TraceError::of_file(message));
    }
    Ok(Trace::new(columns, &rows))
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Where each of [`COLUMNS`] stands in a line, and how many cells that has.
struct Places {
    of: [Option<usize>; 4],
    cells: usize,
    /// What separates the cells; white space if nothing else does.
    comma: Option<char>,
    /// The unit of the rate, in bit/s, and its name.
    rate_unit: (f64, &'static str),
}

/// Those of `seconds Mbit/s`.
const PAIRS: Places = Places {
    of: [Some(0), Some(1), None, None],
    cells: 2,
    comma: None,
    rate_unit: (1e6, " Mbit/s"),
};

/// Whether a line is two numbers with white space between them.
fn is_pair(line: &str) -> bool {
    let mut words = line.trim_start_matches('\u{feff}').split_whitespace();
    let mut next = || words.next().map(|word| word.parse::<f64>().is_ok());
    [next(), next(), next()] == [Some(true), Some(true), None]
}

fn places(line: &str) -> Result<Places, String> {
    let known = || COLUMNS.join(", ");
    let mut of = [None; 4];
    let mut cells = 0;
    for name in line.trim_start_matches('\u{feff}').split(',').map(str::trim) {
        let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
            if name.parse::<f64>().is_ok() {
                return Err(format!(
                    "the header is missing: the columns are {}; without one, a line is `seconds \
                     Mbit/s`",
                    known()
                ));
            }
            return Err(format!("unknown column {name:?}; the columns are {}", known()));
        };
        if of[column].replace(cells).is_some() {
            return Err(format!("the column {name} is there twice"));
        }
        cells += 1;
    }
    match of {
        [None, ..] => Err("the column time_s is missing".into()),
        [Some(_), None, None, None] => {
            Err("there is no column but time_s: add rate_bps, delay_ms or loss".into())
        }
        _ => Ok(Places { of, cells, comma: Some(','), rate_unit: (1.0, " bit/s") }),
    }
}

impl Places {
    fn read(&self, line: &str) -> Result<Row, String> {
        let mut values = [0.0; 4];
        let mut cells = 0;
        let is_between = |c: char| self.comma.map_or(c.is_whitespace(), |comma| c == comma);
        let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let words = line.split(is_between).map(str::trim);
        for cell in words.filter(|word| self.comma.is_some() || !word.is_empty()) {
            let place = cells;
            cells += 1;
            if let Some(column) = self.of.iter().position(|of| *of == Some(place)) {
                values[column] = value(column, cell, self.rate_unit)?;
            }
        }
        if cells != self.cells {
            return Err(match self.comma {
                Some(_) => format!("it has {cells} cells and the header has {}", self.cells),
                None => {
                    format!("it has {cells} words; without a header a line is `seconds Mbit/s`")
                }
            });
        }
        let [time, rate, delay, loss] = values;
        Ok(Row {
            at: from_nanos(time * 1e9),
            rate_bps: libm::round(rate * self.rate_unit.0) as u64,
            delay: from_nanos(delay * 1e6),
            loss: loss.abs(),
        })
    }
}

fn from_nanos(nanos: f64) -> Duration {
    Duration::from_nanos(libm::round(nanos) as u64)
}

/// The number in a cell, if its column can have it.
fn value(column: usize, cell: &str, (rate, rate_name): (f64, &str)) -> Result<f64, String> {
    let name = COLUMNS[column];
    let number = match cell.parse::<f64>() {
        Ok(number) if number.is_finite() => number,
        _ => return Err(format!("{name} must be a number, not {cell:?}")),
    };
    let (most, unit) =
        [(MAX_SECONDS, " s"), (MAX_RATE / rate, rate_name), (MAX_DELAY_MS, " ms"), (1.0, "")]
            [column];
    match (0.0..=most).contains(&number) {
        true => Ok(number),
        false => Err(format!("{name} must lie between 0 and {most}{unit}, and {cell} does not")),
    }
}

#[cfg(test)]
mod tests;
