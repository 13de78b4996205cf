//! The receive window of the mobile: only data that the mobile would take is cached [C-24].

/// Bytes of a flow that are cached before the mobile has answered.
const UNANSWERED: u64 = 64 << 10;
/// The window that is assumed, at least, where the handshake was not seen and the scale is unknown.
const LEAST_UNSCALED: u64 = 1 << 20;
/// The largest scale (RFC 7323 §2.3).
const MAX_SCALE: u8 = 14;

/// The right edge of the window that the mobile has advertised (RFC 9293 §3.8.6).
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    /// The scale; `None` if the handshake was not seen.
    scale: Option<u8>,
    right_edge: u64,
    /// Whether the mobile has advertised the edge.
    is_advertised: bool,
    /// The most bytes that were in flight.
    most_in_flight: u32,
}

impl ReceiveWindow {
    /// The window before the first ACK, from the position of pick-up.
    pub(super) fn new(first: u64) -> Self {
        Self {
            scale: None,
            right_edge: first + UNANSWERED,
            is_advertised: false,
            most_in_flight: 0,
        }
    }

    /// Notes the scale that both hosts have agreed on.
    pub(super) fn set_scale(&mut self, scale: u8) {
        self.scale = Some(scale);
    }

    /// Takes an ACK with this field for the window while so many bytes are in flight. A receiver
    /// that shrinks its window (RFC 9293 §3.8.6) still takes what was sent before.
    pub(super) fn advertise(&mut self, ack: u64, window: u16, in_flight: u64) {
        let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        self.most_in_flight = self.most_in_flight.max(in_flight);
        let window = u64::from(window);
        let size = match self.scale {
            Some(scale) => window << scale,
            // A sender doubles what is in flight in a round trip.
            None => {
                (window << MAX_SCALE).min(LEAST_UNSCALED.max(4 * u64::from(self.most_in_flight)))
            }
        };
        self.set_edge(ack + size);
    }

    /// Takes the window of a SYN-ACK, which is not scaled (RFC 7323 §2.2).
    pub(super) fn advertise_unscaled(&mut self, ack: u64, window: u16) {
        self.set_edge(ack + u64::from(window));
    }

    /// Begins anew at this ACK.
    pub(super) fn pick_up(&mut self, ack: u64, window: u16) {
        self.is_advertised = false;
        self.most_in_flight = 0;
        self.advertise(ack, window, 0);
    }

    fn set_edge(&mut self, edge: u64) {
        self.right_edge = if self.is_advertised { self.right_edge.max(edge) } else { edge };
        self.is_advertised = true;
    }

    /// Whether data that ends at this position lies within the window.
    pub(super) fn holds(&self, end: u64) -> bool {
        end <= self.right_edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_scale_gives_the_window_itself() {
        let mut window = ReceiveWindow::new(1_000);
        assert!(window.holds(1_000 + UNANSWERED) && !window.holds(1_001 + UNANSWERED));
        window.set_scale(7);
        window.advertise(100_000, 1_000, 0);
        assert!(window.holds(228_000) && !window.holds(228_001));
        window.advertise(100_000, 0, 0);
        assert!(window.holds(228_000), "what was sent before is taken");
    }

    #[test]
    fn the_window_of_a_handshake_is_not_scaled() {
        let mut window = ReceiveWindow::new(0);
        window.set_scale(7);
        window.advertise_unscaled(0, 1_000);
        assert!(window.holds(1_000) && !window.holds(1_001));
    }

    #[test]
    fn an_unknown_scale_gives_a_multiple_of_what_was_in_flight() {
        let mut window = ReceiveWindow::new(0);
        window.advertise(0, u16::MAX, 0);
        assert!(window.holds(1 << 20) && !window.holds((1 << 20) + 1));
        window.advertise(0, u16::MAX, 1 << 20);
        assert!(window.holds(4 << 20) && !window.holds((4 << 20) + 1));
        window.advertise(5 << 20, 1, 0);
        assert!(!window.holds((5 << 20) + (1 << 14) + 1));
    }
}
