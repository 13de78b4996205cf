//! The rules, as what broke one of them.

use crate::port::Port;
use crate::wire::seq::SeqNumber;
use core::fmt;

/// The rule that was broken, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// An ACK left the agent above the highest one that had entered it.
    AckInvented {
        /// The port by which the packet left.
        to: Port,
        /// The ACK number that left.
        sent: SeqNumber,
        /// The highest ACK that had entered in this direction.
        highest: SeqNumber,
    },
    /// A DSACK block left the agent with data that was neither reported so nor sent twice, or in a
    /// place that RFC 2883 does not have [C-29].
    DsackInvented {
        /// The port by which the packet left.
        to: Port,
        /// The left edge of the block.
        left: SeqNumber,
        /// The right edge.
        right: SeqNumber,
    },
    /// A TSecr left the agent that its sender had never sent.
    EchoInvented {
        /// The port by which the packet left.
        to: Port,
        /// The TSecr.
        echo: u32,
    },
    /// Payload left the agent that differs from the payload that had entered.
    PayloadChanged {
        /// The port by which the packet left.
        to: Port,
        /// The sequence number of the first byte.
        seq: SeqNumber,
    },
    /// Payload left the agent that had never entered it.
    PayloadInvented {
        /// The port by which the packet left.
        to: Port,
        /// The sequence number of the first byte.
        seq: SeqNumber,
        /// The length of the payload, in bytes.
        payload_len: u32,
    },
    /// The agent has retransmitted more segments than its bound allows [C-23].
    RepairsUnbounded {
        /// The segments that the agent has retransmitted, of all flows.
        repaired: u64,
        /// The most segments that can have arrived: those before the last ACK of each flow.
        arrived: u64,
    },
    /// A SACK block left the agent with data that the receiver had not reported [S0-40].
    SackInvented {
        /// The port by which the packet left.
        to: Port,
        /// The left edge of the block.
        left: SeqNumber,
        /// The right edge.
        right: SeqNumber,
    },
    /// A TSval left the agent that its sender had never sent [C-27].
    TimestampInvented {
        /// The port by which the packet left.
        to: Port,
        /// The TSval.
        value: u32,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AckInvented { to, sent, highest } => write!(
                f,
                "it sent ACK {sent} to the {} side, although the receiver had only sent {highest}",
                to
            ),
            Self::DsackInvented { to, left, right } => write!(
                f,
                "it reported {left} to {right} to the {to} side as a duplicate, which nothing shows"
            ),
            Self::EchoInvented { to, echo } => {
                write!(f, "it sent TSecr {echo} to the {to} side, which no host sent")
            }
            Self::PayloadChanged { to, seq } => {
                write!(f, "it changed the payload of segment {seq} towards the {} side", to)
            }
            Self::PayloadInvented { to, seq, payload_len } => write!(
                f,
                "it sent segment {seq} of {payload_len} bytes to the {} side, which no host sent",
                to
            ),
            Self::RepairsUnbounded { repaired, arrived } => {
                write!(
                    f,
                    "it retransmitted {repaired} segments, and {arrived} at most have arrived"
                )
            }
            Self::SackInvented { to, left, right } => write!(
                f,
                "it reported {left} to {right} to the {to} side as received, which nothing shows"
            ),
            Self::TimestampInvented { to, value } => {
                write!(f, "it sent TSval {value} to the {to} side, which no host sent")
            }
        }
    }
}

impl core::error::Error for Violation {}
