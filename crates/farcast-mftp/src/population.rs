//! Many like receivers behind one fan-out as one entity: what makes a million of them cheap to simulate.
//!
//! A [`Population`] is what N [`Receiver`](crate::Receiver)s would be together. It decides by the same functions (the
//! receiver's control, once for all receivers in the same state; the same rules for NAKs) and differs in what it
//! keeps: which receivers lack which segments is held by segment, so that a receiver costs its losses and not its
//! packets. Given the same losses it says the same things at the same nanoseconds (law 11).
//!
//! What it leaves out, for which single receivers are there: parity, NAK suppression (a response group), products that
//! are held in part beforehand, a sender that is started again. How long the sender was silent is counted for all
//! receivers together, from the last message that reached the fan-out.
//!
//! | file | what |
//! |---|---|
//! | `lacking.rs` | which receivers lack which segments |
//! | `cohorts.rs` | receivers in the same state |
//! | `hearing.rs` | messages other than data |
//! | `asking.rs` | status requests and NAKs |

mod asking;
mod cohorts;
mod hearing;
mod lacking;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Among, Run, Span, Time};
use farcast_delivery::{Channel, FeedbackCounts};

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::message::{Body, ClientId, Data, DataKind, Done, Message, Naks};
use crate::receiver::control::{Act, Control, Terms};

use asking::Held;
use cohorts::{CohortId, Cohorts, FINISHED, GONE};
use lacking::Lacking;

/// What a population of ours says.
pub(crate) type Feedback = farcast_delivery::Feedback<Message, Naks>;

/// Many like receivers as one entity. The [module](self) says what it is.
#[derive(Clone, Debug)]
pub struct Population {
    config: ReceiverConfig,
    receivers: u32,
    terms: Option<Terms>,
    cohorts: Cohorts,
    lacking: Lacking,
    held: Vec<Held>,
    /// DTUs that each receiver has asked for, for its Done.
    naked: Vec<u32>,
    /// When each receiver had everything; `Time::NEVER` before.
    completed: Vec<Time>,
    last_heard: Time,
    random: RandomStream,
    feedback: VecDeque<(Time, Feedback)>,
    stats: FeedbackCounts,
    /// Reused lists.
    lost: Vec<u32>,
    who: Vec<u32>,
    got: Vec<u32>,
    /// Those who do not answer the request at hand, ascending.
    excluded: Vec<u32>,
    /// Of each receiver, the number of the block and round in which it was last counted.
    marks: Vec<u32>,
    mark: u32,
}

impl Population {
    /// `receivers` receivers that listen. Receiver n has the id of `config` plus n; `config.seed` is the seed of the
    /// random waits of all.
    ///
    /// # Errors
    /// The first setting that cannot work; a name cannot be many receivers'.
    pub fn new(config: ReceiverConfig, receivers: u32) -> Result<Self, ConfigError> {
        config.check()?;
        if receivers == 0 || config.name.is_some() || config.id.0.checked_add(receivers).is_none() {
            return Err(ConfigError::Population);
        }
        let n = receivers as usize;
        Ok(Self {
            random: RandomStream::derive(config.seed, &[u64::from(config.id.0)]),
            config,
            receivers,
            terms: None,
            cohorts: Cohorts::new(receivers),
            lacking: Lacking::new(0, 0),
            held: Vec::new(),
            naked: alloc::vec![0; n],
            completed: alloc::vec![Time::NEVER; n],
            last_heard: Time::ZERO,
            feedback: VecDeque::new(),
            stats: FeedbackCounts::default(),
            lost: Vec::new(),
            who: Vec::new(),
            got: Vec::new(),
            excluded: Vec::new(),
            marks: alloc::vec![0; n],
            mark: 0,
        })
    }

    /// How many receivers.
    pub fn len(&self) -> u32 {
        self.receivers
    }

    /// Whether there are none: never.
    pub fn is_empty(&self) -> bool {
        self.receivers == 0
    }

    /// When each receiver had the whole product; [`Time::NEVER`] for one that does not have it.
    pub fn completed(&self) -> &[Time] {
        &self.completed
    }

    /// Whether the transmission is over for every receiver.
    pub fn is_over(&self) -> bool {
        self.cohorts.count(FINISHED) + self.cohorts.count(GONE) == self.receivers
    }

    /// What has been done so far.
    pub fn stats(&self) -> &FeedbackCounts {
        &self.stats
    }

