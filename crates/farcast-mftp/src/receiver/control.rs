//! Decisions of a receiver that do not depend on which segments it has.
//!
//! The rules are here, once, for the [engine](crate::Receiver) of one receiver and for a
//! [population](crate::Population) of many: each calls these functions and carries out the [`Action`] that they return. A
//! [`Control`] is small and cloneable: a population has one for all receivers in the same state, and copies it when a
//! message reaches some of them and not the others.

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Deadline, Span, Time, Timers, timers};
use farcast_delivery::{Geometry, GeometryError, ObjectId, Offer};

use super::calls::Calls;
use crate::config::ReceiverConfig;
use crate::event::ReceiverOutcome;
use crate::message::{Abort, Announce, Body, Completion, GroupModel, HostState, StatusRequest};
use crate::wire;

/// Time after a registration within which an announcement counts as a copy of the answered one, unless data has begun.
const COPY_WITHIN: Span = Span::from_millis(20);
/// Maximum time over which the pieces of an announcement with a long host list arrive: one registration answers all of
/// them.
const PIECES_WITHIN: Span = Span::from_secs(2);
/// Number of hosts from which a list is long, and may have come in pieces.
const LONG_LIST: usize = 64;
/// Maximum number of DTUs of a block: the largest datagram holds one NAK of them. A sender that announces more would
/// make its receivers build answers that cannot be sent.
const LARGEST_BLOCK: usize = wire::block_size_for(65_507, 40);

timers! {
    /// Timers of a receiver.
    pub(crate) enum Timer {
        /// Send the registration, for the first time or again.
        Register = "register",
        /// Send the NAKs that were held back to spread them.
        Answer = "answer",
        /// Speak, because the sender has called this receiver's turn.
        Turn = "turn",
        /// Send Done again.
        Done = "done",
        /// The sender has not been heard for a long time.
        Patience = "patience",
        /// The announced transfer duration is over.
        Transfer = "transfer",
    }
}

/// State of a receiver in a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The product is offered to the owner.
    Offered,
    /// The receiver takes part.
    Receiving,
    /// Every segment is stored, and the owner verifies.
    Verifying,
    /// The product is verified, and the receiver waits for the sender's confirmation.
    Completing {
        /// Time at which the product was verified.
        since: Time,
    },
}

/// Action to be carried out, in addition to the changes of the control itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// No action.
    Nothing,
    /// Register, after a part of the back-off window.
    RegisterLater,
    /// Register now.
    Register,
    /// Register now, by a message that also reports the complete product.
    RegisterDone,
    /// The registration is confirmed: tell the owner.
    Accepted,
    /// Answer a status request, after a part of the back-off window.
    Answer,
    /// Send the answers that are held back, at once.
    Flush,
    /// Acknowledge the status request.
    Ack,
    /// Report that the product is complete.
    Done,
    /// Leave, with a reason of [`cancel`](crate::message::cancel) and a text.
    Quit(u32, &'static str),
    /// The transmission is over for this receiver.
    End(ReceiverOutcome),
}

/// Terms of a transmission, from its announcement; the same for all its receivers.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Source address of the sender's messages.
    pub(crate) source: SocketAddr,
    /// Server address as the sender announces it, for use in answers.
    pub(crate) server: SocketAddr,
    pub(crate) response: SocketAddr,
    pub(crate) transmission: u32,
    pub(crate) model: GroupModel,
    pub(crate) offer: Offer,
    pub(crate) backoff: Span,
    pub(crate) transfer: Span,
}

impl Terms {
    /// Creates the terms of an announcement, and checks them against the receiver's limits.
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

    /// Adopts the announcement of the same product by a sender that was started again.
    pub(crate) fn follow(&mut self, from: &Arrival, transmission: u32, m: &Announce) {
        let (server, response) = addresses(from, m);
        (self.source, self.server, self.response) = (from.source, server, response);
        (self.transmission, self.model) = (transmission, m.options.model);
        self.backoff = Span::from_millis(m.backoff_window_ms.unwrap_or(0).into());
        self.transfer = Span::from_secs(m.transfer_duration_s.into());
        // Parity symbols are the same in every transmission of a product with the same blocks, so they stay valid.
        self.offer.parity_symbols = parity_symbols(m);
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.offer.geometry
    }

