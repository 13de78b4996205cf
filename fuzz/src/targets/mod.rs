//! The targets: each takes any bytes, and panics where a promise is broken.

mod agent;
mod capture;
mod config;
mod handoff;
mod handshake;
mod http;
mod kernel;
mod lack;
mod offload;
mod peers;
mod scenario;
mod trace;
mod tulip;
mod tunnel;
mod wire;

pub use kernel::lacks as kernel_lacks;

/// Tries one input.
pub type Target = fn(&[u8]);

/// All of them; `tools/fuzz` takes the names from here.
pub const TARGETS: [(&str, Target); 15] = [
    ("agent", agent::fuzz),
    ("capture", capture::fuzz),
    ("config", config::fuzz),
    ("handoff", handoff::fuzz),
    ("handshake", handshake::fuzz),
    ("http", http::fuzz),
    ("kernel", kernel::fuzz),
    ("lack", lack::fuzz),
    ("offload", offload::fuzz),
    ("peers", peers::fuzz),
    ("scenario", scenario::fuzz),
    ("trace", trace::fuzz),
    ("tulip", tulip::fuzz),
    ("tunnel", tunnel::fuzz),
    ("wire", wire::fuzz),
];
