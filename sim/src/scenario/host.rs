//! Hosts: a named TCP profile and what differs from it.

use super::count::MAX_NODES;
use super::error::{Fault, unknown};
use super::named::Named;
use super::value::Scalar;
use airmend_proto::tcp::{CongestionControl, Profile, SackRecovery};
use serde::Deserialize;
use toml::Spanned;

/// One host, or `count` like ones: `profile`, and any knob of it by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct HostSpec(Named<Spanned<Scalar>>);

impl HostSpec {
    /// The profile with all that differs; `host` is the table's name.
    pub(super) fn profile(&self, host: &Spanned<String>) -> Result<Profile, Fault> {
        let profile = self.any_profile(host)?;
        let knob = |name| self.0.get(name).map(Spanned::span);
        let has_linux_recovery = profile.sack && profile.sack_recovery == SackRecovery::Linux;
        if profile.congestion == CongestionControl::Bbr && !has_linux_recovery {
            let span = knob("congestion").or(knob("profile")).unwrap_or_default();
            let needs = "`congestion = \"bbr\"` needs `sack` and `sack_recovery = \"linux\"`";
            return Err(Fault::new(span, needs));
        }
        Ok(profile)
    }

    fn any_profile(&self, host: &Spanned<String>) -> Result<Profile, Fault> {
        let Some(profile) = self.0.get("profile") else {
            let known = Profile::PROFILES.join(", ");
            let message = format!("host `{host}` needs a `profile`: {known}");
            return Err(Fault::new(host.span(), message));
        };
        let Scalar(name) = profile.get_ref();
        let mut result = Profile::named(name).map_err(|_| {
            Fault::new(profile.span(), unknown("profile", name, &Profile::PROFILES))
        })?;
        for (name, value) in &self.0 {
            match name.get_ref().as_str() {
                "profile" | "count" => {}
                knob if Profile::NAMES.contains(&knob) => {
                    let Scalar(text) = value.get_ref();
                    result.set(knob, text).map_err(|why| Fault::new(value.span(), why))?;
                }
                other => {
                    let known: Vec<&str> =
                        ["profile", "count"].iter().chain(Profile::NAMES).copied().collect();
                    return Err(Fault::new(name.span(), unknown("key", other, &known)));
                }
            }
        }
        Ok(result)
    }

    /// How many there are.
    pub(super) fn count(&self) -> Result<u32, Fault> {
        let Some(count) = self.0.get("count") else { return Ok(1) };
        let Scalar(text) = count.get_ref();
        match text.parse() {
            Ok(number @ 1..=MAX_NODES) => Ok(number),
            _ => {
                let message = format!("`count` must be from 1 to {MAX_NODES}, not {text}");
                Err(Fault::new(count.span(), message))
            }
        }
    }
}
