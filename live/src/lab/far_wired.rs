//! The wired hop beyond the air: between the far end of a backbone and the mobile hosts.

use airmend_proto::link::ErrorModel;
use airmend_proto::units::{format_rate, parse_duration, parse_probability, parse_rate};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A wired hop, which may lose frames: then the sender alone can repair them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarWired {
    /// Bits per second, each way.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
    /// The share of frames lost, in each direction.
    pub loss: f64,
}

impl FarWired {
    /// What the hop does to frames.
    pub(crate) fn errors(&self) -> ErrorModel {
        if self.loss > 0.0 { ErrorModel::Loss(self.loss) } else { ErrorModel::None }
    }
}

impl fmt::Display for FarWired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{:?}", format_rate(self.rate_bps), self.delay)?;
        if self.loss > 0.0 { write!(f, ",{}", self.loss) } else { Ok(()) }
    }
}

impl FromStr for FarWired {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refusal = || {
            format!(
                "{text:?} is no wired hop; write a rate, a delay and perhaps a loss, such as \
                 100mbit,20ms or 100mbit,20ms,1%"
            )
        };
        let mut parts = text.split(',').map(str::trim);
        let rate_bps = parts.next().and_then(|rate| parse_rate(rate).ok());
        let delay = parts.next().and_then(|delay| parse_duration(delay).ok());
        let loss = parts.next().map_or(Some(0.0), |loss| parse_probability(loss).ok());
        match (rate_bps, delay, loss, parts.next()) {
            (Some(rate_bps), Some(delay), Some(loss), None) if rate_bps > 0 => {
                Ok(Self { rate_bps, delay, loss })
            }
            _ => Err(refusal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["100mbit,20ms", "10mbit,1ms,0.01"] {
            assert_eq!(text.parse::<FarWired>().map(|far| far.to_string()), Ok(text.to_owned()));
        }
        let far = "1gbit, 0ms, 5%".parse::<FarWired>();
        assert_eq!(far.map(|far| far.loss), Ok(0.05));
        for wrong in ["", "100mbit", "20ms,100mbit", "0mbit,1ms", "1mbit,1ms,2", "1mbit,1ms,0,0"] {
            assert!(wrong.parse::<FarWired>().is_err_and(|why| why.contains("1%")), "{wrong}");
        }
    }
}
