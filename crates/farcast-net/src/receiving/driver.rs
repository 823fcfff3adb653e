//! The loop of the receiving thread: reads datagrams, drives the engine, sends answers and gives the store its work.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::Engine;
use farcast_core::{Span, Time};
use farcast_delivery::{Codec, ObjectId, Offer, Protocol, ReceiverEngine, Request};
use farcast_files::{Naming, Nicety};
use farcast_seal::SessionId;

use super::early::Early;
use super::hearing::{Filling, Payload};
use super::nap::Nap;
use super::session::Session;
use super::{Event, Observer, ReceiveJob, ReceiveNotice, ReceiveOptions, ReceiveReport};
use crate::clock::Clock;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::listening::ListenNotice;
use crate::loss::Loss;
use crate::receive_sockets::{InterfaceChange, ReceiveSockets, SocketRole};
use crate::seal::ReceiveSeal;
use crate::socket::Endpoint;
use crate::store::{Arena, ArenaStep, Opening, Store};

/// Interval at which the owner is told about progress.
const TICK: Span = Span::from_millis(100);
/// Interval at which it is checked that a history is written.
const WRITING: Span = Span::from_millis(2);
/// Longest time that an object with all its content may take to become complete after the receiver is told to stop.
const LONGEST_COMPLETING: Span = Span::from_secs(5);

/// State of the receiving thread's loop.
pub(super) struct Driver<'a, P: Protocol> {
    pub(super) clock: Clock,
    pub(super) engine: P::Receiver,
    pub(super) codec: &'a P::Codec,
    /// Seal of all datagrams; absent if the transfer is not sealed.
    pub(super) seal: Option<&'a mut ReceiveSeal>,
    /// Seal session of the message being handled.
    pub(super) speaking: Option<SessionId>,
    pub(super) sockets: ReceiveSockets<'a>,
    pub(super) store: Store,
    pub(super) loss: Loss,
    /// Objects that are being received.
    pub(super) sessions: BTreeMap<ObjectId, Session>,
    pub(super) last: Option<ReceiveReport<Event<P>>>,
    pub(super) options: &'a ReceiveOptions,
    pub(super) observer: Observer<'a, P>,
    pub(super) counts: RefusedCounts,
    /// Buffer that is being filled, until the store gets it.
    pub(super) filling: Option<Filling>,
    /// Octets of data fetched since the last wait, and the decision how long to leave data to the kernel.
    pub(super) drained: u64,
    pub(super) nap: Nap,
    /// Time until which data is left to the kernel.
    awake_at: Time,
    /// Size of the kernel's receive buffer as it was lately, octets.
    buffer: u64,
    /// Buffer for datagrams of which nothing is stored.
    pub(super) spare: Option<Arena>,
    /// Time since which the store has had no free buffer.
    pub(super) stalled: Option<Time>,
    /// Time at which the store was told to open the only object; `None` once it has answered.
    pub(super) opening: Option<Time>,
    /// A datagram on our own port, or news of the interfaces, may wait.
    aside: bool,
    /// The disk is full, and the store waits for room.
    pub(super) lacks_room: bool,
    /// Content that arrived before its key.
    pub(super) early: Early,
    /// Orders for the store, to be given once it has all that was received before.
    pub(super) due: Vec<StoreOrder>,
    /// Objects, or files of them, that could be played back. They wait until their session is remembered.
    pub(super) unremembered: Vec<Unremembered>,
    out: Vec<u8>,
    /// Kinds of refusals by the file system that the owner was told of.
    pub(super) refused: BTreeSet<Nicety>,
}

/// Counts of datagrams and objects that were not accepted, besides the messages that the engine rejects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RefusedCounts {
    pub(super) malformed: u64,
    pub(super) unsent: u64,
    pub(super) not_accepted: u64,
    pub(super) misdirected: u64,
    pub(super) unstored: u64,
    pub(super) crowded: u64,
    /// Datagrams that are neither sealed nor this protocol's.
    pub(super) foreign: u32,
    /// A sealed datagram has arrived, and we have no key.
    pub(super) sealed: bool,
}

/// An object, or files of it, to be completed once its session is remembered.
pub(super) struct Unremembered {
    pub(super) object: ObjectId,
    /// Number of the history that has to be written.
    pub(super) number: u64,
    /// Number of its files that wait; `None` if the whole object waits.
    pub(super) files: Option<usize>,
}

