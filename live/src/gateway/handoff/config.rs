//! The stations with which a gateway shares its mobile hosts.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::str::FromStr;

/// The port of the stations' group, unless another one is given.
const DEFAULT_PORT: u16 = 7_395;

/// How a gateway takes part in handoffs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffConfig {
    /// The multicast group of the stations.
    pub group: SocketAddrV4,
    /// The file with the key that all stations share.
    pub key_file: PathBuf,
    /// The interface to the other stations; `None` for the one with the route to the group.
    pub interface: Option<String>,
}

impl FromStr for HandoffConfig {
    type Err = String;

    /// Reads `group=239.1.2.3,key-file=F`, perhaps with a port behind the group and
    /// `interface=IF`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut group, mut key_file, mut interface) = (None, None, None);
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("group", value)) => group = Some(parse_group(value)?),
                Some(("key-file", value)) if !value.is_empty() => key_file = Some(value.into()),
                Some(("interface", value)) if !value.is_empty() => {
                    interface = Some(value.to_owned());
                }
                _ => {
                    return Err(format!(
                        "{part:?} is no part of a handoff; write \
                         group=239.1.2.3,key-file=FILE, and perhaps interface=IF"
                    ));
                }
            }
        }
        let missing = |what: &str| format!("{text:?} lacks {what}");
        Ok(Self {
            group: group.ok_or_else(|| missing("group=, such as group=239.1.2.3"))?,
            key_file: key_file
                .ok_or_else(|| missing("key-file=, a file that airmend keygen --psk made"))?,
            interface,
        })
    }
}

fn parse_group(text: &str) -> Result<SocketAddrV4, String> {
    let group = text
        .parse()
        .or_else(|_| text.parse::<Ipv4Addr>().map(|ip| SocketAddrV4::new(ip, DEFAULT_PORT)));
    match group {
        Ok(group) if group.ip().is_multicast() && group.port() != 0 => Ok(group),
        _ => Err(format!(
            "{text:?} is no multicast group; write one such as 239.1.2.3, or 239.1.2.3:7395"
        )),
    }
}

impl fmt::Display for HandoffConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group={},key-file={}", self.group, self.key_file.display())?;
        self.interface.iter().try_for_each(|interface| write!(f, ",interface={interface}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handoff_has_a_group_and_a_key() {
        let short: HandoffConfig = "group=239.1.2.3,key-file=/etc/k".parse().unwrap();
        assert_eq!(short.to_string(), "group=239.1.2.3:7395,key-file=/etc/k");
        let long = "group=239.1.2.3:99,key-file=k,interface=eth1";
        assert_eq!(long.parse::<HandoffConfig>().unwrap().to_string(), long);
        for (wrong, right) in [
            ("", "group="),
            ("group=239.1.2.3", "key-file="),
            ("key-file=k", "group="),
            ("group=10.0.0.1,key-file=k", "239.1.2.3"),
            ("group=239.1.2.3:0,key-file=k", "239.1.2.3"),
            ("group=ff02::1,key-file=k", "239.1.2.3"),
            ("group=239.1.2.3,key-file=", "key-file="),
            ("group=239.1.2.3,key-file=k,port=3", "interface="),
        ] {
            let why = wrong.parse::<HandoffConfig>().unwrap_err();
            assert!(why.contains(right), "{wrong}: {why}");
        }
    }
}
