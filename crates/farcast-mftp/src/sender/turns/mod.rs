//! Turns of receivers where not all may speak at once ([`turn`](crate::turn)).
//!
//! In a round the sender calls one range of places after the other, as fast as the return channel carries the answers.
//! Receivers that have not registered do so; receivers that are complete report it. The first round also counts them: it
//! begins with a small part of the places, and the part grows until some answer. Answers of the ranges called so far
//! tell how many there are. A round of reports begins when the first pass is over. Another round follows each, until one
//! brings nothing new.
//!
//! | file | contents |
//! |---|---|
//! | `allowance.rs` | the return's rate, and what may be asked for |
//! | `foresight.rs` | parity ahead for many receivers |
//! | `hearing.rs` | answers to calls |
//! | `naming.rs` | requests that name receivers |
//! | `polls.rs` | requests that a part of the receivers answer |
//! | `rounds.rs` | one round after the other, and the end of the turns |

mod allowance;
mod foresight;
mod hearing;
mod naming;
mod polls;
mod rounds;

use alloc::collections::{BTreeSet, VecDeque};

use farcast_core::{BitRate, Span, Time};

use super::replies::for_called;
use super::{Sender, Timer};
use crate::config::{Group, Pace, PassWait};
use crate::message::ClientId;
use crate::turn::{PLACES, Turn};

use allowance::{Allowance, Tokens};
use foresight::LossSample;
use polls::Polls;

/// Octets of a registration with its headers, and of a message that reports the complete product.
const FIRST: f64 = 116.0;
const REPORT: f64 = 100.0;
/// Octets of a registration without a proof and a report with one, which follow each other where a sender asks for
/// proofs, and of the report alone.
const FIRST_PROVED: f64 = 240.0;
const REPORT_PROVED: f64 = 112.0;
/// Octets of the token with which a sender asks for a proof, with its headers.
const GRANT: f64 = 80.0;
/// Octets of a registration and a Done, where receivers do not take turns.
const APART: f64 = 216.0;
/// Number of receivers that an open group is taken to have, at most, before any is known.
const MOST: f64 = 131_072.0;
/// Divisor of the sender's rate: the rate of the return before it is known.
const RETURN: f64 = 30.0;
/// Shortest and longest time from one call to the next.
const STEP: (Span, Span) = (Span::from_millis(100), Span::from_millis(500));
/// Bounds of the round trip that is assumed before the first answer. It is the sending time of `TRIP_OCTETS` at the
/// sender's rate, because many narrow links request capacity before each answer. A longer round trip that the user has
/// set counts instead.
const TRIP: (Span, Span) = (Span::from_millis(600), Span::from_secs(2));
const TRIP_OCTETS: f64 = 60_000.0;
const DEFAULT_TRIP: Span = Span::from_secs(1);
/// Number of round trips within which few receivers are counted.
const COUNTED_IN: u64 = 6;
/// Part of the sender's rate that calls without answers may take, and the octets of a call with its headers.
const CALLS: f64 = 0.1;
const CALL: f64 = 80.0;
/// Part of the return's rate that those who speak at once may take in a second.
const SPOKEN: f64 = 0.7;
/// Number of receivers that may always speak at once.
const HANDFUL: f64 = 4.0;
/// Age up to which announcements repeat a call, so that the first ones all carry the first call.
const FRESH: Span = Span::from_millis(50);
/// Number of answers from which the number of receivers is estimated.
const FEW: f64 = 3.0;
/// Number of answers from which those of other ranges are predicted.
const TELLING: f64 = 20.0;
/// Minimum share of the counted receivers that has yet to speak. Below it, the count does not predict the answers of a
/// round. It is more than the quarter that may always speak again.
const CREDIBLE: f64 = 0.3;
/// Part of the receivers counted before that answer at least, unless their answers are lost.
const PRESENT: f64 = 0.5;
/// Number of answers that may be outstanding, as a multiple of those that the return carries in a round trip and a
/// second.
const OUTSTANDING: f64 = 1.5;
/// Number of receivers from which the length of their answers is measured.
const MEASURED: usize = 50;
/// Time beyond two round trips for which answers count as outstanding.
const LATE: Span = Span::from_secs(4);
/// Longest time without any answer after which those that are outstanding count as lost.
const LONGEST_PATIENCE: Span = Span::from_secs(16);
/// Number of round trips after which an answer seldom comes any more.
const LATE_TRIPS: u64 = 3;
/// Least number of called receivers of a list from which their answers tell how many are there, and the part of them that
/// counts as nearly all.
const ENOUGH: f64 = 50.0;
const NEARLY: f64 = 0.95;
/// Share of the places that must be settled before their answers may lower the expected number.
const SURE: f64 = 0.05;
/// Limits of a later round of registrations: the called places are at most this multiple of the settled ones, or all
/// places divided by the second value if that is more.
const SURPRISE: (u64, u64) = (4, 32);
/// Part of the receivers that came late, from which a round of reports says nothing of losses on the return.
const MANY: f64 = 0.05;
/// Number of settled ranges of which late answers count.
const REMEMBERED: usize = 64;
/// Octets of a datagram's headers.
pub(super) const HEADERS: u32 = 28;

