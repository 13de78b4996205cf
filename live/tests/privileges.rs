//! What a thread of the gateway may do, as the kernel tells it. Without the capabilities that are
//! given up here, every test is ignored.

use airmend_live::gateway::privileges::{drop_all, reduce};
use airmend_testkit::Suite;
use caps::{CapSet, Capability};
use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::thread;

const NEEDED: [Capability; 3] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_BPF, Capability::CAP_NET_RAW];
const NET_ADMIN_NET_RAW_BPF: u64 = 1 << 12 | 1 << 13 | 1 << 39;

type Test = fn();

const TESTS: [(&str, Test); 3] = [
    ("three_capabilities_are_left_and_then_none", three_capabilities_are_left_and_then_none),
    ("what_is_missing_is_named_with_the_way_to_give_it", what_is_missing_is_named),
    ("a_capability_that_is_permitted_is_made_effective", permitted_is_made_effective),
];

fn main() -> ExitCode {
    let permitted = caps::read(None, CapSet::Permitted).unwrap_or_default();
    let bounding = caps::read(None, CapSet::Bounding).unwrap_or_default();
    let can = permitted.is_superset(&bounding) && NEEDED.iter().all(|one| permitted.contains(one));
    let lacks = (!can).then_some("only root has capabilities to give up");
    Suite::default().tests(lacks, TESTS).run(None)
}

/// The lines of this thread's status with its capabilities.
fn status() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap();
    let fields = text.lines().filter_map(|line| line.split_once(":\t"));
    let wanted = fields.filter(|(name, _)| name.starts_with("Cap") || *name == "NoNewPrivs");
    wanted.map(|(name, value)| (name.into(), u64::from_str_radix(value, 16).unwrap())).collect()
}

fn expected(capabilities: u64) -> BTreeMap<String, u64> {
    let both = ["CapEff", "CapPrm"].map(|name| (name.to_owned(), capabilities));
    let none = ["CapInh", "CapBnd", "CapAmb"].map(|name| (name.to_owned(), 0));
    both.into_iter().chain(none).chain([("NoNewPrivs".to_owned(), 1)]).collect()
}

/// In a thread of its own, which takes its rights with it.
fn apart(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

fn three_capabilities_are_left_and_then_none() {
    apart(|| {
        caps::set(None, CapSet::Inheritable, &caps::all()).ok();
        reduce().unwrap();
        assert_eq!(status(), expected(NET_ADMIN_NET_RAW_BPF));
        reduce().expect("the service begins with no more");
        assert_eq!(status(), expected(NET_ADMIN_NET_RAW_BPF));
        drop_all().unwrap();
        assert_eq!(status(), expected(0));
        thread::spawn(|| assert_eq!(status(), expected(0))).join().unwrap();
    });
}

fn what_is_missing_is_named() {
    for capability in NEEDED {
        apart(move || {
            caps::drop(None, CapSet::Effective, capability).unwrap();
            caps::drop(None, CapSet::Permitted, capability).unwrap();
            let before = status();
            let why = reduce().unwrap_err().to_string();
            assert!(why.contains(&format!("lacks {capability},")), "{why}");
            assert!(why.contains("setcap cap_net_admin,cap_bpf,cap_net_raw+ep"), "{why}");
            assert_eq!(status(), before);
        });
    }
}

fn permitted_is_made_effective() {
    apart(|| {
        caps::clear(None, CapSet::Effective).unwrap();
        reduce().unwrap();
        assert_eq!(status(), expected(NET_ADMIN_NET_RAW_BPF));
    });
}
