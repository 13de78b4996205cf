//! The rate of a TCP sender that meets losses.

/// Linux's least timeout beyond the round trip.
const MIN_TIMEOUT: f64 = 0.2;

/// The rate of a sender with timeouts (PFTK) or, if higher, of CUBIC with this loss, in packets
/// per second.
pub(crate) fn tcp(loss: f64, rtt: f64) -> f64 {
    let timeout = rtt + MIN_TIMEOUT;
    let timeouts = (3.0 * (3.0 * loss / 8.0).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    let pftk = 1.0 / (rtt * (2.0 * loss / 3.0).sqrt() + timeout * timeouts);
    // In its own region, which begins with windows of some size; RFC 8312 §5.2.
    let cubic = 1.054 * (rtt / loss).powf(0.75) / rtt;
    if cubic * rtt > 10.0 { pftk.max(cubic) } else { pftk }
}
