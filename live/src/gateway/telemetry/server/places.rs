//! The places of clients. All are taken at times, by clients that say nothing or by many at once:
//! the next client then gets a place of the user who has the most, so that no user keeps another
//! one out. A user's own next client takes the place of the oldest that the server waits for.

use super::listen::ClientStream;
use nix::unistd::Uid;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The places for the clients of one kind.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    inner: Mutex<Inner>,
    /// A place was dropped.
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    /// The oldest first.
    clients: Vec<Client>,
    /// The places that are not yet dropped: those of the clients, and of some that were sent away.
    places: BTreeSet<u64>,
    next: u64,
}

#[derive(Debug)]
struct Client {
    number: u64,
    /// `None` for one that the kernel does not know.
    user: Option<Uid>,
    /// The server waits for it: for its request, or until it reads the response.
    is_awaited: bool,
    /// By which it is sent away.
    stream: Option<ClientStream>,
}

/// The place of one client; dropping it makes it free.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Places {
    /// Places for so many clients.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, inner: Mutex::default(), freed: Condvar::new() })
    }

    /// A place for a client of this user, which the server waits for. `None` if there is none.
    pub(super) fn take(
        self: &Arc<Self>,
        user: Option<Uid>,
        stream: Option<ClientStream>,
    ) -> Option<Place> {
        let mut inner = self.lock();
        // A thread whose client was sent away may wait for the gateway's loop.
        if inner.places.len() >= 2 * self.limit {
            return None;
        }
        if inner.clients.len() >= self.limit {
            let leaving = inner.leaving(user)?;
            let client = inner.clients.remove(leaving);
            if let Some(stream) = &client.stream {
                stream.shut_down();
                if client.is_awaited {
                    // Its thread ends now: threads do not become more while a flood goes on.
                    let is_there = |inner: &mut Inner| inner.places.contains(&client.number);
                    inner = self
                        .freed
                        .wait_while(inner, is_there)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        let number = inner.next;
        inner.next += 1;
        inner.places.insert(number);
        inner.clients.push(Client { number, user, is_awaited: true, stream });
        Some(Place { places: Arc::clone(self), number })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Who leaves so that a client of this user can come.
    fn leaving(&self, user: Option<Uid>) -> Option<usize> {
        let held = |of| self.clients.iter().filter(|client| client.user == of).count();
        let wanted = held(user) + 1;
        let may_leave = |client: &Client| match client.user == user {
            true => client.is_awaited,
            false => held(client.user) >= wanted,
        };
        let share = |of| if of == user { wanted } else { held(of) };
        let candidates = self.clients.iter().enumerate().filter(|(_, client)| may_leave(client));
        let rank = |(age, client): &(usize, &Client)| {
            let is_own = client.user == user;
            (share(client.user), is_own, client.is_awaited, Reverse(*age))
        };
        candidates.max_by_key(rank).map(|(age, _)| age)
    }
}

impl Place {
    /// From now on the server waits for the client, or the client for the server. `None` if the
    /// client has been sent away.
    pub(super) fn set_awaited(&self, is_awaited: bool) -> Option<()> {
        let mut inner = self.places.lock();
        let client = inner.clients.iter_mut().find(|client| client.number == self.number)?;
        client.is_awaited = is_awaited;
        Some(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.places.lock();
        inner.places.remove(&self.number);
        self.places.freed.notify_all();
        inner.clients.retain(|client| client.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Arc<Places>, user: u32) -> Option<Place> {
        places.take(Some(Uid::from_raw(user)), None)
    }

    fn users(places: &Places) -> Vec<u32> {
        let inner = places.lock();
        inner.clients.iter().filter_map(|client| client.user).map(Uid::as_raw).collect()
    }

    #[test]
    fn the_oldest_of_the_user_with_the_most_leaves() {
        let places = Places::new(4);
        let [_a, _b, _c, _d] = [1, 7, 7, 7].map(|user| take(&places, user).unwrap());
        let _e = take(&places, 7).unwrap();
        assert_eq!(users(&places), [1, 7, 7, 7]);
        let _f = take(&places, 2).unwrap();
        assert_eq!(users(&places), [1, 7, 7, 2]);
        let _g = take(&places, 1).unwrap();
        assert_eq!(users(&places), [7, 7, 2, 1], "two of four are its share");
    }

    #[test]
    fn who_waits_for_the_server_leaves_last_and_never_for_the_same_user() {
        let places = Places::new(2);
        let [a, _b] = [7, 7].map(|user| take(&places, user).unwrap());
        a.set_awaited(false);
        let c = take(&places, 7).unwrap();
        assert_eq!(places.lock().clients.iter().map(|c| c.number).collect::<Vec<_>>(), [0, 2]);
        c.set_awaited(false);
        assert!(take(&places, 7).is_none(), "both wait for the server");
        let _d = take(&places, 1).unwrap();
        assert_eq!(users(&places), [7, 1]);
        assert!(take(&places, 7).is_none(), "of two places each has one");
    }

    #[test]
    fn with_as_many_users_as_places_the_oldest_leaves() {
        let places = Places::new(4);
        let _all: Vec<_> = (0..6).map(|user| take(&places, user).unwrap()).collect();
        assert_eq!(users(&places), [2, 3, 4, 5]);
    }

    #[test]
    fn threads_are_bounded_too() {
        let places = Places::new(2);
        let mut held: Vec<_> = (0..4).map(|user| take(&places, user).unwrap()).collect();
        assert!(take(&places, 9).is_none(), "two were sent away and have not ended");
        held.remove(0);
        assert!(take(&places, 9).is_some());
    }
}
