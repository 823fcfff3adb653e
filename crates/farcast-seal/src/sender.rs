//! A session of a sender's.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use core::ops::Range;

use zeroize::Zeroizing;

use crate::cipher::Cipher;
use crate::draws::Draws;
use crate::identity::{Identity, Listed};
use crate::peer::Peer;
use crate::refusal::{Refusal, RefusalCounts, Unsealable};
use crate::schedule::{self, Secret, SessionSecret};
use crate::scope::{Contents, Scope};
use crate::suite::Suite;
use crate::wire::{self, HEADER, Header, Keys, Kind, SIGNATURE, SessionId, TAG};

/// Before what a sender signs.
pub(crate) const SIGNED_KEYS: &[u8] = b"farcast seal 1 keys";
pub(crate) const SIGNED_CONTROL: &[u8] = b"farcast seal 1 control";

/// The last epoch in which content is not apart: there is one above it.
const LAST_EPOCH: u8 = 252;

/// Who seals, and for whom.
#[derive(Debug)]
pub struct SenderConfig {
    /// The sender.
    pub identity: Identity,
    /// Who can open what it sends; of several with one signing key the first counts.
    pub receivers: Vec<Listed>,
    /// When the session began, in milliseconds since 1970: later than all sessions of this sender before.
    pub began_ms: u64,
    /// What it is for.
    pub scope: Scope,
    /// How content is sealed.
    pub contents: Contents,
    /// Octets of a datagram on the way, without headers of UDP and IP: of KEYS none is longer, unless it is for one receiver.
    /// Each with a hybrid key has one of [`HYBRID_KEYS_LEN`](crate::HYBRID_KEYS_LEN).
    pub datagram: usize,
}

/// What an answer is of, and where in its datagram it lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The number of the receiver, in the order of the list.
    pub receiver: usize,
    /// What it says; nothing, if the receiver only wants the key of the epoch.
    pub payload: Range<usize>,
}

/// Seals what a sender says, and opens what receivers answer.
pub struct Sender {
    identity: Identity,
    session: SessionId,
    began_ms: u64,
    scope: Scope,
    contents: Contents,
    /// Octets of a KEYS datagram, at most.
    datagram: usize,
    own: SessionSecret,
    agreement: [u8; 32],
    draws: Draws,
    epoch: Epoch,
    peers: Vec<Peer>,
    by_tag: BTreeMap<[u8; 4], Vec<usize>>,
    by_address: BTreeMap<SocketAddr, usize>,
    refusals: RefusalCounts,
    scratch: Vec<u8>,
}

/// The keys of an epoch.
struct Epoch {
    /// Even: that of KEYS. One more is that of content apart.
    number: u8,
    /// What receivers get in answer to their answers.
    secret: (u8, Secret),
    control: GroupKey,
    /// Of content apart.
    content: Option<GroupKey>,
}

struct GroupKey {
    epoch: u8,
    whose: [u8; 4],
    cipher: Cipher,
    sealed: u64,
}

impl GroupKey {
    fn new(secret: &Secret, session: SessionId, epoch: u8) -> Self {
        let cipher = Cipher::new(&schedule::group(secret, session, epoch));
        Self { epoch, whose: session.short(), cipher, sealed: 0 }
    }

    fn header(&mut self, kind: Kind) -> Result<[u8; HEADER], Unsealable> {
        let counter = wire::next(&mut self.sealed)?;
        Ok(Header { kind, epoch: self.epoch, whose: self.whose, counter }.emit())
    }
}

impl Epoch {
    /// The epoch `number`, and the secret that KEYS tell of it.
    fn new(number: u8, contents: Contents, session: SessionId, draws: &mut Draws) -> (Self, Secret) {
        let secret = draws.secret();
        if contents != Contents::Apart {
            let control = GroupKey::new(&secret, session, number);
            return (Self { number, secret: (number, secret.clone()), control, content: None }, secret);
        }
        let open = schedule::opened(&secret, session, number);
        let control = GroupKey::new(&open, session, number);
        let content = Some(GroupKey::new(&secret, session, number + 1));
        (Self { number, secret: (number + 1, secret), control, content }, open)
    }
}

impl Sender {
    /// A session, whose secrets follow from `seed`: 32 octets that nobody else knows and that are used for nothing else.
    ///
    /// It takes two multiplications on the curve, about 0.1 ms, for each receiver, and ML-KEM besides for one with a hybrid
    /// key.
    pub fn new(config: SenderConfig, seed: [u8; 32]) -> Self {
        let SenderConfig { identity, receivers, began_ms, scope, contents, datagram } = config;
        let mut draws = Draws::new(&Zeroizing::new(seed));
        let (own, agreement) = schedule::agreement(&mut draws);
        let session =
            schedule::session((contents, scope), began_ms, (identity.public().signing(), &agreement));
        let (epoch, told) = Epoch::new(0, contents, session, &mut draws);
        let mut known = alloc::collections::BTreeSet::new();
        let fresh = receivers.into_iter().filter(|listed| known.insert(*listed.key.signing()));
        let peers: Vec<_> = fresh.map(|listed| Peer::new(listed, session)).collect();
        let mut by_tag = BTreeMap::<_, Vec<_>>::new();
        for (n, peer) in peers.iter().enumerate() {
            by_tag.entry(peer.tag).or_default().push(n);
        }
        let mut sender = Self {
            identity,
            session,
            began_ms,
            scope,
            contents,
            datagram,
            own,
            agreement,
            draws,
            epoch,
            peers,
            by_tag,
            by_address: BTreeMap::new(),
            refusals: RefusalCounts::default(),
            scratch: Vec::new(),
        };
        sender.wrap(&told);
        sender
    }

