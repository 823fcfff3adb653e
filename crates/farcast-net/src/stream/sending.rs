//! Transmission of a stream: from a file descriptor to the network.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::Time;
use farcast_delivery::{StreamEngine, StreamSenderEngine, Transport};

use super::{CHUNK, StreamReader, TICK, send};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::path_watch::{PathChange, PathNotice, PathWatch, SendSockets};
use crate::refusals::Refusals;
use crate::seal::SendSeal;
use crate::socket::{Endpoint, NarrowReport, SocketOptions};

/// Most datagrams that are sent before answers are read again.
const TURN: usize = 64;

/// Options of a stream's sender, besides its engine.
#[derive(Clone, Debug)]
pub struct StreamSendOptions {
    /// Group, or the one receiver, that the stream is sent to.
    pub to: SocketAddr,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Transport of the datagrams.
    pub transport: Transport,
    /// Each line is a message, at which a late receiver may begin.
    pub lines: bool,
}

/// Event of a stream that is sent.
#[derive(Debug)]
pub enum StreamSendNotice<'a, E> {
    /// Event of the engine.
    Event(&'a E),
    /// Notice about the path and the sockets.
    Path(PathNotice<'a>),
    /// A receiver is no longer trusted: it can open nothing from now on.
    Revoked {
        /// Name of the receiver in the list.
        name: &'a str,
    },
}

/// Transmission of a stream.
pub struct StreamSendJob<'a> {
    /// Options of the transmission.
    pub options: &'a StreamSendOptions,
    /// Seal with which all datagrams are signed and sealed, and all answers opened.
    pub seal: Option<&'a mut SendSeal>,
    /// Flag that ends the stream.
    pub stop: &'a AtomicBool,
}

/// Callback that tells the owner what happens.
type Observer<'a, S> = &'a mut dyn FnMut(&S, &StreamSendNotice<'_, <S as StreamEngine>::Event>);

/// Sends the octets of `input` until its end, or until `stop` is set. `make` makes the engine for our own address.
///
/// # Errors
/// If the transmission cannot begin or continue. An error of reading is [`NetError::Socket`], too.
pub fn send_stream<S: StreamSenderEngine, E: std::error::Error + Send + Sync + 'static>(
    job: StreamSendJob<'_>,
    input: &mut (impl Read + AsFd),
    make: impl FnOnce(SocketAddr) -> Result<S, E>,
    observer: Observer<'_, S>,
) -> Result<S, NetError> {
    let StreamSendJob { options, seal, stop } = job;
    let reader = StreamReader::new();
    // The watch starts before anything is looked at, so that no change is missed.
    let path = PathWatch::new(options.to, &options.socket, options.transport);
    let endpoint = Endpoint::sender(options.to, &options.socket, options.transport)?;
    let engine = make(endpoint.local()).map_err(NetError::config)?;
    let hears_group = options.to.ip().is_multicast() && engine.hears_group();
    let group = hears_group.then(|| path.listen()).transpose()?;
    let source = StreamInput { pending: Vec::new(), at: 0, over: false, lines: options.lines };
    let driver = Driver {
        reader,
        engine,
        path,
        endpoint,
        group,
        seal,
        options,
        source,
        refusals: Refusals::default(),
        opened: false,
        stopped: false,
        news: true,
        tick: Time::ZERO,
        out: Vec::new(),
        observer,
    };
    driver.run(input, stop)
}

/// State of a stream's transmission.
struct Driver<'a, S: StreamSenderEngine> {
    reader: StreamReader,
    engine: S,
    path: PathWatch<'a>,
    endpoint: Endpoint,
    group: Option<Endpoint>,
    seal: Option<&'a mut SendSeal>,
    options: &'a StreamSendOptions,
    source: StreamInput,
    refusals: Refusals,
    /// The stream has begun.
    opened: bool,
    /// The stream was told to stop.
    stopped: bool,
    /// There may be news of the interfaces.
    news: bool,
    /// Time from which the interfaces are looked at without news.
    tick: Time,
    out: Vec<u8>,
    observer: Observer<'a, S>,
}

