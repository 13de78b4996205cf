//! The soft state of one flow, which is rebuilt from a few packets and ACKs [snoop95 §4].

use super::cache::Cache;
use super::settings::Settings;
use crate::agents::flows::{FlowBase, FlowState};
use crate::packet::{LinkType, Packet};
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use bytes::Bytes;
use core::time::Duration;

/// The state of one flow of data from a fixed to a mobile host.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) base: FlowBase,
    /// Packets that the mobile has not acknowledged [S0-03].
    pub(super) cache: Cache,
    /// The end of the highest data that has departed to the air [S0-06].
    pub(super) last_seq: SeqNumber,
    /// The end of the highest data that has arrived from the sender; it may still be queued.
    pub(super) arrived: SeqNumber,
    /// The mobile's last ACK.
    pub(super) last_ack: Option<LastAck>,
    /// The last duplicate ACK that was withheld, if nothing was forwarded since.
    pub(super) withheld: Option<Packet>,
    /// Duplicate ACKs that may still come for packets sent before the retransmission [S0-23].
    pub(super) expected_dupacks: u32,
    /// Duplicate ACKs beyond those expected, since the last retransmission.
    pub(super) unexpected_dupacks: u32,
    /// The number of forwarded packets that have departed to the air, modulo 2^32.
    pub(super) sent_packets: u32,
    /// The packet of this window whose round trip is measured [S0-10].
    pub(super) timed: Option<Timed>,
    /// Smoothed round trip of the air hop.
    pub(super) srtt: Option<Duration>,
    /// The expiry time of the round-trip timer, if it runs [S0-33].
    pub(super) round_trip_due: Option<Instant>,
    /// The end of the data that had been sent when a DUPACK last started the timer.
    pub(super) recover: SeqNumber,
    /// The expiry time of the persist timer; meaningful while packets are cached [S0-34].
    pub(super) persist_due: Instant,
}

/// The highest ACK that the mobile host sent.
#[derive(Clone, Debug)]
pub(super) struct LastAck {
    pub(super) number: SeqNumber,
    pub(super) window: u16,
    /// The ACK without payload, to be repeated if the sender missed it [S0-12].
    pub(super) packet: Option<SmallPacket>,
}

/// The bytes of a bare ACK, by value: every new ACK replaces the last one, and to drop a reference
/// to an old packet would cost a cache miss each time.
#[derive(Clone, Debug)]
pub(super) struct SmallPacket {
    bytes: [u8; Self::CAPACITY],
    len: u8,
    link_type: LinkType,
    wire_len: u32,
}

impl SmallPacket {
    /// IPv6 and TCP headers with all their options, behind an Ethernet header with a VLAN tag.
    const CAPACITY: usize = 118;

    /// A copy of a packet that is small enough.
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        let mut bytes = [0; Self::CAPACITY];
        bytes.get_mut(..packet.bytes().len())?.copy_from_slice(packet.bytes());
        let len = packet.bytes().len() as u8;
        Some(Self { bytes, len, link_type: packet.link_type(), wire_len: packet.wire_len() })
    }

    /// The packet.
    pub(super) fn packet(&self) -> Packet {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or(&[]);
        Packet::truncated(self.link_type, Bytes::copy_from_slice(bytes), self.wire_len)
    }
}

/// A packet whose round trip over the air is being measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// The sequence number of the first byte.
    pub(super) seq: SeqNumber,
    /// The ACK that ends the measurement.
    pub(super) end: SeqNumber,
    /// The time at which the packet departed; `None` while it is queued.
    pub(super) sent_at: Option<Instant>,
    /// Whether a packet was retransmitted since: the ACK would be ambiguous [S0-20, Karn].
    pub(super) spoiled: bool,
}

impl Flow {
    pub(super) fn new(base: FlowBase, first: SeqNumber) -> Self {
        Self {
            persist_due: base.active_at,
            base,
            cache: Cache::default(),
            last_seq: first,
            arrived: first,
            last_ack: None,
            withheld: None,
            expected_dupacks: 0,
            unexpected_dupacks: 0,
            sent_packets: 0,
            timed: None,
            srtt: None,
            round_trip_due: None,
            recover: first,
        }
    }

