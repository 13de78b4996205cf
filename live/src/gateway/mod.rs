//! `airmend gateway`: mends the TCP flows that leave through one interface, while the kernel
//! forwards as before.

mod config;
pub mod privileges;
pub mod rules;
pub mod sight;

pub use config::{
    DEFAULT_MARK, GatewayConfig, LogFormat, LogLevel, MetricsAddress, default_socket,
};
