//! A receiver's side of all sessions that it takes part in.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use core::fmt;
use core::net::SocketAddr;
use core::ops::Range;

use farcast_core::Time;
use zeroize::Zeroizing;

use crate::draws::Draws;
use crate::history::{Admitted, Begun, History};
use crate::identity::{Identity, Listed, verify};
use crate::refusal::{Refusal, RefusalCounts, Unsealable};
use crate::schedule;
use crate::scope::{Contents, Scope};
use crate::sender::SIGNED_KEYS;
use crate::session::{Session, Told};
use crate::suite::AgreementSecret;
use crate::wire::{self, HEADER, Header, Keys, Kind, SessionId, TAG};

/// How many sessions of one sender, and how many in all, it takes part in at once.
const OF_ONE: usize = 16;
const SESSIONS: usize = 256;

/// Who opens, and whom it hears.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// The receiver.
    pub identity: Identity,
    /// Whose sessions it takes part in.
    pub senders: Vec<Listed>,
    /// What sessions have to be for.
    pub scopes: Vec<Scope>,
}

/// What a datagram may say, by how it was sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Nothing: it had keys.
    Keys {
        /// Whether they begin a session here. Those that do not say nothing that is not known, and anybody may have
        /// repeated or made them.
        new: bool,
    },
    /// Content. Every member of the group could have sealed it.
    Content,
    /// Anything: the sender has signed it.
    Control,
    /// What the sender says to this receiver alone; nothing, where it had only a key.
    ToOne,
}

/// A datagram that was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// What it may say.
    pub class: Class,
    /// Its session.
    pub session: SessionId,
    /// Where in the datagram lies what it says.
    pub payload: Range<usize>,
}

/// Opens what senders say, and seals what a receiver answers.
pub struct Receiver {
    identity: Identity,
    own: Option<AgreementSecret>,
    senders: BTreeMap<[u8; 32], String>,
    scopes: Vec<Scope>,
    sessions: Vec<Session>,
    history: History,
    draws: Draws,
    refusals: RefusalCounts,
}

impl Receiver {
    /// Opens for `config`; `history` is what was heard before. What it draws follows from `seed`: 32 octets that nobody
    /// else knows and that are used for nothing else.
    pub fn new(config: ReceiverConfig, history: History, seed: [u8; 32]) -> Self {
        let ReceiverConfig { identity, senders, scopes } = config;
        let own = identity.agreement_secret();
        let senders = senders.into_iter().map(|listed| (*listed.key.signing(), listed.name)).collect();
        let draws = Draws::new(&Zeroizing::new(seed));
        let (sessions, refusals) = (Vec::new(), RefusalCounts::default());
        Self { identity, own, senders, scopes, sessions, history, draws, refusals }
    }

    /// What was not taken, by reason.
    pub fn refusals(&self) -> &RefusalCounts {
        &self.refusals
    }

    /// What was heard until now, to be remembered over restarts.
    pub fn history(&mut self) -> &History {
        for session in &self.sessions {
            self.history.heard(&session.signing, session.id, session.epoch, session.counter());
        }
        &self.history
    }

    /// What the list calls the sender of a session that it takes part in, and by what number it is known where its name
    /// does not count.
    pub fn sender_of(&self, session: SessionId) -> Option<(&str, u64)> {
        self.sessions.iter().find(|one| one.id == session).map(|one| (one.name.as_str(), one.number))
    }

    /// Whether it takes part in no session.
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether the sender of `session` has one such session at a time: all before it are over.
    pub fn is_alone(&self, session: SessionId) -> bool {
        self.sessions.iter().any(|one| one.id == session && is_alone(one.contents))
    }

    /// Whether `datagram` seems to be content whose key is to come: KEYS have told that there is one.
    pub fn is_early(&self, datagram: &[u8]) -> bool {
        let Ok((header, _)) = Header::parse(datagram) else { return false };
        let mut named = self.sessions.iter().filter(|one| one.id.short() == header.whose);
        named.any(|one| header.kind == one.kind_of_content() && one.awaits(header.epoch))
    }

