//! Streams between a file descriptor and the network.
//!
//! One thread does everything. What cannot be read or written waits, and with it the other side: a sender reads no
//! further ahead than its window, and a receiver whose output is full leaves what comes to the kernel, and asks again
//! for what that had no room for.

use std::io::{self, IoSliceMut, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::{Probability, Span, Time};
use farcast_delivery::{Proved, StreamEngine, StreamReceiverEngine, StreamSenderEngine, Taken, Transport};
use farcast_seal::Class;
use ipnet::IpNet;
use quinn_udp::RecvMeta;

use crate::clock::{Clock, sharpen_timers};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::loss::Loss;
use crate::narrow::Watch;
use crate::receiving::Unlike;
use crate::seal::{ReceiveSeal, SendSeal, is_sealed};
use crate::socket::{Endpoint, Narrow, SocketOptions};

/// Buffers of one system call, and octets of each.
const SLOTS: usize = 32;
const SLOT_LEN: usize = 1 << 16;
/// Octets that are read of the stream at a time.
const CHUNK: usize = 1 << 16;
/// How often it is looked whether somebody wants an end.
const TICK: Span = Span::from_millis(100);
/// Datagrams that leave before it is heard what has come.
const TURN: usize = 64;
/// After the end of its stream a receiver answers until nothing comes for so long, or for so long at most.
const LINGER: Span = Span::from_secs(2);
const LONGEST_LINGER: Span = Span::from_secs(30);
/// How long this host may refuse to send, where nothing has left before, until that is the end.
const LONGEST_REFUSED: Span = Span::from_secs(3);

/// What a stream that is sent is, besides its engine.
#[derive(Clone, Debug)]
pub struct StreamSendOptions {
    /// The group, or one receiver.
    pub to: SocketAddr,
    /// The sockets.
    pub socket: SocketOptions,
    /// What carries it.
    pub transport: Transport,
    /// Whether each line is a message, at which whoever comes late may begin.
    pub lines: bool,
}

/// What a stream that is received is, besides its engine.
#[derive(Clone, Debug)]
pub struct StreamReceiveOptions {
    /// The group that is listened to, or our own address.
    pub from: SocketAddr,
    /// The only sender, where the network is asked for it alone.
    pub source: Option<IpAddr>,
    /// The only senders that are heard; empty: all.
    pub accept: Vec<IpNet>,
    /// The sockets.
    pub socket: SocketOptions,
    /// What carries it.
    pub transport: Transport,
    /// Whether nothing is said to the sender.
    pub silent: bool,
    /// Of what comes this part is lost, to try things.
    pub simulate_loss: Probability,
    /// The seed of that.
    pub seed: u64,
}

/// What is told of a stream that is received.
#[derive(Debug)]
pub enum StreamNotice<'a, E> {
    /// It is listened to.
    Listening,
    /// What the engine tells.
    Event(&'a E),
    /// Octets cannot be had: from where in the stream, and up to where, if that is known.
    Gap(u64, Option<u64>),
    /// It goes on, or begins, here.
    Begins(u64),
    /// This host itself would not send an answer; told once.
    Refused(&'a NetError),
    /// Something came that only another seal opens, or that has none; told of once.
    Unlike {
        /// From whom.
        source: IpAddr,
        /// What is unlike.
        why: Unlike,
    },
    /// Short datagrams of a sender come and no long one does; as
    /// [`ReceiveNotice::Narrow`](crate::ReceiveNotice::Narrow).
    Narrow {
        /// The sender.
        source: IpAddr,
        /// Octets of datagrams that do not come, without headers of UDP and IP.
        datagram: usize,
        /// Octets of datagrams that pass everywhere, likewise.
        passes: usize,
        /// Whether the sender is told of it.
        told: bool,
    },
}

/// What is told of a stream that is sent.
#[derive(Debug)]
pub enum StreamSendNotice<'a, E> {
    /// What the engine tells.
    Event(&'a E),
    /// This host itself would not send; told once.
    Refused(&'a NetError),
    /// A receiver is trusted no more: it opens nothing from now on.
    Revoked {
        /// What the list called it.
        name: &'a str,
    },
    /// A receiver gets no long datagram and all that are short: from now on long ones leave in pieces.
    Narrow {
        /// Its address.
        receiver: SocketAddr,
        /// Octets of datagrams that do not arrive there, without headers of UDP and IP.
        datagram: usize,
        /// Octets of the longest that leaves from now on, likewise.
        limit: usize,
    },
}

/// How the reception of a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// At its end, so many octets from its beginning.
    Ended(u64),
    /// Whoever was told of something had seen enough.
    Enough,
    /// Whoever reads the output does not read it any more.
    Unread,
    /// It was stopped.
    Stopped,
}

/// Where in a datagram lies what an engine is to hear, if there is anything; it is opened in place.
type Open<'a, E> =
    dyn FnMut(Time, &RecvMeta, &mut E, &mut [u8]) -> Result<Option<Range<usize>>, NetError> + 'a;

/// Sockets, and a buffer for what comes.
struct Ears {
    clock: Clock,
    buffer: Vec<u8>,
}

impl Ears {
    fn new() -> Self {
        sharpen_timers();
        Self { clock: Clock::start(), buffer: vec![0; SLOTS * SLOT_LEN] }
    }

    /// Gives `engine` what has come to `endpoint`, as far as `open` finds anything in it that is to be heard; whether
    /// anything came.
    fn hear<E: StreamEngine>(
        &mut self,
        endpoint: &Endpoint,
        engine: &mut E,
        open: &mut Open<'_, E>,
    ) -> Result<bool, NetError> {
        let mut meta = [RecvMeta::default(); SLOTS];
        let count = {
            let mut slots: Vec<IoSliceMut<'_>> =
                self.buffer.chunks_mut(SLOT_LEN).map(IoSliceMut::new).collect();
            endpoint.receive(&mut slots, &mut meta)?
        };
        let now = self.clock.now();
        for (slot, meta) in meta[..count].iter().enumerate() {
            if !endpoint.is_meant(meta) {
                continue;
            }
            let from = Arrival::new(meta.addr, endpoint.local());
            let Some(range) = endpoint.content(&self.buffer[slot * SLOT_LEN..][..meta.len]) else { continue };
            let content = &mut self.buffer[slot * SLOT_LEN..][range];
            for datagram in content.chunks_mut(meta.stride.max(1)) {
                if let Some(said) = open(now, meta, engine, datagram)? {
                    engine.handle(now, &from, &datagram[said]);
                }
            }
        }
        Ok(count > 0)
    }

    /// Waits until one of `sources` can be read, or `until`, or it is time to look around; whether number `of` can.
    fn wait(&self, sources: &[BorrowedFd<'_>], until: Time, of: usize) -> Result<bool, NetError> {
        let until = until.min(self.clock.now() + TICK);
        let readable = self.clock.wait(sources, until).map_err(NetError::socket("wait for the network"))?;
        Ok(readable.has(of))
    }
}

fn send(endpoint: &Endpoint, transmit: &Transmit<()>, datagram: &[u8]) -> Result<(), NetError> {
    match endpoint.send(&Envelope::of(transmit), datagram, datagram.len()) {
        // The way may be back in a moment: what does not leave is lost, and asked for.
        Err(error) if error.may_pass() => Ok(()),
        // It is told, and may be mended.
        Err(NetError::Refused(_)) => Ok(()),
        other => other,
    }
}

/// What of this host's refusals to send was told.
#[derive(Debug, Default)]
struct Refusals {
    told: bool,
    since: Option<Time>,
    /// Whether anything has ever left.
    left: bool,
}

impl Refusals {
    /// A refusal of `endpoint` that was not told.
    fn news(&mut self, endpoint: &Endpoint) -> Option<NetError> {
        let why = endpoint.newly_refused()?;
        (!std::mem::replace(&mut self.told, true)).then_some(why)
    }

    /// The end, where this host has let nothing out for a while.
    fn check(&mut self, now: Time, endpoint: &Endpoint) -> Result<(), NetError> {
        let Some(why) = endpoint.refused() else {
            self.since = None;
            return Ok(());
        };
        let since = *self.since.get_or_insert(now);
        if !self.left && now.since(since) >= LONGEST_REFUSED { Err(why) } else { Ok(()) }
    }
}

/// Sends what `input` gives until its end, or until `stop`, by the engine that `make` makes for our own address. With a
/// seal, all that leaves is signed and sealed, and all answers are opened.
///
/// # Errors
/// What makes it impossible to begin or to go on; reading is [`NetError::Socket`], too.
pub fn send_stream<S: StreamSenderEngine, E: std::error::Error + Send + Sync + 'static>(
    options: &StreamSendOptions,
    input: &mut (impl Read + AsFd),
    (make, mut seal): (impl FnOnce(SocketAddr) -> Result<S, E>, Option<&mut SendSeal>),
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&S, &StreamSendNotice<'_, S::Event>),
) -> Result<S, NetError> {
    let mut ears = Ears::new();
    let transport = options.transport;
    let endpoint = Endpoint::sender(options.to, &options.socket, transport)?;
    let own = endpoint.local();
    let mut engine = make(own).map_err(NetError::config)?;
    let group = options.to.ip().is_multicast() && engine.hears_group();
    let group =
        group.then(|| Endpoint::listener(options.to, None, &options.socket, transport)).transpose()?;
    let mut source = Source { pending: Vec::new(), at: 0, over: false, lines: options.lines };
    let (mut out, mut refusals) = (Vec::new(), Refusals::default());
    let (mut opened, mut readable, mut stopped) = (false, false, false);
    loop {
        for endpoint in group.iter().chain([&endpoint]) {
            ears.hear(endpoint, &mut engine, &mut |now, meta, engine, datagram| {
                // Our own data comes back on the group.
                if meta.addr == own {
                    return Ok(None);
                }
                let Some(seal) = &mut seal else { return Ok(Some(0..datagram.len())) };
                let Some((said, who)) = seal.open(now, meta.addr, datagram) else { return Ok(None) };
                let may = seal.may_say(who, |who| engine.may_say(&datagram[said.clone()], who));
                Ok(may.then_some(said))
            })?;
        }
        // The flag stays: what has been read may take long to arrive, and who asks again waits no longer.
        if !stopped && stop.load(Ordering::Relaxed) {
            (stopped, source.over) = (true, true);
            engine.finish(ears.clock.now());
        }
        let now = ears.clock.now();
        if let Some(seal) = &mut seal {
            for (name, _) in seal.revoke(now)? {
                observer(&engine, &StreamSendNotice::Revoked { name: &name });
            }
            let (datagrams, octets) = seal.send_keys(now, &Envelope::to(options.to), &endpoint);
            engine.spend(datagrams as u64, octets as u64);
        }
        // Whoever has no keys yet can do nothing with what is said.
        if !opened && seal.as_ref().is_none_or(|seal| !seal.begins()) {
            opened = true;
            engine.open(now);
        }
        engine.handle_timeout(now);
        let idle = opened && source.feed(now, &mut engine, (input, readable))?;
        for _ in 0..if opened { TURN } else { 0 } {
            out.clear();
            let Some(transmit) = engine.poll_transmit(ears.clock.now(), &mut out) else { break };
            let one = (transmit.destination != options.to).then_some(transmit.destination);
            if seal.as_mut().is_none_or(|seal| seal.control(&mut out, one)) {
                send(&endpoint, &transmit, &out)?;
                refusals.left |= endpoint.refused().is_none();
            }
        }
        if let Some(why) = refusals.news(&endpoint) {
            observer(&engine, &StreamSendNotice::Refused(&why));
        }
        refusals.check(now, &endpoint)?;
        if let Some(seal) = &mut seal {
            let (owed, of_owed) = seal.newly_owed();
            engine.spend(owed, of_owed);
            seal.send_owed(ears.clock.now(), &endpoint);
        }
        let beside = endpoint.beside();
        if beside.datagrams > 0 {
            engine.spend(beside.datagrams as u64, beside.octets as u64);
        }
        if let Some(narrow) = endpoint.asked_to_cut() {
            let Narrow { receiver, length, limit } = narrow;
            observer(&engine, &StreamSendNotice::Narrow { receiver, datagram: length, limit });
        }
        while let Some(event) = engine.poll_event() {
            observer(&engine, &StreamSendNotice::Event(&event));
        }
        if engine.has_ended() {
            return Ok(engine);
        }
        let mut sources = vec![endpoint.as_fd()];
        sources.extend(group.as_ref().map(AsFd::as_fd));
        let of = sources.len();
        if idle {
            sources.push(input.as_fd());
        }
        let keys = seal.as_ref().map_or(Time::NEVER, |seal| seal.due());
        let timer = if opened { engine.poll_timeout() } else { Time::NEVER };
        readable = ears.wait(&sources, timer.min(keys), of)?;
    }
}

/// What is sent.
struct Source {
    pending: Vec<u8>,
    at: usize,
    /// Nothing more comes.
    over: bool,
    lines: bool,
}

impl Source {
    /// Gives the engine what it takes, and reads more if that can be read; whether there is nothing left to give.
    fn feed(
        &mut self,
        now: Time,
        engine: &mut impl StreamSenderEngine,
        (input, readable): (&mut impl Read, bool),
    ) -> Result<bool, NetError> {
        if self.over {
            return Ok(false);
        }
        if readable && self.at == self.pending.len() {
            self.pending.resize(CHUNK, 0);
            self.at = 0;
            let count = match input.read(&mut self.pending) {
                Ok(count) => count,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) =>
                {
                    self.pending.clear();
                    return Ok(true);
                }
                Err(source) => return Err(NetError::Socket { action: "read the stream", source }),
            };
            self.pending.truncate(count);
            if count == 0 {
                self.over = true;
                engine.finish(now);
                return Ok(false);
            }
        }
        while self.at < self.pending.len() {
            let rest = &self.pending[self.at..];
            let line = rest.iter().position(|&octet| octet == b'\n').filter(|_| self.lines);
            let count = line.map_or(rest.len(), |end| end + 1);
            let taken = engine.write(now, &rest[..count]);
            self.at += taken;
            if taken < count {
                return Ok(false);
            }
            if line.is_some() {
                engine.end_message();
            }
        }
        if !readable {
            // Nothing more is there just now: nobody waits for a segment to be full.
            engine.flush(now);
        }
        Ok(true)
    }
}

/// Receives a stream into `output`, until its end, or until `stop`. The observer says whether it has seen enough. With a
/// seal, only what senders on its list have signed is heard.
///
/// # Errors
/// What makes it impossible to begin or to go on; writing is [`NetError::Socket`], too.
pub fn receive_stream<R: StreamReceiverEngine>(
    options: &StreamReceiveOptions,
    output: &mut impl Write,
    (engine, seal): (&mut R, Option<&mut ReceiveSeal>),
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&StreamNotice<'_, R::Event>) -> bool,
) -> Result<StreamEnd, NetError> {
    let mut ears = Ears::new();
    let transport = options.transport;
    let public = Endpoint::listener(options.from, options.source, &options.socket, transport)?;
    let multicast = options.from.ip().is_multicast();
    let public = public.watching(Watch::new(&options.accept, multicast, !options.silent));
    let answers =
        multicast.then(|| Endpoint::answers(options.from, &options.socket, transport)).transpose()?;
    let mouth = answers.as_ref().unwrap_or(&public);
    let (mut loss, mut out) = (Loss::new(options.simulate_loss, options.seed), Vec::new());
    let mut is_heard = |meta: &RecvMeta| {
        let accept = &options.accept;
        let accepted = accept.is_empty() || accept.iter().any(|prefix| prefix.contains(&meta.addr.ip()));
        // What we say ourselves comes back on the group; without ports it is not told from what others here say.
        let tells = answers.as_ref().filter(|_| transport == Transport::Udp);
        accepted
            && tells.is_none_or(|own| meta.addr.port() != own.local().port() || !is_own(meta.addr))
            && !loss.strikes()
    };
    let mut refusals = Refusals::default();
    let mut gate = Gate { seal, sealed: false, unlike: None };
    let mut reader = Reader { output, out: Vec::new(), observer, begins: true, ended: None, over: None };
    if !(reader.observer)(&StreamNotice::Listening) {
        return Ok(StreamEnd::Enough);
    }
    loop {
        let mut any = false;
        for endpoint in [Some(&public), answers.as_ref()].into_iter().flatten() {
            any |= ears.hear(endpoint, engine, &mut |now, meta, engine, datagram| {
                if !is_heard(meta) {
                    return Ok(None);
                }
                let opened = gate.open(now, meta, engine, datagram);
                if let Some(who) = gate.begun() {
                    // What is here of the last session is read before anything of this one is heard, and so is what lies
                    // behind a gap that nobody will fill now.
                    reader.read(now, engine)?;
                    engine.begins_anew(now, &who);
                    reader.read(now, engine)?;
                }
                Ok(opened)
            })?;
        }
        if let Some((source, why)) = gate.unlike.take()
            && !(reader.observer)(&StreamNotice::Unlike { source, why })
        {
            return Ok(StreamEnd::Enough);
        }
        if let Some((sender, datagram)) = public.found_narrow() {
            mouth.cut();
            let (source, passes) = (sender.ip(), public.passes_everywhere(sender));
            if !(reader.observer)(&StreamNotice::Narrow { source, datagram, passes, told: !options.silent }) {
                return Ok(StreamEnd::Enough);
            }
        }
        let now = ears.clock.now();
        if let Some(seal) = &mut gate.seal {
            seal.tick(now);
        }
        engine.handle_timeout(now);
        reader.read(now, engine)?;
        if let Some(over) = reader.over {
            return Ok(over);
        }
        while let Some(event) = engine.poll_event() {
            if !(reader.observer)(&StreamNotice::Event(&event)) {
                return Ok(StreamEnd::Enough);
            }
        }
        while let Some(transmit) = engine.poll_transmit(now, &mut out) {
            // Whom we do not know yet we answer later.
            if gate.seal.as_mut().is_none_or(|seal| seal.answer(transmit.destination, &mut out)) {
                send(mouth, &transmit, &out)?;
            }
            out.clear();
        }
        gate.ask(mouth);
        if let Some(why) = refusals.news(mouth)
            && !(reader.observer)(&StreamNotice::Refused(&why))
        {
            return Ok(StreamEnd::Enough);
        }
        if stop.swap(false, Ordering::Relaxed) {
            return Ok(reader.ended.map_or(StreamEnd::Stopped, |(at, ..)| StreamEnd::Ended(at)));
        }
        if let Some((at, since, heard)) = &mut reader.ended {
            if any {
                *heard = now;
            }
            if engine.has_left() || now.since(*heard) >= LINGER || now.since(*since) >= LONGEST_LINGER {
                return Ok(StreamEnd::Ended(*at));
            }
        }
        let sources: Vec<BorrowedFd<'_>> =
            [Some(&public), answers.as_ref()].into_iter().flatten().map(AsFd::as_fd).collect();
        ears.wait(&sources, engine.poll_timeout(), 0)?;
    }
}

/// What hands on what an engine has of its stream.
struct Reader<'a, W, E> {
    output: &'a mut W,
    out: Vec<u8>,
    observer: &'a mut dyn FnMut(&StreamNotice<'_, E>) -> bool,
    /// Whether what comes next is a beginning.
    begins: bool,
    /// Where the stream has ended, when, and when something was heard last.
    ended: Option<(u64, Time, Time)>,
    /// Nothing more is wanted.
    over: Option<StreamEnd>,
}

