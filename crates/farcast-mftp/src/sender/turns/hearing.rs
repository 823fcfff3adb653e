//! Answers to calls.

use farcast_core::{Message as _, Span, Time};

use super::super::Sender;
use super::{Called, HEADERS};
use crate::message::{Body, ClientId, Message};
use crate::turn::{HeardData, place};

/// Number of receivers of a round that are remembered to have spoken.
pub(super) const SPEAKERS: usize = 1 << 18;

/// Delay that an answer of an earlier round has at least.
const OVERDUE: Span = Span::from_millis(1200);
/// Number of times that the receivers are counted anew at most.
const RECOUNTS: u8 = 2;
/// Number of answers that are compared with those that were likely, and the part of them that shows losses.
const COMPARED: f64 = 50.0;
const DROPPED: f64 = 0.6;

impl Sender {
    /// Counts the octets of a message that came.
    pub(in crate::sender) fn count_arrival(&mut self, now: Time, message: &Message) {
        if self.turns.on {
            let octets = message.wire_len(0) as u32 + HEADERS;
            self.turns.allowance.arrived(now, octets);
            if matches!(message.body, Body::Registration(_) | Body::Done(_)) {
                self.turns.said += f64::from(octets);
            }
        }
    }

    /// Returns `true` if a message that names `round` answers a call of the present round. A Done that somebody has
    /// recorded and sends again names an earlier one.
    pub(in crate::sender) fn is_of_round(&self, round: Option<u16>) -> bool {
        round == Some(self.turns.round)
    }

    /// Records that a message has brought something new.
    pub(in crate::sender) fn note_news(&mut self) {
        self.turns.news = true;
    }

    /// Returns `true` if the first message of `client` in the present round would be one of the answers that were asked for.
    pub(in crate::sender) fn expects(&self, client: ClientId, round: Option<u16>) -> bool {
        let turns = &self.turns;
        let is_full = turns.speakers.len() >= SPEAKERS;
        if !turns.on || round != Some(turns.round) || is_full || turns.speakers.contains(&client) {
            return false;
        }
        let place = u64::from(place(self.config.transmission, turns.round, client));
        let mut ranges = turns.called.iter().chain(&turns.past);
        ranges
            .find(|range| (range.first..range.end).contains(&place))
            .is_some_and(|range| range.heard < range.expected)
    }

    /// Records that `client` spoke, perhaps because it was called. Only its first message of a round counts: others are
    /// copies, or follow the sender's answer to the first.
    ///
    /// Unproved messages count too, because calls must not exceed what the return carries until proofs come.
    pub(in crate::sender) fn spoke(&mut self, now: Time, client: ClientId, round: Option<u16>) {
        let turns = &mut self.turns;
        if !turns.on || round.is_none() || turns.speakers.len() >= SPEAKERS || !turns.speakers.insert(client)
        {
            return;
        }
        if round != Some(turns.round) {
            // The answer belongs to a round that is over: it has waited for a long time.
            return self.judge(now, OVERDUE * 2, OVERDUE, OVERDUE);
        }
        let place = u64::from(place(self.config.transmission, turns.round, client));
        let of = |range: &&mut Called| (range.first..range.end).contains(&place);
        let (since, spread) = if let Some(range) = turns.called.iter_mut().find(of) {
            range.heard += 1.0;
            if range.heard > range.expected {
                turns.allowance.take(range.octets);
            }
            (now.since(range.at), range.spread)
        } else if let Some(range) = turns.past.iter_mut().find(of) {
            turns.answers += 1.0;
            range.heard += 1.0;
            if range.heard > range.expected || range.compared {
                turns.allowance.take(range.octets);
            }
            (now.since(range.at), range.spread)
        } else {
            return;
        };
        let shortest = turns.shortest.map_or(since, |shortest| shortest.min(since));
        if turns.shortest != Some(shortest) {
            turns.shortest = Some(shortest);
            if self.config.measure_round_trip {
                self.round_trip.sample(now, shortest.max(Span::from_micros(100)));
            }
        }
        turns.patience = Span::ZERO;
        let late = since.saturating_sub(spread).saturating_sub(shortest);
        self.judge(now, since, late, shortest);
    }

    /// Judges an answer to a call `since` ago that came `late` after the shortest possible time, where answers take about
    /// `trip`.
    fn judge(&mut self, now: Time, since: Span, late: Span, trip: Span) {
        if !self.turns.allowance.is_outdated(now, since) {
            self.turns.drains |= self.turns.allowance.judge(now, late, trip);
        }
    }

    /// Lowers the return's rate if far fewer receivers answer than the ranges before let expect: a short queue on the
    /// return drops answers and hardly delays them.
    pub(super) fn judge_losses(&mut self, now: Time) {
        let turns = &mut self.turns;
        turns.compare(now);
        let part = turns.heard / turns.likely.max(1.0);
        if turns.allowance.is_given() || turns.likely < COMPARED || part > DROPPED {
            return;
        }
        turns.allowance.lose(now, part);
        (turns.likely, turns.heard) = (0.0, 0.0);
        self.count_anew();
    }

    /// Begins to count the receivers anew. The return has lost some of their answers, so the number of answers tells
    /// nothing.
    fn count_anew(&mut self) {
        let turns = &mut self.turns;
        if turns.recounts == RECOUNTS {
            return;
        }
        turns.recounts += 1;
        // More than those that have answered may come, but not fewer.
        let (most, reports) = (turns.upper().max(turns.most.min(super::MOST)), turns.reports);
        (turns.answers, turns.settled) = (0.0, 0.0);
        turns.begin_round(most, reports);
        (turns.counts, turns.drains) = (true, true);
        turns.polls.forget();
    }

    /// Records the losses that the member `client` reports, once. Parity follows from them, so they are proved.
    pub(in crate::sender) fn note_losses(&mut self, client: ClientId, heard: Option<&HeardData>) {
        let member = self.members.get_mut(client).filter(|member| self.turns.on && !member.told_losses);
        // Before the first data a receiver has nothing to report.
        let heard = heard.filter(|heard| heard.sent > 0);
        if let (Some(member), Some(heard)) = (member, heard) {
            member.told_losses = true;
            // What a receiver held before it came did not come, and is not missed.
            let missed = if member.held > 0 { 0 } else { heard.missed };
            self.turns.losses.note(&HeardData { missed, ..*heard }, self.geometry.segments());
        }
    }
}
