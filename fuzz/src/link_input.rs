//! What happens to one end of a link protocol, by the choices of a fuzz target.

use super::hostile::Step;
use super::kit::Frame;
use crate::input::Input;
use airmend_proto::LinkSignal;
use core::time::Duration;

/// Steps of one run: the window is small, so that more of them show little more.
const MAX_STEPS: usize = 150;

/// All that is left, as steps.
pub(crate) fn steps(input: &mut Input<'_>, frame: impl Fn(&mut Input<'_>) -> Frame) -> Vec<Step> {
    let mut steps = Vec::new();
    while !input.0.is_empty() && steps.len() < MAX_STEPS {
        steps.push(step(input, &frame));
    }
    steps
}

fn step(input: &mut Input<'_>, frame: impl Fn(&mut Input<'_>) -> Frame) -> Step {
    match input.byte() & 15 {
        0..6 => Step::Frame(frame(input)),
        6..9 => Step::Packet(input.packet()),
        9..12 => Step::Take(usize::from(input.byte() & 3), usize::from(input.byte() & 3)),
        12 => match input.byte() & 3 {
            0 => Step::Damaged(frame(input), usize::from(input.byte())),
            1 => Step::Signal(LinkSignal::Sent),
            2 => Step::Signal(LinkSignal::Leaving),
            _ => Step::Signal(LinkSignal::Idle),
        },
        13 | 14 => Step::Wait(Duration::from_micros(u64::from(input.word()) * 4)),
        _ => {
            let len = usize::from(input.byte()).min(input.0.len());
            let (bytes, rest) = input.0.split_at(len);
            input.0 = rest;
            Step::Bytes(bytes.to_vec())
        }
    }
}
