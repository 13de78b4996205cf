//! A client of a laboratory that runs.

use crate::process::BadUsage;
use airmend_live::lab::control::{Answer, directory, request, the_only_one};
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// What a laboratory is asked: the first word of a line.
pub(super) const SET: &str = "set";
pub(super) const ENTER: &str = "enter";
pub(super) const WATCH: &str = "watch";
/// In front of a sentence that says why not.
pub(super) const REFUSED: &str = "refused: ";
/// Instead of an answer: the hosts are being made.
pub(super) const STARTING: &str = "starting\n";
/// A laboratory needs less to make its hosts, on a busy machine as well.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const ASKED_AGAIN: Duration = Duration::from_millis(50);

/// Which laboratory.
#[derive(Args, Debug)]
pub(crate) struct Selection {
    /// The process number of the laboratory, where several run.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

impl Selection {
    pub(super) fn socket(&self) -> Result<PathBuf> {
        the_only_one(&directory(), self.pid).map_err(|why| BadUsage(why).into())
    }
}

/// The answer to a line once the laboratory has its hosts, or the sentence that refuses it.
pub(super) fn ask(socket: &Path, line: &str) -> Result<Answer> {
    let begin = Instant::now();
    loop {
        let answer =
            request(socket, line).context("the laboratory has ended or does not answer")?;
        if answer.text != STARTING {
            return match answer.text.strip_prefix(REFUSED) {
                Some(why) => Err(BadUsage(why.trim_end().to_owned()).into()),
                None => Ok(answer),
            };
        }
        if begin.elapsed() > STARTS_WITHIN {
            return Err(BadUsage("the laboratory does not get its hosts ready".to_owned()).into());
        }
        thread::sleep(ASKED_AGAIN);
    }
}