/// Range of places that was called.
#[derive(Clone, Copy, Debug)]
struct Called {
    first: u64,
    end: u64,
    at: Time,
    spread: Span,
    /// Maximum number of expected answers.
    expected: f64,
    /// Number of likely answers, judged by earlier ranges; 0 if these had too few.
    likely: f64,
    /// Octets of each answer.
    octets: f64,
    /// Number of answers that came.
    heard: f64,
    /// `true` if the answers that came are compared with the likely ones.
    compared: bool,
}

/// State of the turns.
///
/// | number | meaning |
/// |---|---|
/// | `most` | receivers that may come, by the limit of an open group or the list of a closed one |
/// | `prior` | receivers that may speak in this round, before any answer to it |
/// | `answers` | answers from the settled ranges of this round; `answers / settled` of all places is the estimate |
/// | `counted` | largest estimate of a round before |
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the round")]
#[derive(Clone, Debug)]
pub(super) struct Turns {
    on: bool,
    /// `true` if receivers have taken turns.
    taken: bool,
    /// `true` while the round shows for the first time how many receivers there are.
    counts: bool,
    /// Number of times that the receivers were counted anew.
    recounts: u8,
    /// `true` while a queue on the return empties that answers have filled.
    drains: bool,
    allowance: Allowance,
    /// `true` if the sender asks for proofs.
    proofs: bool,
    tokens: Tokens,
    round: u16,
    /// First place that the round has not called yet.
    next: u64,
    /// Ranges of the round whose answers may still come, the oldest first.
    called: VecDeque<Called>,
    /// Settled ranges of the round, of which late answers still count.
    past: VecDeque<Called>,
    /// Number of places in all settled ranges of the round, those in `past` included, and of answers from them.
    settled: f64,
    answers: f64,
    /// Answers that were likely from those ranges of the round for which that is known, and those that came.
    likely: f64,
    heard: f64,
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
    /// Shortest time from a call to its answer, and the one that is assumed before the first answer.
    shortest: Option<Span>,
    trip: Span,
    /// Shortest time from one call to the next.
    shortest_step: Span,
    /// Receivers whose reports have not been confirmed.
    unconfirmed: BTreeSet<ClientId>,
    /// Receivers that have spoken in this round, at most [`SPEAKERS`](hearing::SPEAKERS).
    speakers: BTreeSet<ClientId>,
    /// Time without any answer after which those that are outstanding count as lost.
    patience: Span,
    /// Octets of registrations and reports that have come in this round.
    said: f64,
    /// `true` if this round has brought something that the sender did not know: a member, a complete receiver, or one that
    /// lacks its confirmation. Forged and repeated messages bring nothing of this.
    news: bool,
    losses: LossSample,
    /// `true` if many receivers missed the beginning, so that their silence in a round of reports tells nothing.
    incomplete: bool,
    polls: Polls,
    /// Time since which rounds bring no answer.
    quiet_since: Option<Time>,
    /// Progress of asking unheard receivers by name, if they are.
    naming: Option<naming::Naming>,
    last_named: naming::LastNamed,
}

