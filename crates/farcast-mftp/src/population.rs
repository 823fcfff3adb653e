//! Many like receivers behind one fan-out as one entity: what makes a million of them cheap to simulate.
//!
//! A [`Population`] is what N [`Receiver`](crate::Receiver)s would be together. It decides by the same functions (the
//! receiver's control, once for all receivers in the same state; the same rules for NAKs) and differs in what it
//! keeps: which receivers lack which segments is held by segment, so that a receiver costs its losses and not its
//! packets. Given the same losses it says the same things at the same nanoseconds (law 11).
//!
//! What it leaves out, for which single receivers are there: products that are held in part beforehand, a sender that
//! is started again. How long the sender was silent is counted for all receivers together, from the last message that
//! reached the fan-out.
//!
//! | file | what |
//! |---|---|
//! | `data.rs` | data, parity, completeness |
//! | `lacking.rs` | which receivers lack which segments |
//! | `parity.rs` | which receivers hold which parity symbols |
//! | `cohorts.rs` | receivers in the same state |
//! | `hearing.rs` | messages other than data |
//! | `asking.rs` | status requests and NAKs |
//! | `held.rs` | answers that wait, and NAKs of others that make them needless |

mod asking;
mod cohorts;
mod data;
mod hearing;
mod held;
mod lacking;
mod parity;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Among, Time};
use farcast_delivery::{Channel, FeedbackCounts};

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::message::{Body, ClientId, Message, Naks};
use crate::receiver::control::Terms;

use cohorts::{Cohorts, FINISHED, GONE};
use data::Passage;
use held::Held;
use lacking::Lacking;
use parity::Parity;

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
    /// `None` where the transmission has none.
    parity: Option<Parity>,
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
            parity: None,
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

    /// DTUs that a receiver lacks; `None` while nobody has heard of the product.
    pub fn lacks(&self, receiver: u32) -> Option<u32> {
        self.terms.as_ref().map(|_| self.lacking.count(receiver))
    }

    /// Whether the transmission is over for every receiver.
    pub fn is_over(&self) -> bool {
        self.cohorts.count(FINISHED) + self.cohorts.count(GONE) == self.receivers
    }

    /// What has been done so far.
    pub fn stats(&self) -> &FeedbackCounts {
        &self.stats
    }

    /// Takes a message whose first segment reaches the fan-out at `now`, as much of its run as does so before the
    /// population's own next timer, but at least one segment; how many segments that were.
    pub fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        let ours = |terms: &Terms| message.transmission == terms.transmission && from.source == terms.source;
        match &message.body {
            Body::Data(data) => {
                let passage = Passage::of(now, from, message, channel);
                if self.terms.as_ref().is_some_and(ours) {
                    return self.data(&passage, data, channel);
                }
                // What comes before any announcement was heard, or from elsewhere, still passes the channel.
                self.let_pass(&passage, channel)
            }
            Body::Nak(nak) => {
                let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
                self.overhear(now, octets, (message.transmission, nak), channel);
                1
            }
            // What else other receivers say concerns nobody here.
            Body::Registration(_) | Body::Ack(_) | Body::Done(_) | Body::Quit(_) => {
                let passage = Passage::of(now, from, message, channel);
                self.let_pass(&passage, channel)
            }
            _ => {
                let among = if channel.data_only { Among::These(&[]) } else { Among::All };
                let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
                self.draw(now, octets, among, channel);
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
        let to = terms.answers_to(&message.body);
        let transmit = Transmit::new(message, to);
        self.feedback.push_back((at, Feedback::Each { receiver, transmit }));
    }

    /// The address that answers go to; the sender's own unless it announced another.
    pub fn response(&self) -> Option<SocketAddr> {
        self.terms.as_ref().map(|terms| terms.response)
    }
}
