//! Why a frame of a link protocol cannot be parsed.

/// The reason why a frame cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// The version is unknown.
    Version,
    /// The kind is unknown.
    Kind,
    /// The kind is unknown to the agent `lack`.
    LackKind,
    /// The frame is shorter than its header says, or was captured without its packet.
    Truncated,
    /// The epoch of the sender is 0.
    Epoch,
    /// The bit vector is longer than the widest window.
    Vector,
    /// The header does not match its checksum.
    Checksum,
    /// What the short form leaves out is not known here, or contradicts the check.
    Unknown,
}

impl Malformed {
    /// A sentence for a log or a packet comment.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Version => "link: dropped, a version other than 1",
            Self::Kind => "link: dropped, a kind other than 0 to 3",
            Self::LackKind => "link: dropped, a kind other than 0 to 4",
            Self::Truncated => "link: dropped, shorter than its header says",
            Self::Epoch => "link: dropped, a sender's epoch of 0",
            Self::Vector => "link: dropped, a bit vector of more than 512 bytes",
            Self::Checksum => "link: dropped, a damaged header",
            Self::Unknown => "link: dropped, a short form that this end cannot read",
        }
    }
}
