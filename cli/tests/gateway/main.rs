//! The gateway daemon beside a kernel that forwards, over an air that loses, in namespaces. Where
//! this user may not attach BPF programs, every test is ignored; those that need a machine of their
//! own run in the guests of `make test-kernels` only.

mod accidents;
mod cable;
mod changes;
mod clsact;
mod daemon;
mod hostile;
#[path = "../kit/mod.rs"]
mod kit;
mod observing;
mod others;
mod places;
mod queues;
mod recorded;
mod shaping;
mod soak;
mod stacked;
mod survival;
mod transfer;
mod wifi;
mod world;

use airmend_live::lab::{Namespace, enter_user_namespace};
use daemon::Daemon;
use kit::Result;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

type Test = fn() -> Result;

const TESTS: [(&str, Test); 43] = [
    ("killed", survival::killed),
    ("killed_with_clsact", survival::killed_with_clsact),
    ("restarted", survival::restarted),
    ("stopped", survival::stopped),
    ("panicked", survival::panicked),
    ("started_late", survival::started_late),
    ("down_and_up", changes::down_and_up),
    ("other_mtu", changes::other_mtu),
    ("other_address", changes::other_address),
    ("deleted", accidents::deleted),
    ("deleted_with_clsact", accidents::deleted_with_clsact),
    ("moved", accidents::moved),
    ("moved_with_clsact", accidents::moved_with_clsact),
    ("moved_and_back", accidents::moved_and_back),
    ("renamed", accidents::renamed),
    ("renamed_with_clsact", accidents::renamed_with_clsact),
    ("second_instance", accidents::second_instance),
    ("second_instance_with_clsact", accidents::second_instance_with_clsact),
    ("filters_of_others", clsact::filters_of_others),
    ("filters_of_others_with_clsact", clsact::filters_of_others_with_clsact),
    ("clsact_goes_with_us", clsact::goes_with_us),
    ("clsact_deleted", clsact::deleted),
    ("clsact_of_others_deleted", clsact::of_others_deleted),
    ("ingress_qdisc", clsact::ingress_qdisc),
    ("above_the_queue", stacked::above_the_queue),
    ("two_gateways", places::two_gateways),
    ("behind_nat_and_firewall", places::behind_nat_and_firewall),
    ("over_ipv6", places::over_ipv6),
    ("on_a_bridge", places::on_a_bridge),
    ("in_a_vlan", places::in_a_vlan),
    ("with_offloads", places::with_offloads),
    ("with_snoop95", places::with_snoop95),
    ("flooded", hostile::flooded),
    ("many_flows", hostile::many_flows),
    ("observing", observing::observing),
    ("recorded", recorded::recorded),
    ("no_tcp", others::no_tcp),
    ("bad_places", others::bad_places),
    ("shaped", shaping::shaped),
    ("shaped_auto", shaping::shaped_auto),
    ("shaping_ends", shaping::ends),
    ("shaping_spares_others", shaping::spares_others),
    ("soak", soak::soak),
];

/// Tests that change the machine outside their namespaces, such as its modules.
const GUEST_TESTS: [(&str, Test); 13] = [
    ("fast_band", queues::fast_band),
    ("queues", queues::queues),
    ("repairs_wait", queues::repairs_wait),
    ("far_queues", queues::far_queues),
    ("below_a_vlan", stacked::below_a_vlan),
    ("on_a_vlan", stacked::on_a_vlan),
    ("below_a_bond", stacked::below_a_bond),
    ("on_a_bond", stacked::on_a_bond),
    ("wifi_routed", wifi::routed),
    ("wifi_bridged", wifi::bridged),
    ("wifi_reconnects", wifi::reconnects),
    ("wifi_two_stations", wifi::two_stations),
    ("wifi_power_save", wifi::power_save),
];
/// `tools/kernel-guest` sets it in its guests.
const GUEST: &str = "AIRMEND_GUEST";

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
    let is_soaked = std::env::var_os(soak::VARIABLE).is_some();
    let is_guest = std::env::var_os(GUEST).is_some();
    let trial = |(name, test): (&str, Test), is_ignored: bool| {
        Trial::test(name, move || test().map_err(|error| error.to_string().into()))
            .with_ignored_flag(skipped.is_some() || is_ignored)
    };
    let anywhere = TESTS.into_iter().map(|test| trial(test, test.0 == "soak" && !is_soaked));
    let guest = GUEST_TESTS.into_iter().map(|test| trial(test, !is_guest));
    libtest_mimic::run(&arguments, anywhere.chain(guest).collect()).exit_code()
}

/// Whether a gateway can run here at all.
fn probe() -> Result {
    enter_user_namespace()?;
    let base = Namespace::new()?;
    base.ip("link add air0 type veth peer name other\nlink set air0 up\n")?;
    Daemon::start(&base, "air0", &[])?.end().map(drop)
}