    /// The session's name.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// What was not taken, by reason.
    pub fn refusals(&self) -> &RefusalCounts {
        &self.refusals
    }

    /// What the list calls a receiver; nothing for a number that is none.
    pub fn name(&self, receiver: usize) -> &str {
        self.peers.get(receiver).map_or("", |peer| &peer.listed.name)
    }

    /// By what a receiver is known whose name does not count; 0 for a number that is none.
    pub fn number(&self, receiver: usize) -> u64 {
        self.peers.get(receiver).map_or(0, |peer| peer.listed.key.fingerprint().number())
    }

    /// What each of those needs who have not answered, or `everyone`: datagrams for the group, which need no sealing.
    pub fn keys(&self, everyone: bool) -> Vec<Vec<u8>> {
        let one = |suite: Suite, entries: &[&[u8]]| {
            let keys = Keys {
                suite,
                contents: self.contents,
                began_ms: self.began_ms,
                signing: self.identity.public().signing(),
                agreement: &self.agreement,
                scope: self.scope,
                epoch: self.epoch.number,
                entries: &entries.concat(),
            };
            let mut datagram = keys.emit();
            let signature = self.identity.sign(&[SIGNED_KEYS, &datagram]);
            datagram.extend_from_slice(&signature);
            datagram
        };
        let wanted = |peer: &&Peer| everyone || peer.lacks_keys(self.epoch.number);
        let of = |suite: Suite| {
            let peers = self.peers.iter().filter(|peer| peer.listed.key.suite() == suite);
            let entries: Vec<_> = peers.filter(wanted).filter_map(|peer| peer.entry.as_deref()).collect();
            let each = entries.chunks(wire::keys_together(suite, self.datagram));
            each.map(|entries| one(suite, entries)).collect::<Vec<_>>()
        };
        Suite::ALL.into_iter().flat_map(of).collect()
    }

    /// Octets behind what [`seal_content`](Self::seal_content) seals.
    pub fn behind_content(&self) -> usize {
        if self.contents == Contents::Signed { SIGNATURE + TAG } else { TAG }
    }

    /// Seals a datagram with content for the group in place: what is sealed has [`HEADER`] octets before it and
    /// [`behind_content`](Self::behind_content) behind.
    ///
    /// # Errors
    /// There is no room, or the key has sealed all that it may.
    pub fn seal_content(&mut self, datagram: &mut [u8]) -> Result<(), Unsealable> {
        self.seal_under(self.epoch.content.is_some(), datagram)
    }

    /// The same for content that leaves before anybody can have answered: under the key that KEYS tell.
    ///
    /// # Errors
    /// There is no room, or the key has sealed all that it may.
    pub fn seal_early(&mut self, datagram: &mut [u8]) -> Result<(), Unsealable> {
        self.seal_under(false, datagram)
    }

    /// Seals content under the key of content `apart`, or that which KEYS tell.
    fn seal_under(&mut self, apart: bool, datagram: &mut [u8]) -> Result<(), Unsealable> {
        let (signed, session) = (self.contents == Contents::Signed, self.session);
        let key = self.epoch.content.as_mut().filter(|_| apart).unwrap_or(&mut self.epoch.control);
        let (front, body) = datagram.split_first_chunk_mut::<HEADER>().ok_or(Unsealable::Room)?;
        let sealed = body.len().checked_sub(TAG).ok_or(Unsealable::Room)?;
        *front = key.header(if signed { Kind::Control } else { Kind::Content })?;
        if signed {
            let (said, signature) = body[..sealed].split_last_chunk_mut().ok_or(Unsealable::Room)?;
            *signature = self.identity.sign(&[SIGNED_CONTROL, &session.0, front, said]);
        }
        if key.cipher.seal(front, body) { Ok(()) } else { Err(Unsealable::Room) }
    }

    /// Signs and seals a datagram for the group.
    ///
    /// # Errors
    /// The key has sealed all that it may.
    pub fn seal_control(&mut self, datagram: &mut Vec<u8>) -> Result<(), Unsealable> {
        let nonce = self.epoch.control.header(Kind::Control)?;
        let signature = self.identity.sign(&[SIGNED_CONTROL, &self.session.0, &nonce, datagram]);
        datagram.extend_from_slice(&signature);
        wire::surround(datagram, &nonce, TAG);
        let sealed = self.epoch.control.cipher.seal(&nonce, &mut datagram[HEADER..]);
        if sealed { Ok(()) } else { Err(Unsealable::Room) }
    }

