//! The ports of a station.

use core::fmt;

/// A port of the station at which an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// Towards the fixed hosts (FH).
    Wired,
    /// Towards the mobile hosts (MH), over the lossy hop.
    Air,
}

impl Port {
    /// Both ports, in the order in which they are served.
    pub const BOTH: [Self; 2] = [Self::Air, Self::Wired];

    /// The port by which a packet leaves that arrived at this one.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Wired => Self::Air,
            Self::Air => Self::Wired,
        }
    }

    /// The name by which logs, recordings and scripts call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wired => "wired",
            Self::Air => "air",
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
