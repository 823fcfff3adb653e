//! Turns of receivers where not all may speak at once ([`turn`](crate::turn)).
//!
//! In a round the sender calls one range of places after the other, as fast as the return channel carries the answers.
//! Receivers that have not registered do so; receivers that are complete report it. The first round also counts them: it
//! begins with a small part of the places, and the part grows until some answer. Answers of the ranges called so far
//! tell how many there are. A round begins anew when most receivers have become complete, and when the one before is
//! over, until one brings no answer.
//!
//! | file | contents |
//! |---|---|
//! | `allowance.rs` | the return's rate, and what may be asked for |
//! | `foresight.rs` | parity ahead for many receivers |
//! | `polls.rs` | requests that a part of the receivers answer |

mod allowance;
mod foresight;
mod polls;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::{BitRate, Message as _, Span, Time};

use super::{Phase, Sender, Timer};
use crate::config::{Group, Pace, PassWait};
use crate::message::{Body, ClientId, Completion, Message};
use crate::turn::{HeardData, PLACES, Turn, place};

use allowance::Allowance;
use foresight::LossSample;
use polls::Polls;

/// Octets of a registration, and of a report with it, with their headers.
const REGISTRATION: f64 = 116.0;
const REPORT: f64 = 216.0;
/// Number of receivers that an open group is taken to have, at most, before any is known.
const MOST: f64 = 131_072.0;
/// Divisor of the sender's rate: the rate of the return before it is known.
const RETURN: f64 = 30.0;
/// Shortest and longest time from one call to the next.
const STEP: (Span, Span) = (Span::from_millis(100), Span::from_secs(1));
/// Round trip that is assumed before the first answer.
const TRIP: f64 = 0.6;
/// Number of receivers that may always speak at once.
const HANDFUL: f64 = 4.0;
/// Age up to which announcements repeat a call, so that the first ones all carry the first call.
const FRESH: Span = Span::from_millis(50);
/// Number of answers from which the number of receivers is estimated.
const FEW: f64 = 3.0;
/// Part of the places whose answers outweigh what was expected.
const SURE: f64 = 0.05;
/// Number of settled ranges of which late answers count.
const REMEMBERED: usize = 64;
/// Octets of a datagram's headers.
pub(super) const HEADERS: u32 = 28;
/// Time from one round of registrations to the next.
const PAUSE: Span = Span::from_secs(5);

/// Range of places that was called.
#[derive(Clone, Copy, Debug)]
struct Called {
    first: u64,
    end: u64,
    at: Time,
    spread: Span,
    /// Number of answers that were expected, and of those that came.
    expected: f64,
    heard: f64,
}

/// State of the turns.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the round")]
#[derive(Clone, Debug)]
pub(super) struct Turns {
    on: bool,
    /// `true` while the round shows for the first time how many receivers there are.
    counts: bool,
    /// `true` while a queue on the return empties that answers have filled.
    drains: bool,
    allowance: Allowance,
    round: u16,
    /// First place that the round has not called yet.
    next: u64,
    /// Ranges of the round whose answers may still come, the oldest first.
    called: VecDeque<Called>,
    /// Settled ranges of the round, of which late answers still count.
    past: VecDeque<Called>,
    /// Places of the round's other ranges, and the answers from them.
    settled: f64,
    answers: f64,
    /// Number of receivers that were expected to speak when the round began, and of those that may come at most.
    prior: f64,
    most: f64,
    /// `true` if the round began when the first pass was over.
    reports: bool,
    /// Largest number that answered in a round before.
    counted: f64,
    /// Last call, and its time.
    last: Option<Turn>,
    called_at: Time,
    /// Shortest time from a call to its answer.
    shortest: Option<Span>,
    /// Receivers whose reports have not been confirmed.
    unconfirmed: Vec<ClientId>,
    losses: LossSample,
    polls: Polls,
    /// Time since which rounds bring no answer.
    quiet_since: Option<Time>,
}

