//! The physical layers of 802.11: times, rates, and the airtime of frames.

use core::time::Duration;

/// The constants of a physical layer, and of the access that its stations use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phy {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// One slot of the backoff.
    pub slot: Duration,
    /// From the end of a frame to the first bit of its response.
    pub sifs: Duration,
    /// Slots after a SIFS for which the channel must be idle before a backoff counts down: 2 make a
    /// DIFS, 3 the AIFS of best effort.
    pub aifsn: u32,
    /// The first contention window: a backoff is uniform from 0 to it.
    pub cw_min: u32,
    /// The largest contention window.
    pub cw_max: u32,
    /// Preamble and PHY header of a data frame.
    pub preamble: Duration,
    /// Preamble and PHY header of RTS, CTS and acknowledgments.
    pub control_preamble: Duration,
    /// Where data is sent in symbols, the time of one; a frame then has 22 bits more, for service
    /// and tail.
    pub symbol: Option<Duration>,
    /// The rates of data frames in bits per second; empty where any rate can be chosen, since it
    /// depends on the width of the channel and the number of streams.
    pub rates: &'static [u64],
    /// The rates of responses in bits per second: the highest one that is not above the rate of
    /// the frame that is answered.
    pub basic_rates: &'static [u64],
    /// Whether an exchange carries an aggregate of frames (A-MPDU) with a block ACK.
    pub aggregates: bool,
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Phy {
    /// Frequency hopping of 1997 (IEEE 802.11-1997 §14), the radio of S3-11.
    pub const FHSS: Self = Self {
        name: "fhss",
        slot: micros(50),
        sifs: micros(28),
        aifsn: 2,
        cw_min: 15,
        cw_max: 1023,
        preamble: micros(128),
        control_preamble: micros(128),
        symbol: None,
        rates: &[1_000_000, 2_000_000],
        basic_rates: &[1_000_000],
        aggregates: false,
    };

    /// Direct sequence with long preambles (IEEE 802.11b-1999 §18).
    pub const DSSS: Self = Self {
        name: "dsss",
        slot: micros(20),
        sifs: micros(10),
        aifsn: 2,
        cw_min: 31,
        cw_max: 1023,
        preamble: micros(192),
        control_preamble: micros(192),
        symbol: None,
        rates: &[1_000_000, 2_000_000, 5_500_000, 11_000_000],
        basic_rates: &[1_000_000, 2_000_000],
        aggregates: false,
    };

    /// OFDM at 5 GHz (IEEE 802.11a-1999 §17); 802.11g among stations of its own kind differs by
    /// 6 µs of signal extension.
    pub const OFDM: Self = Self {
        name: "ofdm",
        slot: micros(9),
        sifs: micros(16),
        aifsn: 2,
        cw_min: 15,
        cw_max: 1023,
        preamble: micros(20),
        control_preamble: micros(20),
        symbol: Some(micros(4)),
        rates: &[
            6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000,
            54_000_000,
        ],
        basic_rates: &[6_000_000, 12_000_000, 24_000_000],
        aggregates: false,
    };

    /// High throughput with aggregates at 5 GHz (IEEE 802.11-2020 §19, §21): the preamble is that
    /// of one stream of 802.11ac, the access that of best effort.
    pub const HT: Self = Self {
        name: "ht",
        aifsn: 3,
        preamble: micros(40),
        rates: &[],
        aggregates: true,
        ..Self::OFDM
    };

    /// All of them.
    pub const ALL: [Self; 4] = [Self::FHSS, Self::DSSS, Self::OFDM, Self::HT];

    /// How long the channel must be idle before a backoff counts down (DIFS or AIFS).
    pub fn difs(&self) -> Duration {
        self.sifs + self.slot * self.aifsn
    }

    /// The airtime of a data frame, or of an aggregate, of so many bits.
    pub fn data_time(&self, bits: u64, rate_bps: u64) -> Duration {
        self.preamble + self.body_time(bits, rate_bps)
    }

    /// The airtime of an RTS, a CTS or an acknowledgment of so many bytes that belongs to a data
    /// frame of this rate.
    pub fn control_time(&self, bytes: u32, data_rate_bps: u64) -> Duration {
        self.control_preamble + self.body_time(u64::from(bytes) * 8, self.basic_rate(data_rate_bps))
    }

    fn basic_rate(&self, data_rate_bps: u64) -> u64 {
        let (mut basic, rates) = (data_rate_bps, self.basic_rates.iter());
        for rate in rates.filter(|rate| **rate <= data_rate_bps) {
            basic = *rate;
        }
        basic
    }

    /// The time of so many bits without their preamble.
    fn body_time(&self, bits: u64, rate_bps: u64) -> Duration {
        const SERVICE_AND_TAIL: u64 = 16 + 6;
        let rate = u128::from(rate_bps.max(1));
        let Some(symbol) = self.symbol else {
            let nanos = (u128::from(bits) * 1_000_000_000).div_ceil(rate);
            return Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        };
        let symbol_bits = (rate * symbol.as_nanos() / 1_000_000_000).max(1);
        let symbols = u128::from(bits + SERVICE_AND_TAIL).div_ceil(symbol_bits);
        symbol.saturating_mul(u32::try_from(symbols).unwrap_or(u32::MAX))
    }
}