    /// Takes a message whose first segment reaches the fan-out at `now`, as much of its run as does so before `before`
    /// and before the population's own next timer, but at least one segment; how many segments that were.
    pub fn handle(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Message,
        before: Time,
        channel: &mut Channel<'_>,
    ) -> u32 {
        let ours = |terms: &Terms| message.transmission == terms.transmission && from.source == terms.source;
        let overhead = u64::from(channel.overhead);
        let octets = |segment| message.wire_len(segment) as u64 + overhead;
        match &message.body {
            Body::Data(data) if self.terms.as_ref().is_some_and(ours) => {
                let last = data.dtus.count() - 1;
                self.data(now, from.spacing, data, (octets(0), octets(last)), before, channel)
            }
            // What comes before any announcement was heard, or from elsewhere, still passes the channel.
            Body::Data(_) => {
                for segment in 0..message.segments().get() {
                    let at = now + from.spacing * u64::from(segment);
                    self.draw(at, octets(segment), Among::These(&[]), channel);
                }
                message.segments().get()
            }
            _ => {
                let among = if channel.data_only { Among::These(&[]) } else { Among::All };
                self.draw(now, octets(0), among, channel);
                let first = self.feedback.len();
                self.hear(now, from, message, channel);
                self.order(first);
                1
            }
        }
    }