    /// Restarts the persist timer: either host sent a packet [S0-34].
    pub(super) fn touch(&mut self, now: Instant, settings: &Settings) {
        self.base.active_at = now;
        self.persist_due = now + settings.persist_timeout;
    }

    /// [S0-38] Whether the mobile takes no data: what comes now probes its window, and only the
    /// mobile can answer that (RFC 9293 §3.8.6.1).
    pub(super) fn is_closed(&self, settings: &Settings) -> bool {
        settings.pass_probes && self.last_ack.as_ref().is_some_and(|last| last.window == 0)
    }

    /// [S0-38] Whether this asks if the mobile is alive or its window open. A keep-alive with a
    /// byte repeats the last byte that the mobile acknowledged (RFC 9293 §3.8.4).
    pub(super) fn is_probe(&self, segment: &Segment, settings: &Settings) -> bool {
        let acked = self.last_ack.as_ref().map(|last| last.number);
        let is_last_byte = segment.seq_len() == 1 && Some(segment.end()) == acked;
        self.is_closed(settings) || settings.pass_probes && is_last_byte
    }

    /// The next deadline of the flow; none while nothing can be resent.
    pub(super) fn due(&self, settings: &Settings) -> Option<Instant> {
        if self.cache.is_empty() || self.is_closed(settings) {
            return None;
        }
        Some(self.round_trip_due.map_or(self.persist_due, |due| due.min(self.persist_due)))
    }

    /// The round-trip timer's period: 2·srtt, and at least 40 ms [S0-31, S0-32].
    pub(super) fn round_trip_timeout(&self, settings: &Settings) -> Duration {
        let srtt = self.srtt.unwrap_or(settings.initial_srtt);
        // An hour bounds the effect of implausible samples.
        let timeout = (srtt.as_secs_f64() * settings.round_trip_factor).min(3_600.0);
        Duration::from_secs_f64(timeout).max(settings.round_trip_floor)
    }

    /// Takes a round-trip sample: srtt = (1 − α)·srtt + α·sample [S0-30].
    pub(super) fn sample_round_trip(&mut self, sample: Duration, gain: f64) -> Duration {
        let srtt = match self.srtt {
            None => sample,
            Some(old) => Duration::from_secs_f64(
                (1.0 - gain) * old.as_secs_f64() + gain * sample.as_secs_f64(),
            ),
        };
        self.srtt = Some(srtt);
        srtt
    }

    /// Invalidates the measurement: a packet of this window was retransmitted [S0-20].
    pub(super) fn spoil_measurement(&mut self) {
        if let Some(timed) = &mut self.timed {
            timed.spoiled = true;
        }
    }
}

impl FlowState for Flow {
    fn base(&self) -> &FlowBase {
        &self.base
    }

    fn base_mut(&mut self) -> &mut FlowBase {
        &mut self.base
    }

    fn memory(&self) -> usize {
        self.cache.memory()
    }

    fn packets(&self) -> usize {
        self.cache.len()
    }

    fn is_answered(&self) -> bool {
        self.last_ack.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FlowId;

    fn flow() -> Flow {
        Flow::new(FlowBase::new(FlowId(0), Instant::ZERO), SeqNumber(0))
    }

    #[test]
    fn srtt_takes_a_quarter_of_each_sample() {
        let mut flow = flow();
        assert_eq!(flow.sample_round_trip(Duration::from_millis(8), 0.25).as_millis(), 8);
        assert_eq!(flow.sample_round_trip(Duration::from_millis(16), 0.25).as_millis(), 10);
    }

    #[test]
    fn round_trip_timeout_is_twice_srtt_with_a_floor() {
        let settings = Settings::default();
        let mut flow = flow();
        assert_eq!(flow.round_trip_timeout(&settings).as_millis(), 40, "before any sample");
        flow.srtt = Some(Duration::from_millis(30));
        assert_eq!(flow.round_trip_timeout(&settings).as_millis(), 60);
        flow.srtt = Some(Duration::from_millis(5));
        assert_eq!(flow.round_trip_timeout(&settings).as_millis(), 40);
        flow.srtt = Some(Duration::MAX);
        assert_eq!(flow.round_trip_timeout(&settings).as_secs(), 3_600);
    }
}
