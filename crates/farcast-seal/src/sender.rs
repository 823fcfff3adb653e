//! Sender's side of a session.

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
use crate::peer::{AnswerContext, Peer};
use crate::refusal::{Refusal, RefusalCounts, Unsealable};
use crate::schedule::{self, EpochId, Secret, SessionParameters, SessionSecret};
use crate::scope::{Contents, Scope};
use crate::suite::Suite;
use crate::wire::{self, HEADER, Header, Keys, Kind, SIGNATURE, SessionId, TAG};

/// Prefixes of the octets that a sender signs.
pub(crate) const SIGNED_KEYS: &[u8] = b"farcast seal 1 keys";
pub(crate) const SIGNED_CONTROL: &[u8] = b"farcast seal 1 control";

/// Last even epoch; one odd epoch follows it.
const LAST_EPOCH: u8 = 252;

/// Configuration of a sender.
#[derive(Debug)]
pub struct SenderConfig {
    /// Identity of the sender.
    pub identity: Identity,
    /// Receivers that can open the content. If several have the same signing key, only the first counts.
    pub receivers: Vec<Listed>,
    /// Start of the session, in milliseconds since 1970; later than all earlier sessions of this sender.
    pub began_ms: u64,
    /// Scope of the session.
    pub scope: Scope,
    /// Sealing of content.
    pub contents: Contents,
    /// Maximum length of a datagram in octets, without UDP and IP headers. No KEYS datagram is longer, unless it is for
    /// one receiver. Each receiver with a hybrid key has its own of [`HYBRID_KEYS_LEN`](crate::HYBRID_KEYS_LEN).
    pub datagram: usize,
}

/// Origin of an answer, and the position of its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Number of the receiver, in the order of the list.
    pub receiver: usize,
    /// Byte range of the payload; empty if the receiver only requests the key of the epoch.
    pub payload: Range<usize>,
}

/// Sealer of a sender's datagrams, and opener of receivers' answers.
pub struct Sender {
    identity: Identity,
    session: SessionId,
    began_ms: u64,
    scope: Scope,
    contents: Contents,
    /// Maximum octets of a KEYS datagram.
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

/// Keys of an epoch.
struct Epoch {
    /// Even number of the epoch, as in KEYS. The key of content apart has the number above it.
    number: u8,
    /// Number and secret of the epoch, which receivers get in reply to their answers.
    secret: (u8, Secret),
    control: GroupKey,
    /// Key of content, if content has a key apart from the key in KEYS.
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
    /// Creates the epoch `number`, and the secret that KEYS carry for it.
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
    /// Creates a session. Its secrets derive from `seed`: 32 octets that nobody else knows and that have no other use.
    ///
    /// The work is two multiplications on the curve for each receiver, about 0.1 ms, plus ML-KEM for one with a hybrid
    /// key.
    pub fn new(config: SenderConfig, seed: [u8; 32]) -> Self {
        let SenderConfig { identity, receivers, began_ms, scope, contents, datagram } = config;
        let mut draws = Draws::new(&Zeroizing::new(seed));
        let (own, agreement) = schedule::agreement(&mut draws);
        let signing = identity.public().signing();
        let session = schedule::session(&SessionParameters {
            contents,
            scope,
            began_ms,
            signing,
            agreement: &agreement,
        });
        let (epoch, secret) = Epoch::new(0, contents, session, &mut draws);
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
        sender.wrap(&secret);
        sender
    }

    /// Returns the identifier of the session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the number of refused datagrams, by reason.
    pub fn refusals(&self) -> &RefusalCounts {
        &self.refusals
    }

    /// Returns a receiver's name in the list; empty for an invalid number.
    pub fn name(&self, receiver: usize) -> &str {
        self.peers.get(receiver).map_or("", |peer| &peer.listed.name)
    }

    /// Returns a receiver's key number, for protocols that do not know nodes by name; 0 for an invalid number.
    pub fn number(&self, receiver: usize) -> u64 {
        self.peers.get(receiver).map_or(0, |peer| peer.listed.key.fingerprint().number())
    }

    /// Returns the KEYS datagrams for the receivers that have not answered, or for all if `everyone` is set. They go to
    /// the group and need no sealing.
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

    /// Returns the octets that [`seal_content`](Self::seal_content) needs behind the content.
    pub fn behind_content(&self) -> usize {
        if self.contents == Contents::Signed { SIGNATURE + TAG } else { TAG }
    }

    /// Seals a datagram with content for the group in place. The content has [`HEADER`] octets before it and
    /// [`behind_content`](Self::behind_content) octets behind it.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the key has sealed its maximum number of datagrams.
    pub fn seal_content(&mut self, datagram: &mut [u8]) -> Result<(), Unsealable> {
        self.seal_under(self.epoch.content.is_some(), datagram)
    }

