//! Processing of received datagrams: which are accepted, which form one message, and where their payload goes.

use std::io::IoSliceMut;
use std::net::IpAddr;
use std::ops::Range;

use farcast_core::Span;
use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_delivery::{Codec, Delivery, Protocol, ReceiverEngine};
use farcast_seal::{Class, SessionId};
use quinn_udp::RecvMeta;

use super::driver::Driver;
use crate::error::NetError;
use crate::listening::{ListenNotice, Unlike};
use crate::receive_sockets::SocketRole;
use crate::seal::is_sealed;
use crate::socket::Endpoint;
use crate::store::{ARENA_LEN, Arena, ArenaStep, SLOT_LEN, SLOTS};

/// Number of unreadable datagrams after which their sender probably speaks another protocol.
const FOREIGN: u32 = 16;

/// Longest time for which data is left to the kernel's buffer while the store has no free one. A disk that is only slow
/// thereby sets the pace. A disk that does not answer must not keep other datagrams from being read.
const HOLD: Span = Span::from_millis(250);

/// Longest time for which data is left to the kernel's buffer while the store opens the only object.
const OPENING: Span = Span::from_millis(200);

/// Longest time for which received data waits for more before the store gets it, and the same while the sender waits
/// for answers. If datagrams come one by one, a message to the store for each would cost more than all else.
const HAND_OVER: Span = Span::from_millis(20);
const HAND_OVER_SOON: Span = Span::from_millis(5);
/// Length up to which the content of a slot is moved up behind the last one, octets. Then many datagrams that come one
/// by one fit into a buffer. Moving more would cost more than it saves.
const LITTLE: usize = SLOT_LEN / 4;
/// Alignment of moved content, octets: a cache line.
const LINE: usize = 64;

/// Circumstances in which datagrams are read.
#[derive(Clone, Copy)]
struct ReadPlace {
    role: SocketRole,
    /// The buffer is one of the store's, so content can be stored.
    storing: bool,
    /// Offset from which the buffer is free.
    from: usize,
}

/// Result of one system call.
struct ReadResult {
    /// Offset from which the buffer is free now.
    end: usize,
    /// More datagrams may wait.
    more: bool,
}

/// A buffer of the store that is being filled.
pub(super) struct Filling {
    arena: Arena,
    /// Offset from which it is free.
    end: usize,
    /// Time since which it has held data.
    since: Time,
}

impl Filling {
    fn new(arena: Arena) -> Self {
        Self { arena, end: 0, since: Time::ZERO }
    }

    /// Returns `true` if it is to be handed over at once: its free part limits what one system call can bring, or a
    /// block can be rebuilt.
    pub(super) fn is_due(&self) -> bool {
        self.end > ARENA_LEN / 2 || matches!(self.arena.steps.last(), Some(ArenaStep::Decode { .. }))
    }
}

/// Class of a datagram's seal, and its session.
type SealedSession = (Class, SessionId);

/// Part of the buffer that one receive has filled: a datagram, or several of `stride` octets that the kernel has joined.
#[derive(Clone, Copy)]
struct Slot {
    start: usize,
    len: usize,
    stride: usize,
}

/// Position and length of a payload in the arena.
#[derive(Clone, Copy)]
pub(super) struct Payload {
    pub(super) at: u32,
    pub(super) len: u16,
}

/// Consecutive datagrams that form one message, and their payloads.
struct JoinedDatagrams<M> {
    message: M,
    payloads: Vec<Payload>,
    /// Session in which they were sealed.
    session: Option<SessionId>,
}

