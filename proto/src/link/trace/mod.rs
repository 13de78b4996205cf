//! Hops that vary as a file says: rates, delays and losses over time from CSV, or opportunities to
//! deliver from a Mahimahi trace.
//!
//! All of it is a function of the time since the run began, whatever is sent, so competing agents
//! meet the same hop. Packets allocate nothing.

mod csv;
mod error;
mod opportunities;
mod rate;
mod rows;
mod way;

pub use csv::{COLUMNS, MAX_ROWS, header, parse_trace, row};
pub use error::TraceError;
pub use opportunities::{MAX_OPPORTUNITIES, Opportunities};
pub(super) use rate::RateProcess;
pub use rate::VariableRate;
pub use rows::{Columns, Row, Trace};
pub use way::WayTrace;

/// The longest file that is read, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;
