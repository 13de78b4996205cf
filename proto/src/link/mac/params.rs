//! What a half-duplex radio and its floor acquisition cost in time.

use core::time::Duration;

/// The radios at both ends of a shared channel, and FAMA-NCS between them [tulip99 §IV; S2-20].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacParams {
    /// Bits per second of everything but the preamble.
    pub rate_bps: u64,
    /// One-way propagation delay, which is also the largest that the radios reckon with (S2-07).
    pub delay: Duration,
    /// Synchronisation and PHY header before each frame.
    pub preamble: Duration,
    /// Bytes of the MAC's header and checksum around a packet.
    pub header_bytes: u32,
    /// Bytes of an RTS. The CTS follows from it, see [`MacParams::cts_time`].
    pub rts_bytes: u32,
    /// From the end of a reception to the first bit of a transmission, or the other way round.
    pub turnaround: Duration,
    /// Longest backoff, in RTS times; backoffs are uniform up to it.
    pub backoff_rts: u32,
    /// MAC acceleration (S2-06): whether the receiver of a packet may answer at once with a small
    /// one, without acquiring the floor.
    pub acceleration: bool,
    /// Packets that wait at each end at most.
    pub queue_frames: usize,
}

impl MacParams {
    /// Largest packet that may return without acquiring the floor, in bytes: a link ACK that
    /// carries a TCP ACK with all its options over IPv6.
    pub const ANSWER_BYTES: u32 = 128;

    /// Airtime of a packet of so many bytes.
    pub fn packet_time(&self, bytes: u32) -> Duration {
        self.airtime(self.packet_bits(bytes))
    }

    /// Bits on the air of a packet of so many bytes; the preamble is not reckoned in bits.
    pub fn packet_bits(&self, bytes: u32) -> u64 {
        (u64::from(bytes) + u64::from(self.header_bytes)) * 8
    }

    /// Bits of an RTS, and as many of the CTS can be damaged: the rest of it is a busy tone.
    pub fn control_bits(&self) -> u64 {
        u64::from(self.rts_bytes) * 8
    }

    /// Airtime of an RTS.
    pub fn rts_time(&self) -> Duration {
        self.airtime(self.control_bits())
    }

    /// Airtime of a CTS. It dominates: it lasts longer than an RTS by a round trip and a
    /// turn-around, so that no station which began an RTS at the worst moment misses its end
    /// [Fullmer and Garcia-Luna-Aceves, SIGCOMM '97].
    pub fn cts_time(&self) -> Duration {
        self.rts_time() + 2 * self.delay + self.turnaround
    }

    /// From the first bit of an RTS to the first bit of the packet.
    pub fn handshake_time(&self) -> Duration {
        self.rts_time() + self.cts_time() + 2 * (self.delay + self.turnaround)
    }

    /// Longest backoff.
    pub fn backoff_time(&self) -> Duration {
        self.rts_time() * self.backoff_rts
    }

    /// Least mean time that the channel needs for one packet of so many bytes and its share of the
    /// packets that return, `answers` of `answer_bytes` for each.
    ///
    /// An end that sends all the time backs off before each packet, half of the longest in the
    /// mean. Packets that return come one by one and need no backoff, and with acceleration no
    /// handshake either.
    pub fn mean_exchange(&self, bytes: u32, answer_bytes: u32, answers: f64) -> Duration {
        let answer = self.delay + self.packet_time(answer_bytes);
        let packet = self.backoff_time() / 2 + self.handshake_time() + self.packet_time(bytes);
        let floor = if self.acceleration { self.turnaround } else { self.handshake_time() };
        packet + self.delay + (floor + answer).mul_f64(answers)
    }

    fn airtime(&self, bits: u64) -> Duration {
        let nanos = bits.saturating_mul(1_000_000_000) / self.rate_bps.max(1);
        self.preamble + Duration::from_nanos(nanos)
    }
}
