//! Packet error generators: the table `generator` of a link.

use super::error::Fault;
use super::value::Scalar;
use airmend_proto::link::DropRates;
use airmend_proto::units::parse_probability;
use serde::Deserialize;
use toml::Spanned;

/// A packet error generator above the MAC of one end (S3-02). What is not set is `rate`, which is 0
/// unless it is set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GeneratorTable {
    /// The host or station where it is.
    pub(super) at: Spanned<String>,
    /// The share of packets dropped, both those that the end sends and those that it receives.
    rate: Option<Spanned<Scalar>>,
    /// The share of those that the end sends.
    send: Option<Spanned<Scalar>>,
    /// The share of those that it receives.
    receive: Option<Spanned<Scalar>>,
}

impl GeneratorTable {
    /// What is dropped from the first end to the second, and back, if this is at end `at`.
    pub(super) fn rates(&self, at: usize) -> Result<[DropRates; 2], Fault> {
        let read = |scalar: &Option<Spanned<Scalar>>| match scalar.as_ref().or(self.rate.as_ref()) {
            None => Ok(0.0),
            Some(scalar) => parse_probability(&scalar.get_ref().0)
                .map_err(|why| Fault::new(scalar.span(), why.to_string())),
        };
        let away = DropRates { send: read(&self.send)?, receive: 0.0 };
        let towards = DropRates { send: 0.0, receive: read(&self.receive)? };
        Ok(if at == 0 { [away, towards] } else { [towards, away] })
    }
}
