//! State of a receiver for one session.

use alloc::string::String;
use core::net::SocketAddr;

use farcast_core::{Span, Time};
use zeroize::Zeroizing;

use crate::cipher::Cipher;
use crate::draws::Draws;
use crate::history::Admitted;
use crate::identity::{Fingerprint, Signatory};
use crate::refusal::{Refusal, Unsealable};
use crate::schedule::{self, Secret};
use crate::scope::{Contents, Scope};
use crate::sender::SIGNED_CONTROL;
use crate::window::{GroupWindow, PairWindow};
use crate::wire::{self, HEADER, Header, KEY, Kind, SIGNATURE, SessionId, TAG};

/// First interval between two requests of a receiver for a key.
pub const ASK_AGAIN: Span = Span::from_secs(1);
/// Longest interval between two requests of a receiver for a key.
pub const ASK_LATEST: Span = Span::from_secs(60);
/// Number and length of the slots into which time is divided, in turn. A claim that anybody may have made triggers a
/// request only in the receiver's own slot.
const SPELLS: u64 = 16;
const SPELL: Span = Span::from_secs(4);

/// Session that a receiver takes part in.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) began_ms: u64,
    /// Sender: its signing key, its name in the list, and its agreement key of the session.
    pub(crate) signing: [u8; 32],
    signatory: Signatory,
    pub(crate) name: String,
    /// Key number of the sender, for protocols that do not know nodes by name.
    pub(crate) number: u64,
    pub(crate) agreement: [u8; 32],
    /// Tag by which the sender knows this receiver.
    pub(crate) tag: [u8; 4],
    /// Even number of the epoch, from the last KEYS.
    pub(crate) epoch: u8,
    open: GroupKey,
    pub(crate) scope: Scope,
    pub(crate) contents: Contents,
    /// `true` if the sender has begun a later session.
    pub(crate) followed: bool,
    /// Key of content apart, one epoch above.
    apart: Option<GroupKey>,
    pair: Secret,
    between: Option<PairKeys>,
    /// Address and time at which the sender was heard last.
    pub(crate) from: SocketAddr,
    pub(crate) heard: Time,
    /// Earliest time of the next request for the content key, and the interval after that.
    ask_at: Time,
    ask_again: Span,
    /// Earliest time of the next request for the key of an epoch that no KEYS have announced.
    ask_later_at: Time,
}

struct GroupKey {
    cipher: Cipher,
    /// Counters of signed datagrams.
    control: GroupWindow,
    /// Counters of content. Any member of the group can seal content with any counter. A counter older than the window
    /// is therefore accepted; otherwise one datagram could shut out all that follow.
    content: GroupWindow,
}

impl GroupKey {
    fn new(secret: &Secret, session: SessionId, epoch: u8, heard: u64) -> Self {
        let cipher = Cipher::new(&schedule::group(secret, session, epoch));
        Self { cipher, control: GroupWindow::from(heard), content: GroupWindow::from(0) }
    }
}

/// Keys that this receiver has drawn for its answers.
struct PairKeys {
    enc: [u8; 32],
    guard: [u8; 8],
    up: Cipher,
    down: Cipher,
    sealed: u64,
    seen: PairWindow,
    /// `true` if the sender has proved that it has the keys.
    confirmed: bool,
}

/// Content of KEYS for one receiver.
pub(crate) struct KeyGrant {
    pub(crate) id: SessionId,
    pub(crate) began_ms: u64,
    pub(crate) scope: Scope,
    pub(crate) contents: Contents,
    pub(crate) signing: [u8; 32],
    pub(crate) name: String,
    pub(crate) agreement: [u8; 32],
    pub(crate) tag: [u8; 4],
    pub(crate) epoch: u8,
    pub(crate) secret: Secret,
    pub(crate) pair: Secret,
}

impl Session {
    /// Creates the session that KEYS announce, whose counters were heard up to that of `admitted`.
    pub(crate) fn new(grant: KeyGrant, admitted: Admitted, from: SocketAddr, now: Time) -> Self {
        Self {
            id: grant.id,
            began_ms: grant.began_ms,
            signatory: Signatory::new(&grant.signing),
            number: Fingerprint::of(&grant.signing).number(),
            signing: grant.signing,
            name: grant.name,
            agreement: grant.agreement,
            tag: grant.tag,
            epoch: grant.epoch,
            open: GroupKey::new(&grant.secret, grant.id, grant.epoch, admitted.counter),
            scope: grant.scope,
            contents: grant.contents,
            followed: admitted.followed,
            apart: None,
            pair: grant.pair,
            between: None,
            from,
            heard: now,
            ask_at: now,
            ask_again: ASK_AGAIN,
            ask_later_at: now,
        }
    }

