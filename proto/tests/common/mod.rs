//! What the packet scripts, the enumeration and the property tests share.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod agents;
pub(crate) mod edits;
pub(crate) mod hostile;
pub(crate) mod packet;
pub(crate) mod transfer;
