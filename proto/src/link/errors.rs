//! Error processes: the fate of each frame on the air.

use super::Fate::{Damaged, Intact, Lost};
use crate::random::{Purpose, Stream};
use crate::time::Instant;
use crate::units::{self, UnitError};
use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

/// The fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The frame arrives unchanged.
    Intact,
    /// The frame arrives with bit errors, and fails the receiver's checksum; how many bits are
    /// before the first wrong one.
    Damaged(u64),
    /// The frame does not arrive.
    Lost,
}

/// Decides the fate of each frame. `start` never goes backwards between calls.
pub trait ErrorProcess {
    /// The fate of a frame of `bits` bits that occupies the air for `airtime` from `start` on.
    fn draw(&mut self, start: Instant, airtime: Duration, bits: u64) -> Fate;
}

/// An error process as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ErrorModel {
    /// Every frame arrives.
    #[default]
    None,
    /// Independent loss with this probability.
    Loss(f64),
    /// Independent bit errors with this probability. They damage a frame of n bits with
    /// probability 1 - (1 - ber)^n.
    Ber(f64),
    /// `frames` frames in a row are lost in every `every_bytes` bytes [tulip99 Table I].
    ///
    /// All wire bytes that enter the air in this direction count, those of lost frames too. The
    /// frame that holds the burst's first byte is lost, and the frames after it up to `frames`; a
    /// burst that begins within another one restarts the count. The first burst's place is random.
    Burst {
        /// Frames lost in a row.
        frames: u32,
        /// Wire bytes from the beginning of one burst to the beginning of the next.
        every_bytes: u64,
    },
    /// Two-state Markov fading [tulip99 Fig. 4].
    ///
    /// The channel changes between good and bad with time, after exponentially distributed
    /// sojourns, whether or not frames are sent; it begins in its stationary distribution. The
    /// state at a frame's first bit decides. A fade silences both ends: both directions of a link
    /// see the same fades, and draw their losses independently.
    Fading {
        /// Mean sojourn in the good state; times below 1 µs act as 1 µs.
        good: Duration,
        /// Mean sojourn in the bad state; times below 1 µs act as 1 µs.
        bad: Duration,
        /// Frame loss probability in the bad state.
        bad_loss: f64,
        /// Bit error probability in the good state.
        good_ber: f64,
    },
}

impl ErrorModel {
    /// The names of all models but [`ErrorModel::None`].
    pub const NAMES: [&'static str; 4] = ["loss", "ber", "burst", "fading"];

    /// A model by its name and what it says, such as `burst` and `4/64Ki`; none if there is no
    /// model of that name.
    pub fn parse(name: &str, text: &str) -> Option<Result<Self, UnitError>> {
        Some(match name {
            "loss" => units::parse_probability(text).map(Self::Loss),
            "ber" => units::parse_ber(text).map(Self::Ber),
            "burst" => parse_burst(text),
            "fading" => parse_fading(text),
            _ => return None,
        })
    }

    /// The process of one direction of one link.
    ///
    /// Each direction and purpose has a random stream of its own, except that the fades of a link
    /// come from one stream for both directions.
    pub fn process(&self, seed: u64, link: u32, direction: u8) -> Box<dyn ErrorProcess + Send> {
        let stream = |purpose| Stream::new(seed, link, direction, purpose);
        match *self {
            Self::None => Box::new(NoErrors),
            Self::Loss(probability) => {
                Box::new(FrameLoss { probability, stream: stream(Purpose::Loss) })
            }
            Self::Ber(ber) => Box::new(BitErrors::new(ber, stream(Purpose::BitError))),
            Self::Burst { frames, every_bytes } => {
                Box::new(Bursts::new(frames, every_bytes, stream(Purpose::Phase)))
            }
            Self::Fading { good, bad, bad_loss, good_ber } => Box::new(Fading {
                fades: Fades::new([good, bad], Stream::new(seed, link, 0, Purpose::Fading)),
                bad_loss: FrameLoss { probability: bad_loss, stream: stream(Purpose::Loss) },
                good_errors: BitErrors::new(good_ber, stream(Purpose::BitError)),
            }),
        }
    }

    /// What the short frames of a handshake meet of it: losses and bursts are about packets.
    pub(super) fn of_handshake(&self) -> Self {
        match self {
            Self::Ber(_) | Self::Fading { .. } => *self,
            Self::None | Self::Loss(_) | Self::Burst { .. } => Self::None,
        }
    }

    /// The long-run probability that a frame of `bits` bits does not arrive intact.
    ///
    /// For `Burst` all frames are taken to have this size: `frames` of them in `every_bytes`. For
    /// `Fading` it is the mean over both states, as a link sees it that is always busy.
    pub fn frame_error(&self, bits: u64) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Loss(probability) => probability,
            Self::Ber(ber) => bit_error_hits(ber, bits),
            Self::Burst { frames, every_bytes } => {
                let burst_bytes = f64::from(frames) * bits.div_ceil(8) as f64;
                (burst_bytes / every_bytes.max(1) as f64).min(1.0)
            }
            Self::Fading { good, bad, bad_loss, good_ber } => {
                let share = bad_share([good, bad].map(sojourn_seconds));
                share * bad_loss + (1.0 - share) * bit_error_hits(good_ber, bits)
            }
        }
    }
}

