//! [C-27] The timestamps of what a sender resends of repaired data.

use crate::common::packet::Tcp;
use crate::kernel::Kernel;
use crate::{ISN, flow, frame};
use airmend_proto::wire::checksum::has_right_checksum;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{LinkType, Packet, Port, Restoration};

const LEN: u16 = 100;
const ORIGINAL: u32 = u32::MAX - 5;
/// Newer, behind the wrap.
const NEWER: u32 = 3;
const NEVER: u64 = u64::MAX;

/// Data with these options behind the NOPs and timestamps, of which the first is `value`.
fn data(ipv6: bool, value: u32, more: &[u8]) -> Tcp {
    let options = [&[1, 1, 8, 10], &value.to_be_bytes()[..], &[0, 0, 0, 9], more].concat();
    Tcp { ipv6, options, ..Tcp::new(0, Port::Wired, ISN, LEN, ISN) }
}

/// A repair of so many bytes, whose data begins where [`data`] does.
fn repair(tcp: &Tcp, bytes: u32) -> Restoration {
    let (flow, start) = (flow(tcp), SeqNumber(tcp.seq));
    Restoration { flow, start, end: SeqNumber(tcp.seq.wrapping_add(bytes)), timestamp: ORIGINAL }
}

/// The first retransmission has the original's timestamp, whatever lies behind it, and a right
/// checksum; the second one its own, since the first may not have arrived.
pub(crate) fn restored_once() {
    let mut kernel = Kernel::load().expect("it was loaded before");
    let sack = [1, 1, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0];
    for (ipv6, more) in [(false, &[][..]), (true, &[]), (false, &sack), (true, &sack)] {
        for repaired in [u32::from(LEN), 10 * u32::from(LEN)] {
            let resent = data(ipv6, NEWER, more);
            kernel.restore(&repair(&resent, repaired), NEVER);
            let before = frame(&resent.packet(7));
            let left = kernel.leaves(&before);
            let restored = frame(&data(ipv6, ORIGINAL, more).packet(7));
            assert_eq!(left, restored, "ipv6 {ipv6}, options {more:?}");
            let packet = Packet::new(LinkType::Ethernet, left.into());
            assert!(has_right_checksum(&packet));
            assert_eq!(kernel.leaves(&before), before, "the second one");
        }
    }
}

/// Data that is not that of the repair, that has no newer timestamp, or that comes too late.
pub(crate) fn kept() {
    let mut kernel = Kernel::load().expect("it was loaded before");
    let resent = data(false, NEWER, &[]);
    let wrong = [
        Tcp { seq: ISN.wrapping_add(1), ..resent.clone() },
        Tcp { len: LEN + 1, ..resent.clone() },
        Tcp { len: 0, ..resent.clone() },
        Tcp { flow: 1, ..resent.clone() },
        data(false, ORIGINAL, &[]),
        data(false, ORIGINAL - 1, &[]),
        Tcp { options: Vec::new(), ..resent.clone() },
        Tcp { options: vec![8, 10, 0, 0, 0, 3, 0, 0, 0, 9, 1, 1], ..resent.clone() },
    ];
    for tcp in wrong {
        kernel.restore(&repair(&resent, LEN.into()), NEVER);
        let frame = frame(&tcp.packet(0));
        assert_eq!(kernel.leaves(&frame), frame, "{tcp:?}");
    }
    let frame = frame(&resent.packet(0));
    assert_ne!(kernel.leaves(&frame), frame, "the repair is known");
    kernel.restore(&repair(&resent, LEN.into()), 1);
    assert_eq!(kernel.leaves(&frame), frame, "too late");
}
