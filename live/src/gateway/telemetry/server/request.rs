//! The question of the server to the gateway's loop.

use super::reported::Reported;
use crate::gateway::Word;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A request for the status of the gateway, perhaps after an operator's word.
#[derive(Debug)]
pub struct Request {
    /// What the gateway is to hear first.
    pub word: Option<Word>,
    reply: SyncSender<Arc<dyn Reported>>,
}

impl Request {
    /// A request, and where the status will arrive.
    pub(super) fn new(word: Option<Word>) -> (Self, Receiver<Arc<dyn Reported>>) {
        let (reply, replies) = sync_channel(1);
        (Self { word, reply }, replies)
    }

    /// Sends the status to the client. A client that has gone in the meantime is no failure.
    pub fn answer(self, status: impl Reported + 'static) {
        let _ = self.reply.try_send(Arc::new(status));
    }
}
