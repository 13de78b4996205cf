//! airmend in virtual time: scenarios, sweeps and the world loop.
//!
//! An [`Experiment`] is read from a TOML file (`docs/scenarios.md`). Each point of its sweep is a
//! [`Plan`], and [`run`] takes a plan and a seed to an [`Outcome`]: always to the same one, since
//! nothing in a run knows a clock, a thread or an unseeded random number.
//!
//! ```
//! use airmend_sim::{Experiment, run};
//! use std::sync::atomic::AtomicBool;
//!
//! let text = r#"
//!     title = "A file over a lossy hop"
//!     time_limit = "1min"
//!     hosts = { server = { profile = "linux" }, phone = { profile = "linux" } }
//!     stations = { bs = { agent = "snoop95" } }
//!     [links]
//!     wired = { between = ["server", "bs"], rate = "100mbit", delay = "20ms" }
//!     air = { between = ["bs", "phone"], air = true, rate = "20mbit", delay = "2ms",
//!             errors = { loss = "1%" } }
//!     [flows]
//!     download = { from = "server", to = "phone", bytes = "1MB" }
//! "#;
//! let experiment = Experiment::parse("doc".to_owned(), text.to_owned(), &[]).unwrap();
//! let outcome = run(&experiment.points[0].plan, 1, &AtomicBool::new(false)).unwrap();
//! assert!(outcome.completed && outcome.goodput_bps < 20e6);
//! ```

mod agenda;
mod batch;
mod bound;
mod graph;
mod measure;
mod outcome;
mod plan;
pub mod replay;
pub mod results;
pub mod row;
mod scenario;
mod setting;
pub mod stats;
mod trace_file;
mod trace_writer;
mod world;

pub use batch::RunId;
pub use outcome::{
    DatagramCounters, Delay, LinkReport, Outcome, SenderCounters, TraceKind, TracePoint,
};
pub use plan::Plan;
pub use scenario::{Experiment, Family, Point, ScenarioError, TraceFiles, to_text};
pub use setting::Setting;
pub use trace_file::{read_opportunities, read_trace};
pub use trace_writer::{TraceWriter, open_results};
pub use world::{RunError, run};
