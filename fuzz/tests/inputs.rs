//! Each fuzz target with its seeds, with random changes of them, and with random bytes: so many of
//! them on any machine, drawn from `PROPTEST_RNG_SEED`. `tools/fuzz` finds its way by coverage.

use airmend_fuzz::{TARGETS, Target, kernel_lacks};
use airmend_testkit::{Result, Suite};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

/// Random inputs of each target.
const CASES: u32 = 10_000;
/// Bytes of a random input.
const BYTES: usize = 600;
/// Changes of one seed.
const CHANGES: usize = 12;

fn main() -> ExitCode {
    let (kernel, others): (Vec<_>, Vec<_>) =
        TARGETS.into_iter().partition(|(name, _)| *name == "kernel");
    let test = |(name, target): (&'static str, Target)| (name, move || tries(name, target));
    Suite::default()
        .tests(None, others.into_iter().map(test))
        .tests(kernel_lacks().as_deref(), kernel.into_iter().map(test))
        .run(None)
}

fn tries(name: &str, target: Target) -> Result {
    let seeds = seeds(name)?;
    for seed in &seeds {
        target(seed);
    }
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    Ok(TestRunner::new(config).run(&inputs(seeds), |input| {
        target(&input);
        Ok(())
    })?)
}

/// The files of `seeds/NAME`; without any, one that is empty.
fn seeds(name: &str) -> io::Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    if !folder.exists() {
        return Ok(vec![Vec::new()]);
    }
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    files.sort_by_key(fs::DirEntry::path);
    files.into_iter().map(|file| fs::read(file.path())).collect()
}

fn inputs(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<Index>(), change()), 1..CHANGES);
    let changed = (select(seeds), changes).prop_map(|(mut bytes, changes)| {
        for (place, change) in changes {
            change.apply(place.index(bytes.len() + 1), &mut bytes);
        }
        bytes
    });
    prop_oneof![3 => changed, 1 => vec(any::<u8>(), 0..BYTES)]
}

/// What is done to bytes at some place.
#[derive(Clone, Debug)]
enum Change {
    Set(u8),
    FlipBit(u8),
    Insert(Vec<u8>),
    Remove(usize),
    Cut,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any::<u8>().prop_map(Change::Set),
        2 => (0..8_u8).prop_map(Change::FlipBit),
        2 => vec(any::<u8>(), 1..40).prop_map(Change::Insert),
        2 => (1..40_usize).prop_map(Change::Remove),
        1 => Just(Change::Cut),
    ]
}

impl Change {
    fn apply(self, at: usize, bytes: &mut Vec<u8>) {
        match self {
            Self::Set(value) => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = value),
            Self::FlipBit(bit) => {
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
            }
            Self::Insert(new) => drop(bytes.splice(at..at, new)),
            Self::Remove(count) => drop(bytes.drain(at..bytes.len().min(at + count))),
            Self::Cut => bytes.truncate(at),
        }
    }
}
