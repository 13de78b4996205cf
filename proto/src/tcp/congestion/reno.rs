//! Reno's congestion avoidance: one segment a round trip (RFC 5681 §3.1).

use crate::tcp::profile::Growth;

/// Bytes acknowledged since the window last grew, where bytes are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reno {
    acked: u64,
}

impl Reno {
    /// What an ACK of `bytes` adds to a window of `cwnd`.
    pub(super) fn increase(&mut self, growth: Growth, bytes: u64, cwnd: u64, mss: u64) -> u64 {
        match growth {
            // RFC 5681 eq. 3.
            Growth::PerAck => (mss * mss / cwnd).max(1),
            Growth::PerByte => {
                self.acked += bytes;
                if self.acked < cwnd {
                    return 0;
                }
                self.acked -= cwnd;
                mss
            }
        }
    }
}
