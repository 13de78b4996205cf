//! How an agent in a mobile host knows a negative acknowledgment of its base station [S0-40].

/// The differentiated services codepoint of negative acknowledgments, one for local use (RFC 2474
/// §6). A host without an agent ignores it.
pub(super) const CODEPOINT: u8 = 0b10_1011;
