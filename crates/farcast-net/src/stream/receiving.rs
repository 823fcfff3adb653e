//! Reception of a stream: from the network to a file descriptor.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_delivery::{StreamReceiverEngine, Taken, Transport};

use super::gate::Gate;
use super::{CHUNK, StreamReader, TICK, send};
use crate::error::NetError;
use crate::interface::is_ours;
use crate::listening::{ListenNotice, ListenOptions};
use crate::loss::Loss;
use crate::receive_sockets::{InterfaceChange, ReceiveSockets, SocketRole};
use crate::seal::ReceiveSeal;

/// Pause without datagrams after which a receiver stops answering once its stream has ended, and the longest time for
/// which it answers then.
const LINGER: Span = Span::from_secs(2);
const LONGEST_LINGER: Span = Span::from_secs(30);

/// Options of a stream's receiver, besides its engine.
#[derive(Clone, Debug)]
pub struct StreamReceiveOptions {
    /// Options of the sockets.
    pub listen: ListenOptions,
    /// Transport of the datagrams.
    pub transport: Transport,
}

/// Event of a stream that is received.
#[derive(Debug)]
pub enum StreamNotice<'a, E> {
    /// Notice about the sockets.
    Listen(ListenNotice<'a>),
    /// Event of the engine.
    Event(&'a E),
    /// Octets are lost for good. Holds the offset of the gap in the stream, and the offset of its end if that is known.
    Gap(u64, Option<u64>),
    /// The stream begins, or continues, at this offset.
    Begins(u64),
}

/// Reason for which the reception of a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// The stream has ended, so many octets from its beginning.
    Ended(u64),
    /// The observer had seen enough.
    Enough,
    /// The reader of the output has closed it.
    Unread,
    /// The receiver was told to stop.
    Stopped,
}

/// Reception of a stream.
pub struct StreamReceiveJob<'a> {
    /// Options of the reception.
    pub options: &'a StreamReceiveOptions,
    /// Seal. With a seal, only datagrams that senders on its list have signed are accepted.
    pub seal: Option<&'a mut ReceiveSeal>,
    /// Flag that ends the reception.
    pub stop: &'a AtomicBool,
}

/// Receives a stream into `output`, until its end or until `stop` is set. The observer returns `false` when it has seen
/// enough.
///
/// # Errors
/// If the reception cannot begin or continue. An error of writing is [`NetError::Socket`], too.
pub fn receive_stream<R: StreamReceiverEngine>(
    job: StreamReceiveJob<'_>,
    output: &mut impl Write,
    engine: &mut R,
    observer: &mut dyn FnMut(&StreamNotice<'_, R::Event>) -> bool,
) -> Result<StreamEnd, NetError> {
    let StreamReceiveJob { options, seal, stop } = job;
    let driver = Driver {
        reader: StreamReader::new(),
        engine,
        sockets: ReceiveSockets::open(&options.listen, options.transport, !options.listen.silent)?,
        options,
        loss: options.listen.loss(),
        gate: Gate::new(seal),
        writer: StreamWriter { output, out: Vec::new(), observer, begins: true, ended: None, over: None },
        news: true,
        tick: Time::ZERO,
        out: Vec::new(),
    };
    driver.run(stop)
}

/// State of a stream's reception.
struct Driver<'a, R: StreamReceiverEngine, W> {
    reader: StreamReader,
    engine: &'a mut R,
    sockets: ReceiveSockets<'a>,
    options: &'a StreamReceiveOptions,
    loss: Loss,
    gate: Gate<'a>,
    writer: StreamWriter<'a, W, R::Event>,
    /// There may be news of the interfaces.
    news: bool,
    /// Time from which the interfaces are looked at without news.
    tick: Time,
    out: Vec<u8>,
}