impl Turns {
    pub(super) fn new(pace: Pace, return_rate: Option<BitRate>, proofs: bool) -> Self {
        let octets = |rate: BitRate| rate.as_bps() as f64 / 8.0;
        let forward = match pace {
            Pace::Rate { rate, .. } => octets(rate),
            // There are no turns then.
            Pace::Window { .. } => 0.0,
        };
        Self {
            on: false,
            taken: false,
            counts: true,
            recounts: 0,
            drains: false,
            allowance: Allowance::new(return_rate.map(octets), forward / RETURN, forward),
            proofs,
            tokens: Tokens::new(if proofs { for_called(pace) / GRANT } else { f64::INFINITY }),
            round: 0,
            next: 0,
            called: VecDeque::new(),
            past: VecDeque::new(),
            settled: 0.0,
            answers: 0.0,
            likely: 0.0,
            heard: 0.0,
            prior: MOST,
            most: MOST,
            reports: false,
            counted: 0.0,
            last: None,
            called_at: Time::ZERO,
            shortest: None,
            trip: Span::from_secs_f64((TRIP_OCTETS / forward.max(1.0)).min(60.0)).clamp(TRIP.0, TRIP.1),
            shortest_step: STEP.0.max(Span::from_secs_f64((CALL / (forward * CALLS).max(1.0)).min(10.0))),
            unconfirmed: BTreeSet::new(),
            speakers: BTreeSet::new(),
            patience: Span::ZERO,
            said: 0.0,
            news: false,
            losses: LossSample::default(),
            incomplete: false,
            polls: Polls::default(),
            quiet_since: None,
            naming: None,
            last_named: naming::LastNamed::default(),
        }
    }

    /// Returns the octets that a receiver sends when it is called, on average, if a part of them has `registered`.
    fn octets(&self, registered: f64) -> f64 {
        let usual = match (self.reports, self.proofs) {
            (false, false) => FIRST,
            (false, true) => FIRST_PROVED,
            (true, false) => REPORT,
            (true, true) => FIRST_PROVED + (REPORT_PROVED - FIRST_PROVED) * registered,
        };
        // Names make answers longer. Somebody may repeat theirs, so the measure has limits.
        let measured =
            if self.speakers.len() >= MEASURED { self.said / self.speakers.len() as f64 } else { usual };
        measured.clamp(usual * 0.75, usual * 1.5)
    }

    /// Returns an upper bound for the number of answers in the whole round, judged by its settled ranges.
    fn upper(&self) -> f64 {
        if self.settled == 0.0 {
            return self.prior;
        }
        let heard = self.answers;
        let upper = ((heard + 2.0 + 2.0 * libm::sqrt(heard)) * PLACES as f64 / self.settled).min(self.most);
        // The first ranges may have been called too early, or have lost the call.
        if self.settled < PLACES as f64 * SURE && !self.counts {
            return upper.max(self.prior);
        }
        // If less than half of those counted answer, they are hardly gone: their answers are late, or have collided.
        if self.is_counted() && upper < self.known() * PRESENT { self.prior } else { upper }
    }

    /// Returns `true` if the number of receivers that are left to speak follows from those counted before.
    fn is_counted(&self) -> bool {
        !self.counts && self.counted > 0.0 && !self.incomplete && self.prior >= self.counted * CREDIBLE
    }

    /// Returns the number of receivers that have yet to speak, at most the number that was counted.
    fn known(&self) -> f64 {
        self.prior.min(self.counted)
    }

    /// Time from a call until its answers have come.
    fn settles_in(&self, spread: Span) -> Span {
        let trip = self.shortest.unwrap_or(self.trip * 2);
        trip + spread + Span::from_millis(100)
    }

    /// Moves the ranges whose answers have come to the settled ones.
    fn settle(&mut self, now: Time) {
        while let Some(&range) = self.called.front()
            && now >= range.at + self.settles_in(range.spread)
        {
            self.called.pop_front();
            if self.past.len() == REMEMBERED {
                let oldest = self.past.pop_front();
                self.compare_range(oldest.filter(|range| !range.compared));
            }
            self.past.push_back(range);
            self.settled += (range.end - range.first) as f64;
            self.answers += range.heard;
        }
    }

    /// Compares the answers from settled ranges with those that were asked for and that were likely, once even late ones
    /// have come.
    fn compare(&mut self, now: Time) {
        let trip = self.shortest.unwrap_or(self.trip);
        for index in 0..self.past.len() {
            let range = &mut self.past[index];
            if !range.compared && now >= range.at + trip * LATE_TRIPS + range.spread {
                range.compared = true;
                let range = *range;
                let missing = (range.expected - range.heard).max(0.0);
                self.allowance.give_back(now, missing * range.octets);
                self.tokens.give_back(now, missing);
                self.compare_range(Some(range));
            }
        }
    }