impl Turns {
    pub(super) fn new(pace: Pace, return_rate: Option<BitRate>) -> Self {
        let assumed = match pace {
            Pace::Rate { rate, .. } => rate.as_bps() as f64 / 8.0 / RETURN,
            // There are no turns then.
            Pace::Window { .. } => 0.0,
        };
        let rate = return_rate.map_or(assumed, |rate| rate.as_bps() as f64 / 8.0);
        Self {
            on: false,
            counts: true,
            drains: false,
            allowance: Allowance::new(rate, return_rate.is_some()),
            round: 0,
            next: 0,
            called: VecDeque::new(),
            past: VecDeque::new(),
            settled: 0.0,
            answers: 0.0,
            prior: MOST,
            most: MOST,
            reports: false,
            counted: 0.0,
            last: None,
            called_at: Time::ZERO,
            shortest: None,
            unconfirmed: Vec::new(),
            losses: LossSample::default(),
            polls: Polls::default(),
            quiet_since: None,
        }
    }

    /// Returns the number of answers that the round's settled ranges leave possible, for all places.
    fn upper(&self) -> f64 {
        if self.settled == 0.0 {
            return self.prior;
        }
        let heard = self.answers;
        let upper = ((heard + 2.0 + 2.0 * libm::sqrt(heard)) * PLACES as f64 / self.settled).min(MOST * 32.0);
        // The first ranges may have been called too early, or have lost the call.
        if self.settled < PLACES as f64 * SURE && !self.counts { upper.max(self.prior) } else { upper }
    }

    /// Time from a call until its answers have come.
    fn settles_in(&self, spread: Span) -> Span {
        let trip = self.shortest.unwrap_or(Span::from_secs_f64(TRIP * 2.0));
        trip + spread + Span::from_millis(100)
    }

    /// Moves the ranges whose answers have come to the settled ones.
    fn settle(&mut self, now: Time) {
        while let Some(&range) = self.called.front()
            && now >= range.at + self.settles_in(range.spread)
        {
            self.called.pop_front();
            if self.past.len() == REMEMBERED {
                self.past.pop_front();
            }
            self.past.push_back(range);
            self.settled += (range.end - range.first) as f64;
            self.answers += range.heard;
            self.allowance.take((range.heard - range.expected).min(0.0) * REPORT);
        }
    }

    /// Begins a round in which about `prior` receivers will speak.
    fn begin_round(&mut self, prior: f64, reports: bool) {
        if self.settled > 0.0 {
            // The ranges that were called stand for all.
            self.counted = self.counted.max(self.answers * PLACES as f64 / self.settled);
        }
        self.counts = false;
        self.round = self.round.wrapping_add(1);
        (self.next, self.settled, self.answers) = (0, 0.0, 0.0);
        (self.prior, self.reports) = (prior.max(1.0), reports);
        self.called.clear();
        self.past.clear();
    }

    /// Returns the time from one call to the next.
    fn step(&self) -> Span {
        let left = (PLACES - self.next) as f64 / PLACES as f64 * self.upper() * REPORT;
        let time = left / self.allowance.per_second().max(1.0) / 20.0;
        if self.is_blind() { STEP.0 } else { Span::from_secs_f64(time.min(60.0)).clamp(STEP.0, STEP.1) }
    }

    /// Returns `true` if too few receivers have answered to tell how many there are.
    fn is_blind(&self) -> bool {
        let heard = self.answers + self.called.iter().map(|range| range.heard).sum::<f64>();
        heard < FEW && self.counts && self.counted == 0.0
    }

