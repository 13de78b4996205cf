//! The constants of the link by name, in two profiles: the order of the paper, and one order for
//! each flow.

use super::frame::{ACK_LEN, COVERED, EACK_LEN};
use crate::agents::arq::{MAX_WINDOW, Order, Rules};
use crate::agents::settings::settings;
use alloc::string::String;
use core::time::Duration;

const MAX_FRAME: u32 = u16::MAX as u32;
/// Every packet that crosses the link is numbered but pure TCP ACKs, which later ones supersede
/// [lack §3.2 S1-04].
const EVERY_PACKET: &str = "tcp>0=reliable,tcp=unreliable,any=reliable";
/// The same, but what is not TCP is given up after a time.
const BOUNDED: &str = "tcp>0=reliable,tcp=unreliable,any=100ms";

settings! {
    /// Every constant of one end of a link. The default is one order for all connections, as in the
    /// paper.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    Settings, set_constant, "lack has no setting {:?}; it has profile, {}";
    /// Whether the local timeout follows the measured round trip of the link, and the packets in
    /// flight its rate; otherwise `response_time` is the local timeout.
    adaptive: bool = true, switch();
    /// The maximal response time: a packet without a local ACK for so long is retransmitted
    /// [lack §3.2 S1-15]. The paper states none. Twice 20 ms, the airtimes of packet and local ACK,
    /// and a frame's time on its link.
    response_time: Duration = Duration::from_millis(45), timeout();
    /// The window from the oldest packet without CACK to the newest, in packets, at most
    /// [`MAX_WINDOW`].
    window: u32 = MAX_WINDOW, count(1, MAX_WINDOW);
    /// Whether all packets keep their order, as in the paper, or only those of one flow: a loss
    /// then delays no other flow.
    order: Order = Order::Destination, parsed();
    /// Whether each flow has a queue of its own in front of the link (FQ-CoDel, RFC 8290);
    /// otherwise there is one for what has a number, and one for the rest.
    fair_queue: bool = false, switch();
    /// Whether the queue has places beyond its limit for the packets that come at once when the
    /// other end releases those behind a loss, as many as the window has spanned of late.
    burst_places: bool = true, switch();
    /// The number of later transmissions of which this end must know before it sends an EACK for
    /// one that has not arrived: the paper's BS2 finds what is lost by what is out of order
    /// [lack §3.2]. 0 for never: an EACK is then for damaged frames only.
    gap_eack: u32 = 1, count(0, 31);
    /// Whether a packet that the host sends again while its copy is not acknowledged is
    /// retransmitted at once [lack §3.2 S1-12], or only takes the place of the copy.
    resend_duplicates: bool = true, switch();
    /// Whether a packet in flight is transmitted once more while the link has nothing else to
    /// carry. On a channel that others share, their time is not idle.
    idle_copies: bool = false, switch();
    /// The number of packets after which a local ACK is sent, unless `ack_delay` ends before.
    ack_every: u32 = 1, count(1, 31);
    /// The transmissions of which a local ACK tells: in the paper each packet has its own [S1-03],
    /// and a lost one costs a timeout.
    ack_covers: u32 = COVERED, count(1, COVERED);
    /// The longest time for which a local ACK waits.
    ack_delay: Duration = Duration::from_millis(1), duration();
    /// Whether a local ACK travels with a packet. By itself it is short, and bit errors spare it.
    ack_travels: bool = false, switch();
    /// The longest frame with which a local ACK may travel, in bytes.
    max_frame: u32 = MAX_FRAME, count(1, MAX_FRAME);
    /// Service classes.
    classes: Rules = rules(EVERY_PACKET), parsed();
    /// Whether the radio cannot receive while it transmits, and may return a frame.
    half_duplex: bool = false, switch();
}

/// A text of this file that is right.
fn rules(text: &str) -> Rules {
    text.parse().unwrap_or_default()
}

impl Settings {
    /// An order for each flow, with EACKs for all that is lost.
    pub fn flow() -> Self {
        Self {
            order: Order::Flow,
            resend_duplicates: false,
            ack_every: 4,
            ack_travels: true,
            classes: rules(BOUNDED),
            ..Self::default()
        }
    }

    /// Sets one constant from text; `profile` sets all of them, to `lack` or `lack-flow`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match (name, value) {
            ("profile", "lack") => *self = Self::default(),
            ("profile", "lack-flow") => *self = Self::flow(),
            ("profile", _) => {
                return Err(alloc::format!("profile {value:?} must be lack or lack-flow"));
            }
            _ => self.set_constant(name, value)?,
        }
        Ok(())
    }

    /// Whether a local ACK may travel with a frame of so many bytes.
    pub(super) fn travels_with(&self, frame_len: u32) -> bool {
        self.ack_travels && frame_len + (ACK_LEN + EACK_LEN) as u32 <= self.max_frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_name_can_be_set_and_takes_effect() {
        let values = ["7", "7ms", "false", "true", "flow", "udp=unreliable"];
        for &name in Settings::NAMES {
            let takes_effect = values.iter().any(|value| {
                let mut settings = Settings::default();
                settings.set(name, value).is_ok() && settings != Settings::default()
            });
            assert!(takes_effect, "{name}");
        }
    }

    #[test]
    fn the_rules_of_the_profiles_are_as_they_stand_here() {
        assert_eq!(Settings::default().classes.to_string(), EVERY_PACKET);
        assert_eq!(Settings::flow().classes.to_string(), BOUNDED);
    }

    #[test]
    fn refuses_in_one_sentence() {
        let mut settings = Settings::default();
        let mut refusal = |name, value| settings.set(name, value).unwrap_err();
        assert!(refusal("windw", "8").contains("it has profile, adaptive, response_time"));
        assert!(refusal("window", "5000").contains("from 1 to 4096"));
        assert!(refusal("profile", "tulip").contains("must be lack or lack-flow"));
        assert_eq!(settings, Settings::default());
    }
}