    /// Switches to the keys of a later epoch from KEYS.
    pub(crate) fn rekey(&mut self, grant: KeyGrant) {
        self.epoch = grant.epoch;
        self.open = GroupKey::new(&grant.secret, self.id, grant.epoch, 0);
        self.apart = None;
        self.pair = grant.pair;
        // The sender may know only the pair secret of the last KEYS.
        self.between = self.between.take().filter(|between| between.confirmed);
    }

    /// Returns `true` if the sender has proved that it hears the answers.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.between.as_ref().is_some_and(|between| between.confirmed)
    }

    /// Returns `true` if answers to the sender belong to this session rather than to `other`, a session of the same
    /// sender. The later session wins, unless only in the earlier one the sender has proved that it hears answers, and
    /// was heard in it since.
    pub(crate) fn goes_before(&self, other: &Self) -> bool {
        let (earlier, later) = if self.began_ms < other.began_ms { (self, other) } else { (other, self) };
        let is_alive = earlier.is_confirmed() && !later.is_confirmed() && earlier.heard > later.heard;
        core::ptr::eq(self, if is_alive { earlier } else { later })
    }

    /// Returns the kind of the datagrams with content.
    pub(crate) fn kind_of_content(&self) -> Kind {
        if self.contents == Contents::Signed { Kind::Control } else { Kind::Content }
    }

    /// Returns the newest epoch whose key is known.
    pub(crate) fn newest(&self) -> u8 {
        self.epoch + u8::from(self.apart.is_some())
    }

    /// Returns the highest counter of signed datagrams.
    pub(crate) fn counter(&self) -> u64 {
        self.open.control.highest()
    }

    /// Records that other receivers with the same key have heard signed datagrams up to this counter.
    pub(crate) fn heard_up_to(&mut self, counter: u64) {
        if self.counter() < counter {
            self.open.control = GroupWindow::from(counter);
        }
    }

    /// Opens `body`, the octets behind the header of a datagram for the group. Returns the number of octets at its end
    /// that are not payload.
    pub(crate) fn open_group(&mut self, header: &Header, body: &mut [u8]) -> Result<usize, Refusal> {
        let key = match header.epoch {
            epoch if epoch == self.epoch => &mut self.open,
            epoch if epoch == self.epoch + 1 && header.kind == self.kind_of_content() => {
                self.apart.as_mut().ok_or(Refusal::UnknownEpoch)?
            }
            _ => return Err(Refusal::UnknownEpoch),
        };
        let signed = header.kind == Kind::Control;
        // Content that left before any answer is sealed with the key in KEYS. Anybody with a recording can replay it.
        if self.contents == Contents::Apart && self.followed && !signed && header.epoch == self.epoch {
            return Err(Refusal::EarlierSession);
        }
        if self.contents == Contents::Signed && !signed {
            return Err(Refusal::BadSignature);
        }
        let seen =
            if signed { !key.control.is_new(header.counter) } else { key.content.has_seen(header.counter) };
        if seen {
            return Err(Refusal::Replayed);
        }
        if !key.cipher.open(&header.emit(), body) {
            return Err(Refusal::Forged);
        }
        if !signed {
            key.content.mark(header.counter);
            return Ok(TAG);
        }
        let sealed = body.len().checked_sub(TAG).ok_or(Refusal::Malformed)?;
        let (said, signature) = body[..sealed].split_last_chunk::<SIGNATURE>().ok_or(Refusal::Malformed)?;
        if !self.signatory.has_signed(&[SIGNED_CONTROL, &self.id.0, &header.emit(), said].concat(), signature)
        {
            return Err(Refusal::BadSignature);
        }
        key.control.mark(header.counter);
        Ok(SIGNATURE + TAG)
    }

    /// Opens `body`, the octets behind the header of a datagram for this receiver alone. Returns the offset of the
    /// payload.
    pub(crate) fn open_own(&mut self, header: &Header, body: &mut [u8]) -> Result<usize, Refusal> {
        let between = self.between.as_mut().ok_or(Refusal::Forged)?;
        if !between.seen.is_new(header.counter) {
            return Err(Refusal::Replayed);
        }
        if !between.down.open(&header.emit(), body) {
            return Err(Refusal::Forged);
        }
        between.seen.mark(header.counter);
        between.confirmed = true;
        if header.kind == Kind::ToOne {
            return Ok(0);
        }
        let (key, _) = body.split_first_chunk_mut::<KEY>().ok_or(Refusal::Malformed)?;
        let [epoch, secret @ ..] = key;
        let told = Zeroizing::new(*secret);
        zeroize::Zeroize::zeroize(secret);
        self.told(*epoch, &told);
        Ok(KEY)
    }

    /// Stores the key of an epoch, if it is later than the known ones.
    fn told(&mut self, epoch: u8, secret: &Secret) {
        if epoch <= self.newest() {
            return;
        }
        let below = epoch & !1;
        if below > self.epoch {
            let open = if epoch == below { secret.clone() } else { schedule::opened(secret, self.id, below) };
            self.epoch = below;
            self.open = GroupKey::new(&open, self.id, below, 0);
            self.apart = None;
        }
        if epoch > below {
            self.apart = Some(GroupKey::new(secret, self.id, epoch, 0));
        }
        self.ask_again = ASK_AGAIN;
    }

    /// Returns `true` if `epoch` is that of content apart, as KEYS have announced, and its key is missing.
    pub(crate) fn awaits(&self, epoch: u8) -> bool {
        self.contents == Contents::Apart && epoch == self.epoch + 1 && epoch > self.newest()
    }

    /// Returns `true` if the receiver should request a key now, after a datagram of an unknown epoch. Such a datagram
    /// may be forged. So the receiver requests at once only a key that KEYS have announced. Otherwise one forged
    /// datagram would make all receivers answer at once.
    pub(crate) fn asks(&mut self, now: Time, epoch: u8) -> bool {
        if epoch <= self.newest() {
            return false;
        }
        if self.awaits(epoch) {
            let asks = now >= self.ask_at;
            if asks {
                self.ask_at = now + self.ask_again;
                self.ask_again = (self.ask_again * 2).min(ASK_LATEST);
            }
            return asks;
        }
        let spell = now.as_nanos() / SPELL.as_nanos() % SPELLS;
        let asks =
            epoch > self.epoch + 1 && now >= self.ask_later_at && spell == u64::from(self.tag[0]) % SPELLS;
        if asks {
            self.ask_later_at = now + ASK_LATEST;
        }
        asks
    }

    /// Seals an answer, and draws the receiver's keys if there are none yet.
    pub(crate) fn seal(
        &mut self,
        draws: &mut Draws,
        datagram: &mut alloc::vec::Vec<u8>,
    ) -> Result<(), Unsealable> {
        if self.between.is_none() {
            let fresh = schedule::draw_answer(&self.agreement, &self.pair, self.id, draws);
            let fresh = fresh.ok_or(Unsealable::UnknownAddress)?;
            self.between = Some(PairKeys {
                enc: fresh.enc,
                guard: schedule::guard(&self.pair, &fresh.enc),
                up: Cipher::new(&fresh.up),
                down: Cipher::new(&fresh.down),
                sealed: 0,
                seen: PairWindow::from(0),
                confirmed: false,
            });
        }
        let epoch = self.newest();
        let between = self.between.as_mut().ok_or(Unsealable::UnknownAddress)?;
        let kind = if between.confirmed { Kind::Answer } else { Kind::FirstAnswer };
        let counter = wire::next(&mut between.sealed)?;
        let nonce = Header { kind, epoch, whose: self.tag, counter }.emit();
        let skipped = if between.confirmed {
            wire::surround(datagram, &nonce, TAG);
            HEADER
        } else {
            let front = [&nonce[..], &between.enc, &between.guard].concat();
            wire::surround(datagram, &front, TAG);
            front.len()
        };
        if between.up.seal(&nonce, &mut datagram[skipped..]) { Ok(()) } else { Err(Unsealable::Room) }
    }
}
