//! A part of a state that few states have at a time.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

/// What a part says that is not there.
pub(crate) trait Empty: Clone + 'static {
    const EMPTY: &'static Self;
}

/// A part that takes no more than a pointer while it says nothing: to read it costs no memory, to
/// change it makes it.
#[derive(Clone, Debug)]
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> Rare<T> {
    /// A part that is not there.
    pub(crate) const NONE: Self = Self(None);
}

impl<T: Empty> Rare<T> {
    /// The part, if it is there.
    pub(crate) fn there(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Makes it say nothing; returns its memory, if it has any.
    pub(crate) fn take(&mut self) -> Option<Box<T>> {
        self.0.take()
    }

    /// Gives it this memory if it has none.
    pub(crate) fn lend(&mut self, spare: impl FnOnce() -> Option<Box<T>>) {
        if self.0.is_none() {
            self.0 = spare();
        }
    }
}

impl<T: Empty> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::EMPTY.clone()))
    }
}
