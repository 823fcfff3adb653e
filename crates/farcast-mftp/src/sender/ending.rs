//! Completion, abort and end (draft §11.3).

use alloc::string::String;
use alloc::vec::Vec;

use farcast_core::{Span, Time};

use super::members::MemberState;
use super::{Phase, Sender, Timer};
use crate::event::{SenderEvent, SenderOutcome};
use crate::message::{Abort, Body, ClientId, Completion, End, cancel};
use crate::wire;

/// Number of times that END is sent (draft §11.3.2).
const ENDS: u32 = 4;

/// State of closing.
#[derive(Clone, Debug, Default)]
pub(super) struct Closing {
    /// Completions or Aborts sent since closing began.
    rounds: u32,
    /// Time at which the last Completion left.
    last_completion: Option<Time>,
    abort: Option<(u32, Option<String>)>,
}

impl Closing {
    /// Returns `true` if a Completion left less than `span` ago.
    pub(super) fn was_confirmed_within(&self, now: Time, span: Span) -> bool {
        self.last_completion.is_some_and(|at| now.since(at) < span)
    }
}

impl Sender {
    /// Schedules a Completion after a Done: at once if none left lately.
    pub(super) fn confirm_done(&mut self, now: Time, client: ClientId) {
        if self.by_turns() {
            return self.confirm_by_turn(client);
        }
        if matches!(self.phase, Phase::Sending | Phase::Waiting) && !self.timers.is_set(Timer::Closing) {
            let earliest =
                self.closing.last_completion.map_or(now, |last| last + self.config.completion_interval);
            self.timers.set(Timer::Closing, earliest.max(now));
        }
    }

    pub(super) fn begin_completing(&mut self, now: Time) {
        let delivered = self.members.values().any(|m| m.state == MemberState::Done);
        let lost = self.members.values().any(|m| matches!(m.state, MemberState::Lost(_)));
        // If all registrations were unproved claims, no receiver was served.
        let nobody = self.has_members() && self.members.is_empty();
        if (lost || nobody) && !delivered {
            return self.abort_with(
                now,
                cancel::ABORT_STATUS_TIMEOUT,
                Some("no receiver answers any more".into()),
            );
        }
        self.events.push_back(SenderEvent::Delivered);
        self.close(now, Phase::Completing);
    }

    pub(super) fn abort_with(&mut self, now: Time, reason: u32, text: Option<String>) {
        if matches!(self.phase, Phase::Idle | Phase::Aborting | Phase::Ended) {
            return;
        }
        // A text that does not fit its parameter is cut between characters.
        let text = text.map(|mut text| {
            let end = (0..=text.len().min(256)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
            text
        });
        self.closing.abort = Some((reason, text.filter(|text| !text.is_empty())));
        self.close(now, Phase::Aborting);
    }

    fn close(&mut self, now: Time, phase: Phase) {
        self.phase = phase;
        self.closing.rounds = 0;
        self.confirm_last_turns();
        for member in self.members.values_mut() {
            member.contender = None;
        }
        for timer in [
            Timer::Probe,
            Timer::Remembered,
            Timer::StatusRetry,
            Timer::Stall,
            Timer::TransferLimit,
            Timer::Announce,
            Timer::AnnounceLimit,
            Timer::Turn,
        ] {
            self.timers.stop(timer);
        }
        self.closing_step(now);
    }

    /// Sends one more Completion or Abort, and finally END.
    pub(super) fn closing_step(&mut self, now: Time) {
        match self.phase {
            Phase::Sending | Phase::Waiting => {
                self.completion(now);
                if self.unconfirmed_dones() {
                    self.timers.set(Timer::Closing, now + self.config.completion_interval);
                }
            }
            Phase::Completing | Phase::Aborting if self.closed() => self.finish(),
            Phase::Completing | Phase::Aborting => {
                self.closing.rounds += 1;
                if self.phase == Phase::Completing {
                    self.completion(now);
                } else {
                    self.abort_all();
                }
                self.timers.set(Timer::Closing, now + self.closing_interval());
            }
            _ => {}
        }
    }

    /// Returns `true` if closing is finished: every confirmation has left often enough, and no Done was repeated since.
    fn closed(&self) -> bool {
        let repeats = self.config.repeats;
        let asked_again = self.phase == Phase::Completing && self.unconfirmed_dones();
        self.closing.rounds >= repeats && (!asked_again || self.closing.rounds >= repeats.saturating_mul(3))
    }

    /// Returns the short interval between repeats. A receiver that has missed all of them repeats its Done only after a
    /// second, and has the product in any case, so the sender does not wait for it.
    fn closing_interval(&self) -> Span {
        Span::from_millis(50).min(self.config.completion_interval)
    }

    fn unconfirmed_dones(&self) -> bool {
        self.members.values().any(|m| m.state == MemberState::Done && m.confirmations < self.config.repeats)
    }

    /// Confirms the Dones whose confirmation has not left often enough. In an open-unlimited group, announces the end.
    fn completion(&mut self, now: Time) {
        self.closing.last_completion = Some(now);
        let private = self.config.private;
        if !self.has_members() {
            return self.queue(Body::Completion(Completion { hosts: None, turn: None }), private);
        }
        let repeats = self.config.repeats;
        let due = self
            .members
            .iter_mut()
            .filter(|(_, m)| m.state == MemberState::Done && m.confirmations < repeats);
        let hosts: Vec<ClientId> = due
            .map(|(&id, member)| {
                member.confirmations += 1;
                id
            })
            .collect();
        let room = (self.config.datagram - wire::HEADER_LEN - 4) / 4;
        for piece in hosts.chunks(room) {
            self.queue(Body::Completion(Completion { hosts: Some(piece.to_vec()), turn: None }), private);
        }
    }

    fn abort_all(&mut self) {
        let Some((reason, text)) = self.closing.abort.clone() else { return };
        let abort = Abort { reason, hosts: None, text };
        self.queue(Body::Abort(abort.clone()), self.config.private);
        if self.config.public != self.config.private {
            self.queue(Body::Abort(abort), self.config.public);
        }
    }

    fn finish(&mut self) {
        let end = End { server: self.config.server, response: self.config.response };
        for _ in 0..ENDS {
            self.queue(Body::End(end.clone()), self.config.public);
        }
        match self.closing.abort {
            Some((reason, _)) => self.end(SenderOutcome::Aborted { reason }),
            None => self.end(SenderOutcome::Finished),
        }
    }
}
