//! State of a sender for one receiver.

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::cipher::Cipher;
use crate::identity::Listed;
use crate::refusal::{Refusal, Unsealable};
use crate::schedule::{self, PairSecrets, Secret, SessionSecret, Wrapped};
use crate::window::PairWindow;
use crate::wire::{self, HEADER, Header, Kind, OPENING, SessionId, TAG};

/// Maximum numbers of a receiver's beginnings in one session: the last ones, which are answered, and the earlier ones,
/// which are kept so that nobody can replay them. A receiver that begins more often is not heard any more.
const CONTEXTS: usize = 8;
const SPENT: usize = 4096;

/// Receiver of a session.
pub(crate) struct Peer {
    pub(crate) listed: Listed,
    pub(crate) tag: [u8; 4],
    /// Entry for the receiver in the epoch's KEYS; `None` if no agreement with its key is possible.
    pub(crate) entry: Option<Vec<u8>>,
    /// Pair secrets of the last KEYS and of those before.
    pairs: Vec<Secret>,
    /// Last beginnings of the receiver, the one that was heard last at the end.
    contexts: Vec<Context>,
    /// Earlier beginnings, by the first octets of their `enc`.
    spent: Vec<[u8; 8]>,
    /// Address from which the receiver was heard last.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) removed: bool,
}

/// Parameters of a sender for opening answers.
pub(crate) struct AnswerContext<'a> {
    /// Agreement secret of the session.
    pub(crate) own: &'a SessionSecret,
    pub(crate) session: SessionId,
    /// Buffer for a copy of an answer's body.
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// State between the sender and one beginning of a receiver.
struct Context {
    between: PairSecrets,
    seen: PairWindow,
    sealed: u64,
    /// Newest epoch that the receiver has reported. A new beginning starts at 0, because the receiver lost its keys.
    epoch: u8,
}

impl Context {
    fn new(between: PairSecrets) -> Self {
        Self { between, seen: PairWindow::from(0), sealed: 0, epoch: 0 }
    }

    /// Opens `body` and marks its counter as seen.
    fn open(&mut self, header: &Header, body: &mut [u8]) -> Result<(), Refusal> {
        if !self.seen.is_new(header.counter) {
            return Err(Refusal::Replayed);
        }
        if !Cipher::new(&self.between.up).open(&header.emit(), body) {
            return Err(Refusal::Forged);
        }
        self.seen.mark(header.counter);
        self.epoch = self.epoch.max(header.epoch);
        Ok(())
    }
}

impl Peer {
    pub(crate) fn new(listed: Listed, session: SessionId) -> Self {
        Self {
            tag: schedule::tag(session, &listed.key),
            listed,
            entry: None,
            pairs: Vec::new(),
            contexts: Vec::new(),
            spent: Vec::new(),
            address: None,
            removed: false,
        }
    }

    /// Returns `true` if the receiver has not reported the keys of this epoch.
    pub(crate) fn lacks_keys(&self, epoch: u8) -> bool {
        self.contexts.last().is_none_or(|context| context.epoch < epoch)
    }

    /// Returns the newest epoch that the receiver has reported.
    pub(crate) fn epoch(&self) -> u8 {
        self.contexts.last().map_or(0, |context| context.epoch)
    }

    /// Stores the receiver's part of the epoch's KEYS.
    pub(crate) fn wrapped(&mut self, wrapped: Option<Wrapped>) {
        self.entry = None;
        let Some(wrapped) = wrapped else { return };
        self.entry = Some([&self.tag[..], &wrapped.enc, &wrapped.sealed].concat());
        self.pairs.truncate(1);
        self.pairs.insert(0, wrapped.pair);
    }

    /// Forgets the state that is needed to open or seal datagrams of the receiver.
    pub(crate) fn remove(&mut self) {
        self.removed = true;
        (self.entry, self.address) = (None, None);
        self.pairs.clear();
        self.contexts.clear();
    }