impl<R: StreamReceiverEngine, W: Write> Driver<'_, R, W> {
    fn run(mut self, stop: &AtomicBool) -> Result<StreamEnd, NetError> {
        if let Some(public) = self.sockets.endpoint(SocketRole::Public) {
            self.writer.tell(ListenNotice::Listening { address: public.local() });
        }
        while self.writer.over.is_none() {
            let heard = self.hear(SocketRole::Public)? | self.hear(SocketRole::Own)?;
            let now = self.reader.clock.now();
            self.watch(now)?;
            self.engine.handle_timeout(now);
            self.writer.read(now, self.engine)?;
            while let Some(event) = self.engine.poll_event() {
                self.writer.say(&StreamNotice::Event(&event));
            }
            if self.writer.over.is_some() {
                break;
            }
            self.transmit(now)?;
            if stop.swap(false, Ordering::Relaxed) {
                let ended = self.writer.ended;
                return ended.map_or(Ok(StreamEnd::Stopped), |(at, ..)| self.gate.close(at));
            }
            if let Some(at) = self.lingered(now, heard) {
                return self.gate.close(at);
            }
            self.wait()?;
        }
        Ok(self.writer.over.unwrap_or(StreamEnd::Enough))
    }

    /// Reads the datagrams that have arrived at the socket of `role`. Returns `true` if any has.
    fn hear(&mut self, role: SocketRole) -> Result<bool, NetError> {
        let Some(endpoint) = self.sockets.endpoint(role) else { return Ok(false) };
        // Our own messages come back on the group. Without ports they cannot be told from those of other programs here.
        let own = self.sockets.endpoint(SocketRole::Own).filter(|_| self.options.transport == Transport::Udp);
        let own = own.map(|own| own.local().port());
        let Self { reader, engine, options, loss, gate, writer, .. } = self;
        reader.hear(&endpoint, &mut **engine, &mut |now, meta, engine, datagram| {
            let is_own = own == Some(meta.addr.port()) && is_ours(meta.addr.ip());
            if !options.listen.accepts(meta.addr.ip()) || is_own || loss.strikes() {
                return Ok(None);
            }
            let opened = gate.open(now, meta, engine, datagram);
            if let Some(who) = gate.begun() {
                // The rest of the last session is read before anything of the new one is handled. So is what lies
                // behind a gap that nobody will fill any more.
                writer.read(now, engine)?;
                engine.begins_anew(now, &who);
                writer.read(now, engine)?;
            }
            Ok(opened)
        })
    }

    /// Looks at the interfaces, at refused datagrams and at the memory of sessions.
    fn watch(&mut self, now: Time) -> Result<(), NetError> {
        if let Some((source, why)) = self.gate.unlike.take() {
            self.writer.tell(ListenNotice::Unlike { source, why });
        }
        if let Some(narrow) = self.sockets.found_narrow() {
            self.writer.tell(narrow);
        }
        if let Some(why) = self.gate.check_memory(now)? {
            self.writer.tell(ListenNotice::Forgetful { why: &why });
        }
        if std::mem::take(&mut self.news) || now >= self.tick.min(self.sockets.due()) {
            self.tick = now + TICK;
            match self.sockets.follow(now) {
                None => {}
                Some(InterfaceChange::Waiting(why)) => self.writer.tell(ListenNotice::Waiting { why: &why }),
                // An answer names its stream, not the address of its receiver.
                Some(InterfaceChange::Back { .. }) => self.writer.tell(ListenNotice::Rejoined),
            }
        }
        Ok(())
    }

    /// Sends the answers that are due.
    fn transmit(&mut self, now: Time) -> Result<(), NetError> {
        let Some(mouth) = self.sockets.mouth() else { return Ok(()) };
        while let Some(transmit) = self.engine.poll_transmit(now, &mut self.out) {
            // A sender without keys here yet gets its answer later.
            if self.gate.seal.as_mut().is_none_or(|seal| seal.answer(transmit.destination, &mut self.out)) {
                send(&mouth, &transmit, &self.out)?;
            }
            self.out.clear();
        }
        self.gate.ask(&mouth);
        if let Some(why) = self.sockets.newly_blocked() {
            self.writer.tell(ListenNotice::Blocked { why: &why });
        }
        Ok(())
    }

    /// Returns the offset of the stream's end once nothing more has to be answered. `heard` says that datagrams have
    /// arrived.
    fn lingered(&mut self, now: Time, heard: bool) -> Option<u64> {
        let (at, since, last) = self.writer.ended.as_mut()?;
        if heard {
            *last = now;
        }
        let over = now.since(*last) >= LINGER || now.since(*since) >= LONGEST_LINGER;
        (over || self.engine.has_left()).then_some(*at)
    }

    fn wait(&mut self) -> Result<(), NetError> {
        let mut sources: Vec<BorrowedFd<'_>> = self.sockets.other_sources().collect();
        let aside = sources.len();
        sources.extend(self.sockets.data_sources());
        let readable = self.reader.wait(&sources, self.engine.poll_timeout().min(self.sockets.due()))?;
        self.news = (0..aside).any(|source| readable.has(source));
        Ok(())
    }
}

/// Writer of the octets that an engine has of its stream.
struct StreamWriter<'a, W, E> {
    output: &'a mut W,
    out: Vec<u8>,
    observer: &'a mut dyn FnMut(&StreamNotice<'_, E>) -> bool,
    /// The next octets follow a gap, or are the first.
    begins: bool,
    /// Offset at which the stream has ended, the time of that, and the time of the last datagram.
    ended: Option<(u64, Time, Time)>,
    /// Reason for which nothing more is wanted.
    over: Option<StreamEnd>,
}

impl<W: Write, E> StreamWriter<'_, W, E> {
    /// Tells the observer. The reception ends if it has seen enough.
    fn say(&mut self, notice: &StreamNotice<'_, E>) {
        if !(self.observer)(notice) {
            self.over.get_or_insert(StreamEnd::Enough);
        }
    }

    /// Tells the observer of the sockets.
    fn tell(&mut self, notice: ListenNotice<'_>) {
        self.say(&StreamNotice::Listen(notice));
    }

    /// Writes the octets that the engine has, as long as they are wanted.
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
        // Octets from before that point are wanted.
        self.write()?;
        if self.over.is_none() {
            engine.settle(now);
        }
        Ok(())
    }

    /// Writes the octets that were read, unless the output is closed.
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