    /// Calls the next places, as many as the allowance admits.
    fn call(&mut self, now: Time, octets: f64) -> Option<Turn> {
        self.settle(now);
        let level = self.allowance.level(now);
        let left = PLACES - self.next;
        self.drains &= !self.allowance.is_idle(now);
        if left == 0 || level <= 0.0 || self.drains {
            return None;
        }
        let upper = self.upper();
        let fits = level / octets * PLACES as f64 / upper;
        // Before a few answers have come, the called part grows by a factor that the return can still bear.
        let blind = self.is_blind();
        let places = if blind && self.next > 0 {
            let most = (self.allowance.rate() * 2.0 / (5.0 * octets)).clamp(4.0, 64.0);
            self.next as f64 * (libm::pow(most, STEP.0.as_secs_f64() / TRIP) - 1.0)
        } else if blind {
            fits / 4.0
        } else {
            // A sparse beginning must not mislead.
            fits.min((self.next as f64 * 4.0).max(fits / 4.0))
        };
        let count = (places.max(1.0) as u64).min(left);
        let (first, end) = (self.next, self.next + count);
        let expected = if blind { 0.0 } else { upper * count as f64 / PLACES as f64 };
        self.allowance.take(expected * octets);
        let few = expected * octets < self.allowance.rate() / 20.0;
        let spread = if few && self.shortest.is_some() { Span::ZERO } else { self.step() };
        self.called.push_back(Called { first, end, at: now, spread, expected, heard: 0.0 });
        self.next = end;
        let spread_ms = u16::try_from(spread.as_millis()).unwrap_or(u16::MAX);
        let turn = Turn { round: self.round, spread_ms, first: first as u32, last: (end - 1) as u32 };
        (self.last, self.called_at) = (Some(turn), now);
        self.last
    }

    /// Returns `true` if all places were called, and their answers have come.
    fn is_round_over(&self) -> bool {
        self.next == PLACES && self.called.is_empty()
    }
}

impl Sender {
    /// Begins with turns, if so many receivers may come that they must not all speak at once.
    pub(super) fn begin_turns(&mut self, now: Time) {
        let may_come = match &self.config.group {
            Group::Closed(listed) => listed.len() as f64,
            Group::OpenLimited { limit } => f64::from(*limit).min(MOST),
            Group::OpenUnlimited => return,
        };
        // Without parity ahead, each receiver has to say what it lacks. Turns then only help if the return's rate is known.
        let foresees = self.config.parity_ahead && self.config.parity_symbols > 0;
        let known = foresees || self.config.return_rate.is_some();
        // Where receivers set the pace, all of them answer anyway.
        let paced = matches!(self.config.pace, Pace::Rate { .. });
        let prompt = self.config.pass_wait == PassWait::Draft && paced && known;
        if !self.config.turns || !prompt || may_come * REGISTRATION <= self.turns.allowance.per_second() {
            return;
        }
        self.turns.on = true;
        (self.turns.prior, self.turns.most) = (may_come, may_come);
        if matches!(self.config.group, Group::Closed(_)) {
            self.turns.counted = may_come;
        }
        self.turns.call(now, REGISTRATION);
        self.timers.set(Timer::Turn, now + STEP.0);
    }

    /// Returns `true` if receivers speak by turns.
    pub(super) fn by_turns(&self) -> bool {
        self.turns.on
    }

    /// Returns the call that an announcement at `now` carries: the one that has just been made, or else a call to nobody.
    /// Whoever answered an older call late would seem to have waited in a queue.
    pub(super) fn announced_turn(&self, now: Time) -> Option<Turn> {
        let last = self.turns.last.filter(|_| self.turns.on)?;
        let fresh = now.since(self.turns.called_at) < FRESH;
        Some(if fresh { last } else { Turn { first: 0, last: 0, ..last } })
    }

    /// Calls the next receivers, and confirms reports.
    pub(super) fn next_turn(&mut self, now: Time) {
        if !self.turns.on
            || !matches!(self.phase, Phase::Announcing | Phase::Joining | Phase::Sending | Phase::Waiting)
        {
            return;
        }
        if matches!(self.config.group, Group::Closed(_)) && self.awaits_latecomers() {
            // Whoever was not called yet had no chance to come.
            self.timers.set(Timer::Latecomers, now + self.config.silence);
        }
        self.turns.settle(now);
        self.settle_polls(now);
        let mut wait = self.turns.step();
        if self.turns.is_round_over() {
            if self.ends_turns(now) {
                return;
            }
            wait = self.follow_round(now, wait);
        }
        let registered = f64::from(self.members.active()) / self.group_size().max(1.0);
        let octets =
            if self.turns.reports { REPORT - REGISTRATION * registered.min(1.0) } else { REGISTRATION };
        let turn = self.turns.call(now, octets);
        self.confirm_by_turns(turn);
        self.timers.set(Timer::Turn, now + wait);
    }

