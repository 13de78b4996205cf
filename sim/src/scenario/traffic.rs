//! What flows carry.

use super::error::Fault;
use super::spec::{FlowSpec, PacketsSpec};
use super::value::{Pace, Size, Time};
use crate::plan::Traffic;
use crate::world::DATAGRAM_SIZES;
use std::time::Duration;
use toml::Spanned;

/// The traffic of a table of flows.
pub(super) fn traffic(name: &Spanned<String>, spec: &FlowSpec) -> Result<Traffic, Fault> {
    if let (Some(message), None) = (&spec.message, &spec.bytes) {
        let needs = "`message` needs `bytes`, the size of all messages";
        return Err(Fault::new(message.span(), needs));
    }
    match (&spec.bytes, &spec.packets, &spec.exchange) {
        (Some(bytes), None, None) if bytes.get_ref().0 == 0 => {
            Err(Fault::new(bytes.span(), "`bytes` must be more than 0, such as \"10MB\""))
        }
        (bytes, None, None) => {
            let bytes = bytes.as_ref().map(|bytes| bytes.get_ref().0);
            let Some(message) = &spec.message else { return Ok(Traffic::Bulk(bytes)) };
            match (bytes, message.get_ref().0) {
                (Some(bytes), size @ 1..) => Ok(Traffic::Messages { size, bytes }),
                _ => Err(Fault::new(message.span(), "`message` must be more than 0 bytes")),
            }
        }
        (None, Some(spec), None) => packets(name, spec),
        (None, None, Some(exchange)) => Ok(Traffic::Exchange {
            request: exchange.request.get_ref().0.max(1),
            response: exchange.response.get_ref().0.max(1),
            think: exchange.think.map_or(Duration::ZERO, |Time(think)| think),
            count: exchange.count,
        }),
        _ => {
            let message = "has several of bytes, packets and exchange; give one, or none to send \
                           without end";
            Err(Fault::new(name.span(), format!("flow `{name}` {message}")))
        }
    }
}

/// Packets over TCP with an `interval`, datagrams with a `rate`.
fn packets(name: &Spanned<String>, spec: &PacketsSpec) -> Result<Traffic, Fault> {
    let Size(size) = *spec.size.get_ref();
    let refuse = |at, what: &str| Err(Fault::new(at, what));
    match (&spec.interval, &spec.rate) {
        (Some(interval), None) => match interval.get_ref().0 {
            Duration::ZERO => {
                refuse(interval.span(), "`interval` must be more than 0, such as \"10ms\"")
            }
            interval => Ok(Traffic::Poisson { size: size.max(1), interval, count: spec.count }),
        },
        (None, Some(rate)) => {
            if spec.count.is_some() {
                return refuse(
                    rate.span(),
                    "datagrams with a `rate` have no `count`: they are sent until the run ends",
                );
            }
            let size = u32::try_from(size).ok().filter(|_| DATAGRAM_SIZES.contains(&size));
            let Some(size) = size else {
                let (least, most) = DATAGRAM_SIZES.into_inner();
                let says = format!("`size` of a datagram must be {least} to {most} bytes");
                return Err(Fault::new(spec.size.span(), says));
            };
            match *rate.get_ref() {
                Pace::Saturating => Ok(Traffic::Datagrams { size, rate_bps: None }),
                Pace::Constant(0) => {
                    refuse(rate.span(), "`rate` must be more than 0, such as \"20mbit\"")
                }
                Pace::Constant(rate) => Ok(Traffic::Datagrams { size, rate_bps: Some(rate) }),
            }
        }
        _ => {
            let message = "needs one of `interval` (packets over TCP) and `rate` (datagrams)";
            Err(Fault::new(name.span(), format!("`packets` of flow `{name}` {message}")))
        }
    }
}
