//! Where the queue of an interface stands, as far as the system tells: a sentence for operators.

use super::interface::Interface;
use crate::netlink;
use crate::qdisc::Root;
use std::fs;

/// The interfaces of the calling thread's network namespace that a gateway could mend on, at most
/// so many, each with where its queue stands.
pub fn queue_places(most: usize) -> Vec<(String, String)> {
    let all = nix::net::if_::if_nameindex().map_or_else(
        |_| Vec::new(),
        |all| {
            all.iter().map(|found| found.name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        },
    );
    let usable = all.iter().filter_map(|name| Interface::find(name).ok());
    usable.take(most).map(|found| (found.name.clone(), queue_place(&found))).collect()
}

/// The sentence about one interface.
pub(super) fn queue_place(interface: &Interface) -> String {
    let index = interface.index as u32;
    let name = &interface.name;
    let sysfs = |file: &str| format!("/sys/class/net/{name}/{file}");
    let has = |file: &str| fs::exists(sysfs(file)).unwrap_or(false);
    let uevent = fs::read_to_string(sysfs("uevent")).unwrap_or_default();
    let facts = Facts {
        shaping: Root::of(index).filter(|root| root.shapes).map(|root| root.kind),
        stacked: interface.stacked(),
        is_wireless: interface.is_wireless(),
        is_tun: has("tun_flags"),
        is_modem: interface.is_modem() || uevent.lines().any(|line| line == "DEVTYPE=wwan"),
        kind: netlink::kind(index),
    };
    facts.sentence()
}

/// What the system tells of an interface.
#[derive(Debug, Default)]
struct Facts {
    /// The kind of its root queue, if that limits the rate.
    shaping: Option<String>,
    /// Its kind, if its packets wait in an interface below it.
    stacked: Option<String>,
    is_wireless: bool,
    is_tun: bool,
    is_modem: bool,
    /// Its kind, if it is virtual.
    kind: Option<String>,
}

impl Facts {
    fn sentence(&self) -> String {
        if let Some(kind) = &self.shaping {
            return format!(
                "here: {kind} limits the rate of this interface, so packets wait in its queue \
                 unless a slower hop follows"
            );
        }
        if let Some(kind) = &self.stacked {
            return format!("in the interface below this one, which is a {kind}");
        }
        let sentence = if self.is_wireless {
            "in the Wi-Fi driver (mac80211), behind the place where packets are copied; --shape \
             moves it here"
        } else if self.is_tun {
            "beyond the program that reads this tunnel; --shape moves it here"
        } else if self.is_modem {
            "in the modem behind this interface, or beyond; --shape moves it here"
        } else if self.kind.is_some() {
            "probably beyond this virtual interface; --shape moves it here"
        } else {
            "probably beyond this machine, in a modem, a radio or a switch, unless this port \
             itself is the slowest hop; --shape moves it here"
        };
        sentence.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_interface_has_its_sentence() {
        let kind = |kind: &str| Some(kind.to_owned());
        let all = [
            (Facts { shaping: kind("tbf"), is_wireless: true, ..Facts::default() }, "here: tbf"),
            (Facts { stacked: kind("vlan"), ..Facts::default() }, "which is a vlan"),
            (Facts { is_wireless: true, ..Facts::default() }, "in the Wi-Fi driver"),
            (Facts { is_tun: true, kind: kind("tun"), ..Facts::default() }, "this tunnel"),
            (Facts { is_modem: true, ..Facts::default() }, "in the modem"),
            (Facts { kind: kind("veth"), ..Facts::default() }, "beyond this virtual"),
            (Facts::default(), "beyond this machine"),
        ];
        for (facts, words) in all {
            let sentence = facts.sentence();
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