    fn compare_range(&mut self, range: Option<Called>) {
        if let Some(range) = range.filter(|range| range.likely > 0.0 && self.answers >= TELLING) {
            (self.likely, self.heard) = (self.likely + range.likely, self.heard + range.heard);
        }
    }

    /// Begins a round in which about `prior` receivers will speak.
    fn begin_round(&mut self, prior: f64, reports: bool) {
        if self.answers >= FEW || self.settled >= PLACES as f64 {
            // The ranges that were called stand for all.
            let estimate = self.answers * PLACES as f64 / self.settled;
            self.counted = self.counted.max(estimate.min(self.most));
        }
        self.counts = false;
        self.round = self.round.wrapping_add(1);
        (self.next, self.settled, self.answers) = (0, 0.0, 0.0);
        (self.likely, self.heard) = (0.0, 0.0);
        (self.prior, self.reports) = (prior.max(1.0), reports);
        self.called.clear();
        self.past.clear();
        self.speakers.clear();
        self.said = 0.0;
        self.news = false;
    }

    /// Returns the time from one call to the next.
    fn step(&self) -> Span {
        let left = (PLACES - self.next) as f64 / PLACES as f64 * self.upper() * self.octets(0.0);
        let time = left / self.allowance.per_second().max(1.0) / 20.0;
        if self.is_blind() {
            return self.shortest_step;
        }
        Span::from_secs_f64(time.min(60.0)).clamp(self.shortest_step, self.shortest_step.max(STEP.1))
    }

    /// Returns `true` if too few receivers have answered to tell how many there are.
    fn is_blind(&self) -> bool {
        let heard = self.answers + self.called.iter().map(|range| range.heard).sum::<f64>();
        heard < FEW && self.counts && self.counted == 0.0
    }

    /// Returns the number of answers for each place that are likely by what is known; 0 if too little is.
    fn density(&self) -> f64 {
        if self.is_counted() {
            return self.known() / PLACES as f64;
        }
        if self.answers >= FEW { self.answers / self.settled } else { 0.0 }
    }

    /// Returns `true` if so many answers are outstanding that no more should be asked for. Where receivers contend for
    /// the return, more would only collide with those. If nothing comes any more, they are taken to be lost.
    fn awaits_answers(&mut self, now: Time, octets: f64) -> bool {
        let trip = self.shortest.unwrap_or(self.trip);
        if self.allowance.is_idle(now, trip.max(self.patience)) {
            // Answers that have collided are said again: the fewer come, the longer they are left alone.
            if !self.past.is_empty() {
                self.patience = (self.patience * 2).min(LONGEST_PATIENCE).max(trip);
            }
            self.past.clear();
        }
        // Those counted before may be fewer by now.
        let density = self.density().min(self.upper() / PLACES as f64);
        let open = |range: &Called| density * (range.end - range.first) as f64 - range.heard;
        let recent = |range: &&Called| now.since(range.at) < LATE + trip * 2;
        let outstanding: f64 = self.called.iter().chain(&self.past).filter(recent).map(open).sum();
        let carried = self.allowance.per_second() * (trip.as_secs_f64() + 1.0) / octets;
        outstanding > (carried * OUTSTANDING).max(HANDFUL * 2.0)
    }

    /// Returns the octets that may be asked for now, which may be negative.
    fn level(&mut self, now: Time) -> f64 {
        let nothing_called = self.called.is_empty() && self.polls.is_settled();
        if nothing_called && self.allowance.is_idle(now, self.shortest.unwrap_or(self.trip)) {
            self.allowance.forgive();
        }
        self.allowance.level(now)
    }

    /// Returns the number of places that may be called now. Many receivers may have come since the last round, so the
    /// round grows with its settled places.
    fn cautious(&self) -> u64 {
        if self.counts || self.reports {
            return PLACES;
        }
        let settled = self.settled as u64;
        (settled * SURPRISE.0).max(PLACES / SURPRISE.1).saturating_sub(self.next - settled)
    }