    /// Returns the destination of `body`. A registration goes to the sender alone, because a host that hears its nonce
    /// could take this receiver's place.
    pub(crate) fn answers_to(&self, body: &Body) -> SocketAddr {
        let alone = matches!(body, Body::Registration(_)) && self.response.ip().is_multicast();
        if alone { self.source } else { self.response }
    }
}

/// Returns the server and response addresses of an announcement.
///
/// A sender that does not know its own address announces 0.0.0.0; answers then go to the source of the announcement.
/// They also go there if the announced address is unusable or belongs to another host, so that nobody can direct
/// answers at a third host.
fn addresses(from: &Arrival, m: &Announce) -> (SocketAddr, SocketAddr) {
    let sound = m.response.port() != 0 && m.response.is_ipv4() == from.source.is_ipv4();
    let own = m.response.ip() == from.source.ip() || m.response.ip().is_multicast();
    (m.server, if sound && own { m.response } else { from.source })
}

/// Returns the parity symbols of an announcement, limited to the maximum of a block code.
fn parity_symbols(m: &Announce) -> u32 {
    m.parity_symbols.unwrap_or(0).min(32_768)
}

/// State of a receiver, apart from the segments that it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Control {
    pub(crate) state: State,
    /// `true` if the sender has confirmed the registration, or no confirmation is needed.
    pub(crate) accepted: bool,
    registrations: u32,
    /// Time of the last registration, as long as it is not confirmed.
    registered: Option<Time>,
    /// `true` if a timer repeats the registration.
    pub(crate) register_timer: bool,
    calls: Calls,
    dones: u32,
    /// Time at which the first Done was sent to the current sender.
    reporting_since: Time,
    done_sent: Time,
    pub(crate) began: Time,
    /// Time at which the sender was last heard.
    pub(crate) last_heard: Time,
    timers: Timers<Timer>,
}

impl Control {
    /// Creates the state of a receiver to whose owner a transmission was offered, whose sender calls turns if
    /// `by_turns` is set.
    pub(crate) fn offered(now: Time, terms: &Terms, by_turns: bool) -> Self {
        Self {
            state: State::Offered,
            accepted: terms.model == GroupModel::OpenUnlimited,
            registrations: 0,
            registered: None,
            register_timer: false,
            calls: Calls::new(by_turns),
            dones: 0,
            reporting_since: Time::ZERO,
            done_sent: Time::ZERO,
            began: now,
            last_heard: now,
            timers: Timers::default(),
        }
    }

    /// Begins to take part, by the owner's decision.
    pub(crate) fn accept(&mut self, now: Time, terms: &Terms, config: &ReceiverConfig) -> Action {
        self.state = State::Receiving;
        self.began = now;
        self.timers.set(Timer::Patience, now + config.patience);
        self.timers.set(Timer::Transfer, now + terms.transfer);
        self.register_if_needed()
    }

    /// Follows a sender that was started again. The state about the old sender is discarded.
    pub(crate) fn follow(
        &mut self,
        now: Time,
        terms: &Terms,
        by_turns: bool,
        config: &ReceiverConfig,
    ) -> Action {
        self.last_heard = now;
        self.accepted = terms.model == GroupModel::OpenUnlimited;
        self.calls = Calls::new(by_turns);
        (self.registrations, self.register_timer) = (0, false);
        // The announcement before may have been forged, with a window of years.
        self.timers.stop(Timer::Register);
        if by_turns {
            self.timers.stop(Timer::Done);
        }
        self.timers.set(Timer::Patience, now + config.patience);
        if matches!(self.state, State::Completing { .. }) {
            // The sender that was started again does not know that the product is complete here.
            self.dones = 0;
        } else {
            self.timers.set(Timer::Transfer, now + terms.transfer);
        }
        self.register_if_needed()
    }

    fn register_if_needed(&self) -> Action {
        if self.accepted || self.speaks_by_turns() { Action::Nothing } else { Action::RegisterLater }
    }

