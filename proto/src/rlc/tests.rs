//! The code as a whole: what is encoded, lost in part, and decoded.

use super::*;
use proptest::prelude::*;

/// A source symbol whose bytes follow from its number.
fn body(seq: u32) -> Vec<u8> {
    (0..20 + seq % 50).map(|at| (seq.wrapping_mul(31) ^ (at * at)) as u8).collect()
}

fn symbol(seq: u32, body: &[u8]) -> Symbol<'_> {
    Symbol { head: [seq as u8, 1, 2, 3, body.len() as u8], body }
}

fn repair(key: u32, first: u32, len: u16, density: u8) -> (Combination, Vec<u8>) {
    let combination = Combination { key, first: SeqNumber(first), len, density };
    let bodies: Vec<_> = (0..u32::from(len))
        .map(|index| (first.wrapping_add(index), body(first.wrapping_add(index))))
        .collect();
    let sum = combination.encode(bodies.iter().map(|(seq, body)| symbol(*seq, body)));
    (combination, sum)
}

/// What the decoder has recovered, each with the bytes that it should have.
fn recovered(decoder: &mut Decoder) -> Vec<u32> {
    let mut seqs = Vec::new();
    while let Some(Recovered { seq, head, body: found }) = decoder.pop() {
        let wanted = body(seq.0);
        assert_eq!(head, symbol(seq.0, &wanted).head);
        assert_eq!(found[..wanted.len()], wanted);
        assert!(found[wanted.len()..].iter().all(|byte| *byte == 0));
        seqs.push(seq.0);
    }
    seqs.sort_unstable();
    seqs
}

/// A decoder to which these of a hundred symbols have not come.
fn with_losses(first: u32, lost: &[u32]) -> Decoder {
    let mut decoder = Decoder::new(1 << 20);
    // A stream begins with 0: numbers get there by jumps.
    let before = [first / 3, first / 3 * 2, first.wrapping_sub(1)];
    for seq in before.into_iter().filter(|_| first > 100) {
        decoder.source(SeqNumber(seq), symbol(seq, &body(seq)));
    }
    for seq in (0..100).map(|index| first.wrapping_add(index)).filter(|seq| !lost.contains(seq)) {
        decoder.source(SeqNumber(seq), symbol(seq, &body(seq)));
    }
    decoder
}

#[test]
fn as_many_repair_symbols_as_losses_recover_them_all() {
    let lost = [3, 4, 5, 50, 97];
    let mut decoder = with_losses(0, &lost);
    for key in 0..4 {
        let (combination, sum) = repair(key, 0, 100, DENSE);
        decoder.repair(&combination, &sum);
        assert_eq!(recovered(&mut decoder), []);
    }
    let (combination, sum) = repair(4, 0, 100, DENSE);
    decoder.repair(&combination, &sum);
    assert_eq!(recovered(&mut decoder), lost);
}

#[test]
fn a_symbol_that_comes_late_helps_like_a_repair_symbol() {
    let mut decoder = with_losses(0, &[10, 20]);
    let (combination, sum) = repair(1, 0, 100, DENSE);
    decoder.repair(&combination, &sum);
    decoder.source(SeqNumber(20), symbol(20, &body(20)));
    assert_eq!(recovered(&mut decoder), [10]);
    decoder.source(SeqNumber(10), symbol(10, &body(10)));
    assert_eq!(recovered(&mut decoder), []);
}

#[test]
fn what_a_window_does_not_cover_is_not_waited_for() {
    let mut decoder = with_losses(0, &[10, 90]);
    let (combination, sum) = repair(1, 0, 50, DENSE);
    decoder.repair(&combination, &sum);
    assert_eq!(recovered(&mut decoder), [10]);
}

#[test]
fn memory_is_bounded() {
    let mut decoder = Decoder::new(10_000);
    for seq in 0..5_000 {
        if seq % 3 != 0 {
            decoder.source(SeqNumber(seq), symbol(seq, &[7; 300]));
        }
        if seq > 100 && seq % 2 == 0 {
            let combination =
                Combination { key: seq, first: SeqNumber(seq - 20), len: 20, density: DENSE };
            decoder.repair(&combination, &[9; 305]);
        }
        assert!(decoder.bytes() <= 10_000 + 305);
        while decoder.pop().is_some() {}
    }
}

proptest! {
    /// Whatever is lost, and however numbers wrap: as many combinations as losses recover all, and
    /// a few more since they may depend on each other. Of density 7 half leave out a lone loss.
    #[test]
    fn recovers_whatever_was_lost(
        first in prop_oneof![Just(0), Just(u32::MAX - 50), any::<u32>()],
        lost in proptest::collection::btree_set(0..100u32, 0..30),
        key in any::<u32>(),
        density in 7..=DENSE,
    ) {
        let lost: Vec<_> = lost.into_iter().map(|index| first.wrapping_add(index)).collect();
        let mut decoder = with_losses(first, &lost);
        let mut found = Vec::new();
        let spare = if density == DENSE { 4 } else { 40 };
        for more in 0..lost.len() as u32 + spare {
            let (combination, sum) = repair(key.wrapping_add(more), first, 100, density);
            decoder.repair(&combination, &sum);
            found.extend(recovered(&mut decoder));
        }
        let mut wanted = lost;
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
    }

    /// Hostile combinations cost bounded memory and no panic.
    #[test]
    fn anything_may_come(
        symbols in proptest::collection::vec(
            (any::<u32>(), any::<u16>(), 0..16u8, 0..40usize),
            1..60,
        ),
    ) {
        let mut decoder = Decoder::new(5_000);
        for (seq, len, density, bytes) in symbols {
            let first = SeqNumber(seq % 5_000);
            let combination = Combination { key: seq, first, len: len % 3_000, density };
            decoder.repair(&combination, &[1; 60][..bytes]);
            decoder.source(first + u32::from(len % 50), symbol(seq, &[3; 60][..bytes]));
            prop_assert!(decoder.bytes() <= 5_100);
            while decoder.pop().is_some() {}
        }
    }
}
