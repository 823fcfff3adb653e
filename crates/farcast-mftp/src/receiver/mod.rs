//! The client half of MFTP (draft §11).
//!
//! | file | contents |
//! |---|---|
//! | `control.rs` | decisions that do not depend on segments, also used by a population |
//! | `calls.rs` | turns that the sender calls |
//! | `session.rs` | state of the current transmission |
//! | `guard.rs` | evidence of the sender's identity, also used by a population, and limits on answers |
//! | `joining.rs` | announcements, registration |
//! | `rivals.rs` | other transmissions that are announced meanwhile |
//! | `ended.rs` | transmissions that are over |
//! | `delivery.rs` | data, parity, completeness |
//! | `losses.rs` | DTUs lost on the way |
//! | `parity.rs` | value and cost of parity, also used by a population |
//! | `answers.rs` | status requests and NAKs |
//! | `comparing.rs` | comparison with stored older versions |

pub(crate) mod answers;
mod calls;
mod comparing;
pub(crate) mod control;
pub(crate) mod delivery;
mod ended;
pub(crate) mod guard;
mod joining;
mod losses;
pub(crate) mod parity;
mod rivals;
mod session;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Span, Time};

use crate::config::{ReceiverConfig, Waiter};
use crate::error::ConfigError;
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{Body, ClientId, Echo, Message, Query, StatusRequest};
use crate::turn::Turn;

use answers::Question;
use control::Action;
use ended::EndedTransmission;
use guard::{Bucket, Parting, Shunned};
use rivals::Rivals;
use session::Session;

/// Counts of a receiver, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverStats {
    /// DTUs of the current transmission that were new.
    pub dtus: u64,
    /// Parity symbols that were new.
    pub parity: u64,
    /// DTUs and parity symbols that brought nothing new.
    pub duplicates: u64,
    /// NAK messages sent.
    pub naks: u64,
    /// DTUs requested by the NAKs, in all; a DTU requested again counts again.
    pub naked_dtus: u64,
    /// DTUs that were sent to the receiver and did not come, once for each time they were sent.
    pub lost: u64,
    /// NAKs not sent because another receiver's was the same.
    pub suppressed: u64,
    /// Messages not sent because of the limits on answers.
    pub unsaid: u64,
}

/// Receiver of one product after the other: the client of MFTP as a sans-I/O engine.
///
/// It listens for announcements; each [`ReceiverEvent::Offered`] waits for the owner's
/// [`accept`](Self::accept) or [`decline`](Self::decline).
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    session: Option<Session>,
    outbox: VecDeque<Transmit<Message>>,
    events: VecDeque<ReceiverEvent>,
    rejects: RejectCounts,
    stats: ReceiverStats,
    random: RandomStream,
    over: VecDeque<EndedTransmission>,
    /// Refusal or farewell for which the sender may yet ask a proof.
    parting: Option<Parting>,
    /// Allowance for messages to senders that have not proved their address.
    strangers: Bucket,
    shunned: Shunned,
    rivals: Rivals,
    busy_with: Option<SocketAddr>,
    /// Server whose list does not have this receiver, to be reported once.
    uninvited_by: Option<SocketAddr>,
}