    /// Records that the sender was heard.
    pub(crate) fn touch(&mut self, now: Time, config: &ReceiverConfig) {
        self.last_heard = now;
        if self.state != State::Offered {
            self.timers.set(Timer::Patience, now + config.patience);
        }
    }

    /// Handles an announcement of the current transmission, with this receiver's entry in its list, which may confirm
    /// the registration.
    pub(crate) fn announced(
        &mut self,
        now: Time,
        m: &Announce,
        standing: Option<HostState>,
        config: &ReceiverConfig,
    ) -> Action {
        let turns_end = self.calls.hear(m.turn.is_some());
        if turns_end && self.is_completing() {
            self.accepted |= standing == Some(HostState::Accepted);
            return self.report(now, config);
        }
        let is_long = m.entries() >= LONG_LIST;
        let within = if is_long { PIECES_WITHIN } else { COPY_WITHIN };
        let answered = self.registered.is_some_and(|registered| now < registered + within);
        let copy = answered && (is_long || m.announce_duration_s > 0);
        if self.state == State::Offered || self.accepted {
            Action::Nothing
        } else if standing == Some(HostState::Accepted) {
            (self.accepted, self.registered) = (true, None);
            self.timers.stop(Timer::Register);
            Action::Accepted
        } else if copy || self.speaks_by_turns() || self.timers.is_set(Timer::Register) {
            Action::Nothing
        } else {
            Action::RegisterLater
        }
    }

    /// Returns `true` if the receiver has something to say when its turn is called.
    pub(crate) fn has_to_speak(&self) -> bool {
        match self.state {
            State::Receiving => !self.accepted,
            State::Completing { .. } => true,
            State::Offered | State::Verifying => false,
        }
    }

    /// Returns `true` if the receiver registers and reports only when its turn is called.
    pub(crate) fn speaks_by_turns(&self) -> bool {
        self.calls == Calls::Now
    }

    /// Speaks after `wait`, because the receiver's turn was called.
    pub(crate) fn speak_after(&mut self, now: Time, wait: Span) {
        self.timers.set(Timer::Turn, now + wait);
    }

    /// Returns what a receiver says whose turn was called. The sender calls again what it did not hear, so no timer
    /// repeats it.
    pub(crate) fn speak(&self) -> Action {
        match self.state {
            State::Receiving if !self.accepted => Action::Register,
            State::Completing { .. } if self.accepted => Action::Done,
            State::Completing { .. } => Action::RegisterDone,
            _ => Action::Nothing,
        }
    }

    /// Registers after `wait`.
    pub(crate) fn register_after(&mut self, now: Time, wait: Span, config: &ReceiverConfig) -> Action {
        if wait.is_zero() {
            return self.register(now, config);
        }
        self.timers.set(Timer::Register, now + wait);
        Action::Nothing
    }

    /// Registers, or gives up after too many registrations.
    fn register(&mut self, now: Time, config: &ReceiverConfig) -> Action {
        if self.accepted {
            return Action::Nothing;
        }
        if self.register_timer {
            let often = self.registrations > config.register_retry_count;
            if often && config.secret.is_none() {
                return Action::End(ReceiverOutcome::NotAccepted);
            }
            // As long as the sender is heard, it may also hear the receiver. With proofs this also recovers a lost
            // token.
            let times = if often { 4 } else { 1 };
            self.timers.set(Timer::Register, now + config.register_retry * times);
        }
        self.registrations += 1;
        self.registered = Some(now);
        Action::Register
    }

    /// Checks that data that comes now is taken, and returns the reason if it is not.
    pub(crate) fn takes_data(&self, config: &ReceiverConfig) -> Result<(), Reject> {
        match self.state {
            // Who waits for its turn cannot be confirmed yet.
            State::Receiving if self.accepted || self.speaks_by_turns() || config.keep_early_data => Ok(()),
            State::Verifying | State::Completing { .. } => Err(Reject::Duplicate),
            // The draft discards data that comes before the registration is confirmed (§11.1.1).
            State::Receiving | State::Offered => Err(Reject::Unexpected),
        }
    }

