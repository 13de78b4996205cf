//! The constants of the link by name, in two profiles: the paper's, and one that tunes itself.

use super::classes::Rules;
use super::frame::{ACK_LEN, HEADER_LEN, MAX_WINDOW};
use crate::agents::value::switch;
use crate::units;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// A link ACK on a TCP ACK with timestamps: the answer that is waited for.
const ANSWER_LEN: usize = HEADER_LEN + ACK_LEN + 8 + 52;
/// The longest frame of an Ethernet path.
const LONG_FRAME_LEN: usize = HEADER_LEN + ACK_LEN + 8 + 1_500;

/// Every constant of one end of a link. Both ends agree on all but the class rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Whether window and timers follow the measured round trip and rate of the link, or are fixed
    /// by the maximum propagation delay as in the paper [tulip99 §I S2-07].
    pub adaptive: bool,
    /// From the oldest unacknowledged to the newest packet, in packets, at most
    /// [`MAX_WINDOW`] [tulip99 §V S2-03].
    pub window: u32,
    /// Whether the ends take turns, as radios do that cannot hear while they speak
    /// [tulip99 §III S2-05].
    pub half_duplex: bool,
    /// Half duplex: frames in one turn.
    pub strobe: u32,
    /// The longest time that a bit travels from one end to the other [tulip99 §I S2-07].
    pub max_propagation_delay: Duration,
    /// The longest time from the end of a frame to the beginning of its answer: the radio turns
    /// around and, without MAC acceleration, wins the channel.
    pub turnaround: Duration,
    /// The rate of the link in bit/s; it gives the airtime of an answer.
    pub rate_bps: u64,
    /// Packets that one link ACK answers at most, unless it is held back for less.
    pub ack_every: u32,
    /// How long a link ACK waits for a packet to travel with.
    pub ack_delay: Duration,
    /// Whether all packets to the other end keep their order, as in the paper, or only those of
    /// one flow: a loss then delays no other flow.
    pub order: Order,
    /// The longest frame in bytes with which a link ACK may travel; a longer one goes without, and
    /// the ACK goes alone.
    pub max_frame: u32,
    /// Service classes.
    pub classes: Rules,
}

/// Among which packets the order is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// All to one destination [tulip99 §III S2-02].
    Destination,
    /// Those of one flow: the same addresses, protocol and ports.
    Flow,
}

/// A full-duplex link that tunes itself.
impl Default for Settings {
    fn default() -> Self {
        Self {
            adaptive: true,
            window: MAX_WINDOW,
            half_duplex: false,
            strobe: 1,
            max_propagation_delay: Duration::from_millis(50),
            turnaround: Duration::from_millis(1),
            rate_bps: 1_000_000,
            ack_every: 4,
            ack_delay: Duration::from_millis(1),
            order: Order::Flow,
            max_frame: u32::from(u16::MAX),
            classes: Rules::default(),
        }
    }
}

impl Settings {
    /// The names that [`Settings::set`] knows.
    pub const NAMES: [&str; 13] = [
        "profile",
        "adaptive",
        "window",
        "half_duplex",
        "strobe",
        "max_propagation_delay",
        "turnaround",
        "rate",
        "ack_every",
        "ack_delay",
        "order",
        "max_frame",
        "classes",
    ];

    /// The paper's link: half-duplex radios at 1 Mb/s that take turns, a window of 8 packets, one
    /// order for all packets, timers from the maximum propagation delay [tulip99 §V S2-21].
    ///
    /// The paper states neither delay nor turn-around: 20 µs is light over 6 km, and 1 ms a radio
    /// of its time.
    pub fn tulip99() -> Self {
        Self {
            adaptive: false,
            window: 8,
            half_duplex: true,
            strobe: 1,
            max_propagation_delay: Duration::from_micros(20),
            turnaround: Duration::from_millis(1),
            rate_bps: 1_000_000,
            ack_every: 1,
            ack_delay: Duration::from_micros(100),
            order: Order::Destination,
            max_frame: u32::from(u16::MAX),
            classes: Rules::tulip99(),
        }
    }

