//! TULIP: two ends and a channel in virtual time.

mod bulk;
mod pair;
