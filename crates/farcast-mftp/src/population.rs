//! Many like receivers behind one fan-out as one entity, so that a million of them are cheap to simulate.
//!
//! A [`Population`] behaves like N [`Receiver`](crate::Receiver)s together. It decides by the same functions: the
//! receiver's control, once for all receivers in the same state, and the same rules for NAKs. It differs in its state:
//! the receivers that lack a segment are stored by segment, so that the cost of a receiver depends on its losses and
//! not on its packets. With the same losses it sends the same messages at the same nanoseconds (law 11).
//!
//! Two cases are left out, for which single receivers exist: products that are held in part beforehand, and a sender
//! that is started again. The sender's silence is counted for all receivers together, from the last message that
//! reached the fan-out. With [proofs](crate::proof), all receivers have one secret, other senders' announcements do not
//! count, and what a receiver says has no limits: they bind only when a receiver says far more than it hears.
//!
//! | file | contents |
//! |---|---|
//! | `data.rs` | data, parity, completeness |
//! | `lacking.rs` | receivers that lack each segment |
//! | `parity.rs` | receivers that hold each parity symbol |
//! | `cohorts.rs` | receivers in the same state |
//! | `hearing.rs` | messages other than data |
//! | `proofs.rs` | tokens, and what receivers say when they get one |
//! | `asking.rs` | status requests and NAKs |
//! | `turns.rs` | turns, and the losses that receivers report |
//! | `held_answers.rs` | answers that wait, and NAKs of other receivers that make them needless |

mod asking;
mod cohorts;
mod data;
mod hearing;
mod held_answers;
mod lacking;
mod parity;
mod proofs;
mod turns;

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
use data::SegmentPassage;
use held_answers::{HeldAnswers, OverheardNak};
use lacking::ReceiverGaps;
use parity::PopulationParity;
use proofs::{PopulationProofs, ReceivedGrant};
use turns::{HeardByAll, PopulationTurns};

/// Messages of a population of MFTP.
pub(crate) type Feedback = farcast_delivery::Feedback<Message, Naks>;

/// Population of like receivers as one entity; see the [module](self).
#[derive(Clone, Debug)]
pub struct Population {
    config: ReceiverConfig,
    receivers: u32,
    terms: Option<Terms>,
    cohorts: Cohorts,
    lacking: ReceiverGaps,
    /// Parity that receivers hold; `None` for a transmission without parity.
    parity: Option<PopulationParity>,
    /// Proofs; `None` if either side has none.
    proofs: Option<PopulationProofs>,
    held: Vec<HeldAnswers>,
    turns: PopulationTurns,
    heard: HeardByAll,
    /// DTUs that each receiver has requested, for its Done.
    naked: Vec<u32>,
    /// Time at which each receiver was complete; `Time::NEVER` before.
    completed: Vec<Time>,
    last_heard: Time,
    random: RandomStream,
    feedback: VecDeque<(Time, Feedback)>,
    stats: FeedbackCounts,
    /// Lists that are reused.
    lost: Vec<u32>,
    who: Vec<u32>,
    got: Vec<u32>,
    /// Receivers that do not answer the current request, in ascending order.
    excluded: Vec<u32>,
    /// Number of the block and round in which each receiver was last counted.
    marks: Vec<u32>,
    mark: u32,
}