    /// Seals content with the key in KEYS. This content leaves before any receiver can have answered.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the key has sealed its maximum number of datagrams.
    pub fn seal_early(&mut self, datagram: &mut [u8]) -> Result<(), Unsealable> {
        self.seal_under(false, datagram)
    }

    /// Seals content with the key of content apart, if `apart` is set and there is such a key. Otherwise seals it with
    /// the key in KEYS.
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
    /// Returns an error if the key has sealed its maximum number of datagrams.
    pub fn seal_control(&mut self, datagram: &mut Vec<u8>) -> Result<(), Unsealable> {
        let nonce = self.epoch.control.header(Kind::Control)?;
        let signature = self.identity.sign(&[SIGNED_CONTROL, &self.session.0, &nonce, datagram]);
        datagram.extend_from_slice(&signature);
        wire::surround(datagram, &nonce, TAG);
        let sealed = self.epoch.control.cipher.seal(&nonce, &mut datagram[HEADER..]);
        if sealed { Ok(()) } else { Err(Unsealable::Room) }
    }

    /// Seals a datagram for the receiver that was heard last from `to`. If the receiver lacks the key of the epoch, the
    /// datagram carries this key too. An empty datagram carries the key alone.
    ///
    /// # Errors
    /// Returns an error if no receiver has proved to be at `to`, or if the key has sealed its maximum number of
    /// datagrams.
    pub fn seal_to(&mut self, to: SocketAddr, datagram: &mut Vec<u8>) -> Result<(), Unsealable> {
        let peer = self.by_address.get(&to).and_then(|&at| self.peers.get_mut(at));
        let peer = peer.ok_or(Unsealable::UnknownAddress)?;
        let (epoch, secret) = &self.epoch.secret;
        peer.seal(*epoch, secret, datagram)
    }

    /// Returns the number of the receiver that was heard last from `from`.
    pub fn receiver_at(&self, from: SocketAddr) -> Option<usize> {
        self.by_address.get(&from).copied()
    }

    /// Returns the address from which a receiver was heard last; `None` if another receiver was heard from there since.
    pub fn address(&self, receiver: usize) -> Option<SocketAddr> {
        self.peers.get(receiver).and_then(|peer| peer.address)
    }

    /// Returns `true` if a receiver has not reported the content key.
    pub fn lacks_key(&self, receiver: usize) -> bool {
        self.peers.get(receiver).is_some_and(|peer| !peer.removed && peer.epoch() < self.epoch.secret.0)
    }

    /// Opens an answer in place.
    ///
    /// # Errors
    /// Returns the reason if the answer is refused, and counts it.
    pub fn open(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Result<Answer, Refusal> {
        let result = self.try_open(from, datagram);
        self.refusals.note(result)
    }

    fn try_open(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Result<Answer, Refusal> {
        let kind = wire::kind(datagram)?;
        if !matches!(kind, Kind::Answer | Kind::FirstAnswer) {
            return Err(Refusal::Misdirected);
        }
        let header = Header::parse(datagram)?;
        if header.epoch > self.epoch.secret.0 {
            return Err(Refusal::UnknownEpoch);
        }
        let payload = HEADER..datagram.len() - TAG;
        let body = datagram.get_mut(HEADER..).ok_or(Refusal::Malformed)?;
        let candidates = self.by_tag.get(&header.whose).map_or(&[][..], Vec::as_slice);
        // A failed attempt to open destroys the body.
        let copy = if candidates.len() > 1 { body.to_vec() } else { Vec::new() };
        let mut refusal = Refusal::NotListed;
        let mut context = AnswerContext { own: &self.own, session: self.session, scratch: &mut self.scratch };
        for (n, &receiver) in candidates.iter().enumerate() {
            let peer = &mut self.peers[receiver];
            if peer.removed {
                continue;
            }
            if n > 0 {
                body.copy_from_slice(&copy);
            }
            match peer.open(&header, body, &mut context) {
                Ok(skipped) => {
                    self.heard(receiver, from);
                    return Ok(Answer { receiver, payload: payload.start + skipped..payload.end });
                }
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    /// Removes receivers from the list. They cannot open datagrams sealed from now on, and are not heard. The other
    /// receivers get new keys.
    ///
    /// # Errors
    /// Returns an error if no epochs are left; nothing changes then.
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
        let (epoch, secret) = Epoch::new(next, self.contents, self.session, &mut self.draws);
        self.epoch = epoch;
        self.wrap(&secret);
        Ok(())
    }

    /// Wraps the secret of the epoch for each receiver.
    fn wrap(&mut self, secret: &Secret) {
        let of = EpochId { session: self.session, epoch: self.epoch.number };
        for peer in self.peers.iter_mut().filter(|peer| !peer.removed) {
            let wrapped = schedule::wrap(&peer.listed.key, of, secret, &mut self.draws);
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