impl<P: Protocol> Driver<'_, P> {
    /// Reads from the socket of `role` as much as one system call brings, and processes it. Returns `true` if there may be more.
    pub(super) fn hear(&mut self, role: SocketRole) -> Result<bool, NetError> {
        let Some(endpoint) = self.sockets.endpoint(role) else { return Ok(false) };
        if role != SocketRole::Own && self.opening_until().is_some() {
            return Ok(false);
        }
        // Nothing that arrives on our own port is stored.
        let filling = if role == SocketRole::Own { None } else { self.filling() };
        if let Some(mut filling) = filling {
            let how = ReadPlace { role, storing: true, from: filling.end };
            let heard = self.hear_into(&endpoint, how, &mut filling.arena);
            filling.end = heard.as_ref().map_or(filling.end, |heard| heard.end);
            self.filling = Some(filling);
            self.tell_store();
            return heard.map(|heard| heard.more);
        }
        if role != SocketRole::Own && self.held_until().is_some() {
            return Ok(false);
        }
        let Some(mut arena) = self.spare.take() else { return Ok(false) };
        let heard = self.hear_into(&endpoint, ReadPlace { role, storing: false, from: 0 }, &mut arena);
        arena.clear();
        self.spare = Some(arena);
        self.tell_store();
        heard.map(|heard| heard.more)
    }

    /// Returns the buffer that is being filled, or a fresh one of the store.
    fn filling(&mut self) -> Option<Filling> {
        let filling = self.filling.take().or_else(|| self.arena().map(Filling::new));
        filling.map(|filling| {
            if filling.arena.steps.is_empty() {
                Filling { end: 0, since: self.clock.now(), ..filling }
            } else {
                filling
            }
        })
    }

    /// Returns the time at which the buffer must be handed over; [`Time::NEVER`] if it is empty.
    pub(super) fn hand_over_at(&self) -> Time {
        let filling = self.filling.as_ref().filter(|filling| !filling.arena.steps.is_empty());
        let wait = if self.nap.is_hurried() { HAND_OVER_SOON } else { HAND_OVER };
        filling.map_or(Time::NEVER, |filling| filling.since + wait)
    }

    /// Hands the buffer over to the store.
    pub(super) fn hand_over(&mut self) {
        if let Some(filling) = self.filling.take() {
            self.store.submit(filling.arena);
        }
    }

    /// Returns a free buffer of the store, if it has one.
    fn arena(&mut self) -> Option<Arena> {
        let arena = self.store.arena();
        self.stalled = match arena {
            Some(_) => None,
            None => self.stalled.or_else(|| Some(self.clock.now())),
        };
        arena
    }

    /// Returns the time until which data is left to the kernel, if it is left there now.
    pub(super) fn held_until(&self) -> Option<Time> {
        let stalled = self.stalled.map(|since| since + HOLD);
        stalled.filter(|until| self.clock.now() < *until).or_else(|| self.opening_until())
    }

    /// Returns the time until which data is left to the kernel because the store opens the only object: an engine has no
    /// place for content before that.
    fn opening_until(&self) -> Option<Time> {
        let until = self.opening? + OPENING;
        (self.clock.now() < until).then_some(until)
    }

    /// Reads datagrams into free slots of `arena` and processes them.
    fn hear_into(
        &mut self,
        endpoint: &Endpoint,
        how: ReadPlace,
        arena: &mut Arena,
    ) -> Result<ReadResult, NetError> {
        let mut meta = [RecvMeta::default(); SLOTS];
        let (count, more) = {
            let free = arena.buffer[how.from..].chunks_exact_mut(SLOT_LEN);
            let mut slots: Vec<IoSliceMut<'_>> = free.map(IoSliceMut::new).collect();
            let count = endpoint.receive(&mut slots, &mut meta)?;
            (count, count == slots.len())
        };
        let now = self.clock.now();
        let mut end = how.from;
        for (slot, meta) in meta[..count].iter_mut().enumerate() {
            let mut start = how.from + slot * SLOT_LEN;
            let Some(content) = endpoint.content(&arena.buffer[start..start + meta.len]) else {
                self.counts.malformed += 1;
                continue;
            };
            (start, meta.len) = (start + content.start, content.len());
            if meta.len <= LITTLE && start > end {
                arena.buffer.copy_within(start..start + meta.len, end);
                start = end;
            }
            end = (start + meta.len).next_multiple_of(LINE);
            let from = Arrival {
                interface: meta.interface_index.unwrap_or(0),
                // A coalesced receive loses the congestion mark, so none is claimed.
                ..Arrival::new(meta.addr, endpoint.local())
            };
            if self.is_heard(endpoint, meta) {
                let before = arena.steps.len();
                let slot = Slot { start, len: meta.len, stride: meta.stride.max(1) };
                self.slot(now, &from, how, slot, arena);
                self.drained += if arena.steps.len() > before { meta.len as u64 } else { 0 };
            }
        }
        Ok(ReadResult { end, more })
    }

    /// Returns `true` if the sender is accepted and the datagrams were meant for `endpoint`. Counts them otherwise.
    fn is_heard(&mut self, endpoint: &Endpoint, meta: &RecvMeta) -> bool {
        let datagrams = meta.len.div_ceil(meta.stride.max(1)) as u64;
        let source = meta.addr.ip();
        if !self.options.listen.accepts(source) {
            let first = self.counts.not_accepted == 0;
            self.counts.not_accepted += datagrams;
            if first {
                self.listen_notice(ListenNotice::NotAccepted { source });
            }
            return false;
        }
        let meant = endpoint.is_meant(meta);
        if !meant {
            self.counts.misdirected += datagrams;
        }
        meant
    }

    /// Processes the datagrams of a slot.
    fn slot(&mut self, now: Time, from: &Arrival, how: ReadPlace, slot: Slot, arena: &mut Arena) {
        let Slot { start, len, stride } = slot;
        let mut joined: Option<JoinedDatagrams<P::Message>> = None;
        for at in (start..start + len).step_by(stride) {
            let end = (at + stride).min(start + len);
            if self.loss.strikes() {
                continue;
            }
            let opened = self.open(now, from, &mut arena.buffer[at..end]);
            if let Some(session) = self.seal.as_mut().and_then(|seal| seal.begun()) {
                // Datagrams from before the new session are handled first.
                if let Some(run) = joined.take() {
                    self.deliver(now, from, run, arena);
                }
                if let Some(who) = self.seal.as_ref().and_then(|seal| seal.proved(session)) {
                    self.engine.begins_anew(now, &who);
                }
            }
            let Some((said, sealed)) = opened else { continue };
            let range = at + said.start..at + said.end;
            let at = range.start;
            let Ok(packet) = self.codec.decode(&arena.buffer[range]) else {
                self.counts.malformed += 1;
                if self.seal.is_none() && is_sealed(&arena.buffer[at..end]) {
                    let first = !std::mem::replace(&mut self.counts.sealed, true);
                    self.unlike(from.source.ip(), first.then_some(Unlike::Sealed));
                } else if self.seal.is_none() {
                    self.counts.foreign = self.counts.foreign.saturating_add(1);
                    let told = (self.counts.foreign == FOREIGN).then_some(Unlike::Foreign);
                    self.unlike(from.source.ip(), told);
                }
                continue;
            };
            let session = sealed.map(|(_, session)| session);
            if let (Some(seal), Some((class, session))) = (&mut self.seal, sealed)
                && !seal.may_say(class, session, &packet.message)
            {
                continue;
            }
            if how.role == SocketRole::Own && !packet.message.is_for_one() {
                self.counts.misdirected += 1;
                continue;
            }
            if !how.storing && packet.message.content().is_some() {
                // The engine must not count the content as received, so that it asks for it again.
                self.counts.unstored += 1;
                self.engine.unstored(from, &packet.message);
                continue;
            }
            let payload =
                Payload { at: (at + packet.payload.start) as u32, len: packet.payload.len() as u16 };
            if joined.as_mut().is_some_and(|run| run.extend(&packet.message, payload, session)) {
                continue;
            }
            let next = JoinedDatagrams { message: packet.message, payloads: vec![payload], session };
            if let Some(run) = joined.replace(next) {
                self.deliver(now, from, run, arena);
            }
        }
        if let Some(run) = joined {
            self.deliver(now, from, run, arena);
        }
    }

    /// Opens a datagram if it is sealed. Returns the range of its message, and the class and session of its seal. The
    /// seal counts refused datagrams by reason.
    fn open(
        &mut self,
        now: Time,
        from: &Arrival,
        datagram: &mut [u8],
    ) -> Option<(Range<usize>, Option<SealedSession>)> {
        let Some(seal) = &mut self.seal else { return Some((0..datagram.len(), None)) };
        if let Some(opened) = seal.open(now, from.source, datagram) {
            return Some((opened.payload, Some((opened.class, opened.session))));
        }
        if seal.is_early(datagram) {
            self.early.hold(from, datagram);
        }
        let unlike = seal.unlike(now);
        self.unlike(from.source.ip(), unlike);
        None
    }

    /// Processes datagrams that arrived before their key, as soon as it has arrived. The others keep their order.
    pub(super) fn hear_early(&mut self) {
        let Some(seal) = self.seal.as_deref() else { return };
        let ready = self.early.take(|datagram| !seal.is_early(datagram));
        if ready.is_empty() {
            return;
        }
        let now = self.clock.now();
        let mut filling = self.filling();
        for (from, datagram) in ready {
            let Some(filling) = &mut filling else { continue };
            let (start, len) = (filling.end, datagram.len());
            let Some(room) = filling.arena.buffer.get_mut(start..start + len) else { continue };
            room.copy_from_slice(&datagram);
            filling.end = (start + len).next_multiple_of(LINE);
            let how = ReadPlace { role: SocketRole::Public, storing: true, from: start };
            let slot = Slot { start, len, stride: len.max(1) };
            self.slot(now, &from, how, slot, &mut filling.arena);
        }
        self.filling = filling;
        self.tell_store();
    }

    /// Reports a datagram that our seal refuses, if there is a reason to report.
    fn unlike(&mut self, source: IpAddr, why: Option<Unlike>) {
        if let Some(why) = why {
            self.listen_notice(ListenNotice::Unlike { source, why });
        }
    }

    fn deliver(&mut self, now: Time, from: &Arrival, run: JoinedDatagrams<P::Message>, arena: &mut Arena) {
        if self.seal.is_some() && !self.is_of_its_sender(from.source, run.session) {
            if let Some(seal) = &mut self.seal {
                seal.misplaced(run.payloads.len() as u64);
            }
            return;
        }
        self.speaking = run.session;
        if let Some(last) = &mut self.last
            && last.offer.sender == from.source
            && run.message.content().is_some()
        {
            last.has_content = true;
        }
        if run.message.is_urgent() {
            self.nap.hurry();
        }
        let mut rest = Some(run.message);
        let mut payloads = run.payloads.as_slice();
        while let Some(message) = rest {
            let count = self.engine.prefix(&message);
            let (head, tail) = message.split(count);
            // The engine counts rejected messages by reason.
            let _ = self.engine.handle(now, from, &head);
            let taken = head.segments().get() as usize;
            self.drain(Some((&payloads[..taken], arena)));
            payloads = &payloads[taken..];
            rest = tail;
        }
        self.speaking = None;
    }
}

impl<M: Delivery> JoinedDatagrams<M> {
    /// Appends a datagram if it continues the run.
    fn extend(&mut self, next: &M, payload: Payload, session: Option<SessionId>) -> bool {
        let continues = self.session == session && self.message.join(next);
        if continues {
            self.payloads.push(payload);
        }
        continues
    }
}