impl Population {
    /// Creates `receivers` receivers that listen. Receiver n has the id of `config` plus n; `config.seed` is the seed
    /// of the random waits of all. If `config` has a name, all register with that name, each with its own id.
    ///
    /// # Errors
    /// Returns the first setting that cannot work.
    pub fn new(config: ReceiverConfig, receivers: u32) -> Result<Self, ConfigError> {
        config.check()?;
        if receivers == 0 || config.id.0.checked_add(receivers).is_none() {
            return Err(ConfigError::Population);
        }
        let n = receivers as usize;
        Ok(Self {
            random: RandomStream::derive(config.seed, &[u64::from(config.id.0)]),
            config,
            receivers,
            terms: None,
            cohorts: Cohorts::new(receivers),
            lacking: ReceiverGaps::new(0, 0),
            parity: None,
            proofs: None,
            held: Vec::new(),
            turns: PopulationTurns::new(receivers),
            heard: HeardByAll::new(receivers),
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

    /// Returns the number of receivers.
    pub fn len(&self) -> u32 {
        self.receivers
    }

    /// Returns `true` if there are no receivers, which never happens.
    pub fn is_empty(&self) -> bool {
        self.receivers == 0
    }

    /// Returns the time at which each receiver had the whole product; [`Time::NEVER`] for one that does not have it.
    pub fn completed(&self) -> &[Time] {
        &self.completed
    }

    /// Returns the number of DTUs that a receiver lacks; `None` while no announcement has been heard.
    pub fn lacks(&self, receiver: u32) -> Option<u32> {
        self.terms.as_ref().map(|_| self.lacking.count(receiver))
    }

    /// Returns `true` if the transmission is over for every receiver.
    pub fn is_over(&self) -> bool {
        self.cohorts.count(FINISHED) + self.cohorts.count(GONE) == self.receivers
    }

    /// Returns the counts of messages sent so far.
    pub fn stats(&self) -> &FeedbackCounts {
        &self.stats
    }

    /// Handles a message whose first segment reaches the fan-out at `now`. It takes the segments of the run that arrive
    /// before the population's own next timer, but at least one. Returns the number of segments taken.
    pub fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        let ours = |terms: &Terms| message.transmission == terms.transmission && from.source == terms.source;
        match &message.body {
            Body::Data(data) => {
                let passage = SegmentPassage::of(now, from, message, channel);
                if self.terms.as_ref().is_some_and(ours) {
                    return self.data(&passage, data, channel);
                }
                // Data before any announcement, or from another sender, still passes the channel.
                self.let_pass(&passage, channel)
            }
            Body::Nak(nak) => {
                let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
                let heard = OverheardNak { transmission: message.transmission, nak };
                self.overhear(now, octets, heard, channel);
                1
            }
            Body::Grant(grant) => {
                self.grant(now, from, ReceivedGrant { message, grant }, channel);
                1
            }
            // Other messages of receivers concern no receiver.
            Body::Registration(_) | Body::Ack(_) | Body::Done(_) | Body::Quit(_) => {
                let passage = SegmentPassage::of(now, from, message, channel);
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
        self.speak_due(now);
        while let Some((at, cohort)) = self.cohorts.next_due()
            && at <= now
        {
            self.expire(now, cohort);
        }
        self.order(first);
    }

    /// Returns the time of the next timer; [`Time::NEVER`] if none runs.
    pub fn poll_timeout(&self) -> Time {
        let held = self.held.iter().map(HeldAnswers::due).min().unwrap_or(Time::NEVER);
        let own = held.min(self.turns.next_due());
        self.cohorts.next_due().map_or(own, |(at, _)| at.min(own))
    }

    /// Returns the next message and its time, which may be later than the first segment's time if that began a run.
    pub fn poll_feedback(&mut self) -> Option<(Time, Feedback)> {
        self.feedback.pop_front()
    }

    /// Sorts messages of one instant by receiver rather than by state.
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

    /// Sends `body` from one receiver, with its proof if it has a token.
    fn say(&mut self, at: Time, receiver: u32, body: Body) {
        let Some(terms) = &self.terms else { return };
        let mut message = Message::new(terms.transmission, body);
        if let Some(proofs) = &self.proofs {
            message = proofs.prove(receiver, message);
        }
        let to = terms.answers_to(&message.body);
        let transmit = Transmit::new(message, to);
        self.feedback.push_back((at, Feedback::Each { receiver, transmit }));
    }

    /// Returns the address for answers, which is the sender's own unless it announced another.
    pub fn response(&self) -> Option<SocketAddr> {
        self.terms.as_ref().map(|terms| terms.response)
    }
}