impl fmt::Display for ErrorModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => f.write_str("no errors"),
            Self::Loss(probability) => {
                write!(f, "loss {}", units::format_probability(probability))
            }
            Self::Ber(ber) => write!(f, "ber {}", units::format_ber(ber)),
            Self::Burst { frames, every_bytes } => {
                let plural = if frames == 1 { "" } else { "s" };
                let every = units::format_size(every_bytes);
                write!(f, "burst of {frames} frame{plural} every {every}")
            }
            Self::Fading { good, bad, bad_loss, good_ber } => {
                let [good, bad] = [good, bad].map(units::format_duration);
                let loss = units::format_probability(bad_loss);
                write!(f, "fading {good} good, {bad} bad with loss {loss}")?;
                if good_ber > 0.0 {
                    write!(f, ", ber {}", units::format_ber(good_ber))?;
                }
                Ok(())
            }
        }
    }
}

/// Bursts of n lost frames in every so many bytes: `4/64Ki`, `2/100k`.
pub fn parse_burst(text: &str) -> Result<ErrorModel, UnitError> {
    let refuse = units::refusal("burst", text, "4/64Ki");
    let Some((frames, every)) = text.split_once('/') else {
        return refuse("be frames lost in a row, a slash, and in how many bytes");
    };
    let Some(frames) = frames.trim().parse().ok().filter(|&frames| frames > 0) else {
        return refuse("begin with a whole number of frames from 1 to 4294967295");
    };
    match units::parse_size(every)? {
        0 => refuse("come in more than 0 bytes"),
        every_bytes => Ok(ErrorModel::Burst { frames, every_bytes }),
    }
}

/// Markov fading: `good=300ms,bad=30ms,loss=0.5`, and `,ber=1e-6` where the good state has errors.
pub fn parse_fading(text: &str) -> Result<ErrorModel, UnitError> {
    let refuse = units::refusal("fading", text, "good=300ms,bad=30ms,loss=0.5");
    let (mut good, mut bad, mut loss, mut ber) = (None, None, None, None);
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let again = match key.trim() {
            "good" => good.replace(parse_sojourn(value)?).is_some(),
            "bad" => bad.replace(parse_sojourn(value)?).is_some(),
            "loss" => loss.replace(units::parse_probability(value)?).is_some(),
            "ber" => ber.replace(units::parse_ber(value)?).is_some(),
            _ => return refuse("consist of good=, bad=, loss= and perhaps ber="),
        };
        if again {
            return refuse("say each of good=, bad=, loss= and ber= only once");
        }
    }
    let (Some(good), Some(bad), Some(bad_loss)) = (good, bad, loss) else {
        return refuse("say good=, bad= and loss=");
    };
    Ok(ErrorModel::Fading { good, bad, bad_loss, good_ber: ber.unwrap_or(0.0) })
}

/// A mean sojourn of the fading channel.
fn parse_sojourn(text: &str) -> Result<Duration, UnitError> {
    match units::parse_duration(text)? {
        short if short < Duration::from_micros(1) => {
            units::refusal("duration", text, "30ms")("be at least 1us for a fading channel")
        }
        sojourn => Ok(sojourn),
    }
}

struct NoErrors;

impl ErrorProcess for NoErrors {
    fn draw(&mut self, _start: Instant, _airtime: Duration, _bits: u64) -> Fate {
        Intact
    }
}

struct FrameLoss {
    probability: f64,
    stream: Stream,
}

impl ErrorProcess for FrameLoss {
    fn draw(&mut self, _start: Instant, _airtime: Duration, _bits: u64) -> Fate {
        if self.stream.happens(self.probability) { Lost } else { Intact }
    }
}

