//! Whether startup found all bandwidth that there is (`bbr_check_full_bw_reached`).

use super::bandwidth::Bandwidth;

/// Rounds in which the bandwidth grew by less than a quarter, after which the pipe is full.
const FULL_ROUNDS: u32 = 3;

/// The bandwidth that startup has found so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    bandwidth: Bandwidth,
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    pub(super) fn is_reached(self) -> bool {
        self.reached
    }

    /// What startup has found so far does not count; that the pipe was full does.
    pub(super) fn forget(&mut self) {
        (self.bandwidth, self.rounds) = (Bandwidth::default(), 0);
    }

    /// A round of startup has shown this bandwidth.
    pub(super) fn round(&mut self, bandwidth: Bandwidth) {
        if bandwidth >= self.bandwidth.and_a_quarter() {
            (self.bandwidth, self.rounds) = (bandwidth, 0);
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }
}
