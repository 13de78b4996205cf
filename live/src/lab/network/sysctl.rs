//! Kernel settings of a network namespace.

use crate::lab::error::LabError;
use std::fs;
use std::io;

/// As [`set`], for a setting without which there is no run.
pub(super) fn set_required(name: &'static str, value: u32) -> Result<(), LabError> {
    set(name, &value.to_string()).map_err(|source| LabError::Sysctl {
        name,
        value: value.to_string(),
        source,
    })
}

/// Switches IPv6 of the calling thread's network namespace on or off. To be done before it has
/// interfaces, since those of a machine without IPv6 may begin without
/// (`devconf_inherit_init_net`).
pub(super) fn set_ipv6(is_on: bool) -> Result<(), LabError> {
    if !is_on {
        // No router solicitations and multicast reports among the measured packets.
        set("net.ipv6.conf.all.disable_ipv6", "1").ok();
        return Ok(());
    }
    let names = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
    names.into_iter().try_for_each(|name| set_required(name, 0)).map_err(|error| match error {
        LabError::Sysctl { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            LabError::NoIpv6("in this kernel")
        }
        error => error,
    })
}

/// Whether a new interface of the calling thread's network namespace will have IPv6.
pub(super) fn has_ipv6() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6")
        .is_ok_and(|value| value.trim() == "0")
}

/// Writes a setting of the calling thread's network namespace, if it differs: in containers
/// `/proc/sys` is often read-only, and then a right value is good enough.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let current = fs::read_to_string(&path)?;
    if current.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    fs::write(path, value)
}