    /// Acts on every timer that is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        let first = self.feedback.len();
        self.answer_due(now);
        while let Some((at, cohort)) = self.cohorts.next_due()
            && at <= now
        {
            self.expire(now, cohort);
        }
        self.order(first);
    }

    /// When it wants to be woken; [`Time::NEVER`] if nothing is to be waited for.
    pub fn poll_timeout(&self) -> Time {
        let held = self.held.iter().map(Held::due).min().unwrap_or(Time::NEVER);
        self.cohorts.next_due().map_or(held, |(at, _)| at.min(held))
    }

    /// The next thing that it says, and when: in a run, that may be later than the first segment's time.
    pub fn poll_feedback(&mut self) -> Option<(Time, Feedback)> {
        self.feedback.pop_front()
    }

    /// At one instant receivers speak in their order, not in that of their states.
    fn order(&mut self, first: usize) {
        let receivers = self.receivers;
        let speaker = |(at, one): &(Time, Feedback)| match one {
            Feedback::Each { receiver, .. } => (*at, *receiver),
            Feedback::Merged(_) => (*at, receivers),
        };
        self.feedback.make_contiguous()[first..].sort_by_key(speaker);
    }

    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, channel: &mut Channel<'_>) {
        self.lost.clear();
        channel.losses.draw(now, octets, among, &mut self.lost);
    }

    fn id(&self, receiver: u32) -> ClientId {
        ClientId(self.config.id.0 + receiver)
    }

    /// One receiver says `body`.
    fn say(&mut self, at: Time, receiver: u32, body: Body) {
        let Some(terms) = &self.terms else { return };
        let message = Message::new(terms.transmission, body);
        let transmit = Transmit::new(message, terms.response);
        self.feedback.push_back((at, Feedback::Each { receiver, transmit }));
    }

    /// Takes a run whose datagrams have so many octets, all but the last and the last.
    fn data(
        &mut self,
        now: Time,
        spacing: Span,
        data: &Data,
        (full, last): (u64, u64),
        before: Time,
        channel: &mut Channel<'_>,
    ) -> u32 {
        let count = data.dtus.count();
        let segments =
            self.terms.as_ref().and_then(|terms| terms.geometry().segments_of(data.block, data.dtus));
        let Some(segments) = segments.filter(|_| data.kind == DataKind::Source) else { return count };
        let mut limit = before.min(self.poll_timeout());
        let mut index = 0;
        while index < count {
            let at = now + spacing * u64::from(index);
            if index > 0 && at >= limit {
                return index;
            }
            let segment = segments.first() + index;
            let spared = self.spare(at, spacing, limit, full, segment, count - 1 - index, channel);
            if spared > 0 {
                index += spared;
                continue;
            }
            self.last_heard = at;
            let octets = if index + 1 == count { last } else { full };
            if self.segment(at, octets, segment, channel) {
                limit = before.min(self.poll_timeout());
            }
            index += 1;
        }
        count
    }

    /// Passes over segments that reach everyone for the first time, at most `most` and not the last that is unsent;
    /// how many.
    #[expect(clippy::too_many_arguments, reason = "they are where a run stands")]
    fn spare(
        &mut self,
        at: Time,
        spacing: Span,
        limit: Time,
        octets: u64,
        segment: u32,
        most: u32,
        channel: &mut Channel<'_>,
    ) -> u32 {
        let config = &self.config;
        let survey = self.cohorts.survey(|control| control.takes_data(config).is_ok());
        if !survey.deaf.is_empty() || survey.unconfirmed {
            return 0;
        }
        let in_time = if spacing.is_zero() {
            most
        } else {
            let room = limit.since(at).as_nanos().div_ceil(spacing.as_nanos());
            u32::try_from(room).unwrap_or(u32::MAX)
        };
        let most =
            self.lacking.unsent_from(segment, most.min(in_time)).min(self.lacking.unsent().saturating_sub(1));
        let spared = channel.losses.spared(octets, most);
        if let Some(run) = Run::new(segment, spared) {
            self.lacking.sent_to_all(run);
            self.last_heard = at + spacing * u64::from(spared - 1);
        }
        spared
    }

    /// One segment reaches the fan-out. Whether that may have moved a timer.
    fn segment(&mut self, at: Time, octets: u64, segment: u32, channel: &mut Channel<'_>) -> bool {
        let config = &self.config;
        let survey = self.cohorts.survey(|control| control.takes_data(config).is_ok());
        let plain = survey.deaf.is_empty() && !survey.unconfirmed;
        if self.lacking.is_unsent(segment) {
            self.draw(at, octets, Among::All, channel);
            if !plain {
                self.first_data(at);
                self.add_deaf(None);
            }
            self.lacking.sent_first(segment, &self.lost);
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
        if plain {
            self.draw(at, octets, Among::These(&who), channel);
        } else {
            // Whom the first DTU that they hear moves is decided by what reaches everyone, not only those who lack it.
            self.draw(at, octets, Among::All, channel);
            self.first_data(at);
            self.add_deaf(Some(&who));
        }
        self.got.clear();
        let mut lost = self.lost.iter().copied().peekable();
        for &receiver in &who {
            if lost.next_if_eq(&receiver).is_none() {
                self.got.push(receiver);
            }
        }
        self.lacking.sent_again(segment, &self.got, &self.lost);
        self.who = who;
        if self.lacking.unsent() == 0 {
            let lacking = &self.lacking;
            self.got.retain(|&receiver| lacking.count(receiver) == 0);
            if !self.got.is_empty() {
                self.complete(at);
                return true;
            }
        }
        !plain
    }

    /// Adds those who take no data to those who lost it, and leaves out who is not in `among`.
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

    /// The first data that unconfirmed receivers hear begins the repetition of their registration.
    fn first_data(&mut self, at: Time) {
        for cohort in self.cohorts.ids() {
            let Some(mut control) = self.cohorts.control(cohort).filter(|c| c.is_unconfirmed()).cloned()
            else {
                continue;
            };
            control.data_before_confirmation(at, &self.config);
            self.step(cohort, control);
        }
    }

    /// Those in `got` have everything since `at`, and it is verified at once.
    fn complete(&mut self, at: Time) {
        let got = core::mem::take(&mut self.got);
        // Receivers of one cohort go to one cohort.
        let mut founded: Vec<(CohortId, CohortId, Act)> = Vec::new();
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
            if act == Act::Done {
                self.say_done(at, receiver);
            }
        }
        self.got = got;
    }

    fn completed_control(&mut self, at: Time, from: CohortId) -> Option<(CohortId, Act)> {
        let mut control = self.cohorts.control(from)?.clone();
        if !control.complete() {
            return None;
        }
        let act = control.verified(at, self.terms.as_ref()?, &self.config);
        let to = if matches!(act, Act::End(_)) { FINISHED } else { self.cohorts.found(Some(control)) };
        Some((to, act))
    }

    fn say_done(&mut self, at: Time, receiver: u32) {
        let Some(terms) = &self.terms else { return };
        let began =
            self.cohorts.control(self.cohorts.of(receiver)).map_or(at, |control: &Control| control.began);
        let done = Done {
            server: terms.server,
            client: self.id(receiver),
            naked_dtus: self.naked[receiver as usize],
            duration_s: u32::try_from(at.since(began).as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
        };
        self.say(at, receiver, Body::Done(done));
    }

    /// The address that answers go to; the sender's own unless it announced another.
    pub fn response(&self) -> Option<SocketAddr> {
        self.terms.as_ref().map(|terms| terms.response)
    }
}
