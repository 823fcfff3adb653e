//! What a receiver decides without looking at which segments it has.
//!
//! The rules are here, once, for the [engine](crate::Receiver) of one receiver and for a
//! [population](crate::Population) of many: each calls these functions and carries out the [`Act`] that they return.
//! A [`Control`] is small and cloneable: a population holds one for all receivers that are in the same state, and
//! copies it when a message reaches some of them and not the others.

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Deadline, Span, Time, Timers, timers};
use farcast_delivery::{Geometry, GeometryError, ObjectId, Offer};

use crate::config::ReceiverConfig;
use crate::event::ReceiverOutcome;
use crate::message::{Abort, Announce, Body, Completion, GroupModel, Standing, StatusRequest};
use crate::wire;

/// What is announced again so soon after a registration is a copy of what was answered, unless data has begun.
const COPY_WITHIN: Span = Span::from_millis(20);
/// The pieces of an announcement with a long list of hosts follow each other for longer than that: a registration
/// answers all of them.
const PIECES_WITHIN: Span = Span::from_secs(2);
/// Hosts from which on a list is long, and may have come in pieces.
const LONG_LIST: usize = 64;
/// The most DTUs that a block may have: the largest datagram holds one NAK of them. A sender that claims more
/// would have its receivers build answers that cannot be sent.
const LARGEST_BLOCK: usize = wire::block_size_for(65_507, 40);

timers! {
    /// The receiver's timers.
    pub(crate) enum Timer {
        /// Send the registration (again).
        Register = "register",
        /// Send the NAKs that were held back to spread them.
        Answer = "answer",
        /// Send Done again.
        Done = "done",
        /// The sender has not been heard for long.
        Patience = "patience",
        /// The announced transfer duration is over.
        Transfer = "transfer",
    }
}

/// Where a receiver stands with a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The owner has been asked.
    Offered,
    /// Taking part.
    Receiving,
    /// Every segment is there; the owner verifies.
    Verifying,
    /// Verified; waiting for the sender's confirmation.
    Completing {
        /// When it was verified.
        since: Time,
    },
}

/// What is to be done, besides what the control has noted for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// Nothing.
    Nothing,
    /// Register, after a part of the back-off window.
    RegisterLater,
    /// Register now.
    Register,
    /// The registration is confirmed: tell the owner.
    Accepted,
    /// Answer a status request, after a part of the back-off window.
    Answer,
    /// Send the answers that are held back.
    Flush,
    /// Acknowledge the status request.
    Ack,
    /// Report that everything is there.
    Done,
    /// Leave, with a reason of [`cancel`](crate::message::cancel) and words.
    Quit(u32, &'static str),
    /// The transmission is over for this receiver.
    End(ReceiverOutcome),
}

/// What a transmission's announcement says, the same for all its receivers.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Where its messages come from.
    pub(crate) source: SocketAddr,
    /// The server as it names itself, for answers.
    pub(crate) server: SocketAddr,
    pub(crate) response: SocketAddr,
    pub(crate) transmission: u32,
    pub(crate) model: GroupModel,
    pub(crate) offer: Offer,
    pub(crate) backoff: Span,
    pub(crate) transfer: Span,
}

impl Terms {
    /// The terms of an announcement from outside, checked against what a receiver can bear.
    pub(crate) fn new(
        from: &Arrival,
        transmission: u32,
        m: &Announce,
        config: &ReceiverConfig,
    ) -> Result<Self, Reject> {
        let geometry = Geometry::new(m.product_size, m.dtu_size, m.block_size)
            .map_err(|_: GeometryError| Reject::OutOfRange)?;
        if geometry.block_len(0) as usize > LARGEST_BLOCK {
            return Err(Reject::OutOfRange);
        }
        if geometry.segments() > config.max_segments {
            return Err(Reject::Limit);
        }
        let (server, response) = addresses(from, m);
        let offer = Offer {
            object: ObjectId::FIRST,
            sender: from.source,
            session: transmission,
            group: m.private,
            name: m.product_name.clone().into_bytes(),
            provisional: false,
            id: m.product_id,
            // A transmission has one product.
            serial: Some(0),
            vouched: None,
            geometry,
            parity_symbols: parity_symbols(m),
            overwrite: m.options.overwrite,
            rate_bps: m.data_rate_bps,
        };
        Ok(Self {
            source: from.source,
            server,
            response,
            transmission,
            model: m.options.model,
            offer,
            backoff: Span::from_millis(m.backoff_window_ms.unwrap_or(0).into()),
            transfer: Span::from_secs(m.transfer_duration_s.into()),
        })
    }

