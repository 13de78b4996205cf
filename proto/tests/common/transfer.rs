//! Transfers with holes, and with timestamps of clocks that go on.

use super::hostile::{ISN, Step};
use super::packet::{NEGATIVE_ACK, Tcp};
use airmend_proto::Port;
use std::time::Duration;

/// The bytes of a segment.
const LEN: u16 = 100;

/// What one of the two hosts does next.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Whether the receiver acknowledges, or the sender sends.
    pub(crate) is_ack: bool,
    /// Below 4. Of the sender: 0 and 1 send the next segment, 2 leaves one out, 3 sends the first
    /// again that is not acknowledged. Of the receiver: so many segments more are acknowledged.
    pub(crate) number: u32,
    /// SACK blocks of an ACK: the segments between the ACK number and the block, and in it.
    pub(crate) blocks: Vec<(u32, u32)>,
    /// Whether an ACK is a negative acknowledgment [S0-40].
    pub(crate) is_report: bool,
    /// The time until the next choice.
    pub(crate) wait: Duration,
}

/// The steps of a transfer from `sender`. In the sending host nothing waits after an ACK: its
/// kernel answers at once.
pub(crate) fn transfer(
    sender: Port,
    is_in_host: bool,
    choices: impl IntoIterator<Item = Choice>,
) -> Vec<Step> {
    let (mut steps, mut next, mut acked, mut echoes) = (Vec::new(), 0, 0, [0; 2]);
    let place = |index: u32| ISN.wrapping_add(index * u32::from(LEN));
    for (clock, choice) in (1..).zip(choices) {
        let is_ack = choice.is_ack;
        let mut tcp = if is_ack {
            acked = next.min(acked + choice.number);
            Tcp::new(0, sender.opposite(), ISN, 0, place(acked))
        } else {
            let index = [next, next, next + 1, acked][choice.number as usize & 3];
            next = next.max(index + 1);
            Tcp::new(0, sender, place(index), LEN, ISN)
        };
        let echo: u32 = echoes[usize::from(is_ack)];
        echoes[usize::from(!is_ack)] = clock;
        tcp.options.extend([1, 1, 8, 10]);
        tcp.options.extend(u32::to_be_bytes(clock));
        tcp.options.extend(echo.to_be_bytes());
        if is_ack && !choice.blocks.is_empty() {
            let edges = |(gap, len): &(u32, u32)| (place(acked + gap), place(acked + gap + len));
            tcp.options.extend(sack(choice.blocks.iter().map(edges)));
            tcp.dscp = if choice.is_report { NEGATIVE_ACK } else { 0 };
        }
        steps.push(Step::Tcp(tcp));
        let is_answered_at_once = is_in_host && is_ack;
        if !is_answered_at_once {
            steps.push(Step::Wait(choice.wait));
        }
    }
    steps
}

/// A SACK option of blocks with these edges, with padding before it.
pub(crate) fn sack(blocks: impl ExactSizeIterator<Item = (u32, u32)>) -> Vec<u8> {
    let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for (left, right) in blocks {
        option.extend(left.to_be_bytes());
        option.extend(right.to_be_bytes());
    }
    option
}
