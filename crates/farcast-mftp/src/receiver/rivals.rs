//! Other transmissions that are announced while one is at hand.
//!
//! Announcing costs nothing, and one transmission is received at a time. So one that has shown nothing keeps its place only
//! until another shows that its sender is there: it grants a token, or sends data where no tokens are granted.

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

/// The most that are remembered.
const MOST: usize = 8;
/// Octets of the longest announcement that is remembered.
const LONGEST: usize = 1024;
/// Time that a sender has to show that it is there before others are asked to.
const SHOWS: Span = Span::from_millis(500);
/// The longest silence of a sender that is borne while another shows that it is there, however slow the sender says it is.
const PATIENCE: Span = Span::from_secs(5);
/// Octets that may be said for each octet of an announcement.
const CREDIT: usize = 3;

/// A transmission that is announced while another is at hand.
#[derive(Clone, Debug)]
struct Rival {
    from: Arrival,
    transmission: u32,
    /// Of the receivers that it lists only this one.
    announce: Box<Announce>,
}

/// Those that were heard last.
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
    /// Tells whether the transmission at hand gives way to one that shows that its sender is there.
    fn gives_way(&self, now: Time) -> bool {
        self.session.as_ref().is_some_and(|session| {
            let silence = now.since(session.control.last_heard);
            let patience = session.followed_after().min(PATIENCE);
            let undecided = matches!(session.control.state, State::Offered | State::Receiving);
            let late = session.guard.is_older_than(now, SHOWS);
            undecided && late && session.guard.yields(now, silence, patience)
        })
    }

    /// Remembers a transmission that is announced while one is at hand that gives way, and asks its sender to show that it
    /// is there.
    pub(super) fn sound_out(&mut self, now: Time, from: &Arrival, transmission: u32, m: &Announce) {
        if !self.invites(m) || !self.gives_way(now) {
            return;
        }
        let Ok(of) = Terms::new(from, transmission, m, &self.config) else { return };
        let mut announce = Box::new(m.clone());
        if let Some(hosts) = &mut announce.hosts {
            hosts.retain(|(host, _)| *host == self.config.id);
        }
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

    /// Takes up a rival whose sender has granted a token; whether it was one.
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

    /// Takes up a rival that sends data, where nothing else can show that its sender is there; whether it was one.
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
        // What is announced was looked at when it was remembered.
        let _ = self.offer(now, &from, transmission, &announce);
    }
}

/// Tells whether the sender that announces `m` grants tokens to those that register.
fn proves(m: &Announce) -> bool {
    m.commitment.is_some() && m.options.model != GroupModel::OpenUnlimited
}
