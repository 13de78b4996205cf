//! Every agent by its name, with settings by their names.

use airmend_proto::Agent;
use airmend_proto::agents::egress::EgressLimits;
use airmend_proto::agents::plain::Plain;

/// An agent with these settings; the error says what is wrong.
pub(crate) fn create(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Agent>, String> {
    let mut egress = EgressLimits { air: 100, wired: 100 };
    for (setting, value) in settings {
        let number = || value.parse::<usize>().map_err(|_| format!("{setting}: not a number"));
        match setting.as_str() {
            "air_queue" => egress.air = number()?,
            "wired_queue" => egress.wired = number()?,
            _ => return Err(format!("{name} has no setting {setting:?}")),
        }
    }
    match name {
        "plain" => Ok(Box::new(Plain::new(egress))),
        _ => Err(format!("no agent is named {name:?}")),
    }
}
