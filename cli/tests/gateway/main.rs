//! The gateway daemon beside a kernel that forwards, over an air that loses, in namespaces. Where
//! this user may not attach BPF programs, or the kernel has no tcx, every test is ignored.

mod cable;
mod daemon;
mod survival;
mod transfer;
mod world;

use airmend_live::lab::{Namespace, enter_user_namespace};
use daemon::Daemon;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use world::Result;

type Test = fn() -> Result;

const TESTS: [(&str, Test); 1] = [("killed", survival::killed)];

/// A harness of its own: gateways end with the thread that started them, and so that must be the
/// one thread that lasts.
fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each runs several machines already.
    arguments.test_threads = Some(1);
    let skipped = probe().err();
    if let Some(reason) = &skipped {
        println!("The gateway's tests are ignored: {reason}");
    }
    let trial = |(name, test): (&str, Test)| {
        Trial::test(name, move || test().map_err(|error| error.to_string().into()))
            .with_ignored_flag(skipped.is_some())
    };
    libtest_mimic::run(&arguments, TESTS.map(trial).into()).exit_code()
}

/// Whether a gateway can run here at all.
fn probe() -> Result {
    enter_user_namespace()?;
    let base = Namespace::new()?;
    base.ip("link add air0 type veth peer name other\nlink set air0 up\n")?;
    Daemon::start(&base, "air0", &["--attach", "tcx"])?.end().map(drop)
}