    /// Whether something has come from `from` whose key is missing, and it is time to ask for that: with an empty answer.
    pub fn wants_key(&mut self, now: Time, datagram: &[u8]) -> Option<SocketAddr> {
        let (header, _) = Header::parse(datagram).ok()?;
        let mut named = self.sessions.iter_mut().filter(|one| one.id.short() == header.whose);
        named.find_map(|one| {
            let has_content = header.kind == one.kind_of_content();
            (has_content && one.asks(now, header.epoch)).then_some(one.from)
        })
    }

    /// Opens a datagram in place.
    ///
    /// # Errors
    /// It was not taken, and is counted.
    pub fn open(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        let result = self.try_open(now, from, datagram);
        self.refusals.note(result)
    }

    fn try_open(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        match wire::kind(datagram)? {
            Kind::Keys => self.keys(now, from, datagram),
            Kind::Content | Kind::Control => self.group(now, from, datagram),
            Kind::ToOne | Kind::ToOneKey => self.alone(now, from, datagram),
            Kind::Answer | Kind::FirstAnswer => Err(Refusal::Misdirected),
        }
    }

    fn keys(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Result<Opened, Refusal> {
        let (keys, signed, signature) = Keys::parse(datagram)?;
        let name = self.senders.get(keys.signing).ok_or(Refusal::UntrustedSender)?;
        if !self.scopes.contains(&keys.scope) {
            return Err(Refusal::OtherScope);
        }
        let (began_ms, scope) = (keys.began_ms, keys.scope);
        let id = schedule::session((keys.contents, scope), began_ms, (keys.signing, keys.agreement));
        let begun = Begun { session: id, began_ms, scope, alone: is_alone(keys.contents) };
        let opened = |new| Opened { class: Class::Keys { new }, session: id, payload: HEADER..HEADER };
        let known = self.sessions.iter().position(|one| one.id == id);
        if let Some(session) = known.map(|at| &self.sessions[at]) {
            match keys.epoch.cmp(&session.epoch) {
                Ordering::Less => return Err(Refusal::UnknownEpoch),
                Ordering::Equal => return Ok(opened(false)),
                Ordering::Greater => {}
            }
        }
        let admitted = self.history.admit(keys.signing, begun, &self.scopes)?;
        if keys.epoch < admitted.epoch {
            return Err(Refusal::UnknownEpoch);
        }
        // Nobody who has our line wraps anything for us by another suite.
        let own = self.own.as_ref().filter(|own| own.suite() == keys.suite).ok_or(Refusal::NotListed)?;
        let tag = schedule::tag(id, self.identity.public());
        let mut mine = keys.each().filter(|entry| entry.starts_with(&tag)).peekable();
        if mine.peek().is_none() {
            return Err(Refusal::NotListed);
        }
        if !verify(keys.signing, &[SIGNED_KEYS, signed].concat(), signature) {
            return Err(Refusal::BadSignature);
        }
        let unwrap = |entry| schedule::unwrap((own, self.identity.public()), (id, keys.epoch), entry);
        // Whose tag meets by chance is another's.
        let (secret, pair) = mine.find_map(unwrap).ok_or(Refusal::NotListed)?;
        let told = Told {
            id,
            began_ms: keys.began_ms,
            scope: keys.scope,
            contents: keys.contents,
            signing: *keys.signing,
            name: name.clone(),
            agreement: *keys.agreement,
            tag,
            epoch: keys.epoch,
            secret,
            pair,
        };
        if let Some(at) = known {
            let session = &mut self.sessions[at];
            session.go_on(told);
            (session.from, session.heard) = (from, now);
            return Ok(opened(false));
        }
        self.follow_earlier(keys.signing, (began_ms, scope));
        self.make_room(keys.signing, began_ms)?;
        self.history.began(keys.signing, begun);
        let counter = if keys.epoch == admitted.epoch { admitted.counter } else { 0 };
        self.sessions.push(Session::new(told, Admitted { counter, ..admitted }, (from, now)));
        Ok(opened(true))
    }

    fn group(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        let is = |session: &Session, header: &Header| session.id.short() == header.whose;
        let open = |session: &mut Session, what: (&Header, &[u8; HEADER]), body: &mut [u8]| {
            session.open_group(what, body).map(|behind| (0, behind))
        };
        let (header, at, payload) = self.open_by(datagram, is, open)?;
        let session = &mut self.sessions[at];
        session.heard = now;
        let class = if header.kind == Kind::Control { Class::Control } else { Class::Content };
        if class == Class::Control {
            session.from = from;
        }
        Ok(Opened { class, session: session.id, payload })
    }

    fn alone(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        let is = |session: &Session, header: &Header| session.tag == header.whose;
        let open = |session: &mut Session, what: (&Header, &[u8; HEADER]), body: &mut [u8]| {
            session.open_own(what, body).map(|skipped| (skipped, TAG))
        };
        let (_, at, payload) = self.open_by(datagram, is, open)?;
        let session = &mut self.sessions[at];
        (session.from, session.heard) = (from, now);
        Ok(Opened { class: Class::ToOne, session: session.id, payload })
    }

    /// Opens a datagram by the session that it `is` of: which one, and where what it says lies. Sessions whose names
    /// begin alike are tried in turn, so that no sender can shut out another by the name that it chooses.
    fn open_by(
        &mut self,
        datagram: &mut [u8],
        is: impl Fn(&Session, &Header) -> bool,
        open: impl Fn(&mut Session, (&Header, &[u8; HEADER]), &mut [u8]) -> Result<(usize, usize), Refusal>,
    ) -> Result<(Header, usize, Range<usize>), Refusal> {
        let (header, nonce) = Header::parse(datagram)?;
        let len = datagram.len();
        let body = datagram.get_mut(HEADER..).ok_or(Refusal::Malformed)?;
        let mut candidates = (0..self.sessions.len()).filter(|&at| is(&self.sessions[at], &header));
        let first = candidates.next().ok_or(Refusal::UnknownSession)?;
        let others: Vec<_> = candidates.collect();
        // What one fails to open is not what it was.
        let copy = if others.is_empty() { Vec::new() } else { body.to_vec() };
        let mut result = open(&mut self.sessions[first], (&header, &nonce), body);
        let mut at = first;
        for &other in &others {
            if result.is_ok() {
                break;
            }
            body.copy_from_slice(&copy);
            (result, at) = (open(&mut self.sessions[other], (&header, &nonce), body), other);
        }
        let (skipped, behind) = result?;
        Ok((header, at, HEADER + skipped..len - behind))
    }

    /// Seals an answer to the sender that is at `to`; an empty one asks for the key of the epoch.
    ///
    /// # Errors
    /// No sender was heard from there, or the key has sealed all that it may.
    pub fn seal_answer(&mut self, to: SocketAddr, datagram: &mut Vec<u8>) -> Result<(), Unsealable> {
        let at = self.session_at(to).ok_or(Unsealable::UnknownAddress)?;
        self.sessions[at].seal(&mut self.draws, datagram)
    }

    /// The transfer of `session` is over: what was recorded of it is no news.
    pub fn close(&mut self, session: SessionId) {
        let Some(at) = self.sessions.iter().position(|one| one.id == session) else { return };
        let session = self.sessions.swap_remove(at);
        self.history.close(&session.signing, session.id);
    }

    /// The transfers of all sessions are over of which a sender has one at a time.
    pub fn close_alone(&mut self) {
        let Self { sessions, history, .. } = self;
        sessions.retain(|one| {
            let ends = is_alone(one.contents);
            if ends {
                history.close(&one.signing, one.id);
            }
            !ends
        });
    }

    /// Takes no part in `session` until its keys come again.
    pub fn leave(&mut self, session: SessionId) {
        self.sessions.retain(|one| one.id != session);
    }

    /// Learns what others with the same key have heard, now that keys have begun `session`: whether it goes on.
    pub fn learn(&mut self, session: SessionId, heard: &History) -> bool {
        self.history.merge(heard);
        let Some(at) = self.sessions.iter().position(|one| one.id == session) else { return false };
        let one = &mut self.sessions[at];
        let alone = is_alone(one.contents);
        let begun = Begun { session, began_ms: one.began_ms, scope: one.scope, alone };
        match self.history.admit(&one.signing, begun, &self.scopes) {
            Ok(admitted) if admitted.epoch <= one.epoch => {
                one.followed |= admitted.followed;
                if one.epoch == admitted.epoch {
                    one.heard_up_to(admitted.counter);
                }
                return true;
            }
            _ => {}
        }
        self.sessions.swap_remove(at);
        false
    }

    /// The session of the sender at `address`; where it hears answers elsewhere, on the same host, or else the only one.
    ///
    /// Of a sender the session that began last counts, so that who plays back the keys of earlier ones diverts no answer;
    /// but one in which it has shown that it hears answers, and in which it was heard since, and not one of which somebody
    /// may have played the keys. Of several senders, of whom all but one only claim to be there, it is one that has shown
    /// that.
    fn session_at(&self, address: SocketAddr) -> Option<usize> {
        let of = |is: &dyn Fn(&Session) -> bool| {
            let mut last = BTreeMap::<_, (usize, &Session)>::new();
            for (at, one) in self.sessions.iter().enumerate().filter(|(_, one)| is(one)) {
                let kept = last.entry(&one.signing).or_insert((at, one));
                if one.goes_before(kept.1) {
                    *kept = (at, one);
                }
            }
            last.into_values().max_by_key(|(_, one)| (one.is_confirmed(), one.heard)).map(|(at, _)| at)
        };
        let only = || (self.sessions.len() == 1).then_some(0);
        of(&|one| one.from == address).or_else(|| of(&|one| one.from.ip() == address.ip())).or_else(only)
    }

    /// A session of this sender's has begun: those are over that began before and whose content has no keys apart. What was
    /// not heard of them until now could be anybody's record.
    fn follow_earlier(&mut self, signing: &[u8; 32], (began_ms, scope): (u64, Scope)) {
        let Self { sessions, history, .. } = self;
        sessions.retain_mut(|one| {
            one.followed |= one.signing == *signing && one.began_ms < began_ms;
            let ends = one.followed && is_alone(one.contents);
            if ends && one.scope == scope {
                history.close(&one.signing, one.id);
            } else if ends {
                // It may go on at others with this key, who are in no such group.
                history.heard(&one.signing, one.id, one.epoch, one.counter());
            }
            !ends
        });
    }

    /// Makes room for a session that began at `began_ms`: of the sender with the most sessions goes the one that began
    /// first, of those in which it has not shown that it hears answers, if there are any. So nobody's sessions go for those
    /// of one who begins many, and none for one that is played back.
    fn make_room(&mut self, signing: &[u8; 32], began_ms: u64) -> Result<(), Refusal> {
        let of = |signing: &[u8; 32]| self.sessions.iter().filter(|one| one.signing == *signing).count();
        let own = of(signing);
        if own < OF_ONE && self.sessions.len() < SESSIONS {
            return Ok(());
        }
        let may_go = |one: &Session| own < OF_ONE || one.signing == *signing;
        let found = self.sessions.iter().enumerate().filter(|(_, one)| may_go(one));
        let last_to_go = |one: &Session| (one.is_confirmed(), one.began_ms);
        let first = found.max_by_key(|(_, one)| (of(&one.signing), Reverse(last_to_go(one))));
        let (at, gone) = first.ok_or(Refusal::Limit)?;
        if gone.signing == *signing && began_ms < gone.began_ms {
            return Err(Refusal::Limit);
        }
        let gone = self.sessions.swap_remove(at);
        self.history.heard(&gone.signing, gone.id, gone.epoch, gone.counter());
        Ok(())
    }
}

/// Whether a session is over once its sender has begun another one: all but those whose content nobody can open any more
/// by what was recorded.
fn is_alone(contents: Contents) -> bool {
    contents != Contents::Apart
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.identity.public().fingerprint();
        let sessions: Vec<_> = self.sessions.iter().map(|one| one.id).collect();
        write!(f, "Receiver {{ {fingerprint}, sessions: {sessions:?}, refusals: {:?} }}", self.refusals)
    }
}
