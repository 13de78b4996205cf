//! The question of the server to the gateway's loop.

use crate::gateway::telemetry::Status;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A request for the status of the gateway.
#[derive(Debug)]
pub struct Request {
    reply: SyncSender<Status>,
}

impl Request {
    /// A request, and where the status will arrive.
    pub(super) fn new() -> (Self, Receiver<Status>) {
        let (reply, replies) = sync_channel(1);
        (Self { reply }, replies)
    }

    /// Sends the status to the client. A client that has gone in the meantime is no failure.
    pub fn answer(self, status: Status) {
        let _ = self.reply.try_send(status);
    }
}