impl<W: Write, E> Reader<'_, W, E> {
    /// Writes what is here, as far as it is wanted.
    fn read(&mut self, now: Time, engine: &mut impl StreamReceiverEngine<Event = E>) -> Result<(), NetError> {
        while self.over.is_none()
            && let Some(taken) = engine.read(&mut self.out)
        {
            let goes_on = match taken {
                Taken::Octets(at) => {
                    !std::mem::take(&mut self.begins) || (self.observer)(&StreamNotice::Begins(at))
                }
                Taken::Gap(from, to) => {
                    self.begins = true;
                    (self.observer)(&StreamNotice::Gap(from, to))
                }
                Taken::End(at) => {
                    self.ended = Some((at, now, now));
                    true
                }
            };
            if !goes_on {
                self.over = Some(StreamEnd::Enough);
            }
            if self.out.len() >= CHUNK {
                self.write()?;
            }
        }
        // What came before what is not wanted is.
        self.write()?;
        if self.over.is_none() {
            engine.settle(now);
        }
        Ok(())
    }

    /// Writes what was read, if anybody takes it.
    fn write(&mut self) -> Result<(), NetError> {
        if self.out.is_empty() {
            return Ok(());
        }
        let written = self.output.write_all(&self.out).and_then(|()| self.output.flush());
        self.out.clear();
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.over = Some(StreamEnd::Unread);
                Ok(())
            }
            Err(source) => Err(NetError::Socket { action: "write the stream", source }),
        }
    }
}

