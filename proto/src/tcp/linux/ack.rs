//! The processing of an ACK: `tcp_ack` and `tcp_fastretrans_alert`.

use super::blocks::News;
use super::control::Before;
use super::{Linux, State, Turn, cwnd};
use crate::ranges::Span;
use crate::tcp::outgoing::Outgoing;
use crate::tcp::sender::Ack;
use crate::time::Instant;

impl Linux {
    /// Takes an ACK and its SACK blocks.
    pub(in crate::tcp) fn acknowledged(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        ack: &Ack,
        blocks: &[Span],
    ) {
        if ack.position > out.nxt {
            return;
        }
        let is_old = ack.position < out.una;
        let (prior_una, prior_out) = (out.una, self.queue.packets_out());
        let before = self.before_ack();
        self.delivery.ack_begins();
        let opens = ack.edge > out.edge();
        if !is_old {
            out.una = ack.position;
            out.set_edge(ack.edge);
        }
        if out.una > prior_una {
            self.timeouts = 0;
        }
        let mut news = self.take(now, out, ack, blocks, prior_una);
        news.is_more = news.advances || opens || !ack.is_bare;
        self.turn = Turn::NewOnly;
        if prior_out == 0 {
            if news.duplicate {
                self.alert(now, out, ack, &mut news);
            }
            self.take_probe_ack(out, ack, news);
            return;
        }
        if let Some(prior) = self.delivery.prior() {
            self.rack.adapt(prior, self.delivered);
        }
        self.take_probe_ack(out, ack, news);
        let is_dubious = !news.is_more || news.sacked || news.duplicate;
        if is_dubious || self.state != State::Open {
            self.alert(now, out, ack, &mut news);
        }
        if news.restarts_timer && !is_old && !self.schedule_probe(now, out, true) {
            self.rearm_timeout(now, out);
        }
        self.adjust_window(now, out, before, &news);
    }

    /// `tcp_cong_control`.
    fn adjust_window(&mut self, now: Instant, out: &mut Outgoing, before: Before, news: &News) {
        if out.congestion.is_model_based() {
            return self.control(now, out, before, news.round_trip);
        }
        let (delivered, is_loss) = (self.delivered - before.delivered, self.lost > before.lost);
        if self.is_reducing() {
            self.reduce(out, delivered, news.advances && !is_loss);
        } else if news.acked || news.sacked && self.rack.degree > 3 {
            self.grow(now, out, delivered);
        }
    }

    /// `tcp_cong_avoid`: the window grows if it was what limited the sender.
    fn grow(&mut self, now: Instant, out: &mut Outgoing, delivered: u64) {
        let slow_start = out.congestion.cwnd() < out.congestion.ssthresh();
        let most_out = u64::from(self.usage.most_out);
        if self.usage.is_limited || slow_start && cwnd(out) < 2 * most_out {
            out.congestion.acknowledged(now, delivered * out.mss);
        }
    }

    /// `tcp_process_tlp_ack` (RFC 8985 §7.4): whether the probe repaired a loss.
    fn take_probe_ack(&mut self, out: &mut Outgoing, ack: &Ack, news: News) {
        let Some((end, again)) = self.probed.filter(|(end, _)| ack.position >= *end) else {
            return;
        };
        let both_arrived = news.duplicate_probe || !news.is_more && !news.sacked;
        if !again || news.duplicate_probe {
            self.probed = None;
        } else if ack.position > end {
            // The ACK passes the probe, and nothing says that both copies arrived.
            out.counters.loss_probe_recoveries += 1;
            self.begin_reduction(out);
            if !out.congestion.is_model_based() {
                out.congestion.set_cwnd(out.congestion.ssthresh());
            }
            self.keep_open(out);
        } else if both_arrived {
            self.probed = None;
        }
    }

