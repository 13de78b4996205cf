//! Packets made from other packets: never a byte of payload changed, every checksum right.

mod bare_ack;
mod codepoint;
mod congestion;
mod cut;
mod field;
mod options;
mod selective_ack;

pub use bare_ack::bare_ack;
pub use codepoint::{codepoint, with_codepoint};
pub use congestion::{ecn, mark_congestion, with_ecn};
pub use cut::{cut, segments};
pub use options::{keep_sack_blocks, with_timestamp};
pub use selective_ack::selective_ack;
