//! The addresses behind a name, which may change, and which may not be known yet. Threads ask,
//! since a resolver may take its time.

use crate::gateway::privileges::drop_all;
use airmend_proto::Instant;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// While nobody answers at the addresses that are known, and while there are none.
const RETRY: Duration = Duration::from_secs(1);
/// Otherwise: resolvers keep an answer for as long as they may.
const REFRESH: Duration = Duration::from_secs(60);
/// Addresses of a name at most.
const MOST: usize = 8;

/// Names that are asked for at a time, of all peers.
const AT_ONCE: usize = 4;

/// What the names of all peers share, and each holds while it is asked for.
#[derive(Debug, Default)]
pub(super) struct Lookups(Arc<()>);

/// A thread that asks.
type Asking = JoinHandle<Option<Vec<SocketAddr>>>;

/// A name with a port, whose addresses are asked for again and again.
#[derive(Debug)]
pub(super) struct Name {
    text: String,
    known: Vec<SocketAddr>,
    asking: Option<(Asking, Arc<()>)>,
    lookups: Weak<()>,
    /// When the last answer came.
    asked: Option<Instant>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Addresses, in the order in which they should be tried (RFC 6724): others than before.
    Addresses(Vec<SocketAddr>),
    /// None: the name does not exist, or nobody tells.
    Nothing,
}

impl Name {
    /// A name that nobody has asked for.
    pub(super) fn new(text: &str, lookups: &Lookups) -> Self {
        let lookups = Arc::downgrade(&lookups.0);
        Self { text: text.to_owned(), known: Vec::new(), asking: None, lookups, asked: None }
    }

    /// Asks if it is time, and takes what has been answered; `is_lost` if nobody answers at the
    /// addresses.
    pub(super) fn poll(&mut self, now: Instant, is_lost: bool) -> Option<Answer> {
        if let Some((asking, _)) = self.asking.take_if(|(asking, _)| asking.is_finished()) {
            self.asked = Some(now);
            let found = asking.join().ok().flatten().filter(|found| !found.is_empty());
            // A name that is gone keeps its addresses: the peer may still be there.
            let Some(found) = found else { return Some(Answer::Nothing) };
            if found == self.known {
                return None;
            }
            self.known.clone_from(&found);
            return Some(Answer::Addresses(found));
        }
        let interval = if is_lost || self.known.is_empty() { RETRY } else { REFRESH };
        let is_due = self.asked.is_none_or(|asked| now - asked >= interval);
        // The others, this one's own, and that which is kept for all.
        let may_ask = |held: &Arc<()>| Arc::strong_count(held) <= AT_ONCE + 1;
        if self.asking.is_none()
            && is_due
            && let Some(held) = self.lookups.upgrade().filter(may_ask)
        {
            let text = self.text.clone();
            let asking = thread::Builder::new().name("names".into()).spawn(move || {
                drop_all().ok()?;
                let found = text.to_socket_addrs().ok()?;
                Some(found.take(MOST).collect())
            });
            // Without a thread it is asked later.
            self.asking = asking.ok().map(|asking| (asking, held));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &mut Name, now: Instant) -> Answer {
        loop {
            match name.poll(now, false) {
                Some(answer) => return answer,
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_name_is_asked_for_until_it_is_known_and_then_now_and_again() {
        let lookups = Lookups::default();
        let mut name = Name::new("no.such.host.invalid:4433", &lookups);
        assert_eq!(answer(&mut name, Instant::ZERO), Answer::Nothing);
        assert_eq!(name.poll(Instant::from_millis(900), false), None);
        assert!(name.asking.is_none(), "it is not time");
        assert_eq!(answer(&mut name, Instant::from_millis(1_000)), Answer::Nothing);

        let mut name = Name::new("127.0.0.1:4433", &lookups);
        let known = Answer::Addresses(vec![([127, 0, 0, 1], 4433).into()]);
        assert_eq!(answer(&mut name, Instant::ZERO), known);
        for (seconds, is_lost, is_asked) in [(59, false, false), (59, true, true)] {
            assert_eq!(name.poll(Instant::from_millis(1_000 * seconds), is_lost), None);
            assert_eq!(name.asking.is_some(), is_asked, "{seconds} {is_lost}");
        }
    }

    #[test]
    fn few_names_are_asked_for_at_a_time() {
        let lookups = Lookups::default();
        let mut names: Vec<_> = (0..9).map(|_| Name::new("127.0.0.1:1", &lookups)).collect();
        let mut asked = [false; 9];
        for _ in 0..9 {
            for (name, asked) in names.iter_mut().zip(&mut asked) {
                *asked |= name.poll(Instant::ZERO, false).is_some();
            }
            let asking = names.iter().filter(|name| name.asking.is_some()).count();
            assert!(asking <= AT_ONCE, "{asking}");
            let is_over = |name: &Name| name.asking.as_ref().is_none_or(|(at, _)| at.is_finished());
            while !names.iter().all(is_over) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(asked, [true; 9]);
    }
}
