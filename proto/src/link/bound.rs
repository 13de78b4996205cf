//! The limit that no retransmission of whole frames can pass.

/// Goodput in bit/s that no scheme can exceed on a path of one air and one wired hop.
///
/// On the air, a frame of `frame_bytes` on the wire carries `payload_bytes` of application data
/// and arrives with probability 1 - `frame_error`; whoever repeats it, each attempt takes its
/// airtime. So goodput is at most rate × payload/frame × (1 - frame error), which selective repeat
/// with cumulative acknowledgments reaches. The wired hop loses nothing, and an agent at the base
/// station need not send anything over it twice: it limits to rate × payload/frame.
///
/// ACKs are not counted: they take the other direction. Sub-frame checksums or forward error
/// correction could pass this bound; retransmission cannot.
pub fn goodput_bound(
    air_rate_bps: u64,
    wired_rate_bps: u64,
    payload_bytes: u32,
    frame_bytes: u32,
    frame_error: f64,
) -> f64 {
    let useful = f64::from(payload_bytes) / f64::from(frame_bytes.max(1));
    let air = air_rate_bps as f64 * (1.0 - frame_error);
    air.min(wired_rate_bps as f64) * useful
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::ErrorModel;

    #[test]
    fn meets_the_known_limits_of_a_wavelan_hop() {
        // 12 000 bit frames, 1.6 Mb/s without errors; [bits per error, frame error %, Mb/s].
        let rows = [
            [16e3, 52.8, 0.756],
            [32e3, 31.3, 1.100],
            [64e3, 17.1, 1.326],
            [128e3, 9.0, 1.457],
            [256e3, 4.6, 1.527],
            [512e3, 2.3, 1.563],
            [1e6, 1.2, 1.581],
            [2e6, 0.6, 1.590],
        ];
        for [bits_per_error, percent, mbps] in rows {
            let frame_error = ErrorModel::Ber(1.0 / bits_per_error).frame_error(12_000);
            assert!(
                (frame_error * 100.0 - percent).abs() < 0.06,
                "{bits_per_error}: {frame_error}"
            );
            let bound = goodput_bound(1_600_000, 10_000_000, 1500, 1500, frame_error);
            assert!((bound / 1e6 - mbps).abs() < 0.0011, "{bits_per_error}: {bound}");
        }
    }

    #[test]
    fn the_slower_hop_and_the_headers_limit() {
        assert_eq!(goodput_bound(20_000_000, 10_000_000, 1448, 1500, 0.05), 1448.0 / 1500.0 * 1e7);
        assert_eq!(goodput_bound(20_000_000, 100_000_000, 1500, 1500, 0.25), 15e6);
        assert_eq!(goodput_bound(1, 1, 0, 0, 1.0), 0.0);
    }
}
