//! Receiver's side of all its sessions.

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
use crate::history::{Admitted, History, SessionStart};
use crate::identity::{Identity, Listed, verify};
use crate::refusal::{Refusal, RefusalCounts, Unsealable};
use crate::schedule::{self, EpochId, SessionParameters};
use crate::scope::{Contents, Scope};
use crate::sender::SIGNED_KEYS;
use crate::session::{KeyGrant, Session};
use crate::suite::AgreementSecret;
use crate::wire::{self, HEADER, Header, Keys, Kind, SessionId, TAG};

/// Maximum numbers of sessions of one sender, and of all senders, at the same time.
const OF_ONE: usize = 16;
const SESSIONS: usize = 256;

/// Configuration of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Identity of the receiver.
    pub identity: Identity,
    /// Senders whose sessions the receiver takes part in.
    pub senders: Vec<Listed>,
    /// Scopes of the sessions that the receiver takes part in.
    pub scopes: Vec<Scope>,
}

/// Class of a datagram by its seal, which decides what it may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// KEYS datagram, without a message.
    Keys {
        /// `true` if it begins a session here. Otherwise it contains nothing new, and anybody may have repeated or made
        /// it.
        new: bool,
    },
    /// Content. Every member of the group could have sealed it.
    Content,
    /// Any message. The sender has signed it.
    Control,
    /// Message of the sender to this receiver alone; empty if the datagram has only a key.
    ToOne,
}

/// Opened datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Class of the datagram.
    pub class: Class,
    /// Session that it belongs to.
    pub session: SessionId,
    /// Byte range of the payload in the datagram.
    pub payload: Range<usize>,
}

