//! `airmend handoff`: tells a running gateway what happens to a mobile host.

use crate::status::{GatewaySelection, client};
use airmend_live::gateway::{Movement, Word};
use anyhow::Result;
use clap::Args;
use std::net::IpAddr;

/// `airmend handoff`.
#[derive(Args, Debug)]
pub(crate) struct HandoffArgs {
    /// What happens: approaching (it may come soon, and its packets are kept from now on), attached
    /// (it is here, which its first packet shows too) or receding (it will not come).
    #[arg(value_name = "MOVEMENT")]
    movement: Movement,
    /// The address of the mobile host.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    mobile: IpAddr,
    #[command(flatten)]
    which: GatewaySelection,
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no IP address; write one such as 10.1.0.7"))
}

/// Tells it once.
pub(crate) fn handoff(args: &HandoffArgs) -> Result<()> {
    let word = Word { mobile: args.mobile, movement: args.movement };
    Ok(client::tell(&args.which.socket()?, &word)?)
}
