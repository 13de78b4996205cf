//! The operator's word on a mobile host: what no packet tells, or not yet.

use airmend_proto::agents::handoff::Mobile;
use airmend_proto::named;
use std::net::IpAddr;

/// What happens to a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// It may come soon: its packets are kept from now on.
    Approaching,
    /// It is here.
    Attached,
    /// It will not come.
    Receding,
}

named! { Movement, "is no movement of a mobile host":
Approaching = "approaching", Attached = "attached", Receding = "receding" }

/// A movement of one mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The host's address.
    pub mobile: IpAddr,
    /// What happens to it.
    pub movement: Movement,
}

impl Word {
    /// The path by which the gateway's socket takes it.
    pub fn path(&self) -> String {
        format!("/handoff/{}/{}", self.movement.name(), self.mobile)
    }

    /// Reads a path.
    pub(in crate::gateway) fn of_path(path: &str) -> Option<Self> {
        let (movement, mobile) = path.strip_prefix("/handoff/")?.split_once('/')?;
        Some(Self { mobile: mobile.parse().ok()?, movement: movement.parse().ok()? })
    }

    pub(super) fn address(&self) -> Mobile {
        match self.mobile {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_path() {
        for path in ["/handoff/approaching/10.1.2.3", "/handoff/receding/fd00::1"] {
            assert_eq!(Word::of_path(path).unwrap().path(), path);
        }
        for wrong in ["", "/handoff", "/handoff/attached", "/handoff/gone/10.1.2.3", "/status"] {
            assert_eq!(Word::of_path(wrong), None, "{wrong}");
        }
        let v4 = Word { mobile: [10, 1, 2, 3].into(), movement: Movement::Attached };
        assert_eq!(v4.address()[10..], [0xff, 0xff, 10, 1, 2, 3]);
    }
}
