//! Data, parity, and completeness (draft §11.2.2).

use alloc::vec::Vec;

use farcast_core::engine::{Arrival, Message as _};
use farcast_core::{Among, Run, Span, Time};
use farcast_delivery::Channel;

use super::Population;
use super::cohorts::{CohortId, FINISHED};
use super::parity::{Reach, SymbolId};
use super::proofs::seconds;
use crate::message::{Body, Data, Done, GroupModel, Message};
use crate::receiver::control::{Action, Terms};
use crate::receiver::delivery::DataPart;

/// Run of datagrams that passes the fan-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentPassage {
    /// Arrival of the first datagram, and interval between datagrams.
    first: Time,
    spacing: Span,
    count: u32,
    /// Pass of data; 0 for other messages.
    pass: u32,
    /// Octets of each datagram except the last, and of the last.
    octets: (u64, u64),
}

impl SegmentPassage {
    pub(super) fn of(now: Time, from: &Arrival, message: &Message, channel: &Channel<'_>) -> Self {
        let count = message.segments().get();
        let octets = |segment| message.wire_len(segment) as u64 + u64::from(channel.overhead);
        let pass = if let Body::Data(data) = &message.body { data.pass } else { 0 };
        Self { first: now, spacing: from.spacing, count, pass, octets: (octets(0), octets(count - 1)) }
    }

    fn at(&self, index: u32) -> Time {
        self.first + self.spacing * u64::from(index)
    }

    fn octets(&self, index: u32) -> u64 {
        if index + 1 == self.count { self.octets.1 } else { self.octets.0 }
    }

    /// Returns `true` if the datagram at `index` arrives at `limit` or later. The first never does.
    fn is_beyond(&self, index: u32, limit: Time) -> bool {
        index > 0 && self.at(index) >= limit
    }

    /// Returns the number of datagrams from `index` on, without the last, that arrive before `limit`.
    fn ahead(&self, index: u32, limit: Time) -> u32 {
        let most = self.count - 1 - index;
        if self.spacing.is_zero() {
            return most;
        }
        let room = limit.since(self.at(index)).as_nanos().div_ceil(self.spacing.as_nanos());
        most.min(u32::try_from(room).unwrap_or(u32::MAX))
    }
}

impl Population {
    /// Passes a run that no receiver can use through the channel. Returns its number of datagrams.
    pub(super) fn let_pass(&mut self, passage: &SegmentPassage, channel: &mut Channel<'_>) -> u32 {
        for index in 0..passage.count {
            self.draw(passage.at(index), passage.octets(index), Among::These(&[]), channel);
        }
        passage.count
    }

    /// Handles a run of the current transmission, as much of it as may be taken now. Returns the number of datagrams
    /// taken.
    pub(super) fn data(&mut self, passage: &SegmentPassage, data: &Data, channel: &mut Channel<'_>) -> u32 {
        let Some(terms) = &self.terms else { return passage.count };
        let (part, whole) = (DataPart::of(data, terms), terms.geometry().block_run(data.block));
        let (Ok(part), Some(whole)) = (part, whole) else { return self.let_pass(passage, channel) };
        if let (DataPart::Symbols(_), Some(parity)) = (part, &mut self.parity) {
            parity.begin(data.block, whole, &mut self.lacking);
        }
        let taken = match part {
            DataPart::Segments(segments) => self.source(passage, segments, channel),
            DataPart::Symbols(symbols) => self.symbols(passage, data.block, symbols, channel),
        };
        if let Some(parity) = &mut self.parity {
            parity.settle(whole, &mut self.lacking);
        }
        taken
    }

    fn source(&mut self, passage: &SegmentPassage, segments: Run, channel: &mut Channel<'_>) -> u32 {
        let mut limit = self.poll_timeout();
        let mut index = 0;
        while index < passage.count && !passage.is_beyond(index, limit) {
            let segment = segments.first() + index;
            let spared = self.spare(passage, index, segment, limit, channel);
            if spared > 0 {
                index += spared;
                continue;
            }
            let at = passage.at(index);
            self.last_heard = at;
            if self.segment(passage, index, segment, channel) {
                limit = self.poll_timeout();
            }
            index += 1;
        }
        index
    }

