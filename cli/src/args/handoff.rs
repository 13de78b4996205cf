//! The flags of a mobile host that moves between base stations.

use crate::process::BadUsage;
use crate::values::seconds;
use airmend_live::lab::config::{HandoffPlan, LabConfig};
use airmend_proto::agents::AgentConfig;
use airmend_proto::units::parse_duration;
use clap::Args;
use std::time::Duration;

/// Base stations, and the moves between them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Base stations")]
pub(crate) struct LabHandoffArgs {
    /// Base stations, from 1 to 16, each with an agent; with --handoff.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
    base_stations: u32,
    /// The mobile host moves to the next base station this often, such as 5s.
    #[arg(long, value_name = "INTERVAL", value_parser = seconds)]
    handoff: Option<Duration>,
    /// At each move it has no link for this long.
    #[arg(long, value_name = "T", default_value = "0ms", value_parser = parse_duration)]
    handoff_outage: Duration,
    /// The next station knows of a move this long before, and gets the mobile host's packets; 0ms
    /// for a station that knows nothing before.
    #[arg(long, value_name = "T", default_value = "200ms", value_parser = parse_duration)]
    handoff_ahead: Duration,
    /// The stations hand nothing over: each agent goes on alone.
    #[arg(long, requires = "handoff", conflicts_with = "handoff_intruder")]
    no_handoff_state: bool,
    /// A host on the stations' network repeats each of their messages, also with a bit changed.
    #[arg(long, requires = "handoff")]
    handoff_intruder: bool,
}

impl LabHandoffArgs {
    /// The moves, if there are any.
    pub(super) fn plan(&self) -> Option<HandoffPlan> {
        Some(HandoffPlan {
            stations: self.base_stations,
            every: self.handoff?,
            outage: self.handoff_outage,
            ahead: self.handoff_ahead,
            has_state: !self.no_handoff_state,
            has_intruder: self.handoff_intruder,
        })
    }

    /// Refuses moves that cannot be, and agents and set-ups that they cannot be beside.
    pub(super) fn check(&self, config: &LabConfig, agents: &[AgentConfig]) -> Result<(), BadUsage> {
        let refuse = |why: String| Err(BadUsage(why));
        let link = agents.iter().find(|agent| agent.is_link());
        match (self.base_stations, self.handoff, link) {
            (1, None, _) => Ok(()),
            (1, Some(_), _) => refuse(
                "--handoff needs a base station to move to; give --base-stations 2 or more"
                    .to_owned(),
            ),
            (stations, None, _) => refuse(format!(
                "--base-stations {stations} needs --handoff INTERVAL, such as --handoff 5s: \
                 otherwise the mobile host stays at the first"
            )),
            (_, Some(_), Some(link)) => refuse(format!(
                "--handoff cannot take --agent {}: it has an end at the mobile host, which stays \
                 in step with one base station",
                link.name()
            )),
            (_, Some(_), None) => {
                config.check_handoff().map_err(|why| BadUsage(format!("--handoff: {why}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command, Lab};
    use clap::Parser;

    fn refusal(flags: &str) -> Option<String> {
        let command = "airmend lab run ".to_owned() + flags;
        let cli = match Cli::try_parse_from(command.split_whitespace()) {
            Ok(cli) => cli,
            Err(error) => return Some(error.to_string()),
        };
        let Command::Lab(Lab::Run(args)) = cli.command else { panic!("another command") };
        args.setup.set(&mut [args.agent.clone()]).err().map(|error| error.to_string())
    }

    #[test]
    fn moves_that_cannot_be_are_refused_with_the_flag_that_helps() {
        let two = "--base-stations 2 --handoff 5s";
        for (flags, words) in [
            ("--handoff 5s".to_owned(), "--base-stations 2"),
            ("--base-stations 2".to_owned(), "--handoff 5s"),
            ("--base-stations 17 --handoff 5s".to_owned(), "1..=16"),
            ("--base-stations 2 --handoff 0s".to_owned(), "more than 0"),
            ("--base-stations 2 --handoff 200ms".to_owned(), "less than the time between"),
            (format!("{two} --handoff-outage 5s"), "less than the time between"),
            (format!("{two} --agent tulip"), "--agent tulip"),
            (format!("{two} --direction up"), "send the data down"),
            (format!("{two} --path kernel --agent plain"), "in-line path"),
            (format!("{two} --pairs 2 --flows 2"), "one pair of hosts"),
            (format!("{two} --half-duplex"), "full-duplex"),
            (format!("{two} --no-handoff-state --handoff-intruder"), "cannot be used"),
            ("--no-handoff-state".to_owned(), "--handoff <INTERVAL>"),
        ] {
            let said = refusal(&flags).unwrap_or_default();
            assert!(said.contains(words), "{flags}: {said}");
        }
        assert_eq!(refusal(two), None);
        assert_eq!(refusal(&format!("{two} --handoff-ahead 0ms --flows 4")), None);
    }
}
