//! Other transmissions that are announced during the current one.
//!
//! An announcement costs nothing, and only one transmission is received at a time. So a transmission that has proved
//! nothing keeps its place only until the sender of another proves its presence: it grants a token, or sends data where
//! no tokens are granted.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use farcast_core::engine::{Arrival, Message as _};
use farcast_core::{Span, Time};

use super::Receiver;
use super::control::{State, Terms};
use super::guard::Guard;
use crate::event::ReceiverOutcome;
use crate::message::{Announce, Body, Grant, GroupModel, Message, Registration, RegistrationEntry};
use crate::wire;

/// Maximum number of transmissions that are remembered.
const MOST: usize = 8;
/// Octets of the longest announcement that is remembered.
const LONGEST: usize = 1024;
/// Time that a sender has to prove its presence before others are asked to.
const SHOWS: Span = Span::from_millis(500);
/// Maximum silence of a sender that is tolerated while another proves its presence, however slow the announced rate.
const PATIENCE: Span = Span::from_secs(5);
/// Octets that may be sent for each octet of an announcement.
const CREDIT: usize = 3;

/// Transmission that is announced during another one.
#[derive(Clone, Debug)]
struct Rival {
    from: Arrival,
    transmission: u32,
    /// Announcement, with only this receiver in its host list.
    announce: Box<Announce>,
}

/// Transmissions that were announced last.
#[derive(Clone, Debug, Default)]
pub(super) struct Rivals(VecDeque<Rival>);

impl Rivals {
    fn find(&self, from: &Arrival, transmission: u32) -> Option<usize> {
        self.0.iter().position(|one| (one.from.source, one.transmission) == (from.source, transmission))
    }

    fn note(&mut self, rival: Rival) {
        match self.find(&rival.from, rival.transmission) {
            Some(at) => drop(self.0.remove(at)),
            None if self.0.len() == MOST => drop(self.0.pop_front()),
            None => {}
        }
        self.0.push_back(rival);
    }
}

impl Receiver {
    /// Returns `true` if the current transmission gives way to one whose sender proves its presence.
    fn gives_way(&self, now: Time) -> bool {
        self.session.as_ref().is_some_and(|session| {
            let silence = now.since(session.control.last_heard);
            let patience = session.followed_after().min(PATIENCE);
            let undecided = matches!(session.control.state, State::Offered | State::Receiving);
            let late = session.guard.is_older_than(now, SHOWS);
            undecided && late && session.guard.yields(now, silence, patience)
        })
    }

    /// Stores a transmission that is announced during one that gives way, and asks its sender to prove its presence.
    pub(super) fn sound_out(&mut self, now: Time, from: &Arrival, transmission: u32, m: &Announce) {
        if !self.invites(m) || !self.gives_way(now) {
            return;
        }
        let Ok(of) = Terms::new(from, transmission, m, &self.config) else { return };
        let mut announce = Box::new(m.clone());
        announce.keep_only(self.config.id);
        let whole = Message::new(transmission, Body::Announce(announce.clone()));
        if wire::encoded_len(&whole, 0) > LONGEST {
            return;
        }
        if proves(&announce) {
            let guard = Guard::new(now, self.config.secret, &of, &announce);
            self.ask_rival(now, &of, m, &guard);
        }
        self.rivals.note(Rival { from: *from, transmission, announce });
    }

    fn ask_rival(&mut self, now: Time, of: &Terms, m: &Announce, guard: &Guard) {
        let body = Body::Registration(Registration {
            server: of.server,
            entries: alloc::vec![RegistrationEntry {
                client: self.config.id,
                serial: None,
                response: Ok(())
            }],
            name: self.config.name.clone(),
            segments_held: None,
            receive_buffer_bytes: self.config.receive_buffer_bytes,
            nonce: guard.nonce(),
            heard: None,
            complete: None,
            round: None,
        });
        let to = of.answers_to(&body);
        let message = Message::new(of.transmission, body);
        let heard = Message::new(of.transmission, Body::Announce(m.clone().into()));
        if message.wire_len(0) <= CREDIT * wire::encoded_len(&heard, 0) {
            self.outbox.push_back(farcast_core::Transmit::new(message, to));
        } else {
            self.say_to_stranger(now, message, to);
        }
    }

    /// Takes up a transmission whose sender has granted a token. Returns `true` if it did.
    pub(super) fn granted_by_rival(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Message,
        m: &Grant,
    ) -> bool {
        if !self.gives_way(now) {
            return false;
        }
        let Some(at) = self.rivals.find(from, message.transmission) else { return false };
        let rival = &self.rivals.0[at];
        let Ok(of) = Terms::new(&rival.from, rival.transmission, &rival.announce, &self.config) else {
            return false;
        };
        let mut guard = Guard::new(now, self.config.secret, &of, &rival.announce);
        if guard.take_token(now, message.proof, m.token).is_err() {
            return false;
        }
        self.take_rival(now, at);
        if let Some(session) = &mut self.session {
            session.guard = guard;
        }
        true
    }

    /// Takes up a transmission that sends data, if its sender cannot prove its presence otherwise. Returns `true` if it
    /// did.
    pub(super) fn data_of_rival(&mut self, now: Time, from: &Arrival, message: &Message) -> bool {
        let at = self.rivals.find(from, message.transmission);
        match at.filter(|&at| !proves(&self.rivals.0[at].announce)) {
            Some(at) if matches!(message.body, Body::Data(_)) && self.gives_way(now) => {
                self.take_rival(now, at);
                true
            }
            _ => false,
        }
    }

    fn take_rival(&mut self, now: Time, at: usize) {
        let Some(Rival { from, transmission, announce }) = self.rivals.0.remove(at) else { return };
        self.end(ReceiverOutcome::SenderLost);
        // The announcement was checked when it was stored.
        let _ = self.offer(now, &from, transmission, &announce);
    }
}

/// Returns `true` if the sender that announces `m` grants tokens to receivers that register.
fn proves(m: &Announce) -> bool {
    m.commitment.is_some() && m.options.model != GroupModel::OpenUnlimited
}