/// What lets in of all that comes to a receiver what its sender has signed, or, without a seal, all of it.
struct Gate<'a> {
    seal: Option<&'a mut ReceiveSeal>,
    /// Whether something has come that is sealed, and we have no key.
    sealed: bool,
    /// What our user should know of what was refused, and from whom that came.
    unlike: Option<(IpAddr, Unlike)>,
}

impl Gate<'_> {
    fn open(
        &mut self,
        now: Time,
        meta: &RecvMeta,
        engine: &impl StreamEngine,
        datagram: &mut [u8],
    ) -> Option<Range<usize>> {
        let source = meta.addr.ip();
        let Some(seal) = &mut self.seal else {
            if !self.sealed && is_sealed(datagram) {
                (self.sealed, self.unlike) = (true, Some((source, Unlike::Sealed)));
            }
            return Some(0..datagram.len());
        };
        let Some(opened) = seal.open(now, meta.addr, datagram) else {
            self.unlike = self.unlike.or_else(|| Some((source, seal.unlike(now)?)));
            return None;
        };
        let said = &datagram[opened.payload.clone()];
        // What of a stream is made up nobody would notice: all of it is signed.
        let signed = opened.class == Class::Control;
        seal.is_sent_by(opened.session, |who| signed && engine.may_say(said, who)).then_some(opened.payload)
    }

    /// Who has begun another session with what was opened last.
    fn begun(&mut self) -> Option<Proved<'_>> {
        let seal = self.seal.as_mut()?;
        let session = seal.begun()?;
        seal.proved(session)
    }

    /// Asks for the keys that lack.
    fn ask(&mut self, mouth: &Endpoint) {
        let Some(seal) = &mut self.seal else { return };
        let mut datagram = Vec::new();
        while let Some(to) = seal.asks() {
            if seal.answer(to, &mut datagram) {
                // What is lost is asked for again.
                let _ = mouth.send(&Envelope::to(to), &datagram, datagram.len());
            }
            datagram.clear();
        }
    }
}

fn is_own(address: SocketAddr) -> bool {
    crate::interface::is_ours(address.ip())
}
