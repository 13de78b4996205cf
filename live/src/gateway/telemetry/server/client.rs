//! The responses to clients, and the requests to the gateway's loop.

use super::exposition::{self, classic};
use super::http::{self, Response, Target};
use super::listen::ClientStream;
use super::places::Place;
use super::reported::Reported;
use super::request::Request;
use crate::gateway::Word;
use crate::gateway::telemetry::metrics;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The loop turns every few milliseconds, later on a machine that has no time for it; one that does
/// not answer for so long hangs.
const LOOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests within this interval get the same status, so that clients do not keep the loop busy.
const FRESH: Duration = Duration::from_millis(100);

/// The state that the threads of all clients share.
#[derive(Debug)]
pub(super) struct Responder {
    requests: SyncSender<Request>,
    last: Mutex<Option<(Instant, Arc<dyn Reported>)>>,
}

impl Responder {
    pub(super) fn new(requests: SyncSender<Request>) -> Self {
        Self { requests, last: Mutex::new(None) }
    }

    /// Answers one request of the client at this place.
    pub(super) fn serve(&self, stream: &mut ClientStream, place: &Place) {
        let (is_public, is_trusted) = (stream.is_public(), stream.is_trusted());
        // A client that closes the connection needs no answer.
        let _ = http::serve(stream, |target| {
            place.set_awaited(false)?;
            let response = match target {
                Target::Get { path, wants_open_metrics } => {
                    self.answer(path, is_public, *wants_open_metrics)
                }
                Target::Put(path) => self.tell(path, is_trusted),
            };
            place.set_awaited(true)?;
            Some(response)
        });
    }

    /// A status that is no older than a tenth of a second; `None` if the loop does not answer.
    fn status(&self) -> Option<Arc<dyn Reported>> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, status)) = &*last()
            && at.elapsed() < FRESH
        {
            return Some(Arc::clone(status));
        }
        // A thread that had no processor since then must not make an old status a fresh one.
        let asked_at = Instant::now();
        let status = self.ask(None)?;
        let mut last = last();
        if last.as_ref().is_none_or(|(at, _)| *at < asked_at) {
            *last = Some((asked_at, Arc::clone(&status)));
        }
        Some(status)
    }

    fn ask(&self, word: Option<Word>) -> Option<Arc<dyn Reported>> {
        let (request, replies) = Request::new(word);
        self.requests.try_send(request).ok()?;
        replies.recv_timeout(LOOP_TIMEOUT).ok()
    }

    /// Passes the operator's word to the gateway.
    fn tell(&self, path: &str, is_trusted: bool) -> Response {
        let Some(word) = Word::of_path(path) else {
            let sentence = "Nothing can be put here but /handoff/MOVEMENT/ADDRESS, where MOVEMENT \
                            is approaching, attached or receding.";
            return Response::sentence("404 Not Found", sentence);
        };
        if !is_trusted {
            let sentence = "Only root and the gateway's own user may say this, on its Unix socket.";
            return Response::sentence("403 Forbidden", sentence);
        }
        match self.ask(Some(word)) {
            Some(status) if status.heeds_words() => Response::sentence("200 OK", "ok"),
            Some(_) => {
                let sentence = "This gateway knows no other stations: start it with --handoff.";
                Response::sentence("409 Conflict", sentence)
            }
            None => no_answer(),
        }
    }

    fn answer(&self, path: &str, is_public: bool, wants_open_metrics: bool) -> Response {
        let what: fn(&dyn Reported) -> Option<Response> = match path {
            "/metrics" if wants_open_metrics => open_metrics,
            "/metrics" => classic_metrics,
            "/status" if is_public => {
                let sentence = "A status names hosts; ask the gateway's Unix socket for it.";
                return Response::sentence("403 Forbidden", sentence);
            }
            "/status" => status_json,
            "/healthz" => |_| Some(Response::sentence("200 OK", "ok")),
            _ => {
                let sentence = "There is nothing here but /metrics, /status and /healthz.";
                return Response::sentence("404 Not Found", sentence);
            }
        };
        let Some(status) = self.status() else { return no_answer() };
        what(&*status).unwrap_or_else(|| {
            let sentence = "The status could not be written down.";
            Response::sentence("500 Internal Server Error", sentence)
        })
    }
}

fn no_answer() -> Response {
    let sentence = "The gateway has not answered within five seconds: it is stopped or hangs.";
    Response::sentence("503 Service Unavailable", sentence)
}

fn open_metrics(status: &dyn Reported) -> Option<Response> {
    Some(Response::ok(metrics::MEDIA_TYPE, status.open_metrics()?))
}

fn classic_metrics(status: &dyn Reported) -> Option<Response> {
    Some(Response::ok(exposition::MEDIA_TYPE, classic(&status.open_metrics()?)))
}

fn status_json(status: &dyn Reported) -> Option<Response> {
    Some(Response::ok("application/json", status.json()? + "\n"))
}
