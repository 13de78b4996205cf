//! What each of several peers has of the loop's time where that is not enough for all: their
//! datagrams wait in one buffer, the socket's, and who fills it would leave no room for others.
//! Beyond a peer's share they are dropped before they are decrypted, which costs most (early
//! demultiplexing and discard: Druschel and Banga, "Lazy Receiver Processing", OSDI 1996).

/// The datagrams of one read, by peer.
#[derive(Debug, Default)]
pub(in crate::tunnel) struct Shares {
    taken: Vec<u32>,
    total: u32,
    /// Peers with any.
    active: u32,
    /// What a peer may have of this read.
    most: Option<u32>,
    /// The last read left some in the buffer.
    pub(in crate::tunnel) is_behind: bool,
}

impl Shares {
    /// A read begins. Where the buffer is crowded each peer may have an equal part of as many
    /// datagrams as the last one took.
    pub(in crate::tunnel) fn begin(&mut self, is_crowded: bool) {
        self.most = is_crowded.then(|| (self.total / self.active.max(1)).max(1));
        self.taken.fill(0);
        (self.total, self.active) = (0, 0);
    }

    /// Whether one more datagram of the peer in this place is to be decrypted.
    pub(super) fn admits(&mut self, place: usize) -> bool {
        if self.taken.len() <= place {
            self.taken.resize(place + 1, 0);
        }
        let Some(taken) = self.taken.get_mut(place) else { return true };
        self.active += u32::from(*taken == 0);
        *taken += 1;
        self.total += 1;
        self.most.is_none_or(|most| *taken <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine datagrams of a flood for each one of nine others, of whom each sends two.
    fn read(shares: &mut Shares) -> [usize; 2] {
        let mut admitted = [0; 2];
        for number in 0..180 {
            let place = if number % 10 < 9 { 0 } else { 1 + number / 10 % 9 };
            admitted[usize::from(place > 0)] += usize::from(shares.admits(place));
        }
        admitted
    }

    #[test]
    fn only_a_crowded_buffer_limits_and_only_who_fills_it() {
        let mut shares = Shares::default();
        shares.begin(false);
        assert_eq!(read(&mut shares), [162, 18]);
        shares.begin(true);
        // Of 180 datagrams of ten peers.
        assert_eq!(read(&mut shares), [18, 18]);
        shares.begin(false);
        assert_eq!(read(&mut shares), [162, 18]);
        // One alone has all of it.
        shares.begin(true);
        (0..18).for_each(|_| assert!(shares.admits(0)));
        shares.begin(true);
        (0..18).for_each(|_| assert!(shares.admits(0)));
    }
}
