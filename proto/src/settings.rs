//! Settings by name, for files, flags and packet scripts: one table declares the name, default and
//! reader of each.

use crate::named::either;
use crate::units::{self, Rate};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A setting's name and the text that it is set to.
pub(crate) struct Text<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

impl Text<'_> {
    /// A whole number.
    pub(crate) fn count<T: TryFrom<u32>>(&self, least: u32, most: u32) -> Result<T, String> {
        let count = self.value.parse().ok().filter(|count| (least..=most).contains(count));
        let refusal = || self.refusal(&format!("a whole number from {least} to {most}"));
        count.and_then(|count| T::try_from(count).ok()).ok_or_else(refusal)
    }

    pub(crate) fn number(&self, least: f64, most: f64) -> Result<f64, String> {
        match self.value.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.refusal(&format!("a number from {least} to {most}"))),
        }
    }

    /// A share above 0, at most 1.
    pub(crate) fn share(&self) -> Result<f64, String> {
        match self.value.parse() {
            Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
            _ => Err(self.refusal("more than 0 and at most 1")),
        }
    }

    pub(crate) fn switch(&self) -> Result<bool, String> {
        match self.value {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(self.refusal("on or off")),
        }
    }

    pub(crate) fn duration(&self) -> Result<Duration, String> {
        units::parse_duration(self.value).map_err(|error| self.explain(&error))
    }

    /// A duration of a timer: one of zero would always be due.
    pub(crate) fn timeout(&self) -> Result<Duration, String> {
        match self.duration()? {
            Duration::ZERO => Err(self.refusal("more than 0, such as 40ms")),
            timeout => Ok(timeout),
        }
    }

    /// A size above 0; a larger one than `most` is taken as `most`.
    pub(crate) fn bytes<T: TryFrom<u64>>(&self, most: u64) -> Result<T, String> {
        let bytes = units::parse_size(self.value).map_err(|error| self.explain(&error))?;
        let bytes = Some(bytes).filter(|&bytes| bytes > 0);
        let bytes = bytes.and_then(|bytes| T::try_from(bytes.min(most)).ok());
        bytes.ok_or_else(|| self.refusal("more than 0 bytes"))
    }

    pub(crate) fn rate(&self) -> Result<Rate, String> {
        units::parse_rate(self.value).map(Rate).map_err(|error| self.explain(&error))
    }

    pub(crate) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let refusal = || {
            let known: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.refusal(&either(&known))
        };
        let choice = choices.iter().find(|(name, _)| *name == self.value);
        choice.map(|(_, choice)| *choice).ok_or_else(refusal)
    }

    /// A value that is read by its own `FromStr`.
    pub(crate) fn parsed<T: FromStr<Err = String>>(&self) -> Result<T, String> {
        self.value.parse().map_err(|error| self.explain(&error))
    }

    fn refusal(&self, must: &str) -> String {
        let Self { name, value } = self;
        format!("{name} {value:?} must be {must}")
    }

    fn explain(&self, error: &dyn fmt::Display) -> String {
        format!("{}: {error}", self.name)
    }
}

/// The text form of a setting, which is read back exactly.
pub(crate) trait Written {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl Written for Duration {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.as_nanos())
    }
}

macro_rules! written_as_displayed {
    ($($type:ty),*) => {$(
        impl $crate::settings::Written for $type {
            fn write(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )*};
}
pub(crate) use written_as_displayed;

written_as_displayed!(bool, u32, u64, usize, f64, Rate);

/// Gives a type `NAMES`, and a method that sets the field of a name from text. The literal refuses
/// a name: its arguments are that name and those known.
macro_rules! setters {
    ($type:ty, $set:ident, $unknown:literal;
     $($name:ident => $($place:ident).+ = $read:ident($($argument:expr),*);)*) => {
        impl $type {
            #[doc = concat!("The names that [`Self::", stringify!($set), "`] knows.")]
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Sets one of them from text; the error is one sentence.
            pub fn $set(&mut self, name: &str, value: &str) -> Result<(), alloc::string::String> {
                let text = $crate::settings::Text { name, value };
                match name {
                    $(stringify!($name) => self.$($place).+ = text.$read($($argument),*)?,)*
                    _ => return Err(alloc::format!($unknown, name, Self::NAMES.join(", "))),
                }
                Ok(())
            }
        }
    };
}
pub(crate) use setters;

/// Declares a public struct whose fields have the defaults that stand beside them.
#[macro_export]
macro_rules! with_defaults {
    ($(#[$about:meta])* $type:ident;
     $($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr;)*) => {
        $(#[$about])*
        pub struct $type {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
