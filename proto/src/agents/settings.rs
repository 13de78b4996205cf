//! The settings of an agent, as the registry and the runners see them.

use super::limits::Limits;
use crate::agent::Agent;
use crate::link::mac::MacParams;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

/// Settings by name, as the table of an agent declares them. They display as the words that
/// [`NamedSettings::set`] takes: `key=value key=value`.
pub trait NamedSettings: fmt::Debug + fmt::Display + Send + Sync {
    /// Sets one of them from text, or says in a sentence what would be right.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String>;

    /// A copy.
    fn clone_box(&self) -> Box<dyn AgentSettings>;
}

/// The settings of one agent.
pub trait AgentSettings: NamedSettings {
    /// Builds the agent; `seed` should be secret where hosts are not trusted. A link takes its
    /// epoch from it, so that it should also be another one in every run.
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send>;

    /// Makes the cache hold a window of this many packets, and not less than by default.
    fn hold_window(&mut self, _packets: usize) {}

    /// Makes a link protocol fit the radios that it runs over; full duplex if there are none.
    fn follow_radio(&mut self, _radio: Option<&MacParams>) {}

    /// Makes a link protocol control its rate, since the bottleneck of the path may be anywhere,
    /// and share it out among flows.
    fn control_rate(&mut self) {}

    /// Makes a link protocol carry TCP to and from this port without retransmissions.
    fn exempt(&mut self, _tcp_port: u16) {}
}

/// The settings of an agent that has none.
#[derive(Debug)]
pub struct NoSettings<A>(PhantomData<fn() -> A>);

impl<A> Default for NoSettings<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A> fmt::Display for NoSettings<A> {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl<A: Agent + Default + Send + fmt::Debug + 'static> NamedSettings for NoSettings<A> {
    fn set(&mut self, name: &str, _value: &str) -> Result<(), String> {
        Err(format!("there is no setting {name:?}"))
    }

    fn clone_box(&self) -> Box<dyn AgentSettings> {
        Box::new(Self::default())
    }
}

impl<A: Agent + Default + Send + fmt::Debug + 'static> AgentSettings for NoSettings<A> {
    fn build(&self, _limits: Limits, _seed: u64) -> Box<dyn Agent + Send> {
        Box::new(A::default())
    }
}

/// Declares the settings of an agent, each with its default and how it reads text; one without the
/// latter cannot be set by name. The struct displays as all settings that can, each a word that
/// sets it: `key=value key=value`. `$set` is the name of the method that the table gives; a type
/// with names beyond the table has a `set` of its own.
macro_rules! settings {
    ($(#[$about:meta])* $type:ident, $set:ident, $unknown:literal;
     $($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr
       $(, $read:ident($($argument:expr),*))?;)*) => {
        $crate::with_defaults! { $(#[$about])* $type; $($(#[$doc])* $field: $kind = $default;)* }

        $crate::settings::setters! { $type, $set, $unknown;
            $($($field => $field = $read($($argument),*);)?)* }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut space = "";
                $($(
                    let _reads_back = stringify!($read);
                    write!(f, "{space}{}=", stringify!($field))?;
                    $crate::settings::Written::write(&self.$field, f)?;
                    space = " ";
                )?)*
                let _ = space;
                Ok(())
            }
        }

        impl $crate::agents::settings::NamedSettings for $type {
            fn set(&mut self, name: &str, value: &str) -> Result<(), alloc::string::String> {
                Self::set(self, name, value)
            }

            fn clone_box(&self) -> alloc::boxed::Box<dyn $crate::agents::AgentSettings> {
                alloc::boxed::Box::new(self.clone())
            }
        }
    };
}
pub(crate) use settings;
