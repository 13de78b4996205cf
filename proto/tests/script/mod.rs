//! Packet scripts: what arrives at an agent, what must leave it, and when.
//!
//! ```text
//! set persist_timeout 200ms                       // a setting of the agent, by its name
//! limit flows 2                                   // flows, cache_bytes, air_queue, wired_queue
//! ipv6                                            // default IPv4
//! isn wired 0xfffffff0                            // what the fixed host's relative 0 stands for
//! +0     wired < . 1:1461(1460) ack 1 win 500     // arrives from the wired side
//! +0     air   > . 1:1461(1460) ack 1             // leaves towards the air side, at this time
//! +0.005 air   < flow 1 . 1:1(0) ack 1461 <nop,nop,TS val 5 ecr 6>
//! +0     wired < udp (100)                        // also: fragment, malformed, not-ip
//! +0     wired < gso 1000 . 1:3001(3000) ack 1    // a super-packet; ECN: ect0, ect1, ce
//! +0     wired < other . 1:1001(1000) ack 1       // other bytes than before
//! +0     air   < dscp 43 . 1:1(0) ack 1001        // a differentiated services codepoint
//! +0     air   > edited . 1:1001(1000) ack 1 <nops 12>  // differs from all that came in
//! +.02~+.05 air > . 1:1461(1460) ack 1            // leaves between 20 and 50 ms from now
//! +0.2   silence                                  // nothing has left until now
//! +0     block air                                // the air takes no packet until `unblock air`
//! +0     event local_retransmits 1                // so often has this been counted
//! +0     report flow 0: DUPACK 1 suppressed        // an event of this very moment, in its words
//! +0     timer snoop-persist flow 0 +.2           // the next deadline; or `timer none`
//! ```
//!
//! Times are seconds since the line before. Segments read as in packetdrill: flags (`.` is ACK),
//! `first:end(length)`, `ack`, `win`, options; numbers are relative to the sender's, or for `ack`
//! and `sack` the receiver's, `isn`. In a packet that leaves, a window or options that are not
//! written may be anything.
//!
//! Scripts are strict: every packet that leaves must be expected, each side in its own order, at
//! its time. And it must be a copy, byte for byte, of one that came in from the other side; or, if
//! it is marked `edited`, none such, but with right checksums, lengths and payload, and with just
//! the options that are written.

pub(crate) mod notation;
pub(crate) mod parse;
pub(crate) mod run;

use crate::common::packet::Foreign;
use airmend_proto::Port;
use airmend_proto::agents::Limits;
use notation::{Bases, Pattern};
use std::time::Duration;

/// A parsed script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Settings of the agent: name and value.
    pub(crate) settings: Vec<(String, String)>,
    /// What the agent may take at most.
    pub(crate) limits: Limits,
    /// IPv6 instead of IPv4.
    pub(crate) ipv6: bool,
    /// What relative sequence numbers count from.
    pub(crate) bases: Bases,
    /// What happens.
    pub(crate) lines: Vec<Line>,
}

/// One timed line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(crate) number: usize,
    /// As written, without its comment.
    pub(crate) text: String,
    /// Time since the line before.
    pub(crate) after: Duration,
    /// How much later it may be; what comes next counts from when it was.
    pub(crate) within: Duration,
    /// What happens then.
    pub(crate) action: Action,
}

/// What a line says.
#[derive(Debug)]
pub(crate) enum Action {
    /// A packet arrives from this side.
    Arrive(Port, Content),
    /// A packet must leave to this side.
    Leave(Port, Content),
    /// Nothing may have left unexpected.
    Silence,
    /// This side takes no more packets.
    Block(Port),
    /// This side takes packets again.
    Unblock(Port),
    /// An event has been counted this often.
    Event(String, u64),
    /// An event of this moment, as it is displayed.
    Report(String),
    /// The agent's next deadline: what for, and how far from now.
    Timer(Option<(String, Duration)>),
}

/// What a packet holds.
#[derive(Debug)]
pub(crate) enum Content {
    /// A TCP segment.
    Tcp(Pattern),
    /// Something that no agent can mend, of this many bytes behind the IP header.
    Foreign(Foreign, u16),
}
