//! The gateway daemon beside a kernel that forwards, over an air that loses, in namespaces. Where
//! this user may not attach BPF programs, every test is ignored; those that need a machine of their
//! own run in the guests of `make test-kernels` only.

mod accidents;
mod adversary;
mod asymmetric;
mod cable;
mod changes;
mod clsact;
mod daemon;
mod gain;
mod handoff;
mod hostile;
#[path = "../kit/mod.rs"]
mod kit;
mod metrics;
mod observing;
mod others;
mod overload;
mod ping;
mod places;
#[path = "../kit/promtool.rs"]
mod promtool;
mod queues;
mod recorded;
mod shaping;
mod soak;
mod stacked;
mod survival;
mod transfer;
mod unread;
mod wifi;
mod withheld;
mod world;

use airmend_live::lab::{Namespace, enter_user_namespace};
use airmend_testkit::Suite;
use daemon::Daemon;
use kit::{Result, lacks_guest};
use std::process::ExitCode;

type Test = fn() -> Result;

const TESTS: [(&str, Test); 57] = [
    ("nobody_reads", unread::nobody_reads),
    ("panicked_and_nobody_reads", unread::panicked_and_nobody_reads),
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
    ("name_taken", accidents::name_taken),
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
    ("acknowledged_elsewhere", asymmetric::acknowledged_elsewhere),
    ("with_offloads", places::with_offloads),
    ("with_snoop95", places::with_snoop95),
    ("released_at_end", withheld::released_at_end),
    ("released_at_lapse", withheld::released_at_lapse),
    ("one_host_takes_all_the_time", overload::one_host_takes_all_the_time),
    ("metrics_beside_a_stranger", metrics::beside_a_stranger),
    ("metrics_for_a_network", metrics::for_a_network),
    ("flooded", hostile::flooded),
    ("many_flows", hostile::many_flows),
    ("adversary", adversary::adversary),
    ("observing", observing::observing),
    ("gain_told", gain::gain_told),
    ("recorded", recorded::recorded),
    ("no_tcp", others::no_tcp),
    ("bad_places", others::bad_places),
    ("handoff_between_routers", handoff::between_routers),
    ("handoff_primed", handoff::primed),
    ("handoff_between_bridges", handoff::between_bridges),
    ("handoff_with_offloads", handoff::with_offloads),
    ("handoff_beside_invented_hosts", handoff::beside_invented_hosts),
    ("bad_handoffs", handoff::bad_handoffs),
    ("shaping_ends", shaping::ends),
    ("shaping_spares_others", shaping::spares_others),
];

/// What needs Prometheus' own judge.
const OF_PROMTOOL: [(&str, Test); 1] = [("metrics_pass_promtool", metrics::pass_promtool)];

/// Tests that change the machine outside their namespaces, such as its modules, or judge figures of
/// time only.
const GUEST_TESTS: [(&str, Test); 15] = [
    ("shaped", shaping::shaped),
    ("shaped_auto", shaping::shaped_auto),
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

/// A harness of its own: gateways end with the thread that started them, and so that must be the
/// one thread that lasts.
fn main() -> ExitCode {
    let lacks = probe().err().map(|reason| reason.to_string());
    let is_unset = std::env::var_os(soak::VARIABLE).is_none();
    let lacks_time =
        lacks.clone().or_else(|| is_unset.then(|| format!("{} is not set", soak::VARIABLE)));
    let lacks_promtool = lacks.clone().or_else(promtool::lacks);
    let lacks_guest = lacks.clone().or_else(lacks_guest);
    let soak: Test = soak::soak;
    Suite::default()
        .tests(lacks.as_deref(), TESTS)
        .tests(lacks_time.as_deref(), [("soak", soak)])
        .tests(lacks_promtool.as_deref(), OF_PROMTOOL)
        .tests(lacks_guest.as_deref(), GUEST_TESTS)
        // Each runs several machines already.
        .run(Some(1))
}

/// Whether a gateway can run here at all.
fn probe() -> Result {
    enter_user_namespace()?;
    let base = Namespace::new()?;
    base.ip("link add air0 type veth peer name other\nlink set air0 up\n")?;
    Daemon::start(&base, "air0", &[])?.end().map(drop)
}