    fn symbols(
        &mut self,
        passage: &SegmentPassage,
        block: u32,
        symbols: Run,
        channel: &mut Channel<'_>,
    ) -> u32 {
        let mut limit = self.poll_timeout();
        let mut index = 0;
        while index < passage.count && !passage.is_beyond(index, limit) {
            let at = passage.at(index);
            self.last_heard = at;
            let id = SymbolId { block, symbol: symbols.first() + index };
            if self.symbol(at, passage.octets(index), id, channel) {
                limit = self.poll_timeout();
            }
            index += 1;
        }
        index
    }

    /// Passes over segments from `index` on that reach every receiver for the first time before `limit`. The last of
    /// the run and the last unsent segment are left out. Returns the number of segments passed.
    fn spare(
        &mut self,
        passage: &SegmentPassage,
        index: u32,
        segment: u32,
        limit: Time,
        channel: &mut Channel<'_>,
    ) -> u32 {
        if !self.is_plain() {
            return 0;
        }
        let most = self.lacking.unsent_from(segment, passage.ahead(index, limit));
        let most = most.min(self.lacking.unsent().saturating_sub(1));
        let spared = channel.losses.spared(passage.octets.0, most);
        if let Some(run) = Run::new(segment, spared) {
            self.lacking.sent_to_all(run);
            if self.reports_losses(passage) {
                self.heard.sent_to_all(run);
            }
            self.last_heard = passage.at(index + spared - 1);
        }
        spared
    }

    /// Returns `true` if receivers may report losses of this run when they register.
    fn reports_losses(&self, passage: &SegmentPassage) -> bool {
        let registers = |terms: &Terms| terms.model != GroupModel::OpenUnlimited;
        passage.pass == 1 && self.terms.as_ref().is_some_and(registers)
    }

    /// Handles one segment at the fan-out. Returns `true` if a timer may have moved.
    fn segment(
        &mut self,
        passage: &SegmentPassage,
        index: u32,
        segment: u32,
        channel: &mut Channel<'_>,
    ) -> bool {
        let (at, octets) = (passage.at(index), passage.octets(index));
        if self.lacking.is_unsent(segment) {
            let plain = self.is_plain();
            self.draw(at, octets, Among::All, channel);
            if !plain {
                self.first_data(at);
                self.add_deaf(None);
            }
            self.lacking.sent_first(segment, &self.lost);
            if self.reports_losses(passage) {
                self.heard.sent(segment, &self.lost, None);
            }
            if self.lacking.unsent() > 0 {
                return !plain;
            }
            self.got.clear();
            self.got.extend((0..self.receivers).filter(|&receiver| self.lacking.count(receiver) == 0));
            self.complete(at);
            return true;
        }
        let mut who = core::mem::take(&mut self.who);
        self.lacking.who(segment, &mut who);
        if let Some(parity) = &self.parity {
            parity.leave_out_rebuilt(&mut who);
        }
        let plain = self.offer(at, octets, &who, channel);
        if self.reports_losses(passage) {
            self.heard.sent(segment, &self.lost, Some(&who));
        }
        self.got.clear();
        let mut lost = self.lost.iter().copied().peekable();
        self.got.extend(who.iter().copied().filter(|&receiver| lost.next_if_eq(&receiver).is_none()));
        self.who = who;
        self.lacking.sent_again(segment, &self.got, &self.lost);
        if let (Some(parity), Some(terms)) = (&mut self.parity, &self.terms) {
            parity.filled(terms.geometry().block_of(segment), &self.got, &mut self.lacking);
        }
        self.complete_whole(at) || !plain
    }

    /// Handles one parity symbol at the fan-out. Returns `true` if a timer may have moved.
    fn symbol(&mut self, at: Time, octets: u64, id: SymbolId, channel: &mut Channel<'_>) -> bool {
        let mut who = core::mem::take(&mut self.who);
        if let Some(parity) = &self.parity {
            parity.who(id.block, id.symbol, &mut who);
        }
        let plain = self.offer(at, octets, &who, channel);
        if let Some(parity) = &mut self.parity {
            let reach = Reach { who: &who, lost: &self.lost };
            parity.sent(id, reach, &mut self.lacking, &mut self.got);
        }
        self.who = who;
        self.complete_whole(at) || !plain
    }