/// Bit errors as geometric gaps over the concatenated frames: one draw per damaged frame, however
/// long frames are.
struct BitErrors {
    ber: f64,
    stream: Stream,
    /// Bits that still pass before the next error.
    gap: u64,
}

impl BitErrors {
    fn new(ber: f64, mut stream: Stream) -> Self {
        let gap = bit_gap(ber, &mut stream);
        Self { ber, stream, gap }
    }
}

impl ErrorProcess for BitErrors {
    fn draw(&mut self, _start: Instant, _airtime: Duration, bits: u64) -> Fate {
        if let Some(rest) = self.gap.checked_sub(bits) {
            self.gap = rest;
            return Intact;
        }
        // Further errors in this frame change nothing, and the gaps have no memory: the next one
        // may as well be counted from the frame's end.
        let intact = self.gap;
        self.gap = bit_gap(self.ber, &mut self.stream);
        Damaged(intact)
    }
}

/// Bits before the next error, geometrically distributed.
fn bit_gap(ber: f64, stream: &mut Stream) -> u64 {
    if ber <= 0.0 {
        return u64::MAX;
    }
    // The conversion saturates, and rounds down as it must.
    (libm::log(stream.uniform()) / libm::log1p(-ber)) as u64
}

/// 1 - (1 - ber)^bits, without the cancellation that would ruin it for a small `ber`.
fn bit_error_hits(ber: f64, bits: u64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    -libm::expm1(bits as f64 * libm::log1p(-ber))
}

struct Bursts {
    frames: u32,
    every_bytes: u64,
    /// Bytes that still pass before the next burst begins.
    gap: u64,
    /// Frames that the present burst still takes.
    left: u32,
}

impl Bursts {
    fn new(frames: u32, every_bytes: u64, mut stream: Stream) -> Self {
        let every_bytes = every_bytes.max(1);
        let gap = ((1.0 - stream.uniform()) * every_bytes as f64) as u64;
        Self { frames, every_bytes, gap, left: 0 }
    }
}

impl ErrorProcess for Bursts {
    fn draw(&mut self, _start: Instant, _airtime: Duration, bits: u64) -> Fate {
        let bytes = bits.div_ceil(8);
        if let Some(beyond) = bytes.checked_sub(self.gap).filter(|&beyond| beyond > 0) {
            self.left = self.frames;
            let since_last = beyond % self.every_bytes;
            self.gap = if since_last == 0 { 0 } else { self.every_bytes - since_last };
        } else {
            self.gap -= bytes;
        }
        if self.left == 0 {
            return Intact;
        }
        self.left -= 1;
        Lost
    }
}

struct Fading {
    fades: Fades,
    bad_loss: FrameLoss,
    good_errors: BitErrors,
}

impl ErrorProcess for Fading {
    fn draw(&mut self, start: Instant, airtime: Duration, bits: u64) -> Fate {
        if self.fades.is_bad(start) {
            self.bad_loss.draw(start, airtime, bits)
        } else {
            self.good_errors.draw(start, airtime, bits)
        }
    }
}

/// The two-state channel by itself: a function of time and seed alone, so that competing agents
/// meet the same fades whatever they send.
struct Fades {
    /// Mean sojourns in the good and in the bad state, in seconds.
    sojourns: [f64; 2],
    stream: Stream,
    bad: bool,
    until: Instant,
}

impl Fades {
    fn new(sojourns: [Duration; 2], mut stream: Stream) -> Self {
        let sojourns = sojourns.map(sojourn_seconds);
        let bad = stream.happens(bad_share(sojourns));
        let mut fades = Self { sojourns, stream, bad, until: Instant::ZERO };
        fades.stay();
        fades
    }

    /// The state at `time`, which never goes backwards.
    fn is_bad(&mut self, time: Instant) -> bool {
        while self.until <= time && self.until < Instant::from_nanos(u64::MAX) {
            self.bad = !self.bad;
            self.stay();
        }
        self.bad
    }

    fn stay(&mut self) {
        let [good, bad] = self.sojourns;
        let seconds = self.stream.exponential(if self.bad { bad } else { good });
        // The conversion saturates.
        self.until += Duration::from_nanos((seconds * 1e9) as u64);
    }
}

/// A mean sojourn in seconds. Without a least one a long silence would mean endless fades.
fn sojourn_seconds(mean: Duration) -> f64 {
    mean.max(Duration::from_micros(1)).as_secs_f64()
}

/// The share of time in the bad state.
fn bad_share([good, bad]: [f64; 2]) -> f64 {
    bad / (good + bad)
}

#[cfg(test)]
mod tests;