    /// Begins the round after one that is over. Returns the time until its first call.
    fn follow_round(&mut self, now: Time, step: Span) -> Span {
        let quiet = self.turns.answers == 0.0;
        let since = self.turns.quiet_since.filter(|_| quiet).unwrap_or(now);
        self.turns.quiet_since = quiet.then_some(since);
        let prior = (self.turns.counted.max(self.turns.answers) / 10.0).max(self.turns.answers / 4.0);
        let reports = self.turns.reports || self.progress.pass > 1 || self.phase == Phase::Waiting;
        self.turns.begin_round(prior, reports);
        // Confirmations of the last registrations are still to come.
        if reports { step } else { PAUSE }
    }

    /// Ends the turns if few receivers are left that can still speak. Returns `true` if they are over.
    fn ends_turns(&mut self, now: Time) -> bool {
        // Their answers take a second of the return.
        let at_once = (self.turns.allowance.per_second() / REPORT).max(HANDFUL);
        let left = f64::from(self.members.active() + self.members.awaited());
        let few = match self.phase {
            // All were called, and all that answered may speak at once from now on.
            Phase::Announcing | Phase::Joining | Phase::Sending
                if self.full_pass() || self.progress.pass == 0 =>
            {
                let all = self.turns.counted.max(self.members.len() as f64).max(self.turns.answers);
                all <= at_once && !self.turns.reports
            }
            Phase::Waiting => {
                let quiet = self.turns.reports && self.turns.answers == 0.0 && self.is_quiet();
                let long =
                    self.turns.quiet_since.is_some_and(|since| now.since(since) >= self.config.silence);
                quiet && (left <= at_once || long)
            }
            _ => false,
        };
        if few {
            self.turns.on = false;
            self.confirm_by_turns(None);
            self.announce(now);
            self.await_untold(now);
            if self.phase == Phase::Waiting {
                self.timers.set(Timer::StatusRetry, now);
            }
        }
        few
    }

    /// Begins a round of reports, because the first pass is over.
    pub(super) fn ask_for_reports(&mut self, now: Time) {
        if self.turns.on && !self.turns.reports {
            let (all, unknown) = (self.group_size(), self.turns.is_blind() || self.turns.drains);
            self.turns.begin_round(all, true);
            self.turns.counts = unknown;
            // The last data is still on its way.
            self.timers.set(Timer::Turn, now + STEP.0 * 2);
        }
    }

    /// Sends a call and the confirmations that are due.
    fn confirm_by_turns(&mut self, turn: Option<Turn>) {
        let due = core::mem::take(&mut self.turns.unconfirmed);
        let room = (self.config.datagram - crate::wire::HEADER_LEN - 20) / 4;
        let pieces = due.chunks(room).map(<[ClientId]>::to_vec);
        let mut pieces: Vec<Vec<ClientId>> = pieces.collect();
        if pieces.is_empty() && turn.is_some() {
            pieces.push(Vec::new());
        }
        for hosts in pieces {
            for host in &hosts {
                if let Some(member) = self.members.get_mut(*host) {
                    member.confirmations += 1;
                }
            }
            self.queue(Body::Completion(Completion { hosts: Some(hosts), turn }), self.config.private);
        }
    }

    /// Confirms the reports that are due, because no further call follows.
    pub(super) fn confirm_last_turns(&mut self) {
        if self.turns.on {
            self.confirm_by_turns(None);
            self.turns.on = false;
        }
    }

