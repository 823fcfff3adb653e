//! Messages other than data, and timers.

use alloc::vec::Vec;

use farcast_core::engine::Arrival;
use farcast_core::{Span, Time};

use super::cohorts::{CohortId, FINISHED, GONE};
use super::lacking::ReceiverGaps;
use super::parity::PopulationParity;
use super::proofs::PopulationProofs;
use super::{Channel, Population};
use crate::config::Waiter;
use crate::event::ReceiverOutcome;
use crate::message::{
    Ack, Announce, Body, ClientId, Completion, GroupModel, HostState, Message, Quit, Registration,
};
use crate::receiver::answers::Question;
use crate::receiver::control::{Action, Control, Terms};

impl Population {
    /// Handles a message other than data at the fan-out; the receivers in `self.lost` have lost it.
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) {
        if let Body::Announce(announce) = &message.body {
            return self.announce(now, from, message.transmission, announce);
        }
        let Some(terms) = &self.terms else { return };
        if message.transmission != terms.transmission || from.source != terms.source {
            return;
        }
        if self.proofs.as_ref().is_some_and(|proofs| !proofs.believes_end(message)) {
            return;
        }
        self.last_heard = now;
        match &message.body {
            Body::StatusRequest(m) => {
                if let Some(hosts) = &m.hosts {
                    self.pass_over_all_but(hosts);
                }
                if m.turn.is_none() {
                    self.report_again_all(now);
                }
                let mut asked = false;
                for cohort in self.cohorts.ids() {
                    let Some(mut control) = self.cohorts.control(cohort).cloned() else { continue };
                    let Some(terms) = &self.terms else { return };
                    let Ok(act) = control.asked(now, m, terms, &self.config) else { continue };
                    if !self.step(cohort, control) {
                        continue;
                    }
                    match act {
                        Action::Answer => asked = true,
                        Action::Ack => self.acknowledge(now, cohort, &Question::of(m)),
                        act => self.act(now, cohort, &act),
                    }
                }
                if asked {
                    if let Some(turn) = &m.turn {
                        self.pass_over_uncalled(turn);
                        self.pass_over_newcomers(&Question::of(m));
                    }
                    self.ask(now, Question::of(m), m.turn.map(|turn| turn.spread()), channel);
                }
            }
            Body::Completion(m) => {
                self.completion(now, m);
                self.called(now, m.turn);
            }
            Body::Abort(m) if m.hosts.is_none() => self.all(now, |control| control.aborted(now, m)),
            Body::End(_) => self.all(now, |control| control.ended(now)),
            _ => {}
        }
    }

    /// Adds the receivers that `hosts` does not list to those that lost the message, which does not concern them.
    fn pass_over_all_but(&mut self, hosts: &[ClientId]) {
        let mut listed: Vec<u32> = hosts.iter().filter_map(|&id| self.index(id)).collect();
        listed.sort_unstable();
        let lost = core::mem::take(&mut self.lost);
        let concerned =
            |receiver: &u32| listed.binary_search(receiver).is_ok() && lost.binary_search(receiver).is_err();
        self.lost = (0..self.receivers).filter(|receiver| !concerned(receiver)).collect();
    }

    /// Handles a message for all receivers that hear it, each by its state.
    fn all(&mut self, now: Time, decide: impl Fn(&Control) -> Action) {
        for cohort in self.cohorts.ids() {
            let Some(control) = self.cohorts.control(cohort).cloned() else { continue };
            let act = decide(&control);
            self.part_and_act(now, cohort, control, &act);
        }
    }

    /// Gives `control` to the members of `cohort` that heard the message. Those that lost it keep the old control, in a
    /// cohort of their own. Returns `true` if any member may have heard it.
    pub(super) fn step(&mut self, cohort: CohortId, control: Control) -> bool {
        self.cohorts.control(cohort) == Some(&control) || self.part(cohort, control)
    }

    /// Gives `control` to the members of `cohort` that heard the message, and carries out `act` for them.
    fn part_and_act(&mut self, now: Time, cohort: CohortId, control: Control, act: &Action) {
        if *act != Action::Nothing && self.part(cohort, control) {
            self.act(now, cohort, act);
        }
    }

    /// Like [`step`](Self::step), but also separates the members that lost the message if their control stays the same.
    /// Returns `true` if any member heard it.
    fn part(&mut self, cohort: CohortId, control: Control) -> bool {
        let stay: Vec<u32> = self.lost.iter().copied().filter(|&r| self.cohorts.of(r) == cohort).collect();
        let old = self.cohorts.control(cohort).cloned();
        if stay.len() as u32 == self.cohorts.count(cohort) {
            return false;
        }
        if !stay.is_empty() {
            let apart = self.cohorts.found(old);
            for receiver in stay {
                self.cohorts.shift(receiver, apart);
            }
        }
        self.cohorts.put(cohort, Some(control));
        true
    }

    pub(super) fn index(&self, id: ClientId) -> Option<u32> {
        id.0.checked_sub(self.config.id.0).filter(|&n| n < self.receivers)
    }

    fn announce(&mut self, now: Time, from: &Arrival, transmission: u32, m: &Announce) {
        if m.application != self.config.application {
            return;
        }
        if self.terms.is_none() {
            let Ok(terms) = Terms::new(from, transmission, m, &self.config) else { return };
            self.lacking = ReceiverGaps::new(self.receivers, terms.geometry().segments());
            self.parity = PopulationParity::new(self.receivers, &terms, &self.config);
            self.proofs = PopulationProofs::new(now, self.receivers, self.config.secret, &terms, m);
            self.terms = Some(terms);
        }
        let Some(terms) = &self.terms else { return };
        if (terms.source, terms.transmission) != (from.source, transmission) {
            return;
        }
        self.last_heard = now;
        let cohorts = self.cohorts.ids();
        self.confirm(now, m);
        for cohort in cohorts.filter(|&cohort| self.cohorts.count(cohort) > 0).collect::<Vec<_>>() {
            match self.cohorts.control(cohort).cloned() {
                None => self.invite(now, cohort, m),
                Some(mut control) => {
                    let act = control.announced(now, m, None, &self.config);
                    let heard = match act {
                        Action::Nothing => self.step(cohort, control),
                        _ => self.part(cohort, control),
                    };
                    if heard {
                        self.act(now, cohort, &act);
                    }
                }
            }
        }
        self.called(now, m.turn);
    }

    /// Lets the outside receivers that hear the announcement join.
    fn invite(&mut self, now: Time, cohort: CohortId, m: &Announce) {
        let Some(terms) = &self.terms else { return };
        let mut control = Control::offered(now, terms, m.turn.is_some());
        let act = control.accept(now, terms, &self.config);
        if m.options.model != GroupModel::Closed {
            if self.part(cohort, control) {
                self.act(now, cohort, &act);
            }
            return;
        }
        // In a closed group only listed receivers join (draft §6).
        let invited: Vec<u32> = self.listed(cohort, m).into_iter().map(|(receiver, _)| receiver).collect();
        if !invited.is_empty() {
            let joined = self.cohorts.found(Some(control));
            for receiver in invited {
                self.cohorts.shift(receiver, joined);
            }
            self.act(now, joined, &act);
        }
    }

    /// Returns the members of `cohort` that an announcement lists and that heard it.
    fn listed(&self, cohort: CohortId, m: &Announce) -> Vec<(u32, HostState)> {
        let known = m.listed().filter_map(|(id, standing)| Some((self.index(id)?, standing)));
        known.filter(|&(r, _)| self.cohorts.of(r) == cohort && self.lost.binary_search(&r).is_err()).collect()
    }

    /// Confirms the waiting receivers that an announcement lists as accepted and that heard it. Each moves to a cohort
    /// of receivers in its new state.
    fn confirm(&mut self, now: Time, m: &Announce) {
        let mut last = FINISHED;
        let both = m.hosts.is_some() && m.host_set.is_some();
        for (id, standing) in m.listed() {
            // The list decides of a client that is in both forms.
            if both && m.standing(id) != Some(standing) {
                continue;
            }
            let heard = |receiver: &u32| self.lost.binary_search(receiver).is_err();
            let Some(receiver) = self.index(id).filter(heard) else { continue };
            // A sender that has not granted a token has not heard this receiver, although its list has it.
            if !self.is_settled(receiver) {
                continue;
            }
            let control = self.cohorts.control(self.cohorts.of(receiver)).filter(|control| !control.accepted);
            let Some(mut control) = control.filter(|_| standing == HostState::Accepted).cloned() else {
                continue;
            };
            let act = control.announced(now, m, Some(standing), &self.config);
            control.touch(now, &self.config);
            if self.cohorts.control(last) != Some(&control) {
                let equal = self.cohorts.ids().find(|&id| self.cohorts.control(id) == Some(&control));
                last = equal.unwrap_or_else(|| self.cohorts.found(Some(control)));
            }
            self.cohorts.shift(receiver, last);
            self.say_to_sender(now, receiver, &act);
        }
    }

    fn completion(&mut self, now: Time, m: &Completion) {
        for &id in m.hosts.as_deref().unwrap_or(&[]) {
            let Some(receiver) = self.index(id).filter(|r| self.lost.binary_search(r).is_err()) else {
                continue;
            };
            let cohort = self.cohorts.of(receiver);
            let Some(mut control) = self.cohorts.control(cohort).cloned() else { continue };
            // Nobody can have confirmed a report that could not yet be proved.
            if self.is_settled(receiver)
                && matches!(control.completion(now, m, true, &self.config), Action::End(_))
            {
                self.finish(now, receiver);
            }
        }
        for cohort in self.cohorts.ids() {
            let Some(mut control) = self.cohorts.control(cohort).cloned() else { continue };
            let act = control.completion(now, m, false, &self.config);
            self.part_and_act(now, cohort, control, &act);
        }
    }

    /// Carries out `act` for all members of a cohort.
    pub(super) fn act(&mut self, now: Time, cohort: CohortId, act: &Action) {
        let mut members = Vec::new();
        self.cohorts.members(cohort, &mut members);
        match act {
            Action::Nothing | Action::Accepted | Action::Answer | Action::Ack | Action::Flush => {}
            Action::RegisterLater => self.register_later(now, cohort, &members),
            Action::Register | Action::RegisterDone | Action::Done => {
                for receiver in members {
                    self.say_to_sender(now, receiver, act);
                }
            }
            Action::Quit(reason, text) => {
                for receiver in members {
                    // Nobody answers a Quit, so nothing else would repeat a lost one.
                    for _ in 0..3 {
                        let client = Some(self.id(receiver));
                        let quit = Quit { reason: *reason, client, text: Some((*text).into()) };
                        self.say(now, receiver, Body::Quit(quit));
                    }
                    self.cohorts.shift(receiver, GONE);
                }
            }
            Action::End(outcome) => {
                let complete = matches!(outcome, ReceiverOutcome::Complete { .. });
                for receiver in members {
                    if complete {
                        self.finish(now, receiver);
                    } else {
                        self.cohorts.shift(receiver, GONE);
                    }
                }
            }
        }
    }

    fn register_later(&mut self, now: Time, cohort: CohortId, members: &[u32]) {
        let Some(before) = self.cohorts.control(cohort).cloned() else { return };
        let window = self.backoff_window();
        if window.is_zero() {
            let mut control = before;
            let act = control.register_after(now, Span::ZERO, &self.config);
            self.cohorts.put(cohort, Some(control));
            return self.act(now, cohort, &act);
        }
        for &receiver in members {
            let mut control = before.clone();
            let wait = self.wait(now, receiver, window);
            let act = control.register_after(now, wait, &self.config);
            let own = self.cohorts.found(Some(control));
            self.cohorts.shift(receiver, own);
            self.act(now, own, &act);
        }
    }

    fn backoff_window(&self) -> Span {
        self.terms.as_ref().map_or(Span::ZERO, |terms| terms.backoff)
    }

    /// Draws a uniform part of the back-off window for one receiver.
    pub(super) fn wait(&mut self, now: Time, receiver: u32, window: Span) -> Span {
        let id = self.id(receiver);
        self.config.waits.draw(Waiter { seed: self.config.seed, id }, now, window, &mut self.random)
    }

    /// Registers `receiver`, reports its complete product, or both, if `act` says so.
    pub(super) fn say_to_sender(&mut self, now: Time, receiver: u32, act: &Action) {
        match act {
            Action::Register => self.say_registration(now, receiver),
            Action::RegisterDone => self.register_complete(now, receiver),
            Action::Done => self.say_done(now, receiver),
            _ => {}
        }
    }

    pub(super) fn say_registration(&mut self, now: Time, receiver: u32) {
        if let Some(registration) = self.registration(receiver) {
            self.say(now, receiver, Body::Registration(registration));
        }
    }

    /// Registers and reports the complete product by one message, which does not report before a token has come.
    pub(super) fn register_complete(&mut self, now: Time, receiver: u32) {
        if let Some(mut registration) = self.registration(receiver) {
            registration.complete = self.is_settled(receiver).then_some(0);
            (registration.heard, registration.segments_held) = (None, None);
            registration.receive_buffer_bytes = None;
            self.say(now, receiver, Body::Registration(registration));
        }
    }

    fn registration(&self, receiver: u32) -> Option<Registration> {
        let terms = self.terms.as_ref()?;
        let heard = self.heard_by(receiver);
        // Where receivers take turns, what came in this transmission does not count.
        let held =
            if heard.is_some() { 0 } else { terms.geometry().segments() - self.lacking.count(receiver) };
        Some(Registration {
            name: self.config.name.clone(),
            nonce: self.proofs.as_ref().and_then(PopulationProofs::nonce),
            segments_held: Some(held).filter(|&held| held > 0),
            receive_buffer_bytes: self.config.receive_buffer_bytes,
            heard,
            round: self.round_of(receiver),
            ..Registration::new(terms.server, self.id(receiver), Ok(()))
        })
    }

    fn acknowledge(&mut self, now: Time, cohort: CohortId, question: &Question) {
        let mut members = Vec::new();
        self.cohorts.members(cohort, &mut members);
        for receiver in members {
            if self.lost.binary_search(&receiver).is_err() {
                self.say_ack(now, receiver, question);
            }
        }
    }

    pub(super) fn say_ack(&mut self, now: Time, receiver: u32, question: &Question) {
        let Some(terms) = &self.terms else { return };
        let (server, client) = (terms.server, self.id(receiver));
        let ack = Ack { server, pass: question.pass, blocks: question.blocks, client };
        self.say(now, receiver, Body::Ack(ack));
    }

    /// Acts on the first timer of a cohort.
    pub(super) fn expire(&mut self, now: Time, cohort: CohortId) {
        let Some(mut control) = self.cohorts.control(cohort).cloned() else { return };
        // Patience counts from the last message heard, which is recorded once for all receivers.
        if control.patience_ends() <= now && self.last_heard + self.config.patience > now {
            control.touch(self.last_heard, &self.config);
        } else if let Some(act) = control.expire(now, &self.config) {
            self.cohorts.put(cohort, Some(control));
            return self.act(now, cohort, &act);
        }
        self.cohorts.put(cohort, Some(control));
    }

    /// Returns `true` if `receiver` takes part and its product is not yet complete.
    pub(super) fn is_receiving(&self, receiver: u32) -> bool {
        self.cohorts.control(self.cohorts.of(receiver)).is_some_and(Control::is_receiving)
    }
}