impl Receiver {
    /// Creates a receiver that listens.
    ///
    /// # Errors
    /// Returns the first setting that cannot work.
    pub fn new(config: ReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            random: RandomStream::derive(config.seed, &[u64::from(config.id.0)]),
            config,
            session: None,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            rejects: RejectCounts::default(),
            stats: ReceiverStats::default(),
            over: VecDeque::new(),
            parting: None,
            strangers: Bucket::new(),
            shunned: Shunned::default(),
            rivals: Rivals::default(),
            busy_with: None,
            uninvited_by: None,
        })
    }

    /// Returns the receiver's id on the wire.
    pub fn id(&self) -> ClientId {
        self.config.id
    }

    /// Returns `true` if there is a current transmission, or if a sender that the receiver left has yet to be told.
    pub fn is_busy(&self) -> bool {
        self.session.is_some() || self.parting.is_some()
    }

    /// Returns `true` if the current transmission is of the sender at `source`, or if a sender that the receiver left
    /// has yet to be told.
    pub fn is_busy_with(&self, source: SocketAddr) -> bool {
        self.session.as_ref().is_some_and(|session| session.terms.source == source) || self.parting.is_some()
    }

    /// Returns the segments that have come, while there is a current transmission.
    pub fn have(&self) -> Option<&Bitmap> {
        self.session.as_ref().map(|session| &session.have)
    }

    /// Returns the counts of the current transmission, or of the last one.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Returns the number of rejected messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    /// Asks a server for its public groups (QUERY GROUP). Its answer (JOIN GROUP) is reported as
    /// [`ReceiverEvent::JoinGroup`].
    pub fn query(&mut self, server: SocketAddr) {
        let query = Query { application: self.config.application.clone(), all: false };
        let message = Message::new(0, Body::Query(query));
        self.outbox.push_back(Transmit::new(message, server));
    }

    /// Sends `body` to the session's response address.
    fn answer(&mut self, now: Time, body: Body) {
        if let Some(session) = &self.session {
            let message = Message::new(session.terms.transmission, body);
            self.say(now, message);
        }
    }

    /// Returns `true` if `turn` calls this receiver. Without a turn all receivers are called.
    fn is_called(&self, turn: Option<Turn>) -> bool {
        let transmission = self.session.as_ref().map_or(0, |session| session.terms.transmission);
        turn.is_none_or(|turn| turn.calls(transmission, self.config.id))
    }

    /// Returns `true` if the receiver [came after](HeardData::came_after) the beginning of the block that `m` asks about.
    fn is_newcomer(&self, m: &StatusRequest) -> bool {
        let Some(session) = self.session.as_ref().filter(|session| !session.restart) else { return false };
        let block = Question::of(m).single_block(session.terms.geometry());
        m.turn.is_some() && block.is_some_and(|block| session.heard.came_after(block))
    }

    /// Draws a uniform part of the session's back-off window.
    fn backoff(&mut self, now: Time) -> Span {
        let window = self.session.as_ref().map_or(Span::ZERO, |session| session.terms.backoff);
        self.part_of(now, window)
    }

    /// Draws a uniform part of `window`.
    fn part_of(&mut self, now: Time, window: Span) -> Span {
        let ReceiverConfig { waits, seed, id, .. } = self.config;
        waits.draw(Waiter { seed, id }, now, window, &mut self.random)
    }

    fn end(&mut self, outcome: ReceiverOutcome) {
        // A sender that fell silent, or did not hear this receiver, may be heard again.
        let over = !matches!(outcome, ReceiverOutcome::SenderLost | ReceiverOutcome::NotAccepted);
        if let Some(session) = self.session.take().filter(|_| over) {
            self.remember_over(session, &outcome);
        }
        self.busy_with = None;
        self.events.push_back(ReceiverEvent::Ended(outcome));
    }

    fn is_for_me(&self, hosts: Option<&[ClientId]>) -> bool {
        hosts.is_none_or(|hosts| hosts.contains(&self.config.id))
    }

    fn take(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match &message.body {
            Body::Echo(echo) => return self.echo(now, from, echo),
            Body::Join(join) => {
                return self.group_event(join.hosts.as_deref(), join.public, ReceiverEvent::JoinGroup);
            }
            Body::Leave(leave) => {
                return self.group_event(leave.hosts.as_deref(), leave.public, ReceiverEvent::LeaveGroup);
            }
            Body::Announce(announce) => return self.announce(now, from, message.transmission, announce),
            Body::Nak(nak) => return self.overheard(message.transmission, nak),
            Body::Grant(grant) => return self.granted(now, from, message, grant),
            _ => {}
        }
        // A transmission is identified by its server's address and its identifier (draft §2).
        let ours =
            |s: &&mut Session| message.transmission == s.terms.transmission && from.source == s.terms.source;
        let Some(session) = self.session.as_mut().filter(ours) else {
            if self.data_of_rival(now, from, message) {
                return Ok(());
            }
            return self.over_again(now, from, message);
        };
        session.guard.check_end(message)?;
        let result = self.take_from_sender(now, message);
        if let (Ok(()), Some(session)) = (result, &mut self.session) {
            session.guard.hear(now, message);
        }
        result
    }

    /// Handles a message of the session's sender.
    fn take_from_sender(&mut self, now: Time, message: &Message) -> Result<(), Reject> {
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        session.control.touch(now, &self.config);
        let me = |hosts: &Option<Vec<ClientId>>| {
            hosts.as_ref().is_some_and(|hosts| hosts.contains(&self.config.id))
        };
        let act = match &message.body {
            Body::Data(data) => return self.data(now, data),
            Body::StatusRequest(m) if m.hosts.is_none() || me(&m.hosts) => return self.asked(now, m),
            Body::Completion(m) => {
                // A receiver without its token has sent no valid report, so a confirmation of it is forged. The call in
                // the message holds for all receivers.
                let listed = me(&m.hosts) && session.guard.is_settled();
                let act = session.control.completion(now, m, listed, &self.config);
                self.act(now, act);
                self.called(now, m.turn);
                return Ok(());
            }
            Body::Abort(m) if m.hosts.is_none() || me(&m.hosts) => session.control.aborted(now, m),
            Body::StatusRequest(_) | Body::Abort(_) => return Err(Reject::OtherSession),
            Body::End(_) => session.control.ended(now),
            _ => return Err(Reject::Unexpected),
        };
        self.act(now, act);
        Ok(())
    }

    fn asked(&mut self, now: Time, m: &StatusRequest) -> Result<(), Reject> {
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        match session.control.asked(now, m, &session.terms, &self.config)? {
            Action::Answer if !self.is_called(m.turn) || self.is_newcomer(m) => {
                return Err(Reject::OtherSession);
            }
            Action::Answer if self.asked_to_compare(now, m) => {}
            Action::Answer => {
                self.hold_answers(now, Question::of(m), m.turn.map(|turn| turn.spread()));
            }
            Action::Ack => self.acknowledge(now, m.pass, m.blocks),
            act => self.act(now, act),
        }
        Ok(())
    }

    /// Carries out an action that the control has decided.
    fn act(&mut self, now: Time, act: Action) {
        match act {
            // The caller that has the request answers and acknowledges it.
            Action::Nothing | Action::Answer | Action::Ack => {}
            Action::RegisterLater => {
                let wait = self.backoff(now);
                let Some(session) = &mut self.session else { return };
                let act = session.control.register_after(now, wait, &self.config);
                self.act(now, act);
            }
            Action::Register => self.send_registration(now, Ok(())),
            Action::Accepted => self.events.push_back(ReceiverEvent::Accepted),
            Action::Flush => self.send_answers(now),
            Action::Done => self.send_done(now),
            Action::RegisterDone => self.register_complete(now),
            Action::Quit(reason, text) => self.fail(reason, Some(text.into())),
            Action::End(outcome) => self.end(outcome),
        }
    }

    fn echo(&mut self, now: Time, from: &Arrival, echo: &Echo) -> Result<(), Reject> {
        if !self.is_for_me(echo.hosts.as_deref()) {
            return Err(Reject::OtherSession);
        }
        // An echo with data vouches for a receiver without proofs. A receiver with proofs returns no data: a host that
        // claims its address could otherwise use the echo to pose as it.
        let data = echo.data.clone().filter(|_| self.config.secret.is_none());
        let body = Body::EchoResponse(Echo { sequence: echo.sequence, data, hosts: None });
        self.say_to_stranger(now, Message::new(0, body), from.source);
        Ok(())
    }

    fn group_event(
        &mut self,
        hosts: Option<&[ClientId]>,
        group: IpAddr,
        event: fn(IpAddr) -> ReceiverEvent,
    ) -> Result<(), Reject> {
        if !self.is_for_me(hosts) || !group.is_multicast() {
            return Err(Reject::OtherSession);
        }
        self.events.push_back(event(group));
        Ok(())
    }
}

impl Engine for Receiver {
    type Message = Message;
    type Event = ReceiverEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = self.take(now, from, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        self.parting.take_if(|parting| parting.until <= now);
        while let Some(session) = &mut self.session
            && let Some(act) = session.control.expire(now, &self.config)
        {
            self.act(now, act);
        }
    }

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let session = self.session.as_ref().and_then(|session| session.control.deadline());
        let parting = self.parting.as_ref().map(|parting| Deadline { at: parting.until, timer: "parting" });
        session.into_iter().chain(parting).min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, message: &Message) -> NonZeroU32 {
        match (&message.body, &self.session) {
            (Body::Data(data), Some(session)) => session.prefix(data),
            _ => message.segments(),
        }
    }
}