    /// Counts the octets of a message that came.
    pub(super) fn count_arrival(&mut self, now: Time, message: &Message) {
        if self.turns.on {
            self.turns.allowance.arrived(now, message.wire_len(0) as u32 + HEADERS);
        }
    }

    /// Confirms the report of `client` with the next call.
    pub(super) fn confirm_by_turn(&mut self, client: ClientId) {
        if !self.turns.unconfirmed.contains(&client) {
            self.turns.unconfirmed.push(client);
        }
    }

    /// Records that `client` spoke, perhaps because it was called.
    ///
    /// Unproved messages count too, because calls must not exceed what the return carries until proofs come. A forged
    /// one only slows calls down.
    pub(super) fn spoke(&mut self, now: Time, client: ClientId, round: Option<u16>) {
        if !self.turns.on {
            return;
        }
        // A report follows a registration, or is a copy.
        let again = self.members.get(&client).is_some_and(|member| member.spoke == round);
        if round != Some(self.turns.round) || again {
            return;
        }
        if let Some(member) = self.members.get_mut(client) {
            member.spoke = round;
        }
        let place = u64::from(place(self.config.transmission, self.turns.round, client));
        let of = |range: &&mut Called| (range.first..range.end).contains(&place);
        let turns = &mut self.turns;
        let (since, spread) = if let Some(range) = turns.called.iter_mut().find(of) {
            range.heard += 1.0;
            if range.heard > range.expected {
                turns.allowance.take(REGISTRATION);
            }
            (now.since(range.at), range.spread)
        } else if let Some(range) = turns.past.iter_mut().find(of) {
            turns.answers += 1.0;
            turns.allowance.take(REGISTRATION);
            (now.since(range.at), range.spread)
        } else {
            return;
        };
        let shortest = self.turns.shortest.map_or(since, |shortest| shortest.min(since));
        if self.turns.shortest != Some(shortest) {
            self.turns.shortest = Some(shortest);
            if self.config.measure_round_trip {
                self.round_trip.sample(now, shortest.max(Span::from_micros(100)));
            }
        }
        let late = since.saturating_sub(spread).saturating_sub(shortest);
        if self.turns.allowance.judge(now, late) && self.turns.counts {
            // The return has lost some of the answers, so their number tells nothing.
            self.turns.answers = 0.0;
            self.turns.settled = 0.0;
            let (most, reports) = (self.turns.most, self.turns.reports);
            self.turns.begin_round(most, reports);
            (self.turns.counts, self.turns.drains) = (true, true);
            self.turns.polls = Polls::default();
        }
    }

    /// Records the losses that the member `client` reports, once. Parity follows from them, so they are proved.
    pub(super) fn note_losses(&mut self, client: ClientId, heard: Option<&HeardData>) {
        let member = self.members.get_mut(client).filter(|member| self.turns.on && !member.told_losses);
        if let (Some(member), Some(heard)) = (member, heard) {
            member.told_losses = true;
            self.turns.losses.note(heard, self.geometry.segments());
        }
    }

    /// Returns the number of receivers, as far as it is known, and not too few.
    pub(super) fn group_size(&self) -> f64 {
        let turns = &self.turns;
        let counted = turns.counted.max(self.members.len() as f64);
        if turns.counts { turns.upper().max(counted) } else { counted * 1.1 }
    }

    /// Returns the number of receivers that probably lack some of a block of `len` DTUs behind which `sent` parity
    /// symbols were sent.
    pub(super) fn lacking_behind(&self, len: u32, sent: u32) -> f64 {
        self.turns.losses.lacking(self.group_size(), len, sent)
    }

    /// Returns the number of parity symbols that follow a block of `len` DTUs of the first pass, at most `most`.
    pub(super) fn symbols_for_all(&self, len: u32, most: u32) -> u32 {
        let most = most.min(len / 2);
        // Before anything is known, a few symbols serve most groups.
        let size =
            if self.turns.answers < 3.0 && self.turns.counted == 0.0 { 100.0 } else { self.group_size() };
        self.turns.losses.symbols(size, len, most)
    }
}
