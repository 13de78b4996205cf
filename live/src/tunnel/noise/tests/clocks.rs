//! Clocks that jump, and clocks that stand still while an end is suspended.

use super::*;

/// The first byte of a cookie reply.
const COOKIE: u8 = 6;

/// The initiations that the dialer sends until it is up, each with what the listener answers.
fn until_up(pair: &mut Pair, most: usize) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut sent = Vec::new();
    while !pair.dialer.is_open() && sent.len() < most {
        pair.now += RETRIED;
        pair.dialer.handle_timeout(pair.now);
        for initiation in pair.drain_dialer() {
            assert_eq!(pair.give(pair.dialer_at, &initiation), None);
            let answers = pair.drain_listener();
            for answer in &answers {
                pair.dialer.receive(pair.now, at(LISTENER), answer, &mut BytesMut::new());
            }
            sent.push((initiation, answers));
        }
    }
    sent
}

/// A dialer that starts again after its clock was set back is asked for a cookie, and is up with
/// its second initiation; when keys change, too.
#[test]
fn a_peer_whose_clock_was_set_back_is_there_after_two_initiations() {
    let mut pair = Pair::open();
    for _ in 0..3 {
        pair.restart_dialer(STARTED - HOURS);
        assert_eq!(until_up(&mut pair, 9).len(), 2);
        pair.exchange();
        pair.assert_carries();
    }
    let sessions = pair.dialer.counters.sessions;
    pair.wait(Rekey::default().after);
    (0..3).for_each(|_| pair.wait(RETRIED));
    assert_eq!(pair.dialer.counters.sessions, sessions + 1, "new keys");
    pair.assert_carries();
    let notices: Vec<_> = std::iter::from_fn(|| pair.listener.poll_notice()).collect();
    let is_old = |notice: &Notice| matches!(notice, Notice::OldInitiation(_));
    assert!(!notices.iter().any(is_old), "{notices:?}");
}

/// What was lost on the way is asked for again.
#[test]
fn a_cookie_that_is_lost_is_sent_again() {
    let mut pair = Pair::open();
    pair.restart_dialer(STARTED - HOURS);
    for _ in 0..3 {
        pair.now += RETRIED;
        pair.dialer.handle_timeout(pair.now);
        let initiation = pair.drain_dialer().remove(0);
        pair.give(pair.dialer_at, &initiation);
        assert_eq!(pair.drain_listener().remove(0)[0], COOKIE, "which is lost");
    }
    assert_eq!(until_up(&mut pair, 9).len(), 2);
    pair.exchange();
    pair.assert_carries();
}

/// Whoever has recorded the handshakes of a peer whose clock was set back opens nothing with them,
/// from anywhere: not even an answer comes of those that were answered, and of the others a cookie,
/// for which he has no use.
#[test]
fn recorded_initiations_of_such_a_peer_open_nothing() {
    let mut pair = Pair::open();
    pair.restart_dialer(STARTED - HOURS);
    let recorded = until_up(&mut pair, 9);
    pair.exchange();
    // And one that never arrived.
    let old = STARTED - 2 * HOURS;
    let (keys, to) = (pair.dialer.keys.clone(), Some(at(LISTENER)));
    let mut earlier = NoiseChannel::new(keys, Names::default(), Rekey::default(), to, old);
    earlier.handle_timeout(pair.now);
    let lost = earlier.poll_transmit().map(|(_, message)| message).expect("an initiation");
    let sessions = pair.listener.counters.sessions;
    for from in [pair.dialer_at, at(66)] {
        for (initiation, _) in &recorded {
            pair.give(from, initiation);
            assert!(pair.drain_listener().is_empty(), "it was answered before");
        }
        for _ in 0..5 {
            pair.give(from, &lost);
            let answers = pair.drain_listener();
            assert!(answers.iter().all(|answer| answer[0] == COOKIE), "{answers:?}");
            assert!(answers.iter().all(|answer| answer.len() < lost.len()));
        }
    }
    assert_eq!(pair.listener.counters.sessions, sessions);
    assert_eq!(pair.listener.peer(), Some(pair.dialer_at));
    pair.assert_carries();
}

/// `CLOCK_MONOTONIC` stands still while a machine is suspended. Whichever end it was, and for
/// however long: frames pass again at once, under keys of the peer that was awake.
#[test]
fn an_end_that_was_suspended_is_there_again() {
    for suspended in [[true, false], [false, true], [true, true]] {
        for time in [Duration::from_secs(170), Duration::from_secs(181), HOURS, 100 * HOURS] {
            let mut pair = Pair::open();
            pair.now += time;
            for (slept, is_suspended) in pair.slept.iter_mut().zip(suspended) {
                *slept += if is_suspended { time } else { Duration::ZERO };
            }
            for _ in 0..4 {
                pair.wait(RETRIED);
            }
            pair.assert_carries();
            // And whatever the clocks say, keys change.
            let sessions = pair.dialer.counters.sessions;
            pair.wait(Rekey::default().after);
            pair.wait(RETRIED);
            pair.assert_carries();
            assert!(pair.dialer.counters.sessions > sessions);
        }
    }
}
