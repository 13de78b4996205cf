//! Enums whose variants have names, for flags, files and results.

use alloc::format;
pub use alloc::string::String;

/// Gives an enum without fields `ALL`, `name` and `Display`; and `FromStr`, if a literal completes
/// the error sentence.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Way {
///     Down,
///     Up,
/// }
/// airmend_proto::named! { Way, "is no direction": Down = "down", Up = "up" }
///
/// assert_eq!("up".parse(), Ok(Way::Up));
/// let refusal = "left".parse::<Way>().unwrap_err();
/// assert_eq!(refusal, r#""left" is no direction; write down or up"#);
/// ```
#[macro_export]
macro_rules! named {
    ($type:ty, $wrong:literal: $($variant:ident = $name:literal),*) => {
        $crate::named! { $type: $($variant = $name),* }

        impl core::str::FromStr for $type {
            type Err = $crate::named::String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|one| one.name() == text);
                found.ok_or_else(|| $crate::named::refusal(text, $wrong, &[$($name),*]))
            }
        }
    };
    ($type:ty: $($variant:ident = $name:literal),*) => {
        impl $type {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name of the variant.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// The sentence that refuses a text which is none of `names`.
pub fn refusal(text: &str, wrong: &str, names: &[&str]) -> String {
    format!("{text:?} {wrong}; write {}", either(names))
}

/// `a, b or c`.
pub(crate) fn either(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        names => names.concat(),
    }
}