    /// Goes over to the announcement of the same product by a sender that was started again.
    pub(crate) fn follow(&mut self, from: &Arrival, transmission: u32, m: &Announce) {
        let (server, response) = addresses(from, m);
        (self.source, self.server, self.response) = (from.source, server, response);
        (self.transmission, self.model) = (transmission, m.options.model);
        self.backoff = Span::from_millis(m.backoff_window_ms.unwrap_or(0).into());
        self.transfer = Span::from_secs(m.transfer_duration_s.into());
        // Parity symbols are the same in every transmission of one product cut the same way, so they stay.
        self.offer.parity_symbols = parity_symbols(m);
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.offer.geometry
    }

    /// Where `body` goes. A registration is for the sender alone: who else hears its nonce could come in our place.
    pub(crate) fn answers_to(&self, body: &Body) -> SocketAddr {
        let alone = matches!(body, Body::Registration(_)) && self.response.ip().is_multicast();
        if alone { self.source } else { self.response }
    }
}

/// The server and response addresses of an announcement.
///
/// A sender that does not know its own address announces 0.0.0.0; answers then go where the announcement came from.
/// They go there too where the announced address could not be answered, or is another host's: nobody is to aim
/// our answers at a third.
fn addresses(from: &Arrival, m: &Announce) -> (SocketAddr, SocketAddr) {
    let sound = m.response.port() != 0 && m.response.is_ipv4() == from.source.is_ipv4();
    let own = m.response.ip() == from.source.ip() || m.response.ip().is_multicast();
    (m.server, if sound && own { m.response } else { from.source })
}

/// The parity symbols of an announcement: more than a block code can have is a claim that nothing would back.
fn parity_symbols(m: &Announce) -> u32 {
    m.parity_symbols.unwrap_or(0).min(32_768)
}

/// Where a receiver stands, apart from which segments it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Control {
    pub(crate) state: State,
    /// Whether the sender has confirmed the registration, or none is needed.
    pub(crate) accepted: bool,
    registrations: u32,
    /// When it registered last, as long as that is not confirmed.
    registered: Option<Time>,
    /// Whether the registration is repeated by the clock.
    pub(crate) register_timer: bool,
    dones: u32,
    /// When the first Done was sent to the sender at hand.
    reporting_since: Time,
    done_sent: Time,
    pub(crate) began: Time,
    /// When its sender was last heard.
    pub(crate) last_heard: Time,
    timers: Timers<Timer>,
}

impl Control {
    /// A transmission has been offered to the owner.
    pub(crate) fn offered(now: Time, terms: &Terms) -> Self {
        Self {
            state: State::Offered,
            accepted: terms.model == GroupModel::OpenUnlimited,
            registrations: 0,
            registered: None,
            register_timer: false,
            dones: 0,
            reporting_since: Time::ZERO,
            done_sent: Time::ZERO,
            began: now,
            last_heard: now,
            timers: Timers::default(),
        }
    }

    /// The owner takes part.
    pub(crate) fn accept(&mut self, now: Time, terms: &Terms, config: &ReceiverConfig) -> Act {
        self.state = State::Receiving;
        self.began = now;
        self.timers.set(Timer::Patience, now + config.patience);
        self.timers.set(Timer::Transfer, now + terms.transfer);
        self.register_if_needed()
    }

    /// A sender that was started again is followed: what the control knew of the old one is void.
    pub(crate) fn follow(&mut self, now: Time, terms: &Terms, config: &ReceiverConfig) -> Act {
        self.last_heard = now;
        self.accepted = terms.model == GroupModel::OpenUnlimited;
        (self.registrations, self.register_timer) = (0, false);
        self.timers.set(Timer::Patience, now + config.patience);
        if matches!(self.state, State::Completing { .. }) {
            // The sender that was started again does not know that we have everything.
            self.dones = 0;
        } else {
            self.timers.set(Timer::Transfer, now + terms.transfer);
        }
        self.register_if_needed()
    }

    fn register_if_needed(&self) -> Act {
        if self.accepted { Act::Nothing } else { Act::RegisterLater }
    }

    /// The sender was heard.
    pub(crate) fn touch(&mut self, now: Time, config: &ReceiverConfig) {
        self.last_heard = now;
        if self.state != State::Offered {
            self.timers.set(Timer::Patience, now + config.patience);
        }
    }