    /// `tcp_fastretrans_alert`.
    fn alert(&mut self, now: Instant, out: &mut Outgoing, ack: &Ack, news: &mut News) {
        if self.state == State::Open {
            self.undo.forget_stamp();
        } else if self.state == State::Recovery && out.una >= self.recover {
            self.leave_recovery_at_its_end(out, ack);
        }
        let mut is_countable = !news.is_more || news.sacked && self.is_far_ahead(out);
        match self.state {
            State::Recovery => {
                if news.advances {
                    if self.undo_partial(out, ack, news) {
                        return;
                    }
                    is_countable = self.is_far_ahead(out);
                }
                if self.undo_by_duplicates(out) {
                    self.try_to_open(out);
                }
                self.look_for_losses(now, out, news);
                if self.state != State::Recovery {
                    if !self.is_time_to_recover() {
                        return;
                    }
                    self.enter_recovery(out);
                }
            }
            State::Loss => {
                self.process_loss(out, ack, news);
                let again = self.look_for_losses(now, out, news);
                if self.state != State::Open && !again || !self.open_or_recover(out) {
                    return;
                }
            }
            State::Open | State::Disorder => {
                self.undo_by_duplicates(out);
                self.look_for_losses(now, out, news);
                if !self.open_or_recover(out) {
                    return;
                }
            }
        }
        if is_countable {
            self.count_losses();
        }
        self.turn = Turn::LostFirst;
    }

    /// What follows when the state allows a recovery to begin: says whether one does.
    fn open_or_recover(&mut self, out: &mut Outgoing) -> bool {
        let recovers = self.is_time_to_recover();
        match recovers {
            true => self.enter_recovery(out),
            false => self.try_to_open(out),
        }
        recovers
    }

    fn leave_recovery_at_its_end(&mut self, out: &mut Outgoing, ack: &Ack) {
        self.leave_recovery(out, ack.echo);
        self.end_reduction(out);
    }

    /// Detects losses; returns whether a retransmission is among them.
    fn look_for_losses(&mut self, now: Instant, out: &mut Outgoing, news: &mut News) -> bool {
        let detected = self.identify_losses(now, out);
        if !detected.wait.is_zero() {
            news.restarts_timer = false;
        }
        detected.again
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, out: &Outgoing) {
        if !self.queue.any_resent() {
            self.undo.forget_stamp();
        }
        self.keep_open(out);
    }

    /// `tcp_try_undo_partial`: the hole was filled by what was only late. Says whether to wait for
    /// what became of the retransmissions.
    fn undo_partial(&mut self, out: &mut Outgoing, ack: &Ack, news: &News) -> bool {
        if self.undo.marker.is_none() || !self.undo.was_only_late(ack.echo) {
            return false;
        }
        self.check_reordering(out, news.prior_una);
        if self.queue.resent_out > 0 {
            return true;
        }
        if !self.queue.any_resent() {
            self.undo.forget_stamp();
        }
        self.undo_reduction(out, true);
        out.counters.undone_recoveries += 1;
        self.keep_open(out);
        false
    }

    /// `tcp_process_loss`: recovery from a timeout, and whether it was spurious (RFC 5682 §3.1).
    fn process_loss(&mut self, out: &mut Outgoing, ack: &Ack, news: &News) {
        let is_over = out.una >= self.recover;
        if news.advances && self.undo_loss(out, ack.echo, false) {
            return;
        }
        if self.frto {
            // Step 3.b: what was sent only once arrived.
            if news.original && self.undo_loss(out, None, true) {
                return;
            }
            if out.nxt > self.recover {
                // Step 3.a.
                if news.sacked || !news.is_more {
                    self.frto = false;
                }
            } else if news.advances && !is_over {
                // Step 2.b: two new segments, if there are any.
                self.recover = out.nxt;
                if out.pending() && out.edge() > out.nxt {
                    self.turn = Turn::NewFirst;
                    return;
                }
                self.frto = false;
            }
        }
        if is_over {
            self.leave_recovery(out, ack.echo);
            return;
        }
        self.turn = Turn::LostFirst;
    }
}