/// Order for the store, to be done after all that it was handed before.
pub(super) enum StoreOrder {
    Open(u64, Box<Offer>),
    Rename(Box<Offer>),
    Compare(ObjectId),
    Release(ObjectId, usize),
    Finish(ObjectId),
    Close(ObjectId),
    Discard(ObjectId),
}

impl StoreOrder {
    /// Returns the object that the order concerns.
    fn object(&self) -> ObjectId {
        match self {
            Self::Open(_, offer) | Self::Rename(offer) => offer.object,
            Self::Compare(object)
            | Self::Release(object, _)
            | Self::Finish(object)
            | Self::Close(object)
            | Self::Discard(object) => *object,
        }
    }
}

/// Splits `due` into the orders to give before the buffer, and the rest, each in order. An object must be opened before
/// the content that came with its offer is stored. An object that was left earlier must be closed before that opening:
/// both may be one product, as when a sender was started again. An object is opened in its turn if an earlier order
/// concerns an object with the same number.
fn opened_first(due: Vec<StoreOrder>) -> (Vec<StoreOrder>, Vec<StoreOrder>) {
    let (mut opened, mut rest) = (Vec::new(), Vec::<StoreOrder>::new());
    for one in due {
        let fresh = || rest.iter().all(|before| before.object() != one.object());
        if matches!(one, StoreOrder::Open(..)) && fresh() {
            opened.extend(
                rest.extract_if(.., |before| matches!(before, StoreOrder::Close(_) | StoreOrder::Discard(_))),
            );
            opened.push(one);
        } else {
            rest.push(one);
        }
    }
    (opened, rest)
}