    /// An announcement of the transmission at hand, with what it says of this receiver: perhaps it confirms it.
    pub(crate) fn announced(&mut self, now: Time, m: &Announce, standing: Option<Standing>) -> Act {
        let is_long = m.hosts.as_ref().is_some_and(|hosts| hosts.len() >= LONG_LIST);
        let within = if is_long { PIECES_WITHIN } else { COPY_WITHIN };
        let answered = self.registered.is_some_and(|registered| now < registered + within);
        let copy = answered && (is_long || m.announce_duration_s > 0);
        if self.state == State::Offered || self.accepted {
            Act::Nothing
        } else if standing == Some(Standing::Accepted) {
            (self.accepted, self.registered) = (true, None);
            self.timers.stop(Timer::Register);
            Act::Accepted
        } else if copy || self.timers.is_set(Timer::Register) {
            Act::Nothing
        } else {
            Act::RegisterLater
        }
    }

    /// Registers after `wait`.
    pub(crate) fn register_after(&mut self, now: Time, wait: Span, config: &ReceiverConfig) -> Act {
        if wait.is_zero() {
            return self.register(now, config);
        }
        self.timers.set(Timer::Register, now + wait);
        Act::Nothing
    }

    /// Registers, or gives up after too many times.
    fn register(&mut self, now: Time, config: &ReceiverConfig) -> Act {
        if self.accepted {
            return Act::Nothing;
        }
        if self.register_timer {
            let often = self.registrations > config.register_retry_count;
            if often && config.secret.is_none() {
                return Act::End(ReceiverOutcome::NotAccepted);
            }
            // While the sender is heard, it may yet hear us: with proofs this is also how a lost token comes again.
            let times = if often { 4 } else { 1 };
            self.timers.set(Timer::Register, now + config.register_retry * times);
        }
        self.registrations += 1;
        self.registered = Some(now);
        Act::Register
    }

    /// Whether data that comes now is taken; otherwise why not.
    pub(crate) fn takes_data(&self, config: &ReceiverConfig) -> Result<(), Reject> {
        match self.state {
            State::Receiving if self.accepted || config.keep_early_data => Ok(()),
            State::Verifying | State::Completing { .. } => Err(Reject::Duplicate),
            // The draft discards data that comes before the registration is confirmed (§11.1.1).
            State::Receiving | State::Offered => Err(Reject::Unexpected),
        }
    }

    /// Data runs although no confirmation came: from now on the registration is repeated by the clock.
    pub(crate) fn data_before_confirmation(&mut self, now: Time, config: &ReceiverConfig) {
        if self.is_unconfirmed() {
            self.register_timer = true;
            self.timers.set(Timer::Register, now + config.register_retry);
        }
    }

