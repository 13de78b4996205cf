//! Whatever is lost, the transfer completes and every byte is delivered once.

use crate::pipe::World;
use airmend_proto::Instant;
use airmend_proto::tcp::{CongestionControl, Profile, Recovery, State};
use proptest::prelude::*;
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(10);

/// Every profile, and every kind of recovery that none of them has.
fn profiles() -> [(&'static str, Profile); 7] {
    let linux = Profile::linux();
    let recovery = |recovery| Profile { recovery, ..Profile::bsd95() };
    [
        ("bsd95", Profile::bsd95()),
        ("opnet02", Profile::opnet02()),
        ("linux", linux),
        ("tahoe", recovery(Recovery::Tahoe)),
        ("newreno", Profile { limited_transmit: true, ..recovery(Recovery::NewReno) }),
        ("linux reno", Profile { congestion: CongestionControl::Reno, ..linux }),
        ("linux without sack", Profile { sack: false, timestamps: false, ..linux }),
    ]
}

fn check(name: &str, world: &World, bytes: [u64; 2]) {
    for host in 0..2 {
        let endpoint = &world.hosts[host].endpoint;
        let stats = endpoint.stats();
        assert_eq!(stats.delivered, bytes[1 - host], "{name}: {stats:?}");
        assert_eq!(stats.acked, bytes[host], "{name}: {stats:?}");
        assert!(endpoint.is_finished(), "{name}");
        assert_eq!(endpoint.state(), State::Closed, "{name}");
        assert_eq!(endpoint.poll_timeout(), None, "{name}");
    }
}

/// All 2^12 ways in which the first twelve frames of a transfer, either way, can be lost.
#[test]
fn every_loss_of_the_first_twelve_frames_is_survived() {
    for (name, profile) in profiles() {
        for lost in 0..1_u64 << 12 {
            for bytes in [[6 * u64::from(profile.mss), 0], [0, 6 * u64::from(profile.mss)]] {
                let mut world = World::new([profile; 2], [u32::MAX - 2000, 7], bytes);
                world.run(Instant::from_millis(4_000_000), &mut |frame, _| {
                    if frame < 12 && lost >> frame & 1 == 1 { vec![] } else { vec![DELAY] }
                });
                check(&format!("{name}, losses {lost:#014b}, {bytes:?}"), &world, bytes);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Losses up to 30 %, copies, and delays that reorder, in both directions at once.
    #[test]
    fn any_pipe_delivers_everything_once_and_in_order(
        (first, second) in (0_usize..7, 0_usize..7),
        bytes in (0_u64..300_000, 0_u64..100_000),
        isn: [u32; 2],
        (loss, copies, jitter) in (0_u64..30, 0_u64..10, 0_u64..30),
        seed: u64,
    ) {
        let bytes = [bytes.0, bytes.1];
        let profiles = profiles();
        let mut world = World::new([profiles[first].1, profiles[second].1], isn, bytes);
        let mut random = seed | 1;
        let mut percent = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % 100
        };
        world.run(Instant::from_millis(100_000_000), &mut |_, _| {
            let copies = u64::from(percent() >= loss) + u64::from(percent() < copies);
            (0..copies).map(|_| DELAY + DELAY * (percent() * jitter) as u32 / 1000).collect()
        });
        check(&format!("seed {seed}"), &world, bytes);
    }
}
