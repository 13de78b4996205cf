//! What the packet scripts, the enumeration and the property tests share.

pub(crate) mod agents;
pub(crate) mod packet;
