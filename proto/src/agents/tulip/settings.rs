//! The constants of the link by name, in profiles: that of the paper, an adaptive link, and what
//! `airmend link` begins with.

use super::frame::{ACK_LEN, HEADER_LEN, MAX_WINDOW};
use crate::agents::arq::{Order, Rules, WIDEST_WINDOW};
use crate::agents::settings::{AgentSettings, settings};
use crate::units::Rate;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// The length of the expected answer: a link ACK on a TCP ACK with timestamps.
const ANSWER_LEN: usize = HEADER_LEN + ACK_LEN + 8 + 52;
/// The length of the longest frame that carries an Ethernet path's packet.
const LONG_FRAME_LEN: usize = HEADER_LEN + ACK_LEN + 8 + 1_500;
const MAX_FRAME: u32 = u16::MAX as u32;

settings! {
    /// Every constant of one end of a link. Both ends agree on all but the class rules. The default
    /// is an adaptive full-duplex link.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    Settings, set_constant, "tulip has no setting {:?}; it has profile, {}";
    /// Whether window and timers follow the measured round trip and rate of the link; otherwise
    /// the maximum propagation delay fixes them as in the paper [tulip99 §I S2-07].
    adaptive: bool = true, switch();
    /// The window from the oldest unacknowledged to the newest packet, in packets, at most
    /// 65,536 [tulip99 §V S2-03]. Above [`MAX_WINDOW`] link ACKs are reports on transmissions,
    /// where both ends have it so.
    window: u32 = WIDEST_WINDOW, count(1, WIDEST_WINDOW);
    /// Whether each end controls the rate at which it sends, since the bottleneck of the path may
    /// be behind the end. The queue of a radio that is at the end itself needs none.
    rate_control: bool = false, switch();
    /// Whether each flow has a queue of its own in front of the link (FQ-CoDel, RFC 8290), as
    /// always with `rate_control`; otherwise there is one for what is retransmitted, and one for
    /// the rest.
    fair_queue: bool = false, switch();
    /// Whether routers may mark what carries the frames of this end "congestion experienced" (RFC
    /// 6040). Off for a path that loses what can be marked.
    ecn: bool = true, switch();
    /// How often each packet in flight is transmitted once more while the link has nothing else to
    /// carry. Never where the ends take turns or control their rate.
    idle_copies: u32 = 0, count(0, 7);
    /// Whether lost packets are recovered from combinations of others where a retransmission takes
    /// long (RFC 8681). Never where the ends take turns.
    coding: bool = true, switch();
    /// Whether the ends take turns, as radios do that cannot receive while they transmit
    /// [tulip99 §III S2-05].
    half_duplex: bool = false, switch();
    /// Half duplex: frames in one turn.
    strobe: u32 = 1, count(1, MAX_WINDOW);
    /// The maximum propagation delay from one end to the other [tulip99 §I S2-07].
    max_propagation_delay: Duration = Duration::from_millis(50), duration();
    /// The longest time from the end of a frame to the beginning of its answer: the radio turns
    /// around and, without MAC acceleration, wins the channel.
    turnaround: Duration = Duration::from_millis(1), duration();
    /// The rate of the link; it gives the airtime of an answer.
    rate: Rate = Rate(1_000_000), rate();
    /// The number of packets after which a link ACK is sent, unless `ack_delay` ends before.
    ack_every: u32 = 4, count(1, MAX_WINDOW);
    /// The longest time for which a link ACK waits for a packet to travel with.
    ack_delay: Duration = Duration::from_millis(1), duration();
    /// Whether link ACKs to an end that reads reports are few: one travels with a packet only from
    /// half of `ack_every` or of `ack_delay` on, and what fills a gap causes none.
    sparse_acks: bool = false, switch();
    /// Whether all packets to the other end keep their order, as in the paper, or only those of
    /// one flow: a loss then delays no other flow.
    order: Order = Order::Flow, parsed();
    /// The longest frame with which a link ACK may travel, in bytes; beside a longer one the link
    /// ACK is sent alone.
    max_frame: u32 = MAX_FRAME, count(1, MAX_FRAME);
    /// Service classes.
    classes: Rules = Rules::default(), parsed();
}

