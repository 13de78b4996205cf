//! The flags of an air that varies.

use crate::process::BadUsage;
use airmend_live::lab::config::{AirTrace, LabConfig};
use airmend_proto::link::trace::{Opportunities, Trace, WayTrace};
use airmend_sim::{read_opportunities, read_trace};
use clap::Args;
use std::path::Path;

/// The files by which the air varies.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Links")]
pub(crate) struct TraceArgs {
    /// Let the air vary, each way, as a CSV file says, with any of the columns
    /// time_s,rate_bps,delay_ms,loss: they take the place of --rate, --air-delay and the errors.
    #[arg(long, value_name = "FILE", value_parser = trace)]
    trace: Option<Named<Trace>>,
    /// Let the rate of the air down be that of this packet-delivery trace of Mahimahi, in the place
    /// of --rate.
    #[arg(long, value_name = "FILE", value_parser = opportunities, requires = "mahimahi_up")]
    mahimahi_down: Option<Named<Opportunities>>,
    /// The same for the rate up.
    #[arg(long, value_name = "FILE", value_parser = opportunities, requires = "mahimahi_down")]
    mahimahi_up: Option<Named<Opportunities>>,
}

/// What a file says, and its name.
#[derive(Clone, Debug)]
struct Named<T> {
    name: String,
    read: T,
}

impl TraceArgs {
    /// The laboratory with this air.
    pub(super) fn apply(&self, config: LabConfig) -> Result<LabConfig, BadUsage> {
        let files = [&self.mahimahi_down, &self.mahimahi_up];
        let trace = self.trace.as_ref();
        let names = files.into_iter().flatten().map(|file| &file.name);
        let names: Vec<_> =
            trace.map(|file| &file.name).into_iter().chain(names).cloned().collect();
        if names.is_empty() {
            return Ok(config);
        }
        let name = names.join(", ");
        let refuse = |why: &dyn ToString| {
            let flag = if trace.is_some() { "--trace" } else { "--mahimahi-down" };
            BadUsage(format!("{flag}: of {name}: {}", why.to_string()))
        };
        let mut ways = [WayTrace::default(), WayTrace::default()];
        for (way, file) in ways.iter_mut().zip(files) {
            let trace = trace.map(|file| &file.read);
            let opportunities = file.as_ref().map(|file| file.read.clone());
            *way = WayTrace::new(trace, opportunities).map_err(|why| refuse(&why))?;
        }
        let trace = AirTrace { ways, name: name.clone() };
        config.follow(trace).map_err(|why| refuse(&why))
    }
}

fn trace(path: &str) -> Result<Named<Trace>, String> {
    Ok(Named { name: path.to_owned(), read: read_trace(Path::new(path))? })
}

fn opportunities(path: &str) -> Result<Named<Opportunities>, String> {
    Ok(Named { name: path.to_owned(), read: read_opportunities(Path::new(path))? })
}
