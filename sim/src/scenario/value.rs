//! Values of a scenario file: numbers with their unit as text, such as `"1.6mbit"`.

use airmend_proto::link::FRAME_LIMIT;
use airmend_proto::units::{UnitError, parse_duration, parse_probability, parse_rate, parse_size};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// What text means in one kind of place.
pub(crate) trait Quantity: Sized {
    /// What is expected, after "expected".
    const EXPECTED: &'static str;

    /// Reads it.
    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! quantities {
    ($($(#[$meta:meta])* $name:ident($kind:ty) = $parse:path, $expected:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name(pub(crate) $kind);

        impl Quantity for $name {
            const EXPECTED: &'static str = $expected;
            fn read(text: &str) -> Result<Self, String> {
                $parse(text).map(Self).map_err(|error: UnitError| error.to_string())
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reader(PhantomData))
            }
        }
    )*};
}

quantities! {
    /// Bits per second.
    #[derive(Copy)]
    Rate(u64) = parse_rate, "a rate such as \"20mbit\"";
    /// A time.
    #[derive(Copy)]
    Time(Duration) = parse_duration, "a time such as \"40ms\"";
    /// A part of 1.
    #[derive(Copy)]
    Share(f64) = parse_probability, "a share such as \"5%\"";
    /// Bytes.
    #[derive(Copy)]
    Size(u64) = parse_size, "a size such as \"10MB\"";
    /// Any text, number or switch, as text.
    Scalar(String) = any, "a text, a number, true or false";
}

/// The limit of a queue: frames, or full frames for so long.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    Frames(usize),
    Lasts(Duration),
}

impl Queue {
    /// Its frames in front of a link of this rate; a time counts in frames of 1500 bytes, rounded
    /// up.
    pub(crate) fn frames(self, rate_bps: u64) -> usize {
        match self {
            Self::Frames(frames) => frames,
            Self::Lasts(time) => {
                let frames = time.as_nanos() * u128::from(rate_bps) / 12_000;
                frames.div_ceil(1_000_000_000).clamp(1, FRAME_LIMIT as u128) as usize
            }
        }
    }
}

impl Quantity for Queue {
    const EXPECTED: &'static str = "a number of frames, or a time such as \"20ms\"";
    fn read(text: &str) -> Result<Self, String> {
        if let Ok(frames) = text.parse() {
            return Ok(Self::Frames(frames));
        }
        let time = parse_duration(text).map(Self::Lasts);
        time.map_err(|_| format!("expected {}, not {text}", Self::EXPECTED))
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// The rate of a source of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Bits per second.
    Constant(u64),
    /// As many as the link takes.
    Saturating,
}

impl Quantity for Pace {
    const EXPECTED: &'static str = "a rate such as \"20mbit\", or \"saturating\"";
    fn read(text: &str) -> Result<Self, String> {
        if text == "saturating" {
            return Ok(Self::Saturating);
        }
        let rate = parse_rate(text).map(Self::Constant);
        rate.map_err(|_| format!("expected {}, not {text}", Self::EXPECTED))
    }
}

impl<'de> Deserialize<'de> for Pace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

fn any(text: &str) -> Result<String, UnitError> {
    Ok(text.to_owned())
}

/// Reads a quantity from whatever TOML has: a plain number is one without a unit.
struct Reader<T>(PhantomData<T>);

impl<T: Quantity> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::read(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::read(&number.to_string()).map_err(E::custom)
    }

    fn visit_bool<E: Error>(self, switch: bool) -> Result<T, E> {
        T::read(if switch { "true" } else { "false" }).map_err(E::custom)
    }
}