impl<'a, P: Protocol> Driver<'a, P> {
    /// Starts the clock and the store of a reception.
    pub(super) fn new(
        job: ReceiveJob<'a, P>,
        engine: P::Receiver,
        sockets: ReceiveSockets<'a>,
        observer: Observer<'a, P>,
    ) -> Result<Self, NetError> {
        let ReceiveJob { options, codec, seal, .. } = job;
        let clock = Clock::start();
        let store = Store::start(options.discard, options.wait_for_room)?;
        store.tidy(options.into.clone(), options.files.quota);
        Ok(Self {
            clock,
            engine,
            codec,
            seal,
            speaking: None,
            sockets,
            store,
            loss: options.listen.loss(),
            sessions: BTreeMap::new(),
            last: None,
            options,
            observer,
            counts: RefusedCounts::default(),
            filling: None,
            drained: 0,
            nap: Nap::default(),
            awake_at: Time::ZERO,
            buffer: 0,
            spare: Some(Arena::new()),
            stalled: None,
            opening: None,
            aside: true,
            lacks_room: false,
            early: Early::default(),
            due: Vec::new(),
            unremembered: Vec::new(),
            out: Vec::new(),
            refused: BTreeSet::new(),
        })
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<(), NetError> {
        if let Some(public) = self.sockets.endpoint(SocketRole::Public) {
            self.listen_notice(ListenNotice::Listening { address: public.local() });
        }
        let (mut tick, mut stopping) = (Time::ZERO, None);
        while !self.is_over() {
            let stops =
                stop.load(Ordering::Relaxed) && !self.completes(*stopping.get_or_insert(self.clock.now()));
            if stops {
                self.engine.stop(self.clock.now());
            }
            let mut heard = self.hear(SocketRole::Public)? | self.hear(SocketRole::Private)?;
            let now = self.clock.now();
            // Next to nothing arrives on our own port. It is read when there is something, now and then, and while a
            // key is waited for.
            let waits = !self.early.is_empty();
            if std::mem::take(&mut self.aside) || waits || now >= tick.min(self.sockets.due()) {
                heard |= self.hear(SocketRole::Own)?;
                self.follow(now);
            }
            if waits {
                self.hear_early();
            }
            if now >= self.hand_over_at() {
                self.hand_over();
            }
            self.engine.handle_timeout(now);
            while let Some((reception, reply)) = self.store.reply() {
                self.on_reply(reception, reply);
            }
            self.remember();
            self.drain(None);
            self.tell_store();
            self.transmit();
            if let Some(why) = self.sockets.newly_blocked() {
                self.listen_notice(ListenNotice::Blocked { why: &why });
            }
            if stops {
                break;
            }
            if now >= tick {
                tick = now + TICK;
                self.buffer = self.sockets.receive_buffer() as u64;
                self.tell_of_path();
                self.notice(&ReceiveNotice::Tick);
                if let Some(seal) = &mut self.seal {
                    // An object that waits for the history to be written asks for its state itself.
                    let _ = seal.tick(now);
                }
            }
            if !heard {
                self.wait(tick)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if everything of an object has arrived and its files are just becoming complete, and if there is
    /// still time since the stop at `since`. Such an object should not end as if it had been stopped.
    fn completes(&self, since: Time) -> bool {
        let is_full = |object: &ObjectId| {
            self.engine.have(*object).is_some_and(|have| !have.is_empty() && have.is_full())
        };
        !self.lacks_room && self.clock.now() < since + LONGEST_COMPLETING && self.sessions.keys().any(is_full)
    }

    /// Lets the store keep what it has and end. Waits for that as long as `patient` returns `true`. Returns `true` if
    /// it has ended.
    pub(super) fn end(&mut self, patient: impl FnMut() -> bool) -> bool {
        if let Some(seal) = &mut self.seal {
            seal.keep();
        }
        self.tell_store();
        self.hand_over();
        self.store.end(patient)
    }

    /// Gives the store the orders that became due while its buffer was being filled.
    pub(super) fn tell_store(&mut self) {
        // Content that came with an object's offer lies in the buffer, so the object is opened before.
        let (opened, rest) = opened_first(std::mem::take(&mut self.due));
        let full = self.filling.as_ref().is_some_and(Filling::is_due);
        let hands_over = full || !opened.is_empty() || !rest.is_empty();
        self.tell(opened);
        if hands_over {
            self.hand_over();
        }
        self.tell(rest);
    }

    fn tell(&self, due: Vec<StoreOrder>) {
        for due in due {
            match due {
                StoreOrder::Open(reception, offer) => {
                    let mut options = self.options.files;
                    if self.must_remember(offer.object) {
                        options.naming = Naming::WhenReleased;
                    }
                    let dir = self.options.into.clone();
                    let code = self.engine.erasure_code(offer.object);
                    let keeps_parity = P::Receiver::KEEPS_PARITY;
                    self.store.open(reception, Opening { offer, code, dir, options, keeps_parity });
                }
                StoreOrder::Rename(offer) => self.store.rename(offer),
                StoreOrder::Compare(object) => self.store.compare(object),
                StoreOrder::Release(object, count) => self.store.release(object, count),
                StoreOrder::Finish(object) => self.store.finish(object),
                StoreOrder::Close(object) => self.store.close(object),
                StoreOrder::Discard(object) => self.store.discard(object),
            }
        }
    }

    /// Notes in the last report the number of objects that never came.
    pub(super) fn note_missed(&mut self) {
        if let Some(last) = &mut self.last {
            last.missed = self.engine.missed(last.offer.sender);
        }
    }

    /// Returns `true` if only one transmission was asked for and it is over.
    fn is_over(&self) -> bool {
        let over =
            |last: &ReceiveReport<Event<P>>| last.counts() && !self.engine.is_busy_with(last.offer.sender);
        self.options.once && self.last.as_ref().is_some_and(over)
    }

    fn wait(&mut self, tick: Time) -> Result<(), NetError> {
        let held = self.held_until().or_else(|| self.nap_until());
        let mut sources = vec![self.store.as_fd()];
        sources.extend(self.sockets.other_sources());
        let aside = 1..sources.len();
        sources.extend(self.sockets.data_sources().filter(|_| held.is_none()));
        let timer = self.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        let until = timer.min(tick).min(self.sockets.due()).min(held.unwrap_or(Time::NEVER));
        // A nap may bring more data, so nothing is handed over during it.
        let until = if held.is_some() { until } else { until.min(self.hand_over_at()) };
        let until = if self.unremembered.is_empty() { until } else { until.min(self.clock.now() + WRITING) };
        let readable = self.clock.wait(&sources, until).map_err(NetError::socket("wait for the network"))?;
        if readable.has(0) {
            self.store.woken();
        }
        self.aside = aside.into_iter().any(|source| readable.has(source));
        Ok(())
    }

    /// Returns the time until which data is left to the kernel, so that more of it is fetched at once.
    fn nap_until(&mut self) -> Option<Time> {
        let now = self.clock.now();
        // A nap that something else has cut short continues: it must not count as one that brought nothing.
        if now >= self.awake_at {
            self.awake_at = now + self.nap.after(std::mem::take(&mut self.drained), self.buffer);
        }
        (now < self.awake_at).then_some(self.awake_at)
    }

    /// Reports senders whose path to this host is narrow.
    fn tell_of_path(&mut self) {
        while let Some(narrow) = self.sockets.found_narrow() {
            self.listen_notice(narrow);
        }
    }

    /// Handles changes of the interfaces.
    fn follow(&mut self, now: Time) {
        match self.sockets.follow(now) {
            None => {}
            Some(InterfaceChange::Waiting(why)) => self.listen_notice(ListenNotice::Waiting { why: &why }),
            Some(InterfaceChange::Back { moved }) => {
                self.listen_notice(ListenNotice::Rejoined);
                if moved {
                    self.engine.moved(now);
                }
            }
        }
    }

    /// Handles the engine's requests and events; `received` are the payloads of the message just handled.
    pub(super) fn drain(&mut self, mut received: Option<(&[Payload], &mut Arena)>) {
        while let Some(event) = self.engine.poll_event() {
            let request = P::Receiver::request(&event);
            match request {
                Some(Request::Store { object, segments, offset }) => {
                    let Some((payloads, arena)) = &mut received else { continue };
                    arena.turn_to(object);
                    Self::note_session(&mut self.sessions, object, self.speaking);
                    let payloads = payloads[offset as usize..].iter();
                    arena.steps.extend(
                        segments
                            .segments()
                            .zip(payloads)
                            .map(|(segment, &Payload { at, len })| ArenaStep::Store { segment, at, len }),
                    );
                    continue;
                }
                Some(Request::Parity { object, block, symbols, offset }) => {
                    let Some((payloads, arena)) = &mut received else { continue };
                    arena.turn_to(object);
                    Self::note_session(&mut self.sessions, object, self.speaking);
                    for (symbol, &Payload { at, len }) in symbols.segments().zip(&payloads[offset as usize..])
                    {
                        arena.steps.push(ArenaStep::Parity { block, symbol, at, len });
                    }
                    continue;
                }
                Some(Request::Decode { object, block }) => {
                    if let Some((_, arena)) = &mut received {
                        arena.turn_to(object);
                        arena.steps.push(ArenaStep::Decode { block });
                    }
                }
                Some(Request::Compare(object)) => self.due.push(StoreOrder::Compare(object)),
                Some(Request::Verify(object)) => self.verify(object),
                Some(Request::Open(offer)) => self.offered(offer),
                Some(Request::Rename(offer)) => self.renamed(offer),
                Some(Request::Ended(object, outcome)) => self.ended(object, outcome, &event),
                None => {}
            }
            self.notice(&ReceiveNotice::Event(&event));
        }
    }

    pub(super) fn notice(&mut self, notice: &ReceiveNotice<'_, Event<P>>) {
        (self.observer)(self.clock.now(), &self.engine, notice);
    }

    pub(super) fn listen_notice(&mut self, notice: ListenNotice<'_>) {
        self.notice(&ReceiveNotice::Listen(notice));
    }

    fn transmit(&mut self) {
        let now = self.clock.now();
        let mouth = self.sockets.mouth();
        while let Some(transmit) = self.engine.poll_transmit(now, now) {
            self.out.clear();
            self.codec.encode(&transmit.message, 0, &mut self.out);
            self.codec.finish(&mut self.out);
            let envelope = Envelope::of(&transmit);
            if let Some(seal) = &mut self.seal
                && !seal.answer(envelope.to, &mut self.out)
            {
                self.counts.unsent += 1;
                continue;
            }
            let send = |mouth: &Rc<Endpoint>| mouth.send(&envelope, &self.out, self.out.len());
            // An answer that cannot be sent is as good as lost: the protocol asks again. The sender chose its address,
            // so a failure there must not end this receiver.
            if mouth.as_ref().is_none_or(|mouth| send(mouth).is_err()) {
                self.counts.unsent += 1;
            }
        }
        let (Some(seal), Some(mouth)) = (&mut self.seal, &mouth) else { return };
        while let Some(to) = seal.asks() {
            self.out.clear();
            if seal.answer(to, &mut self.out) {
                // A request that is lost is sent again.
                let _ = mouth.send(&Envelope::to(to), &self.out, self.out.len());
            }
        }
    }
}
