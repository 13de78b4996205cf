//! The settings of an 802.11 channel, and the airtime of its exchanges.

use super::contention::Contention;
use super::phy::Phy;
use core::time::Duration;

/// The stations of one channel, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcfParams {
    /// The physical layer.
    pub phy: Phy,
    /// Bits per second of data frames.
    pub rate_bps: u64,
    /// The largest propagation delay between two stations.
    pub delay: Duration,
    /// How often a frame is sent again at most before it is given up.
    pub retries: u32,
    /// Packets above this number of bytes are announced by RTS and CTS; never if `None`.
    pub rts_threshold: Option<u32>,
    /// Frames that one exchange carries at most; 1 where the physical layer has no aggregates.
    pub aggregate: usize,
    /// The longest airtime of an aggregate.
    pub longest_aggregate: Duration,
    /// How long a receiver keeps frames above a missing one.
    pub receive_lifetime: Duration,
    /// Packets that wait at each station at most.
    pub queue_frames: usize,
    /// Bits of packets that wait at each station at most.
    pub queue_bits: u64,
}

/// Header and checksum of a data frame, and LLC and SNAP, in bytes (IEEE 802.11-2020 §9.3.2.1).
const DATA_BYTES: u32 = 24 + 4 + 8;
/// What a frame of an aggregate has in addition: QoS control and its delimiter.
const AGGREGATED_BYTES: u32 = 2 + 4;
const RTS_BYTES: u32 = 20;
const CTS_BYTES: u32 = 14;
const ACK_BYTES: u32 = 14;
const BLOCK_ACK_BYTES: u32 = 32;

impl DcfParams {
    /// Frames of an aggregate at most, the window of a block ACK (IEEE 802.11-2020 §9.3.1.8).
    pub const MAX_AGGREGATE: usize = 64;
    /// The longest PPDU (IEEE 802.11-2020, aPPDUMaxTime).
    pub const MAX_PPDU: Duration = Duration::from_micros(5_484);

    /// Stations with the defaults of today's hosts: seven retries, no RTS, as many frames in an
    /// aggregate as a block ACK covers.
    pub const fn new(phy: Phy, rate_bps: u64, delay: Duration, queue_frames: usize) -> Self {
        Self {
            phy,
            rate_bps,
            delay,
            retries: 7,
            rts_threshold: None,
            aggregate: if phy.aggregates { Self::MAX_AGGREGATE } else { 1 },
            longest_aggregate: Self::MAX_PPDU,
            receive_lifetime: Duration::from_millis(500),
            queue_frames,
            queue_bits: u64::MAX,
        }
    }

    /// Bits on the air of a packet of so many bytes; frames of an aggregate begin at multiples of
    /// four bytes.
    pub fn frame_bits(&self, bytes: u32) -> u64 {
        let header = DATA_BYTES + if self.phy.aggregates { AGGREGATED_BYTES } else { 0 };
        let bytes = u64::from(bytes) + u64::from(header);
        8 * if self.phy.aggregates { bytes.next_multiple_of(4) } else { bytes }
    }

    /// The airtime of frames of so many bits in all.
    pub fn data_time(&self, bits: u64) -> Duration {
        self.phy.data_time(bits, self.rate_bps)
    }

    /// The airtime of the acknowledgment of an exchange.
    pub fn ack_time(&self) -> Duration {
        self.control_time(self.ack_bytes())
    }

    /// Bits of that acknowledgment.
    pub fn ack_bits(&self) -> u64 {
        u64::from(self.ack_bytes()) * 8
    }

    fn ack_bytes(&self) -> u32 {
        if self.phy.aggregates { BLOCK_ACK_BYTES } else { ACK_BYTES }
    }

    /// Airtime and bits of an RTS.
    pub fn rts(&self) -> (Duration, u64) {
        (self.control_time(RTS_BYTES), u64::from(RTS_BYTES) * 8)
    }

    /// Airtime and bits of a CTS.
    pub fn cts(&self) -> (Duration, u64) {
        (self.control_time(CTS_BYTES), u64::from(CTS_BYTES) * 8)
    }

    /// From the end of a frame to the end of the response to it, or to the end of the wait for it:
    /// an EIFS is that wait and a DIFS (IEEE 802.11-2020 §10.3.2.3.7).
    pub fn response_time(&self, response: Duration) -> Duration {
        self.delay + self.phy.sifs + response + self.delay
    }

    /// From the first bit of an RTS to the end of its CTS; a SIFS later the frame begins.
    pub fn announcement_time(&self) -> Duration {
        self.rts().0 + self.response_time(self.cts().0)
    }

    /// Whether a packet of so many bytes is announced by RTS and CTS.
    pub fn announces(&self, bytes: u32) -> bool {
        self.rts_threshold.is_some_and(|threshold| bytes > threshold)
    }

    /// The mean time from one exchange that succeeds to the next where so many stations always have
    /// `frames` packets of so many bytes to send, on a channel without errors: idle slots and
    /// collisions by Bianchi's model, DIFS, data, response.
    pub fn mean_exchange(&self, bytes: u32, frames: u32, stations: u32) -> Duration {
        let data = self.data_time(u64::from(frames) * self.frame_bits(bytes));
        let data = data + self.response_time(self.ack_time());
        let (announcement, collision) = match self.announces(bytes * frames) {
            true => (self.announcement_time() + self.phy.sifs, self.announcement_time()),
            false => (Duration::ZERO, data),
        };
        let difs = self.phy.difs();
        let contention = Contention::of(&self.phy, self.retries, stations);
        self.phy.slot.mul_f64(contention.idle)
            + (difs + collision).mul_f64(contention.collisions)
            + (difs + announcement + data)
    }

    /// Least mean time that the channel needs for one packet of so many bytes and its share of the
    /// packets that return, `answers` of `answer_bytes` for each. All exchanges are full, also
    /// those of answers, whose backoffs are over when the others' are. Of the stations that send
    /// packets, `senders` at most, as many contend at a time as wastes least.
    pub fn time_of_packet(
        &self,
        bytes: u32,
        answer_bytes: u32,
        answers: f64,
        senders: u32,
    ) -> Duration {
        let frames = self.most_frames(bytes);
        let exchange = |stations| self.mean_exchange(bytes, frames, stations);
        let exchange = (1..=senders.max(1)).map(exchange).min().unwrap_or_default();
        let full = self.most_frames(answer_bytes);
        let answer = self.data_time(u64::from(full) * self.frame_bits(answer_bytes));
        let answer = self.phy.difs() + answer + self.response_time(self.ack_time());
        exchange / frames + answer.mul_f64(answers / f64::from(full))
    }

    /// Packets of so many bytes that one exchange carries at most.
    fn most_frames(&self, bytes: u32) -> u32 {
        let bits = self.frame_bits(bytes);
        let fits =
            |frames: &u32| self.data_time(u64::from(*frames) * bits) <= self.longest_aggregate;
        let most = u32::try_from(self.aggregate).unwrap_or(u32::MAX);
        (1..=most).take_while(fits).last().unwrap_or(1)
    }

    fn control_time(&self, bytes: u32) -> Duration {
        self.phy.control_time(bytes, self.rate_bps)
    }
}