    /// Sets one constant from text; `profile` sets all of them, to `tulip` or `tulip99`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "profile" => match value {
                "tulip" => *self = Self::default(),
                "tulip99" => *self = Self::tulip99(),
                _ => return Err(format!("profile {value:?} must be tulip or tulip99")),
            },
            "adaptive" => self.adaptive = switch(name, value)?,
            "window" => self.window = number(name, value, MAX_WINDOW)?,
            "half_duplex" => self.half_duplex = switch(name, value)?,
            "strobe" => self.strobe = number(name, value, MAX_WINDOW)?,
            "max_propagation_delay" => self.max_propagation_delay = duration(name, value)?,
            "turnaround" => self.turnaround = duration(name, value)?,
            "rate" => {
                self.rate_bps = units::parse_rate(value).map_err(|error| error.to_string())?;
            }
            "ack_every" => self.ack_every = number(name, value, MAX_WINDOW)?,
            "ack_delay" => self.ack_delay = duration(name, value)?,
            "order" => {
                self.order = match value {
                    "destination" => Order::Destination,
                    "flow" => Order::Flow,
                    _ => return Err(format!("order {value:?} must be destination or flow")),
                }
            }
            "max_frame" => self.max_frame = number(name, value, u32::from(u16::MAX))?,
            "classes" => self.classes = value.parse()?,
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("tulip has no setting {name:?}; it has {known}"));
            }
        }
        Ok(())
    }

    /// The longest wait for an answer, without any estimate: from the end of a turn on a
    /// half-duplex link, else from the moment a frame is given to the link, which may have one
    /// frame before it at either end [tulip99 §I S2-07].
    pub fn answer_wait(&self) -> Duration {
        let frames = if self.half_duplex { 0 } else { 2 };
        let airtime = self.airtime(ANSWER_LEN) + self.airtime(LONG_FRAME_LEN) * frames;
        2 * self.max_propagation_delay + self.turnaround + airtime + self.ack_delay
    }

    /// The longest wait for the next frame of a turn, without any estimate.
    pub fn frame_wait(&self) -> Duration {
        self.answer_wait() + self.airtime(LONG_FRAME_LEN)
    }

    fn airtime(&self, len: usize) -> Duration {
        Duration::from_nanos(len as u64 * 8 * 1_000_000_000 / self.rate_bps.max(1))
    }
}

/// Every constant as [`Settings::set`] takes it: `adaptive=true window=4096 …`.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::Destination => "destination",
            Order::Flow => "flow",
        };
        write!(
            f,
            "adaptive={} window={} half_duplex={} strobe={} max_propagation_delay={}ns \
             turnaround={}ns rate={}bit ack_every={} ack_delay={}ns order={order} max_frame={} \
             classes={}",
            self.adaptive,
            self.window,
            self.half_duplex,
            self.strobe,
            self.max_propagation_delay.as_nanos(),
            self.turnaround.as_nanos(),
            self.rate_bps,
            self.ack_every,
            self.ack_delay.as_nanos(),
            self.max_frame,
            self.classes,
        )
    }
}

fn number(name: &str, value: &str, most: u32) -> Result<u32, String> {
    match value.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{name} {value:?} must be a whole number from 1 to {most}")),
    }
}

fn duration(name: &str, value: &str) -> Result<Duration, String> {
    units::parse_duration(value).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_and_is_told() {
        let values = ["tulip99", "7", "7ms", "false", "true", "3mbit", "flow", "udp=unreliable"];
        for name in Settings::NAMES {
            let is_told = values.iter().any(|value| {
                let mut settings = Settings::default();
                let was_set = settings.set(name, value).is_ok();
                was_set && (settings != Settings::default() || name == "order")
            });
            assert!(is_told, "{name}");
        }
    }

    #[test]
    fn refuses_in_one_sentence() {
        let mut settings = Settings::default();
        let mut refusal = |name, value| settings.set(name, value).unwrap_err();
        assert!(refusal("windw", "8").contains("it has profile, adaptive, window"));
        assert!(refusal("window", "5000").contains("from 1 to 4096"));
        assert!(refusal("profile", "snoop").contains("must be tulip or tulip99"));
        assert!(refusal("order", "none").contains("destination or flow"));
        assert_eq!(settings, Settings::default());
    }
}