    /// Starts to repeat the registration by a timer, because data runs although no confirmation came.
    pub(crate) fn data_before_confirmation(&mut self, now: Time, config: &ReceiverConfig) {
        if self.is_unconfirmed() {
            self.register_timer = true;
            // A first registration that waits for its part of the window is not put off.
            if !self.timers.is_set(Timer::Register) {
                self.timers.set(Timer::Register, now + config.register_retry);
            }
        }
    }

    /// Returns the time since which the receiver takes part without a confirmation of its registration.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        (!self.accepted && self.state != State::Offered).then_some(self.began)
    }

    /// Returns `true` if the receiver has the whole product and reports it.
    pub(crate) fn is_completing(&self) -> bool {
        matches!(self.state, State::Completing { .. })
    }

    /// Returns `true` if the receiver takes part and lacks segments.
    pub(crate) fn is_receiving(&self) -> bool {
        self.state == State::Receiving
    }

    /// Returns `true` if the next data starts the repetition of the registration.
    pub(crate) fn is_changed_by_data(&self) -> bool {
        self.is_receiving() && self.is_unconfirmed()
    }

    /// Returns `true` if a sign that data runs would start the repetition of the registration.
    fn is_unconfirmed(&self) -> bool {
        !self.accepted && !self.register_timer && !self.speaks_by_turns() && self.state != State::Offered
    }

    /// Handles a status request for this receiver.
    pub(crate) fn asked(
        &mut self,
        now: Time,
        m: &StatusRequest,
        terms: &Terms,
        config: &ReceiverConfig,
    ) -> Result<Action, Reject> {
        // A request for several blocks asks about all DTUs of each (draft §12.1.6), so each block may need an answer.
        let (geometry, dtus) = (terms.geometry(), m.dtus);
        let whole = dtus.first() == 0 && dtus.count() >= geometry.block_len(0);
        let within = dtus.first() < geometry.block_size() && (m.blocks.count() == 1 || whole);
        if m.blocks.end() > geometry.blocks() || !within {
            return Err(Reject::OutOfRange);
        }
        if m.turn.is_none() {
            self.calls.hear(false);
        }
        self.data_before_confirmation(now, config);
        match self.state {
            State::Verifying | State::Completing { .. } if m.turn.is_some() => Ok(Action::Nothing),
            // No answer is sent before the owner has decided.
            State::Offered => Err(Reject::Unexpected),
            State::Receiving => Ok(Action::Answer),
            // The sender must not mistake the time of verification for silence.
            State::Verifying => Ok(Action::Ack),
            State::Completing { .. } => Ok(self.report(now, config)),
        }
    }

    /// Holds an answer back until `at`.
    pub(crate) fn answer_at(&mut self, at: Time) {
        self.timers.set(Timer::Answer, at);
    }

    /// Records that no answer is held back any more.
    pub(crate) fn answered(&mut self) {
        self.timers.stop(Timer::Answer);
    }

    /// Records that every segment is stored. Returns `true` if it was not known before.
    pub(crate) fn complete(&mut self) -> bool {
        let news = self.state == State::Receiving;
        if news {
            self.state = State::Verifying;
            self.answered();
        }
        news
    }

    /// Records that stored segments are missing after all. Returns `true` if they can still come.
    pub(crate) fn lost(&mut self) -> bool {
        if self.state == State::Verifying {
            self.state = State::Receiving;
        }
        self.is_receiving()
    }

    /// Records that the product is verified and has its final name.
    pub(crate) fn verified(&mut self, now: Time, terms: &Terms, config: &ReceiverConfig) -> Action {
        if self.state != State::Verifying {
            return Action::Nothing;
        }
        self.state = State::Completing { since: now };
        self.timers.stop(Timer::Transfer);
        if terms.model == GroupModel::OpenUnlimited {
            // Receivers do not register, so they do not report.
            return self.finished(now);
        }
        if self.speaks_by_turns() { Action::Nothing } else { self.report(now, config) }
    }

    /// Reports a complete product once more, because the sender has just granted a token.
    pub(crate) fn report_proved(&mut self, now: Time, config: &ReceiverConfig) -> Action {
        if self.speaks_by_turns() { Action::RegisterDone } else { self.report(now, config) }
    }

    /// Reports the complete product, and schedules the next report. The interval is longer after many reports without a
    /// confirmation, as in an outage. A sender that does not know the receiver believes no Done, so a report registers too.
    pub(crate) fn report(&mut self, now: Time, config: &ReceiverConfig) -> Action {
        if self.dones == 0 {
            self.reporting_since = now;
        }
        self.dones += 1;
        self.done_sent = now;
        let times = if self.dones > config.done_retry_count { 10 } else { 1 };
        self.timers.set(Timer::Done, now + config.done_retry * times);
        if self.calls != Calls::None && !self.accepted { Action::RegisterDone } else { Action::Done }
    }

    /// Handles a Completion; `listed` is `true` if its list has this receiver.
    pub(crate) fn completion(
        &mut self,
        now: Time,
        m: &Completion,
        listed: bool,
        config: &ReceiverConfig,
    ) -> Action {
        match self.state {
            State::Completing { since } if listed => {
                Action::End(ReceiverOutcome::Complete { confirmed: true, at: since })
            }
            State::Completing { .. } if m.hosts.is_none() => self.finished(now),
            // Others are confirmed and this receiver is not. If its Done has had the time to arrive, the Done was lost.
            State::Completing { .. }
                if !self.speaks_by_turns() && now.since(self.done_sent) >= config.done_retry / 2 =>
            {
                self.report(now, config)
            }
            State::Receiving | State::Offered if m.hosts.is_none() => {
                Action::End(ReceiverOutcome::Incomplete)
            }
            _ => Action::Nothing,
        }
    }

    /// Handles an Abort of the sender.
    pub(crate) fn aborted(&self, now: Time, m: &Abort) -> Action {
        self.over(now, || ReceiverOutcome::Aborted { reason: m.reason, text: m.text.clone() })
    }

    /// Handles the end of the transmission by the sender.
    pub(crate) fn ended(&self, now: Time) -> Action {
        self.over(now, || ReceiverOutcome::Incomplete)
    }

    fn over(&self, now: Time, outcome: impl Fn() -> ReceiverOutcome) -> Action {
        match self.state {
            State::Completing { .. } => self.finished(now),
            // Verification does not need the sender any more.
            State::Verifying => Action::Nothing,
            State::Offered | State::Receiving => Action::End(outcome()),
        }
    }

    /// Ends with the complete product, confirmed or not.
    pub(crate) fn finished(&self, now: Time) -> Action {
        let at = if let State::Completing { since } = self.state { since } else { now };
        Action::End(ReceiverOutcome::Complete { confirmed: false, at })
    }

    /// Returns the time at which the sender's silence becomes too long.
    pub(crate) fn patience_ends(&self) -> Time {
        self.timers.due(Timer::Patience)
    }

    /// Returns the next timer.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.timers.next()
    }

    /// Acts on the first timer that is due at `now`; `None` when none is left.
    pub(crate) fn expire(&mut self, now: Time, config: &ReceiverConfig) -> Option<Action> {
        let timer = self.timers.expire(now)?;
        Some(match timer {
            Timer::Register => self.register(now, config),
            Timer::Answer => Action::Flush,
            Timer::Turn => self.speak(),
            Timer::Done => self.done_again(now, config),
            Timer::Patience => self.over(now, || ReceiverOutcome::SenderLost),
            Timer::Transfer => self.transfer_timeout(now),
        })
    }

    fn done_again(&mut self, now: Time, config: &ReceiverConfig) -> Action {
        match self.state {
            State::Completing { .. } if now.since(self.reporting_since) >= config.done_patience => {
                self.finished(now)
            }
            State::Completing { .. } => self.report(now, config),
            _ => Action::Nothing,
        }
    }

    fn transfer_timeout(&self, now: Time) -> Action {
        match self.state {
            State::Completing { .. } => self.finished(now),
            _ => {
                Action::Quit(crate::message::cancel::QUIT_TRANSFER_TIMEOUT, "the announced duration is over")
            }
        }
    }
}
