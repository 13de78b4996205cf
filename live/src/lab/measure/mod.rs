//! What the laboratory measures: transfers over TCP, round trips, and the path itself.

pub(super) mod ping;
pub(super) mod probe;
pub(super) mod rounds;
pub(super) mod sender;
pub(super) mod short;
mod stream;
pub(super) mod transfer;