    /// Whether the sender has let this receiver wait for its registration, and since when it takes part.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        (!self.accepted && self.state != State::Offered).then_some(self.began)
    }

    /// Whether it has everything and says so.
    pub(crate) fn is_completing(&self) -> bool {
        matches!(self.state, State::Completing { .. })
    }

    /// Whether it takes part and lacks something.
    pub(crate) fn is_receiving(&self) -> bool {
        self.state == State::Receiving
    }

    /// Whether data would begin the repetition of the registration.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        !self.accepted && !self.register_timer && self.state != State::Offered
    }

    /// A status request for this receiver.
    pub(crate) fn asked(
        &mut self,
        now: Time,
        m: &StatusRequest,
        terms: &Terms,
        config: &ReceiverConfig,
    ) -> Result<Act, Reject> {
        // A request for several blocks asks about all of each (draft §12.1.6), so each of them is worth a look.
        let (geometry, dtus) = (terms.geometry(), m.dtus);
        let whole = dtus.first() == 0 && dtus.count() >= geometry.block_len(0);
        let within = dtus.first() < geometry.block_size() && (m.blocks.count() == 1 || whole);
        if m.blocks.end() > geometry.blocks() || !within {
            return Err(Reject::OutOfRange);
        }
        self.data_before_confirmation(now, config);
        match self.state {
            // Nothing is said before the owner has decided.
            State::Offered => Err(Reject::Unexpected),
            State::Receiving => Ok(Act::Answer),
            // The sender must not take the time that verifying takes for silence.
            State::Verifying => Ok(Act::Ack),
            State::Completing { .. } => Ok(self.report(now, config)),
        }
    }

    /// Holds an answer back until `at`.
    pub(crate) fn answer_at(&mut self, at: Time) {
        self.timers.set(Timer::Answer, at);
    }

    /// No answer is held back any more.
    pub(crate) fn answered(&mut self) {
        self.timers.stop(Timer::Answer);
    }

    /// Every segment is there. Whether that is news.
    pub(crate) fn complete(&mut self) -> bool {
        let news = self.state == State::Receiving;
        if news {
            self.state = State::Verifying;
            self.answered();
        }
        news
    }

    /// Segments that were there are missing after all. Whether they can still come.
    pub(crate) fn lost(&mut self) -> bool {
        if self.state == State::Verifying {
            self.state = State::Receiving;
        }
        self.is_receiving()
    }

    /// The product is verified and has its final name.
    pub(crate) fn verified(&mut self, now: Time, terms: &Terms, config: &ReceiverConfig) -> Act {
        if self.state != State::Verifying {
            return Act::Nothing;
        }
        self.state = State::Completing { since: now };
        self.timers.stop(Timer::Transfer);
        if terms.model == GroupModel::OpenUnlimited {
            // Nobody registers, so nobody reports.
            return self.finished(now);
        }
        self.report(now, config)
    }

    /// Sends Done, and again after a while: longer ones when many were in vain, as in an outage.
    pub(crate) fn report(&mut self, now: Time, config: &ReceiverConfig) -> Act {
        if self.dones == 0 {
            self.reporting_since = now;
        }
        self.dones += 1;
        self.done_sent = now;
        let times = if self.dones > config.done_retry_count { 10 } else { 1 };
        self.timers.set(Timer::Done, now + config.done_retry * times);
        Act::Done
    }

    /// A Completion, and whether its list has this receiver.
    pub(crate) fn completion(
        &mut self,
        now: Time,
        m: &Completion,
        listed: bool,
        config: &ReceiverConfig,
    ) -> Act {
        match self.state {
            State::Completing { since } if listed => {
                Act::End(ReceiverOutcome::Complete { confirmed: true, at: since })
            }
            State::Completing { .. } if m.hosts.is_none() => self.finished(now),
            // Others are confirmed and we are not: our Done was lost, if it has had the time to arrive.
            State::Completing { .. } if now.since(self.done_sent) >= config.done_retry / 2 => {
                self.report(now, config)
            }
            State::Receiving | State::Offered if m.hosts.is_none() => Act::End(ReceiverOutcome::Incomplete),
            _ => Act::Nothing,
        }
    }

    /// The sender aborts.
    pub(crate) fn aborted(&self, now: Time, m: &Abort) -> Act {
        self.over(now, || ReceiverOutcome::Aborted { reason: m.reason, text: m.text.clone() })
    }

    /// The sender has ended the transmission.
    pub(crate) fn ended(&self, now: Time) -> Act {
        self.over(now, || ReceiverOutcome::Incomplete)
    }

    fn over(&self, now: Time, outcome: impl Fn() -> ReceiverOutcome) -> Act {
        match self.state {
            State::Completing { .. } => self.finished(now),
            // What is being verified needs the sender no more.
            State::Verifying => Act::Nothing,
            State::Offered | State::Receiving => Act::End(outcome()),
        }
    }

    /// The product is complete, whether the sender knows or not.
    pub(crate) fn finished(&self, now: Time) -> Act {
        let at = if let State::Completing { since } = self.state { since } else { now };
        Act::End(ReceiverOutcome::Complete { confirmed: false, at })
    }

    /// When the sender's silence becomes too long.
    pub(crate) fn patience_ends(&self) -> Time {
        self.timers.due(Timer::Patience)
    }

    /// When the control wants to be woken.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.timers.next()
    }

    /// Acts on the first timer that is due at `now`; `None` when none is left.
    pub(crate) fn expire(&mut self, now: Time, config: &ReceiverConfig) -> Option<Act> {
        let timer = self.timers.expire(now)?;
        Some(match timer {
            Timer::Register => self.register(now, config),
            Timer::Answer => Act::Flush,
            Timer::Done => self.done_again(now, config),
            Timer::Patience => self.over(now, || ReceiverOutcome::SenderLost),
            Timer::Transfer => self.transfer_timeout(now),
        })
    }

    fn done_again(&mut self, now: Time, config: &ReceiverConfig) -> Act {
        match self.state {
            State::Completing { .. } if now.since(self.reporting_since) >= config.done_patience => {
                self.finished(now)
            }
            State::Completing { .. } => self.report(now, config),
            _ => Act::Nothing,
        }
    }

    fn transfer_timeout(&self, now: Time) -> Act {
        match self.state {
            State::Completing { .. } => self.finished(now),
            _ => Act::Quit(crate::message::cancel::QUIT_TRANSFER_TIMEOUT, "the announced duration is over"),
        }
    }
}