    /// Seals a datagram for the receiver that was heard last from `to`, with the key of the epoch if it lacks that. An
    /// empty one is for the key alone.
    ///
    /// # Errors
    /// Nobody has proved to be there, or the key has sealed all that it may.
    pub fn seal_to(&mut self, to: SocketAddr, datagram: &mut Vec<u8>) -> Result<(), Unsealable> {
        let peer = self.by_address.get(&to).and_then(|&at| self.peers.get_mut(at));
        let peer = peer.ok_or(Unsealable::UnknownAddress)?;
        let (epoch, secret) = &self.epoch.secret;
        peer.seal((*epoch, secret), datagram)
    }

    /// The number of the receiver that was heard last from `from`.
    pub fn receiver_at(&self, from: SocketAddr) -> Option<usize> {
        self.by_address.get(&from).copied()
    }

    /// From where a receiver was heard last, if nobody else was heard from there since.
    pub fn address(&self, receiver: usize) -> Option<SocketAddr> {
        self.peers.get(receiver).and_then(|peer| peer.address)
    }

    /// Whether a receiver, as far as it has said, lacks the key of content.
    pub fn lacks_key(&self, receiver: usize) -> bool {
        self.peers.get(receiver).is_some_and(|peer| !peer.removed && peer.epoch() < self.epoch.secret.0)
    }

    /// Opens an answer in place.
    ///
    /// # Errors
    /// It was not taken, and is counted.
    pub fn open(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Result<Answer, Refusal> {
        let result = self.try_open(from, datagram);
        self.refusals.note(result)
    }

    fn try_open(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Result<Answer, Refusal> {
        let kind = wire::kind(datagram)?;
        if !matches!(kind, Kind::Answer | Kind::FirstAnswer) {
            return Err(Refusal::Misdirected);
        }
        let (header, nonce) = Header::parse(datagram)?;
        if header.epoch > self.epoch.secret.0 {
            return Err(Refusal::UnknownEpoch);
        }
        let payload = HEADER..datagram.len() - TAG;
        let body = datagram.get_mut(HEADER..).ok_or(Refusal::Malformed)?;
        let candidates = self.by_tag.get(&header.whose).map_or(&[][..], Vec::as_slice);
        // What one fails to open is not what it was.
        let copy = if candidates.len() > 1 { body.to_vec() } else { Vec::new() };
        let mut refusal = Refusal::NotListed;
        for (n, &receiver) in candidates.iter().enumerate() {
            let peer = &mut self.peers[receiver];
            if peer.removed {
                continue;
            }
            if n > 0 {
                body.copy_from_slice(&copy);
            }
            match peer.open((&header, &nonce), body, (&self.own, self.session), &mut self.scratch) {
                Ok(skipped) => {
                    self.heard(receiver, from);
                    return Ok(Answer { receiver, payload: payload.start + skipped..payload.end });
                }
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    /// Takes receivers off the list: they open nothing that is sealed from now on, and are not heard. The others get other
    /// keys.
    ///
    /// # Errors
    /// No epochs are left; nothing has changed.
    pub fn remove(&mut self, receivers: &[usize]) -> Result<(), Unsealable> {
        let number = self.epoch.number;
        let next = number.checked_add(2).filter(|&next| next <= LAST_EPOCH).ok_or(Unsealable::Exhausted)?;
        for &receiver in receivers {
            let Some(peer) = self.peers.get_mut(receiver) else { continue };
            if let Some(address) = peer.address {
                self.by_address.remove(&address);
            }
            peer.remove();
        }
        let (epoch, told) = Epoch::new(next, self.contents, self.session, &mut self.draws);
        self.epoch = epoch;
        self.wrap(&told);
        Ok(())
    }

    /// Wraps `told` for each receiver.
    fn wrap(&mut self, told: &Secret) {
        let of = (self.session, self.epoch.number);
        for peer in self.peers.iter_mut().filter(|peer| !peer.removed) {
            let wrapped = schedule::wrap(&peer.listed.key, of, told, &mut self.draws);
            peer.wrapped(wrapped);
        }
    }

    fn heard(&mut self, receiver: usize, from: SocketAddr) {
        let peer = &mut self.peers[receiver];
        if peer.address == Some(from) {
            return;
        }
        if let Some(before) = peer.address.replace(from) {
            self.by_address.remove(&before);
        }
        if let Some(other) = self.by_address.insert(from, receiver) {
            self.peers[other].address = None;
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.peers.iter().map(|peer| &peer.listed.name).collect();
        let Self { session, refusals, .. } = self;
        write!(f, "Sender {{ session: {session}, receivers: {names:?}, refusals: {refusals:?} }}")
    }
}
