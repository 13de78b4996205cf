//! Two ends of a link with everything between them in the input's hands: datagrams are lost,
//! repeated, changed, invented, and come from elsewhere. A frame arrives at most once and only as
//! it was sent, and when the path is good again, frames arrive in both directions soon.

use airmend_live::tunnel::{Address, Endpoint, Keys, PrivateKey, Rekey, Security};
use airmend_proto::Instant;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Datagrams on their way at most, in one direction.
const ON_THE_WAY: usize = 64;
const MAX_STEPS: usize = 200;
/// How long it may take a good path to carry frames again, in steps of 100 ms: sessions, retries
/// and the responder's budget start anew.
const SOON: u32 = 100;

pub(crate) fn fuzz(data: &[u8]) {
    let mut path = Path::new();
    let mut input = data.iter().copied();
    for _ in 0..MAX_STEPS {
        let Some(choice) = input.next() else { break };
        path.step(choice, &mut input);
    }
    path.recovers();
}

struct Path {
    now: Instant,
    ends: [Endpoint; 2],
    at: [Address; 2],
    /// What the end of this number has sent.
    sent: [VecDeque<Vec<u8>>; 2],
    /// Frames that have not arrived at the other end.
    missing: [BTreeSet<u32>; 2],
    next: u32,
}

fn address(port: u16) -> Address {
    Address::Udp(SocketAddr::from(([192, 0, 2, 1], port)))
}

impl Path {
    fn new() -> Self {
        let [a, b] = [(); 2].map(|()| PrivateKey::generate().expect("random bytes"));
        let (to_a, to_b) = (a.public(), b.public());
        let at = [address(1000), address(4433)];
        let rekey = Rekey { after_bytes: 4_000, ..Rekey::default() };
        let open = |keys, peer| {
            Endpoint::new(&Security::Noise(keys, rekey), peer, Duration::from_secs(1 << 30))
        };
        let dialer = open(Keys { private: a, peer: to_b, psk: None }, Some(at[1]));
        let listener = open(Keys { private: b, peer: to_a, psk: None }, None);
        let mut path = Self {
            now: Instant::from_millis(5),
            ends: [dialer, listener],
            at,
            sent: Default::default(),
            missing: Default::default(),
            next: 0,
        };
        path.exchange();
        path
    }

    fn step(&mut self, choice: u8, input: &mut impl Iterator<Item = u8>) {
        let mut byte = || input.next().unwrap_or(0);
        let from = usize::from(choice & 1);
        match choice >> 1 & 7 {
            0 | 1 => self.send(from),
            2 => _ = self.originate(),
            3 => drop(self.sent[from].pop_front()),
            4 => {
                let copy = self.sent[from].front().cloned();
                copy.into_iter().for_each(|copy| self.arrive(from, &copy, self.at[from]));
            }
            5 => {
                let Some(mut changed) = self.sent[from].front().cloned() else { return };
                let place = usize::from(byte()) % changed.len();
                changed[place] ^= byte().max(1);
                self.arrive(from, &changed, address(u16::from(choice)));
            }
            6 => {
                let invented: Vec<u8> = (0..byte()).map(|_| byte()).collect();
                self.arrive(from, &invented, address(u16::from(choice)));
            }
            _ => self.now += Duration::from_millis(1 << (byte() & 15)),
        }
        if choice & 0x80 != 0
            && let Some(datagram) = self.sent[from].pop_front()
        {
            self.arrive(from, &datagram, self.at[from]);
        }
        if choice & 0x40 != 0 {
            self.at[0] = address(1000 + u16::from(choice));
        }
    }

    /// Sends a frame that has not been sent before.
    fn send(&mut self, from: usize) {
        self.next += 1;
        let datagram = self.ends[from].seal(self.now, &self.next.to_be_bytes());
        if !datagram.is_empty() && self.sent[from].len() < ON_THE_WAY {
            self.missing[from].insert(self.next);
            self.sent[from].push_back(datagram);
        }
    }

    fn originate(&mut self) -> bool {
        let mut is_any = false;
        for (end, sent) in self.ends.iter_mut().zip(&mut self.sent) {
            end.handle_timeout(self.now);
            while end.poll_notice().is_some() {}
            let datagrams = std::iter::from_fn(|| end.poll_transmit());
            let before = sent.len();
            sent.extend(datagrams.map(|(_, datagram)| datagram));
            is_any |= sent.len() > before;
            sent.truncate(ON_THE_WAY);
        }
        is_any
    }

    /// A datagram comes to the other end, from the end's own address or another one.
    fn arrive(&mut self, from: usize, datagram: &[u8], at: Address) {
        let Some(frame) = self.ends[1 - from].receive(self.now, at, datagram) else { return };
        let number = u32::from_be_bytes(frame.as_ref().try_into().expect("a frame as it was sent"));
        assert!(self.missing[from].remove(&number), "frame {number} arrived twice");
    }

    /// Everything arrives until nobody has anything more to say.
    fn exchange(&mut self) {
        for _ in 0..ON_THE_WAY {
            let is_any = self.originate();
            for from in [0, 1] {
                while let Some(datagram) = self.sent[from].pop_front() {
                    self.arrive(from, &datagram, self.at[from]);
                }
            }
            if !is_any {
                return;
            }
        }
        panic!("the ends never stop talking");
    }

    fn recovers(&mut self) {
        for _ in 0..SOON {
            self.exchange();
            let before = self.next;
            self.send(0);
            self.send(1);
            self.exchange();
            let is_there = |number| !self.missing.iter().any(|missing| missing.contains(&number));
            let is_sealed = self.ends.iter_mut().all(|end| !end.seal(self.now, b"test").is_empty());
            if is_sealed && (before + 1..=self.next).all(is_there) {
                return;
            }
            self.now += Duration::from_millis(100);
        }
        panic!("no frames over a good path: {:?}", self.ends.each_ref().map(Endpoint::counters));
    }
}
