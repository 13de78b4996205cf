//! What it costs that several stations contend: Bianchi's model [IEEE JSAC 18(3)], with a bounded
//! number of retries [Wu et al., INFOCOM 2002].

use super::phy::Phy;

/// What passes between two exchanges that succeed, in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contention {
    /// Slots in which no station sends.
    pub(super) idle: f64,
    /// Collisions.
    pub(super) collisions: f64,
}

impl Contention {
    /// Of stations that always have something to send.
    pub(super) fn of(phy: &Phy, retries: u32, stations: u32) -> Self {
        // The right side of the fixed point falls as the left one rises: bisection.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let collides = f64::midpoint(low, high);
            let none_else = power(1.0 - sends(phy, retries, collides), stations.saturating_sub(1));
            if 1.0 - none_else > collides { low = collides } else { high = collides }
        }
        let sends = sends(phy, retries, low);
        let none_else = power(1.0 - sends, stations.saturating_sub(1));
        let none = none_else * (1.0 - sends);
        let one = f64::from(stations.max(1)) * sends * none_else;
        Self { idle: none / one, collisions: (1.0 - none - one).max(0.0) / one }
    }
}

/// The probability that a station sends in a slot, where a transmission collides with this
/// probability.
fn sends(phy: &Phy, retries: u32, collides: f64) -> f64 {
    let (mut window, mut weight) = (phy.cw_min, 1.0);
    let (mut attempts, mut slots) = (0.0, 0.0);
    for _ in 0..=retries {
        attempts += weight;
        slots += weight * (1.0 + f64::from(window) / 2.0);
        weight *= collides;
        window = (2 * window + 1).min(phy.cw_max);
    }
    attempts / slots
}

fn power(base: f64, exponent: u32) -> f64 {
    libm::pow(base, f64::from(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_station_waits_for_its_mean_backoff() {
        let alone = Contention::of(&Phy::OFDM, 7, 1);
        assert!((alone.idle - 7.5).abs() < 1e-9 && alone.collisions < 1e-9, "{alone:?}");
    }

    #[test]
    fn more_stations_wait_less_and_collide_more() {
        let of = |stations| Contention::of(&Phy::DSSS, 7, stations);
        for stations in 1..20 {
            assert!(of(stations + 1).idle < of(stations).idle);
            assert!(of(stations + 1).collisions > of(stations).collisions);
        }
    }
}