impl<S: StreamSenderEngine> Driver<'_, S> {
    fn run(mut self, input: &mut (impl Read + AsFd), stop: &AtomicBool) -> Result<S, NetError> {
        let mut readable = false;
        loop {
            self.hear()?;
            // The flag stays set: data that has been read may take long to arrive, and a second request to stop waits
            // no longer.
            if !self.stopped && stop.load(Ordering::Relaxed) {
                (self.stopped, self.source.over) = (true, true);
                self.engine.finish(self.reader.clock.now());
            }
            let now = self.reader.clock.now();
            if std::mem::take(&mut self.news) || now >= self.tick.min(self.path.due()) {
                self.tick = now + TICK;
                self.follow(now);
            }
            self.send_keys(now)?;
            self.engine.handle_timeout(now);
            let idle = self.opened && self.source.feed(now, &mut self.engine, input, readable)?;
            if self.opened && !self.is_held() {
                self.transmit()?;
            }
            self.account(now)?;
            while let Some(event) = self.engine.poll_event() {
                (self.observer)(&self.engine, &StreamSendNotice::Event(&event));
            }
            if self.engine.has_ended() {
                return Ok(self.engine);
            }
            readable = self.wait(idle.then(|| input.as_fd()))?;
        }
    }

    /// Reads the answers that have arrived.
    fn hear(&mut self) -> Result<(), NetError> {
        let Self { reader, engine, seal, endpoint, group, .. } = self;
        let own = endpoint.local();
        for endpoint in group.iter().chain([&*endpoint]) {
            reader.hear(endpoint, engine, &mut |now, meta, engine, datagram| {
                // Our own data comes back on the group.
                if meta.addr == own {
                    return Ok(None);
                }
                let Some(seal) = seal else { return Ok(Some(0..datagram.len())) };
                let Some((said, who)) = seal.open(now, meta.addr, datagram) else { return Ok(None) };
                let may = seal.may_say(who, |who| engine.may_say(&datagram[said.clone()], who));
                Ok(may.then_some(said))
            })?;
        }
        Ok(())
    }

    /// Returns `true` if data waits because there is no path for it. A stream that was told to stop waits for none.
    fn is_held(&self) -> bool {
        self.path.is_lost() && !self.stopped
    }

    /// Handles changes of the interfaces.
    fn follow(&mut self, now: Time) {
        let sockets = SendSockets { endpoint: &mut self.endpoint, group: &mut self.group };
        let Some(change) = self.path.follow(now, sockets) else { return };
        if let PathChange::Moved(address) = change {
            self.engine.moved(now, address);
        }
        (self.observer)(&self.engine, &StreamSendNotice::Path(change.notice()));
    }

    /// Sends the keys that are due, and begins the stream once all receivers were sent one.
    fn send_keys(&mut self, now: Time) -> Result<(), NetError> {
        if let Some(seal) = &mut self.seal {
            for (name, _) in seal.revoke(now)? {
                (self.observer)(&self.engine, &StreamSendNotice::Revoked { name: &name });
            }
            let (datagrams, octets) = seal.send_keys(now, &Envelope::to(self.options.to), &self.endpoint);
            self.engine.spend(datagrams as u64, octets as u64);
        }
        // A receiver without keys cannot open any message.
        if !self.opened && self.seal.as_ref().is_none_or(|seal| !seal.begins()) {
            self.opened = true;
            self.engine.open(now);
        }
        Ok(())
    }

    fn transmit(&mut self) -> Result<(), NetError> {
        for _ in 0..TURN {
            self.out.clear();
            let Some(transmit) = self.engine.poll_transmit(self.reader.clock.now(), &mut self.out) else {
                break;
            };
            let one = (transmit.destination != self.options.to).then_some(transmit.destination);
            if self.seal.as_mut().is_none_or(|seal| seal.control(&mut self.out, one)) {
                send(&self.endpoint, &transmit, &self.out)?;
                self.refusals.left |= self.endpoint.refused().is_none();
            }
        }
        Ok(())
    }

    /// Reports refusals and narrow paths, and counts what left beside the engine's datagrams.
    ///
    /// # Errors
    /// The refusal, if this host has let nothing out for some seconds.
    fn account(&mut self, now: Time) -> Result<(), NetError> {
        let Self { engine, endpoint, observer, .. } = self;
        if let Some(why) = self.refusals.news(endpoint) {
            observer(engine, &StreamSendNotice::Path(PathNotice::Refused { why: &why }));
        }
        self.refusals.check(now, endpoint)?;
        if let Some(seal) = &mut self.seal {
            let (owed, of_owed) = seal.newly_owed();
            engine.spend(owed, of_owed);
            seal.send_owed(self.reader.clock.now(), endpoint);
        }
        let beside = endpoint.beside();
        if beside.octets > 0 {
            engine.spend(beside.datagrams as u64, beside.octets as u64);
        }
        if let Some(NarrowReport { receiver, length, limit }) = endpoint.asked_to_cut() {
            let narrow = PathNotice::Narrow { receiver, datagram: length, limit, segment: None };
            observer(engine, &StreamSendNotice::Path(narrow));
        }
        Ok(())
    }

    /// Waits for datagrams, news of the interfaces, timers, and `input` if it is given. Returns `true` if that can be
    /// read.
    fn wait(&mut self, input: Option<BorrowedFd<'_>>) -> Result<bool, NetError> {
        let mut sources = vec![self.endpoint.as_fd()];
        sources.extend(self.group.as_ref().map(AsFd::as_fd));
        let news = sources.len();
        sources.extend(self.path.source());
        let of_input = sources.len();
        sources.extend(input);
        let keys = self.seal.as_ref().map_or(Time::NEVER, |seal| seal.due());
        // Data that is held is due all the time, so only the tick counts.
        let timer = self.engine.poll_timeout().min(keys);
        let timer = if !self.opened {
            keys
        } else if self.is_held() {
            self.tick
        } else {
            timer
        };
        let readable = self.reader.wait(&sources, timer.min(self.path.due()))?;
        self.news = of_input > news && readable.has(news);
        Ok(input.is_some() && readable.has(of_input))
    }
}

/// Input of the stream.
struct StreamInput {
    pending: Vec<u8>,
    at: usize,
    /// The input has ended.
    over: bool,
    lines: bool,
}

impl StreamInput {
    /// Gives the engine the octets that it takes, and reads more if the input can be read. Returns `true` if all of
    /// them were given.
    fn feed(
        &mut self,
        now: Time,
        engine: &mut impl StreamSenderEngine,
        input: &mut impl Read,
        readable: bool,
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
            // No more input is there at present, so the engine need not wait for a full segment.
            engine.flush(now);
        }
        Ok(true)
    }
}
