//! Explicit congestion notification: the field of the IP header (RFC 3168 §5), and what a tunnel
//! makes of two of them (RFC 6040).

/// The last two bits of the traffic class of an IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport (1): low latency (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable transport (0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The field in a traffic class.
    pub fn of_traffic_class(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The field of a packet that leaves a tunnel, where this one was inside (RFC 6040 §4.2,
    /// figure 4); `None` if the packet must be dropped: only a loss can tell its transport of
    /// congestion.
    pub fn decapsulated(self, outer: Self) -> Option<Self> {
        match (self, outer) {
            (Self::NotEct, Self::Ce) => None,
            (Self::NotEct, _) => Some(Self::NotEct),
            (_, Self::Ce) | (Self::Ce, _) => Some(Self::Ce),
            (Self::Ect0, Self::Ect1) => Some(Self::Ect1),
            (inner, _) => Some(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixteen_combinations_are_those_of_the_rfc() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        // RFC 6040 figure 4: a line for each inner field, a column for each outer one.
        let outer = [NotEct, Ect0, Ect1, Ce];
        let figure = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
        ];
        for (inner, line) in figure {
            assert_eq!(outer.map(|outer| inner.decapsulated(outer)), line, "{inner:?}");
        }
    }

    #[test]
    fn a_copied_field_comes_back_and_a_mark_on_it_is_kept() {
        // RFC 6040 §4.1, normal mode: the outer field is a copy.
        for inner in [0, 1, 2, 3].map(Ecn::of_traffic_class) {
            assert_eq!(inner.decapsulated(inner), Some(inner));
            let is_capable = inner != Ecn::NotEct;
            assert_eq!(inner.decapsulated(Ecn::Ce), is_capable.then_some(Ecn::Ce));
            assert_eq!(Ecn::of_traffic_class(inner as u8 | 0b1011_1000), inner);
        }
    }
}
