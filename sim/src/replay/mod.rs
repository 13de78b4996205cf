//! Replay: a capture fed to an agent in virtual time.
//!
//! The packets of the hosts come from the file; the actions of the agent are computed. A recording
//! by airmend also has the times at which links took frames and timers ran: with the recorded agent
//! the replay then sends the same packets ([`Pace::Recorded`]). With any other agent or capture the
//! links are always free and timers run when they expire ([`Pace::Free`]).
//!
//! The agent does not change the capture: the mobile does not receive the agent's repairs, and the
//! sender retransmits later. The time between the two repairs is what the agent saves.

mod capture;
mod duplicates;
mod encapsulation;
mod error;
mod flow;
mod hop;
mod left_out;
mod open_checksum;
mod prefix;
mod report;
mod run;
mod side;
mod united;
mod unread;
mod vantage;

pub use capture::{Capture, Crossing, Interface, Record};
pub use encapsulation::Encapsulation;
pub use error::ReplayError;
pub use flow::FlowReport;
pub use hop::record_hop;
pub use left_out::{LeftOut, Reason};
pub use prefix::Prefix;
pub use report::{Moment, Report};
pub use run::{Check, Difference, Pace, replay};
pub use side::{Sides, Step, Steps, steps};
pub use unread::Unread;
pub use vantage::Vantage;