    /// Calls the next places, as many as the allowance admits. A part of the receivers is `registered` and needs no token.
    fn call(&mut self, now: Time, octets: f64, registered: f64) -> Option<Turn> {
        self.settle(now);
        let level = self.level(now);
        let left = PLACES - self.next;
        self.drains &= !self.allowance.has_drained(now);
        let tokens = self.tokens.level(now);
        if left == 0 || level.min(tokens) <= 0.0 || self.drains || self.awaits_answers(now, octets) {
            return None;
        }
        let upper = self.upper();
        // Whoever is registered needs no token.
        let fits = (level / octets).min(tokens / (1.0 - registered).max(SURE)) * PLACES as f64 / upper;
        // Before a few answers have come, the called part grows by a factor that the return can still bear.
        let blind = self.is_blind();
        let places = if blind && self.next > 0 {
            let most = (self.allowance.probable_rate() * 2.0 / (5.0 * octets)).clamp(4.0, 64.0);
            self.next as f64
                * (libm::pow(most, self.shortest_step.as_secs_f64() / self.trip.as_secs_f64()) - 1.0)
        } else if blind {
            self.allowance.probable_rate() * SPOKEN / 4.0 / octets * PLACES as f64 / upper
        } else {
            // A beginning with few answers may be chance, so the called places grow at most by a factor.
            fits.min((self.next as f64 * 4.0).max(fits / 4.0))
        };
        let count = (places.max(1.0) as u64).min(left).min(self.cautious());
        if count == 0 {
            return None;
        }
        let (first, end) = (self.next, self.next + count);
        let expected = if blind { 0.0 } else { upper * count as f64 / PLACES as f64 };
        let likely = self.density() * count as f64;
        self.allowance.take(expected * octets);
        self.tokens.take(expected * (1.0 - registered));
        let few = expected * octets < self.allowance.rate() / 20.0;
        let spread = if few && self.shortest.is_some() { Span::ZERO } else { self.step() };
        self.called.push_back(Called {
            first,
            end,
            at: now,
            spread,
            expected,
            likely,
            octets,
            heard: 0.0,
            compared: false,
        });
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
            Group::OpenLimited { limit } => f64::from(*limit),
            Group::OpenUnlimited => return,
        };
        // Without parity ahead, each receiver has to say what it lacks. Turns then only help if the return's rate is known.
        let foresees = self.config.parity_ahead && self.config.parity_symbols > 0;
        let known = foresees || self.config.return_rate.is_some();
        // Where receivers set the pace, all of them answer anyway.
        let paced = matches!(self.config.pace, Pace::Rate { .. });
        let prompt = self.config.pass_wait == PassWait::Draft && paced && known;
        let few = (self.turns.allowance.probable_rate() * SPOKEN / FIRST).max(HANDFUL);
        // A receiver whose turn comes once data runs is late.
        if !self.config.turns || !prompt || !self.config.late_entry || may_come <= few {
            return;
        }
        (self.turns.on, self.turns.taken) = (true, true);
        (self.turns.prior, self.turns.most) = (may_come.min(MOST), may_come);
        if self.config.round_trip > DEFAULT_TRIP {
            self.turns.trip = self.turns.trip.max(self.config.round_trip);
        }
        if matches!(self.config.group, Group::Closed(_)) {
            self.turns.counted = may_come;
        }
        let octets = self.turns.octets(0.0);
        self.turns.call(now, octets, 0.0);
        self.timers.set(Timer::Turn, now + self.turns.shortest_step);
    }

    /// Returns the time within which one of few receivers is called and has answered.
    pub(super) fn first_answer_in(&self) -> Span {
        self.turns.trip * COUNTED_IN
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

    /// Returns `true` if nearly all listed receivers that were called have answered, or too few were called to tell.
    pub(super) fn are_nearly_all_here(&self) -> bool {
        let listed = self.members.len() as f64;
        let (called, heard) = if self.turns.round == 0 {
            // Proofs of these answers may still be on their way.
            (listed * self.turns.settled / PLACES as f64, self.turns.answers)
        } else {
            let proves = |member: &&super::Member| member.validated || self.config.secret.is_none();
            let here = |member: &&super::Member| member.state != super::MemberState::Invited;
            (listed, self.members.values().filter(here).filter(proves).count() as f64)
        };
        called < ENOUGH || heard >= called * NEARLY
    }

    /// Returns `true` if receivers have taken turns.
    pub(super) fn have_taken_turns(&self) -> bool {
        self.turns.taken
    }

    /// Returns an estimate of the number of receivers that is too high rather than too low.
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

    /// Returns the number of segments at the beginning that some receivers missed before they came, according to their
    /// registrations. From now on these segments count as sent again.
    pub(super) fn take_missed(&mut self) -> u32 {
        self.turns.incomplete |= self.turns.losses.late() > MANY;
        self.turns.losses.take_missed()
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

#[cfg(test)]
mod tests;
