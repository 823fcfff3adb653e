//! Receiving: one thread hears the network and drives the engine, another stores.

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::{Arrival, Engine, Message as _, RejectCounts};
use farcast_core::{Bitmap, Probability, Span, Time};
use farcast_files::Options;
use farcast_mftp::message::{DeclineReason, cancel};
use farcast_mftp::receiver::ReceiverStats;
use farcast_mftp::{Body, Message, Offer, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome, wire};
use quinn_udp::RecvMeta;
use rustix::fs::{Access, access};

use crate::clock::{Clock, sharpen_timers};
use crate::error::NetError;
use crate::loss::Loss;
use crate::socket::{Endpoint, SocketOptions};
use crate::store::{Arena, FileInfo, Reply, SLOT_LEN, SLOTS, Step, Store};

/// How often the owner is told about progress.
const TICK: Span = Span::from_millis(100);

/// What to receive and where to put it.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// The group (or our own address) and port to listen on.
    pub from: SocketAddr,
    /// The only sender to hear, in a source-specific group.
    pub source: Option<IpAddr>,
    /// Where files go; made if it is not there.
    pub into: PathBuf,
    /// How files are stored.
    pub files: Options,
    /// How sockets are made.
    pub socket: SocketOptions,
    /// End after the first transmission that was complete, or that cannot become so.
    pub once: bool,
    /// Drop what arrives instead of storing it; the end is [`NetError::Discarded`], never a success.
    pub discard: bool,
    /// Datagrams to lose on purpose.
    pub simulate_loss: Probability,
    /// The seed of those losses.
    pub seed: u64,
}

/// What happens while receiving.
#[derive(Debug)]
pub enum ReceiveNotice<'a> {
    /// Ready to hear announcements.
    Listening {
        /// The address listened on.
        address: SocketAddr,
    },
    /// A transmission is taken part in.
    Joined {
        /// What is sent.
        offer: &'a Offer,
        /// Segments that are there already.
        held: u32,
    },
    /// The list of files is known.
    Files(&'a [FileInfo]),
    /// A file is complete, verified, and has its final name.
    FileDone {
        /// Its path below the receiving directory.
        path: &'a str,
    },
    /// Something the engine tells.
    Event(&'a ReceiverEvent),
    /// A tenth of a second has passed.
    Tick,
    /// The transmission is over.
    Ended(&'a ReceiveReport),
}

/// How a transmission went for this receiver.
#[derive(Debug)]
pub struct ReceiveReport {
    /// What was sent.
    pub offer: Offer,
    /// How it ended.
    pub outcome: ReceiverOutcome,
    /// Why it could not be stored, if that is so.
    pub error: Option<NetError>,
    /// From joining to completion, or to the end.
    pub duration: Span,
    /// Segments that were there before.
    pub held: u32,
    /// Segments there at the end.
    pub have: u32,
    /// What came.
    pub stats: ReceiverStats,
    /// Datagrams that were no MFTP.
    pub malformed: u64,
    /// Answers that the system would not send.
    pub unsent: u64,
    /// Messages turned down, by reason.
    pub rejects: RejectCounts,
}

impl ReceiveReport {
    /// Whether the product is complete and verified.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, ReceiverOutcome::Complete { .. })
    }
}

/// Receives products until `stop` is set or, with [`ReceiveOptions::once`], one transmission is over; the last
/// report.
///
/// # Errors
/// What makes it impossible to listen; what goes wrong with one transmission is in its report.
pub fn receive(
    options: &ReceiveOptions,
    mut config: ReceiverConfig,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Time, &Receiver, &ReceiveNotice<'_>),
) -> Result<Option<ReceiveReport>, NetError> {
    sharpen_timers();
    check_directory(&options.into)?;
    let group = Endpoint::listener(options.from, options.source, &options.socket)?;
    let answers = if options.from.ip().is_multicast() {
        Some(Endpoint::answers(options.from, &options.socket)?)
    } else {
        None
    };
    config.port = options.from.port();
    config.receive_buffer_bytes = u32::try_from(group.receive_buffer()).ok();
    let mut driver = Driver {
        clock: Clock::start(),
        engine: Receiver::new(config)?,
        store: Store::start(options.discard)?,
        loss: Loss::new(options.simulate_loss, options.seed),
        session: None,
        last: None,
        malformed: 0,
        unsent: 0,
        options,
        observer,
        private: None,
        out: Vec::new(),
        due: Vec::new(),
    };
    let address = group.local();
    driver.notice(&ReceiveNotice::Listening { address });
    driver.run(&group, answers.as_ref(), stop)?;
    Ok(driver.last)
}

/// Better now than when the first product comes.
fn check_directory(path: &Path) -> Result<(), NetError> {
    let failed = |source| NetError::Directory { path: path.into(), source };
    std::fs::create_dir_all(path).map_err(failed)?;
    access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| failed(errno.into()))
}

