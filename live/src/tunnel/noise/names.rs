//! The names of sessions at this end: no two are the same, whichever peers they are with, so that a
//! name tells whose a datagram is, wherever it comes from.

use crate::tunnel::datagram::SessionId;
use crate::tunnel::random::random;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tries to find a free name: of 16 million, an end with 256 peers uses a thousand.
const TRIES: usize = 16;

/// The names that one peer's sessions get, among those of all peers.
#[derive(Clone, Debug, Default)]
pub(in crate::tunnel) struct Names {
    places: Arc<Mutex<HashMap<SessionId, usize>>>,
    place: usize,
}

impl Names {
    /// The same names for the peer in another place.
    pub(in crate::tunnel) fn of(&self, place: usize) -> Self {
        Self { place, ..self.clone() }
    }

    /// The place of the peer whose session has this name.
    pub(in crate::tunnel) fn place(&self, id: SessionId) -> Option<usize> {
        self.lock().get(&id).copied()
    }

    /// A free name; `None` if the system has no random numbers left.
    pub(super) fn draw(&self) -> Option<Name> {
        (0..TRIES).find_map(|_| {
            let mut id = [0; 3];
            random(&mut id).ok()?;
            self.take(id)
        })
    }

    /// This name, if it is free.
    pub(super) fn take(&self, id: SessionId) -> Option<Name> {
        let mut places = self.lock();
        if places.contains_key(&id) {
            return None;
        }
        places.insert(id, self.place);
        Some(Name { id, names: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's name, which is free again when this is dropped.
pub(super) struct Name {
    id: SessionId,
    names: Names,
}

impl Name {
    pub(super) fn id(&self) -> SessionId {
        self.id
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.names.lock().remove(&self.id);
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({:?})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_peers_until_its_session_ends() {
        let first = Names::default();
        let second = first.of(7);
        let name = second.take([1, 2, 3]).expect("it is free");
        assert!(first.take([1, 2, 3]).is_none());
        assert_eq!((first.place([1, 2, 3]), first.place([3, 2, 1])), (Some(7), None));
        drop(name);
        assert_eq!(second.place([1, 2, 3]), None);
        let all: Vec<_> = (0..1_000).filter_map(|_| first.draw()).collect();
        assert!(all.len() == 1_000 && all.iter().all(|name| first.place(name.id()) == Some(0)));
    }
}
