//! Replay: a capture fed to an agent in virtual time.
//!
//! What hosts sent comes from the file; what the agent does about it is computed. A recording of
//! ours also tells when the links took a frame and when timers ran: the agent that was recorded
//! then sends the very same packets again ([`Pace::Recorded`]). With any other agent or capture the
//! links are always free and timers run when they are due ([`Pace::Free`]).
//!
//! The capture goes on as it was, whatever the agent does about it: the mobile does not receive
//! what the agent repairs, and the sender still repairs it later. How much later is what the agent
//! saves.

mod capture;
mod error;
mod flow;
mod prefix;
mod report;
mod run;
mod side;

pub use capture::{Capture, Crossing, Interface, Record};
pub use error::ReplayError;
pub use flow::FlowReport;
pub use prefix::Prefix;
pub use report::{Moment, Report};
pub use run::{Check, Difference, Pace, replay};
pub use side::{Sides, Step, steps};