    /// Opens the `body` of an answer, the octets behind its header. Returns the offset of the payload in `body`.
    pub(crate) fn open(
        &mut self,
        header: &Header,
        body: &mut [u8],
        context: &mut AnswerContext<'_>,
    ) -> Result<usize, Refusal> {
        if header.kind == Kind::FirstAnswer {
            self.open_first(header, body, context).map(|()| OPENING)
        } else {
            self.open_later(header, body, context.scratch).map(|()| 0)
        }
    }

    fn open_first(
        &mut self,
        header: &Header,
        body: &mut [u8],
        answers: &AnswerContext<'_>,
    ) -> Result<(), Refusal> {
        let (opening, sealed) = body.split_first_chunk_mut::<OPENING>().ok_or(Refusal::Malformed)?;
        let Some((&mut enc, &mut guard)) = opening
            .split_first_chunk_mut::<32>()
            .and_then(|(enc, guard)| Some((enc, guard.first_chunk_mut::<8>()?)))
        else {
            return Err(Refusal::Malformed);
        };
        if let Some(at) = self.contexts.iter().position(|context| context.between.enc == enc) {
            self.contexts[at].open(header, sealed)?;
            self.heard_last(at);
            return Ok(());
        }
        let short = short(&enc);
        if self.spent.contains(&short) {
            return Err(Refusal::Replayed);
        }
        let pair =
            self.pairs.iter().find(|pair| schedule::guards(pair, &enc, guard)).ok_or(Refusal::Forged)?;
        if self.spent.len() >= SPENT {
            return Err(Refusal::Limit);
        }
        let between =
            schedule::take_answer(answers.own, &enc, pair, answers.session).ok_or(Refusal::Forged)?;
        let mut context = Context::new(between);
        context.open(header, sealed)?;
        if self.contexts.len() >= CONTEXTS {
            self.spent.push(self::short(&self.contexts.remove(0).between.enc));
        }
        self.contexts.push(context);
        Ok(())
    }

    fn open_later(&mut self, header: &Header, body: &mut [u8], scratch: &mut Vec<u8>) -> Result<(), Refusal> {
        scratch.clear();
        scratch.extend_from_slice(body);
        let mut refusal = Refusal::Forged;
        for at in (0..self.contexts.len()).rev() {
            match self.contexts[at].open(header, body) {
                Ok(()) => {
                    self.heard_last(at);
                    return Ok(());
                }
                // One context has seen the counter, but the answer may belong to another.
                Err(why) => refusal = if refusal == Refusal::Replayed { refusal } else { why },
            }
            body.copy_from_slice(scratch);
        }
        Err(refusal)
    }

    fn heard_last(&mut self, at: usize) {
        self.contexts[at..].rotate_left(1);
    }

    /// Seals `datagram` for the receiver, together with the `secret` of `epoch` if the receiver lacks it.
    pub(crate) fn seal(
        &mut self,
        epoch: u8,
        secret: &Secret,
        datagram: &mut Vec<u8>,
    ) -> Result<(), Unsealable> {
        let context = self.contexts.last_mut().ok_or(Unsealable::UnknownAddress)?;
        let lacks = context.epoch < epoch;
        let kind = if lacks { Kind::ToOneKey } else { Kind::ToOne };
        let counter = wire::next(&mut context.sealed)?;
        let nonce = Header { kind, epoch, whose: self.tag, counter }.emit();
        let mut front = zeroize::Zeroizing::new(Vec::with_capacity(wire::TO_ONE_KEY_OVERHEAD));
        front.extend_from_slice(&nonce);
        if lacks {
            front.push(epoch);
            front.extend_from_slice(&**secret);
        }
        wire::surround(datagram, &front, TAG);
        let sealed = Cipher::new(&context.between.down).seal(&nonce, &mut datagram[HEADER..]);
        if sealed { Ok(()) } else { Err(Unsealable::Room) }
    }
}

fn short(enc: &[u8; 32]) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&enc[..8]);
    short
}