impl Settings {
    /// The link of the paper: half-duplex radios at 1 Mb/s that take turns, a window of 8 packets,
    /// one order for all packets, timers from the maximum propagation delay [tulip99 §V S2-21].
    ///
    /// The paper states neither delay nor turn-around: 20 µs is light over 6 km, and 1 ms a radio
    /// of its time.
    pub fn tulip99() -> Self {
        Self {
            adaptive: false,
            window: 8,
            rate_control: false,
            fair_queue: false,
            ecn: false,
            idle_copies: 0,
            coding: false,
            half_duplex: true,
            strobe: 1,
            max_propagation_delay: Duration::from_micros(20),
            turnaround: Duration::from_millis(1),
            rate: Rate(1_000_000),
            ack_every: 1,
            ack_delay: Duration::from_micros(100),
            sparse_acks: false,
            order: Order::Destination,
            max_frame: MAX_FRAME,
            classes: Rules::tulip99(),
        }
    }

    /// What `airmend link` begins with: the bottleneck may be behind the end.
    pub fn link() -> Self {
        let mut settings = Self::default();
        settings.control_rate();
        settings
    }

    /// Sets one constant from text; `profile` sets all of them, to `tulip`, `link` or `tulip99`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match (name, value) {
            ("profile", "tulip") => *self = Self::default(),
            ("profile", "link") => *self = Self::link(),
            ("profile", "tulip99") => *self = Self::tulip99(),
            ("profile", _) => {
                return Err(format!("profile {value:?} must be tulip, link or tulip99"));
            }
            _ => self.set_constant(name, value)?,
        }
        Ok(())
    }

    /// Whether link ACKs should be reports on transmissions.
    pub fn by_serial(&self) -> bool {
        self.window > MAX_WINDOW || self.rate_control || self.reads_repairs()
    }

    /// Whether this end reads repair frames, and sends them.
    pub(super) fn reads_repairs(&self) -> bool {
        self.coding && !self.half_duplex
    }

    /// Whether this end reads the clock of reports.
    pub(super) fn reads_clock(&self) -> bool {
        self.rate_control
    }

    /// Whether the egress queue has a queue for each flow.
    pub(super) fn is_fair(&self) -> bool {
        self.fair_queue || self.rate_control
    }

    /// The reply timeout without an estimate: from the end of a turn on a half-duplex link, else
    /// from the moment at which a frame is handed to the link, which may hold one frame before it
    /// at either end [tulip99 §I S2-07].
    pub fn answer_wait(&self) -> Duration {
        let frames = if self.half_duplex { 0 } else { 2 };
        let airtime = self.airtime(ANSWER_LEN) + self.airtime(LONG_FRAME_LEN) * frames;
        2 * self.max_propagation_delay + self.turnaround + airtime + self.ack_delay
    }

    /// The timeout of the next frame of a turn, without an estimate.
    pub fn frame_wait(&self) -> Duration {
        self.answer_wait() + self.airtime(LONG_FRAME_LEN)
    }

    fn airtime(&self, len: usize) -> Duration {
        Duration::from_nanos(len as u64 * 8 * 1_000_000_000 / self.rate.0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_and_takes_effect() {
        let values = ["tulip99", "7", "7ms", "false", "true", "3mbit", "flow", "udp=unreliable"];
        for &name in Settings::NAMES {
            let takes_effect = values.iter().any(|value| {
                let mut settings = Settings::default();
                let was_set = settings.set(name, value).is_ok();
                was_set && (settings != Settings::default() || name == "order")
            });
            assert!(takes_effect, "{name}");
        }
    }

    #[test]
    fn refuses_in_one_sentence() {
        let mut settings = Settings::default();
        let mut refusal = |name, value| settings.set(name, value).unwrap_err();
        assert!(refusal("windw", "8").contains("it has profile, adaptive, window"));
        assert!(refusal("window", "70000").contains("from 1 to 65536"));
        assert!(refusal("profile", "snoop").contains("must be tulip, link or tulip99"));
        assert!(refusal("order", "none").contains("destination or flow"));
        assert_eq!(settings, Settings::default());
    }
}