    /// Handles a datagram that is useful to the receivers in `who`; those that do not get it are then in `self.lost`.
    /// Returns `true` if it moves no timer, which is so if no receiver waits for a confirmation.
    fn offer(&mut self, at: Time, octets: u64, who: &[u32], channel: &mut Channel<'_>) -> bool {
        let plain = self.is_plain();
        if plain {
            self.draw(at, octets, Among::These(who), channel);
        } else {
            // The first DTU that a receiver hears may change its state, even if the receiver does not lack it.
            self.draw(at, octets, Among::All, channel);
            self.first_data(at);
            self.add_deaf(Some(who));
        }
        plain
    }

    /// Returns `true` if every receiver that lacks a segment takes data, and data changes the state of none.
    fn is_plain(&mut self) -> bool {
        let config = &self.config;
        let survey = self.cohorts.survey(|control| control.takes_data(config).is_ok());
        survey.deaf.is_empty() && !survey.unconfirmed
    }

    /// Completes, at `at`, the receivers in `self.got` that lack nothing any more. Returns `true` if there are any.
    fn complete_whole(&mut self, at: Time) -> bool {
        if self.lacking.unsent() > 0 {
            return false;
        }
        let lacking = &self.lacking;
        self.got.retain(|&receiver| lacking.count(receiver) == 0);
        let some = !self.got.is_empty();
        if some {
            self.complete(at);
        }
        some
    }

    /// Adds the receivers that take no data to those that lost it, and removes those that are not in `among`.
    fn add_deaf(&mut self, among: Option<&[u32]>) {
        let config = &self.config;
        let survey = self.cohorts.survey(|control| control.takes_data(config).is_ok());
        self.lost.extend_from_slice(&survey.deaf);
        self.lost.sort_unstable();
        self.lost.dedup();
        if let Some(among) = among {
            self.lost.retain(|receiver| among.binary_search(receiver).is_ok());
        }
    }

    /// Starts the repetition of registrations at unconfirmed receivers that hear their first data.
    fn first_data(&mut self, at: Time) {
        for cohort in self.cohorts.ids() {
            let Some(mut control) = self.cohorts.control(cohort).filter(|c| c.is_changed_by_data()).cloned()
            else {
                continue;
            };
            control.data_before_confirmation(at, &self.config);
            self.step(cohort, control);
        }
    }

    /// Completes the receivers in `got` at `at`, and verifies the product at once.
    fn complete(&mut self, at: Time) {
        let got = core::mem::take(&mut self.got);
        // Receivers of one cohort move to one cohort.
        let mut founded: Vec<(CohortId, CohortId, Action)> = Vec::new();
        for &receiver in &got {
            let from = self.cohorts.of(receiver);
            let known =
                founded.iter().find(|(old, _, _)| *old == from).map(|(_, to, act)| (*to, act.clone()));
            let (to, act) = if let Some(known) = known {
                known
            } else {
                let Some((to, act)) = self.completed_control(at, from) else { continue };
                founded.push((from, to, act.clone()));
                (to, act)
            };
            self.completed[receiver as usize] = at;
            self.cohorts.shift(receiver, to);
            self.say_to_sender(at, receiver, &act);
        }
        self.got = got;
    }

    fn completed_control(&mut self, at: Time, from: CohortId) -> Option<(CohortId, Action)> {
        let mut control = self.cohorts.control(from)?.clone();
        if !control.complete() {
            return None;
        }
        let act = control.verified(at, self.terms.as_ref()?, &self.config);
        let to = if matches!(act, Action::End(_)) { FINISHED } else { self.cohorts.found(Some(control)) };
        Some((to, act))
    }

    pub(super) fn say_done(&mut self, at: Time, receiver: u32) {
        let Some(terms) = &self.terms else { return };
        let duration_s = self.cohorts.control(self.cohorts.of(receiver)).map_or(0, |c| seconds(at, c));
        let done = Done {
            server: terms.server,
            client: self.id(receiver),
            naked_dtus: self.naked[receiver as usize],
            duration_s,
            round: self.round_of(receiver),
        };
        if let Some(proofs) = &mut self.proofs {
            proofs.note_report(receiver, &done);
        }
        self.say(at, receiver, Body::Done(done));
    }
}