/// What the driver knows of the transmission at hand.
struct Session {
    offer: Offer,
    files: Vec<FileInfo>,
    joined: Time,
    held: u32,
    error: Option<NetError>,
}

struct Driver<'a> {
    clock: Clock,
    engine: Receiver,
    store: Store,
    loss: Loss,
    session: Option<Session>,
    last: Option<ReceiveReport>,
    malformed: u64,
    /// Answers that the system would not send.
    unsent: u64,
    options: &'a ReceiveOptions,
    observer: &'a mut dyn FnMut(Time, &Receiver, &ReceiveNotice<'_>),
    /// The private group, where it is another than the public one.
    private: Option<Endpoint>,
    out: Vec<u8>,
    /// What the store is told once it has been handed all that was received before.
    due: Vec<Due>,
}

/// What the store is to do behind everything that it was handed.
enum Due {
    Open(Box<Offer>),
    Finish,
    Close,
    Discard,
}

/// Consecutive datagrams that became one message, and where their payloads lie in the arena.
struct Joined {
    message: Message,
    payloads: Vec<(u32, u16)>,
}

impl Driver<'_> {
    fn run(
        &mut self,
        group: &Endpoint,
        answers: Option<&Endpoint>,
        stop: &AtomicBool,
    ) -> Result<(), NetError> {
        let mut tick = Time::ZERO;
        while !self.is_over() {
            if stop.load(Ordering::Relaxed) {
                self.engine.stop(self.clock.now());
            }
            let mut heard = self.hear(group)? | self.hear_private()?;
            let now = self.clock.now();
            // Next to nothing comes there, so while data runs it is not looked at every time.
            if !heard || now >= tick {
                heard |= answers.map_or(Ok(false), |endpoint| self.hear(endpoint))?;
            }
            self.engine.handle_timeout(now);
            while let Some(reply) = self.store.reply() {
                self.on_reply(reply);
            }
            self.drain(None);
            self.tell_store();
            self.transmit(answers.unwrap_or(group));
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if now >= tick {
                tick = now + TICK;
                self.notice(&ReceiveNotice::Tick);
            }
            if !heard {
                self.wait(group, answers, tick)?;
            }
        }
        self.tell_store();
        self.store.close();
        Ok(())
    }

    /// Tells the store what became due while its buffer was being filled.
    fn tell_store(&mut self) {
        for due in std::mem::take(&mut self.due) {
            match due {
                Due::Open(offer) => self.store.open(*offer, self.options.into.clone(), self.options.files),
                Due::Finish => self.store.finish(),
                Due::Close => self.store.close(),
                Due::Discard => self.store.discard(),
            }
        }
    }

    /// Whether the one transmission that was asked for is over.
    fn is_over(&self) -> bool {
        let Some(last) = self.last.as_ref().filter(|_| self.options.once && !self.engine.is_busy()) else {
            return false;
        };
        // A sender that fell silent may be started again, and goes on then.
        !matches!(last.outcome, ReceiverOutcome::SenderLost | ReceiverOutcome::NotAccepted)
    }

    fn wait(&mut self, group: &Endpoint, answers: Option<&Endpoint>, tick: Time) -> Result<(), NetError> {
        let mut sources = vec![group.as_fd(), self.store.as_fd()];
        sources.extend(answers.map(AsFd::as_fd));
        sources.extend(self.private.as_ref().map(AsFd::as_fd));
        let timer = self.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        let waited = self.clock.wait(&sources, timer.min(tick));
        self.store.woken();
        waited.map_err(NetError::socket("wait for the network"))
    }

    fn hear_private(&mut self) -> Result<bool, NetError> {
        let Some(endpoint) = self.private.take() else { return Ok(false) };
        let heard = self.hear(&endpoint);
        self.private.get_or_insert(endpoint);
        heard
    }

    /// Takes what `endpoint` has received; whether there was anything.
    fn hear(&mut self, endpoint: &Endpoint) -> Result<bool, NetError> {
        let Some(mut arena) = self.store.arena() else { return Ok(false) };
        let mut meta = [RecvMeta::default(); SLOTS];
        let count = {
            let mut slots: Vec<IoSliceMut<'_>> =
                arena.buffer.chunks_mut(SLOT_LEN).map(IoSliceMut::new).collect();
            endpoint.receive(&mut slots, &mut meta)?
        };
        let now = self.clock.now();
        for (slot, meta) in meta[..count].iter().enumerate() {
            let from = Arrival {
                interface: meta.interface_index.unwrap_or(0),
                // A coalesced receive loses the mark, so none is claimed.
                ..Arrival::new(meta.addr, endpoint.local())
            };
            self.slot(now, &from, slot, meta, &mut arena);
        }
        self.store.submit(arena);
        self.tell_store();
        Ok(count > 0)
    }

    /// One slot: one datagram, or several of equal length that the kernel has joined.
    fn slot(&mut self, now: Time, from: &Arrival, slot: usize, meta: &RecvMeta, arena: &mut Arena) {
        let start = slot * SLOT_LEN;
        let stride = meta.stride.max(1);
        let mut joined: Option<Joined> = None;
        for at in (start..start + meta.len).step_by(stride) {
            let end = (at + stride).min(start + meta.len);
            if self.loss.strikes() {
                continue;
            }
            let Ok(packet) = wire::decode(&arena.buffer[at..end]) else {
                self.malformed += 1;
                continue;
            };
            let payload = ((at + packet.payload.start) as u32, packet.payload.len() as u16);
            if joined.as_mut().is_some_and(|run| run.extend(&packet.message, payload)) {
                continue;
            }
            let next = Joined { message: packet.message, payloads: vec![payload] };
            if let Some(run) = joined.replace(next) {
                self.deliver(now, from, run, arena);
            }
        }
        if let Some(run) = joined {
            self.deliver(now, from, run, arena);
        }
    }

    fn deliver(&mut self, now: Time, from: &Arrival, run: Joined, arena: &mut Arena) {
        let mut rest = Some(run.message);
        let mut payloads = run.payloads.as_slice();
        while let Some(message) = rest {
            let count = self.engine.prefix(&message);
            let (head, tail) = message.split(count);
            // What is turned down is counted by the engine, by reason.
            let _ = self.engine.handle(now, from, &head);
            let taken = head.segments().get() as usize;
            self.drain(Some((&payloads[..taken], arena)));
            payloads = &payloads[taken..];
            rest = tail;
        }
    }

    /// Answers the engine's events; `received` are the payloads of the message just handled.
    fn drain(&mut self, mut received: Option<(&[(u32, u16)], &mut Arena)>) {
        while let Some(event) = self.engine.poll_event() {
            match &event {
                ReceiverEvent::Store { segments, offset } => {
                    let Some((payloads, arena)) = &mut received else { continue };
                    let payloads = payloads[*offset as usize..].iter();
                    arena.steps.extend(
                        segments.segments().zip(payloads).map(|(segment, &(at, len))| Step::Store {
                            segment,
                            at,
                            len,
                        }),
                    );
                    continue;
                }
                ReceiverEvent::StoreParity { block, symbols, offset } => {
                    let Some((payloads, arena)) = &mut received else { continue };
                    for (symbol, &(at, len)) in symbols.segments().zip(&payloads[*offset as usize..]) {
                        arena.steps.push(Step::Parity { block: *block, symbol, at, len });
                    }
                    continue;
                }
                ReceiverEvent::Decode { block } => {
                    if let Some((_, arena)) = &mut received {
                        arena.steps.push(Step::Decode { block: *block });
                    }
                }
                // Behind everything that is still to be stored.
                ReceiverEvent::Complete => self.due.push(Due::Finish),
                ReceiverEvent::Offered(offer) => self.offered(offer),
                ReceiverEvent::Ended(outcome) => self.ended(outcome),
                _ => {}
            }
            self.notice(&ReceiveNotice::Event(&event));
        }
    }

    fn notice(&mut self, notice: &ReceiveNotice<'_>) {
        (self.observer)(self.clock.now(), &self.engine, notice);
    }
}

