//! Two namespaces with a veth pair between them, and a tunnel whose ends both run in this process.

use airmend_live::lab::{LabError, Namespace};
use airmend_live::tunnel::{
    Address, CarrierConfig, DeviceConfig, PeerConfig, Protocol, Remote, Security, TunConfig,
    Tunnel, TunnelConfig, TunnelError,
};
use airmend_proto::Agent;
use airmend_proto::agents::Limits;
use airmend_proto::agents::tulip::{PROTOCOL, Settings, Tulip};
use airmend_testkit::Result;

use std::thread;
use std::time::{Duration, Instant};

/// The left one is 192.0.2.1, the right one 192.0.2.2.
pub(crate) fn two_hosts() -> Result<[Namespace; 2]> {
    let (left, right) = (Namespace::new()?, Namespace::new()?);
    left.ip(&format!(
        "link add eth0 type veth peer name eth0 netns {}\n\
         link set eth0 up\naddress add 192.0.2.1/24 dev eth0\n",
        right.path().display()
    ))?;
    right.ip("link set eth0 up\naddress add 192.0.2.2/24 dev eth0\n")?;
    Ok([left, right])
}

/// Opens an end in the calling thread's namespace: side 0, 10.9.0.1, calls side 1, 10.9.0.2.
pub(crate) fn open(
    side: u8,
    security: Security,
    settings: &Settings,
    epoch: u32,
) -> std::result::Result<Tunnel, LabError> {
    let listener = ([192, 0, 2, 2], 4433).into();
    let any = ([0, 0, 0, 0], 0).into();
    let (local, remote) = match side {
        0 => (any, Some(Remote::Address(Address::Udp(listener)))),
        _ => (listener, None),
    };
    let config = TunnelConfig {
        device: DeviceConfig::Tun(TunConfig {
            name: "mend0".to_owned(),
            addresses: vec![([10, 9, 0, side + 1].into(), 24)],
            ..TunConfig::default()
        }),
        carrier: CarrierConfig::Udp { local },
        peers: vec![PeerConfig { name: None, remote, security, allowed: Vec::new() }],
        padding: None,
        compression: true,
    };
    let agent = |limits: Limits| -> Box<dyn Agent + Send> {
        Box::new(Tulip::new(limits, settings.clone(), epoch.into()))
    };
    let protocol = Protocol { agent: &agent, link: Some(&PROTOCOL) };
    Tunnel::open(&config, None, &protocol).map_err(|error| failed(&error))
}

/// A namespace's work fails with its own error.
pub(crate) fn failed(error: &TunnelError) -> LabError {
    LabError::Interfaces(error.to_string())
}

/// Tries for a while: addresses and peers come up in their own time.
pub(crate) fn until<T>(
    mut attempt: impl FnMut() -> std::result::Result<Option<T>, LabError>,
) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err("the tunnel does not come up".into())
}
