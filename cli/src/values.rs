//! Flag values from text; every error says what is wrong and what would be right.

use airmend_live::lab::config::{FarQueue, MTU};
use airmend_proto::units::{UnitError, parse_duration, parse_size};
use std::time::Duration;

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

/// The queue of a modem: that of a FIFO, or what manages its delay.
pub(crate) fn far_queue(text: &str) -> Result<FarQueue, String> {
    match text {
        "codel" => Ok(FarQueue::Codel),
        "fq_codel" => Ok(FarQueue::FqCodel),
        _ => queue(text).map(FarQueue::Fifo).map_err(|_| {
            format!(
                "{text:?} is no queue of a modem; write a number of frames from 1 to 1000000, the \
                 bytes of full ones with their unit, such as 65kB, codel or fq_codel"
            )
        }),
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

/// A name that an interface can have.
pub(crate) fn interface(text: &str) -> Result<String, String> {
    let is_name = !matches!(text, "" | "." | "..")
        && text.len() <= 15
        && !text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
    match is_name {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("{text:?} is no name of an interface; `ip link` lists those there are"))
        }
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

/// The time between two looks: no shorter than what is looked at makes new figures.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        time if time < Duration::from_millis(100) || time > Duration::from_secs(3_600) => {
            Err(format!("interval {text:?} must be from 100ms to 3600s, such as 1s"))
        }
        time => Ok(time),
    }
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

    #[test]
    fn a_far_queue_is_a_fifo_or_what_manages_its_delay() {
        assert_eq!(far_queue("65kB"), Ok(FarQueue::Fifo(43)));
        for text in ["140", "codel", "fq_codel"] {
            assert_eq!(far_queue(text).map(|queue| queue.to_string()), Ok(text.to_owned()));
        }
        for wrong in ["0", "red", "fq-codel", ""] {
            assert!(far_queue(wrong).is_err_and(|why| why.contains("fq_codel")), "{wrong}");
        }
    }
}
