//! Flag values from text; every error says what is wrong and what would be right.

use airmend_live::lab::config::{AirQueue, CongestionControl, DeviceKind, Direction, MTU, Path};
use airmend_proto::agents::AgentConfig;
use airmend_proto::units::{UnitError, parse_duration, parse_size};
use std::time::Duration;

/// An agent by its name, with its default settings.
pub(crate) fn agent(name: &str) -> Result<AgentConfig, String> {
    AgentConfig::by_name(name)
}

/// A congestion control by the kernel's name.
pub(crate) fn congestion_control(name: &str) -> Result<CongestionControl, String> {
    match name {
        "cubic" => Ok(CongestionControl::Cubic),
        "reno" => Ok(CongestionControl::Reno),
        "bbr" => Ok(CongestionControl::Bbr),
        _ => Err(format!("unknown congestion control {name:?}; known are cubic, reno, bbr")),
    }
}

/// The way of the data.
pub(crate) fn direction(name: &str) -> Result<Direction, String> {
    match name {
        "down" => Ok(Direction::Down),
        "up" => Ok(Direction::Up),
        _ => Err(format!("{name:?} is no direction; write down or up")),
    }
}

/// What the base station forwards with.
pub(crate) fn path(name: &str) -> Result<Path, String> {
    let known = [Path::Inline, Path::Kernel, Path::Gateway];
    let path = known.into_iter().find(|path| path.name() == name);
    path.ok_or_else(|| format!("{name:?} is no path; write inline, kernel or gateway"))
}

/// A queue of the air interface.
pub(crate) fn air_queue(name: &str) -> Result<AirQueue, String> {
    let queue = AirQueue::ALL.into_iter().find(|queue| queue.name() == name);
    queue.ok_or_else(|| {
        let known = AirQueue::ALL.map(AirQueue::name).join(", ");
        format!("{name:?} is no queue of the air interface; known are {known}")
    })
}

/// A kind of port.
pub(crate) fn port(name: &str) -> Result<DeviceKind, String> {
    match name {
        "veth" => Ok(DeviceKind::Veth),
        "tun" => Ok(DeviceKind::Tun),
        _ => Err(format!("{name:?} is no kind of port; write veth or tun")),
    }
}

/// Frames that a queue holds: their number, or as many full ones as so many bytes hold.
pub(crate) fn queue(text: &str) -> Result<usize, String> {
    let frames = match text.parse::<u64>() {
        Ok(frames) => Some(frames),
        Err(_) => parse_size(text).ok().map(|bytes| bytes / u64::from(MTU)),
    };
    match frames {
        Some(frames @ 1..=1_000_000) => Ok(frames as usize),
        _ => Err(format!(
            "{text:?} is no queue; write a number of frames from 1 to 1000000, or the bytes of \
             full ones with their unit, such as 65kB"
        )),
    }
}

/// A receiver's window, in segments; `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window(pub(crate) Option<u32>);

/// A number of segments, or none.
pub(crate) fn window(text: &str) -> Result<Window, String> {
    match text.parse() {
        _ if text == "none" => Ok(Window(None)),
        Ok(segments @ 1..=1_000_000) => Ok(Window(Some(segments))),
        _ => Err(format!("{text:?} is no window; write a number of segments such as 64, or none")),
    }
}

/// An agent setting.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!("{text:?} is no setting; write KEY=VALUE, such as dupack_threshold=3")),
    }
}

/// A whole number of which there must be at least one.
pub(crate) fn positive(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err(format!("{text:?} must be a whole number from 1 to 1000000")),
    }
}

/// Bytes of a transfer, at least one.
pub(crate) fn amount(text: &str) -> Result<u64, String> {
    match parse_size(text).map_err(|error| words(&error))? {
        0 => Err(format!("size {text:?} must be more than 0, such as 10MB")),
        bytes => Ok(bytes),
    }
}

/// More than no time: seconds as a plain number, or a time with its unit.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let is_plain = text.parse::<f64>().is_ok();
    let time = if is_plain { parse_duration(&format!("{text}s")) } else { parse_duration(text) };
    match time.map_err(|error| words(&error))? {
        Duration::ZERO => Err(format!("duration {text:?} must be more than 0, such as 10s")),
        time => Ok(time),
    }
}

fn words(error: &UnitError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_frames_or_the_bytes_of_full_ones() {
        assert_eq!(queue("43"), Ok(43));
        assert_eq!(queue("65kB"), Ok(43));
        assert_eq!(queue("64Ki"), Ok(43));
        for wrong in ["0", "1kB", "-3", "2000001", "long"] {
            assert!(queue(wrong).is_err_and(|why| why.contains("from 1")), "{wrong}");
        }
    }
}