/// Opener of senders' datagrams, and sealer of a receiver's answers.
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
    /// Creates a receiver for `config`; `history` is the record of sessions heard before. Its random octets derive from
    /// `seed`: 32 octets that nobody else knows and that have no other use.
    pub fn new(config: ReceiverConfig, history: History, seed: [u8; 32]) -> Self {
        let ReceiverConfig { identity, senders, scopes } = config;
        let own = identity.agreement_secret();
        let senders = senders.into_iter().map(|listed| (*listed.key.signing(), listed.name)).collect();
        let draws = Draws::new(&Zeroizing::new(seed));
        let (sessions, refusals) = (Vec::new(), RefusalCounts::default());
        Self { identity, own, senders, scopes, sessions, history, draws, refusals }
    }

    /// Returns the number of refused datagrams, by reason.
    pub fn refusals(&self) -> &RefusalCounts {
        &self.refusals
    }

    /// Returns the record of the sessions heard so far, to be kept over restarts.
    pub fn history(&mut self) -> &History {
        for session in &self.sessions {
            self.history.heard(&session.signing, session.id, session.epoch, session.counter());
        }
        &self.history
    }

    /// Returns the name in the key list, and the key number, of the sender of a session that the receiver takes part
    /// in. Protocols that do not know nodes by name use the number.
    pub fn sender_of(&self, session: SessionId) -> Option<(&str, u64)> {
        self.sessions.iter().find(|one| one.id == session).map(|one| (one.name.as_str(), one.number))
    }

    /// Returns `true` if the receiver takes part in no session.
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Returns `true` if the sender of `session` has one such session at a time, so that all its earlier ones are over.
    pub fn is_alone(&self, session: SessionId) -> bool {
        self.sessions.iter().any(|one| one.id == session && is_alone(one.contents))
    }

    /// Returns `true` if `datagram` seems to be content whose key is still to come, as KEYS have announced.
    pub fn is_early(&self, datagram: &[u8]) -> bool {
        let Ok(header) = Header::parse(datagram) else { return false };
        let mut named = self.sessions.iter().filter(|one| one.id.short() == header.whose);
        named.any(|one| header.kind == one.kind_of_content() && one.awaits(header.epoch))
    }

    /// Returns the sender's address if `datagram` needs a key that is missing, and it is time to request the key with
    /// an empty answer.
    pub fn wants_key(&mut self, now: Time, datagram: &[u8]) -> Option<SocketAddr> {
        let header = Header::parse(datagram).ok()?;
        let mut named = self.sessions.iter_mut().filter(|one| one.id.short() == header.whose);
        named.find_map(|one| {
            let has_content = header.kind == one.kind_of_content();
            (has_content && one.asks(now, header.epoch)).then_some(one.from)
        })
    }

    /// Opens a datagram in place.
    ///
    /// # Errors
    /// Returns the reason if the datagram is refused, and counts it.
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
        let id = schedule::session(&SessionParameters {
            contents: keys.contents,
            scope,
            began_ms,
            signing: keys.signing,
            agreement: keys.agreement,
        });
        let begun = SessionStart { session: id, began_ms, scope, alone: is_alone(keys.contents) };
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
        let is_signed = || verify(keys.signing, &[SIGNED_KEYS, signed].concat(), signature);
        let grant = self.grant(id, &keys, name.clone(), is_signed)?;
        if let Some(at) = known {
            let session = &mut self.sessions[at];
            session.rekey(grant);
            (session.from, session.heard) = (from, now);
            return Ok(opened(false));
        }
        self.follow_earlier(keys.signing, began_ms, scope);
        self.make_room(keys.signing, began_ms)?;
        self.history.began(keys.signing, begun);
        let counter = if keys.epoch == admitted.epoch { admitted.counter } else { 0 };
        self.sessions.push(Session::new(grant, Admitted { counter, ..admitted }, from, now));
        Ok(opened(true))
    }

    /// Unwraps the keys of the session `id` that are for this receiver, from the sender called `name`.
    ///
    /// # Errors
    /// There are none for this receiver, or the signature does not hold.
    fn grant(
        &self,
        id: SessionId,
        keys: &Keys<'_>,
        name: String,
        is_signed: impl FnOnce() -> bool,
    ) -> Result<KeyGrant, Refusal> {
        // A sender that has the public key of this receiver wraps nothing for it by another suite.
        let own = self.own.as_ref().filter(|own| own.suite() == keys.suite).ok_or(Refusal::NotListed)?;
        let tag = schedule::tag(id, self.identity.public());
        let mut mine = keys.each().filter(|entry| entry.starts_with(&tag)).peekable();
        if mine.peek().is_none() {
            return Err(Refusal::NotListed);
        }
        if !is_signed() {
            return Err(Refusal::BadSignature);
        }
        let of = EpochId { session: id, epoch: keys.epoch };
        let unwrap = |entry| schedule::unwrap(own, self.identity.public(), of, entry);
        // An entry with the same tag may by chance be another receiver's.
        let (secret, pair) = mine.find_map(unwrap).ok_or(Refusal::NotListed)?;
        Ok(KeyGrant {
            id,
            began_ms: keys.began_ms,
            scope: keys.scope,
            contents: keys.contents,
            signing: *keys.signing,
            name,
            agreement: *keys.agreement,
            tag,
            epoch: keys.epoch,
            secret,
            pair,
        })
    }

    fn group(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Result<Opened, Refusal> {
        let is = |session: &Session, header: &Header| session.id.short() == header.whose;
        let open = |session: &mut Session, header: &Header, body: &mut [u8]| {
            session.open_group(header, body).map(|behind| (0, behind))
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
        let open = |session: &mut Session, header: &Header, body: &mut [u8]| {
            session.open_own(header, body).map(|skipped| (skipped, TAG))
        };
        let (_, at, payload) = self.open_by(datagram, is, open)?;
        let session = &mut self.sessions[at];
        (session.from, session.heard) = (from, now);
        Ok(Opened { class: Class::ToOne, session: session.id, payload })
    }

    /// Opens a datagram with the session for which `is` holds. Returns its header, the index of the session, and the
    /// range of the payload. If the identifiers of several sessions begin alike, each session is tried. Thus no sender
    /// can shut out another by the choice of an identifier.
    fn open_by(
        &mut self,
        datagram: &mut [u8],
        is: impl Fn(&Session, &Header) -> bool,
        open: impl Fn(&mut Session, &Header, &mut [u8]) -> Result<(usize, usize), Refusal>,
    ) -> Result<(Header, usize, Range<usize>), Refusal> {
        let header = Header::parse(datagram)?;
        let len = datagram.len();
        let body = datagram.get_mut(HEADER..).ok_or(Refusal::Malformed)?;
        let mut candidates = (0..self.sessions.len()).filter(|&at| is(&self.sessions[at], &header));
        let first = candidates.next().ok_or(Refusal::UnknownSession)?;
        let others: Vec<_> = candidates.collect();
        // A failed attempt to open destroys the body.
        let copy = if others.is_empty() { Vec::new() } else { body.to_vec() };
        let mut result = open(&mut self.sessions[first], &header, body);
        let mut at = first;
        for &other in &others {
            if result.is_ok() {
                break;
            }
            body.copy_from_slice(&copy);
            (result, at) = (open(&mut self.sessions[other], &header, body), other);
        }
        let (skipped, behind) = result?;
        Ok((header, at, HEADER + skipped..len - behind))
    }

    /// Seals an answer to the sender at `to`; an empty one requests the key of the epoch.
    ///
    /// # Errors
    /// Returns an error if no sender was heard from there, or if the key has sealed its maximum number of datagrams.
    pub fn seal_answer(&mut self, to: SocketAddr, datagram: &mut Vec<u8>) -> Result<(), Unsealable> {
        let at = self.session_at(to).ok_or(Unsealable::UnknownAddress)?;
        self.sessions[at].seal(&mut self.draws, datagram)
    }

    /// Ends the transfer of `session`, so that a recording of it is not accepted again.
    pub fn close(&mut self, session: SessionId) {
        let Some(at) = self.sessions.iter().position(|one| one.id == session) else { return };
        let session = self.sessions.swap_remove(at);
        self.history.close(&session.signing, session.id);
    }

    /// Ends the transfers of all sessions of which a sender has one at a time.
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

    /// Leaves `session` until its keys come again.
    pub fn leave(&mut self, session: SessionId) {
        self.sessions.retain(|one| one.id != session);
    }

    /// Merges the record of other receivers with the same key, after keys have begun `session`. Returns `true` if the
    /// session continues.
    pub fn learn(&mut self, session: SessionId, heard: &History) -> bool {
        self.history.merge(heard);
        let Some(at) = self.sessions.iter().position(|one| one.id == session) else { return false };
        let one = &mut self.sessions[at];
        let alone = is_alone(one.contents);
        let begun = SessionStart { session, began_ms: one.began_ms, scope: one.scope, alone };
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

    /// Returns the session of the sender at `address`. Without one, it returns a session of a sender on the same host,
    /// or the only session.
    ///
    /// If a sender has several sessions, the session that began last counts, so that replayed keys of earlier sessions
    /// divert no answer. An earlier session counts instead if three conditions hold: the sender has proved in it that
    /// it hears answers, was heard in it since, and has proved nothing in the later one. If several senders seem to be
    /// at the address, a sender with such a proof is preferred.
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

    /// Marks the earlier sessions of a sender that has begun another one. Ends those whose content has no keys apart:
    /// anybody could play back a recording of their unheard part.
    fn follow_earlier(&mut self, signing: &[u8; 32], began_ms: u64, scope: Scope) {
        let Self { sessions, history, .. } = self;
        sessions.retain_mut(|one| {
            one.followed |= one.signing == *signing && one.began_ms < began_ms;
            let ends = one.followed && is_alone(one.contents);
            if ends && one.scope == scope {
                history.close(&one.signing, one.id);
            } else if ends {
                // The session may continue at other receivers with this key that are not in the group.
                history.heard(&one.signing, one.id, one.epoch, one.counter());
            }
            !ends
        });
    }

    /// Makes room for a session that began at `began_ms`. It drops a session of the sender with the most sessions: the
    /// earliest one in which the sender has not proved that it hears answers, or else the earliest. So a sender that
    /// begins many sessions displaces no session of another sender, and a replayed session displaces none.
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

/// Returns `true` if a session is over once its sender has begun another one. This holds for all contents except those
/// with keys apart: a recording of those cannot be opened any more.
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
