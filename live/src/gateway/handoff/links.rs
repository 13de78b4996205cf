//! How the hosts are reached that were heard on the air.

use super::air_host::LinkHeader;
use airmend_proto::Instant;
use airmend_proto::agents::handoff::Mobile;
use std::collections::HashMap;

/// Hosts that are remembered; the one that was heard least recently makes room.
const MAX_HOSTS: usize = 8_192;

/// The link headers of hosts.
#[derive(Debug, Default)]
pub(super) struct Links(HashMap<Mobile, (LinkHeader, Instant)>);

impl Links {
    pub(super) fn get(&self, host: &Mobile) -> Option<&LinkHeader> {
        self.0.get(host).map(|(link, _)| link)
    }

    /// The host was heard.
    pub(super) fn heard(&mut self, now: Instant, host: Mobile, link: LinkHeader) {
        if self.0.len() >= MAX_HOSTS && !self.0.contains_key(&host) {
            let oldest = self.0.iter().min_by_key(|(_, (_, heard))| *heard);
            if let Some(oldest) = oldest.map(|(host, _)| *host) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(host, (link, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_heard_is_remembered_beside_many_that_are_invented() {
        let host = |number: u64| {
            let mut host = [0xfd; 16];
            host[8..].copy_from_slice(&number.to_be_bytes());
            host
        };
        let mut links = Links::default();
        for number in 0..2 * MAX_HOSTS as u64 {
            let now = Instant::from_millis(number);
            links.heard(now, host(number), LinkHeader::default());
            links.heard(now, host(0), LinkHeader::default());
        }
        assert!(links.get(&host(0)).is_some());
        assert_eq!(links.get(&host(1)), None);
        assert_eq!(links.0.len(), MAX_HOSTS);
    }
}