impl Driver<'_> {
    /// A transmission is offered: open its product, unless it says nothing of what it is.
    fn offered(&mut self, offer: &Offer) {
        if offer.id.is_none() {
            return self.engine.decline(DeclineReason::UnwantedType);
        }
        if offer.private.is_multicast() && offer.private != self.options.from.ip() {
            let private = SocketAddr::new(offer.private, self.options.from.port());
            match Endpoint::listener(private, self.options.source, &self.options.socket) {
                Ok(endpoint) => self.private = Some(endpoint),
                Err(error) => return self.refuse(offer, error, DeclineReason::System),
            }
        }
        self.session = Some(Session {
            offer: offer.clone(),
            files: Vec::new(),
            joined: self.clock.now(),
            held: 0,
            error: None,
        });
        self.due.push(Due::Open(Box::new(offer.clone())));
    }

    /// Declines what cannot be received, and keeps the reason for the report.
    fn refuse(&mut self, offer: &Offer, error: NetError, reason: DeclineReason) {
        let (offer, joined) = (offer.clone(), self.clock.now());
        let session =
            self.session.get_or_insert(Session { offer, files: Vec::new(), joined, held: 0, error: None });
        session.error = Some(error);
        self.engine.decline(reason);
    }

    fn on_reply(&mut self, reply: Reply) {
        let now = self.clock.now();
        match reply {
            Reply::Opened(held) => self.opened(now, held),
            Reply::Manifest { newly_held, files } => {
                let mut map = Bitmap::new(self.engine.have().map_or(0, Bitmap::len));
                for run in newly_held {
                    map.insert_run(run);
                }
                self.engine.held(&map);
                let Some(mut session) = self.session.take() else { return };
                session.files = files;
                self.notice(&ReceiveNotice::Files(&session.files));
                self.session = Some(session);
            }
            Reply::FileDone { path } => self.notice(&ReceiveNotice::FileDone { path: &path }),
            Reply::Decoded { block, rebuilt } => self.engine.decoded(block, rebuilt),
            Reply::Finished => self.engine.verified(now),
            Reply::Failed(error) => self.failed(error),
        }
    }

    fn opened(&mut self, now: Time, held: Bitmap) {
        let Some(mut session) = self.session.take() else { return };
        session.held = held.count();
        let notice = ReceiveNotice::Joined { offer: &session.offer, held: session.held };
        (self.observer)(now, &self.engine, &notice);
        self.session = Some(session);
        self.engine.accept(now, held);
    }

    /// The product cannot be stored: leave the transmission and say why.
    fn failed(&mut self, error: NetError) {
        let reason = match &error {
            NetError::Store(farcast_files::StoreError::DiskFull { .. }) => DeclineReason::Disk,
            NetError::Store(farcast_files::StoreError::AlreadyExists { .. }) => DeclineReason::AlreadyHave,
            _ => DeclineReason::System,
        };
        let mut text = error.to_string();
        let end = (0..=text.len().min(256)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        if let Some(session) = &mut self.session {
            session.error = Some(error);
        }
        // Of the two, one applies: before it was accepted it is declined, later it is left.
        self.engine.decline(reason);
        self.engine.fail(cancel::QUIT_SYSTEM, Some(text));
    }

    fn ended(&mut self, outcome: &ReceiverOutcome) {
        self.private = None;
        if !matches!(outcome, ReceiverOutcome::Complete { .. }) {
            // What changed at its source can never be completed; everything else is kept for the next try.
            let useless =
                matches!(outcome, ReceiverOutcome::Aborted { reason: cancel::ABORT_SOURCE_CHANGED, .. });
            self.due.push(if useless { Due::Discard } else { Due::Close });
        }
        let Some(session) = self.session.take() else { return };
        let now = self.clock.now();
        let stats = *self.engine.stats();
        let have = session.held.saturating_add(u32::try_from(stats.dtus).unwrap_or(u32::MAX));
        let (have, end) = match outcome {
            ReceiverOutcome::Complete { at, .. } => (session.offer.geometry.segments(), *at),
            _ => (have.min(session.offer.geometry.segments()), now),
        };
        let report = ReceiveReport {
            outcome: outcome.clone(),
            error: session.error,
            duration: end.since(session.joined),
            held: session.held,
            have,
            stats,
            malformed: self.malformed,
            unsent: self.unsent,
            rejects: *self.engine.rejects(),
            offer: session.offer,
        };
        self.notice(&ReceiveNotice::Ended(&report));
        self.last = Some(report);
    }

    fn transmit(&mut self, endpoint: &Endpoint) {
        let now = self.clock.now();
        while let Some(transmit) = self.engine.poll_transmit(now, now) {
            self.out.clear();
            wire::encode(&transmit.message, 0, &mut self.out);
            // An answer that finds no way is as good as lost: the protocol asks again. Where it goes was not our choice,
            // so it must not end us.
            if endpoint.send(transmit.destination, &self.out, self.out.len()).is_err() {
                self.unsent += 1;
            }
        }
    }
}

impl Joined {
    /// Appends a datagram if it continues the run.
    fn extend(&mut self, next: &Message, payload: (u32, u16)) -> bool {
        let (Body::Data(run), Body::Data(data)) = (&mut self.message.body, &next.body) else { return false };
        if self.message.transmission != next.transmission || !run.continues(data) {
            return false;
        }
        let Some(dtus) = farcast_core::Run::new(run.dtus.first(), run.dtus.count() + 1) else { return false };
        (run.dtus, run.last_len) = (dtus, data.last_len);
        self.payloads.push(payload);
        true
    }
}
