//! Transmission of a stream: from a file descriptor to the network.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::Time;
use farcast_delivery::{StreamSenderEngine, Transport};

use super::{CHUNK, Refusals, StreamReader, send};
use crate::envelope::Envelope;
use crate::error::NetError;
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
    /// This host itself refused to send; reported once.
    Refused(&'a NetError),
    /// A receiver is no longer trusted: it can open nothing from now on.
    Revoked {
        /// Name of the receiver in the list.
        name: &'a str,
    },
    /// A receiver gets short datagrams and no long one, so long ones leave in pieces from now on.
    Narrow {
        /// Address of the receiver.
        receiver: SocketAddr,
        /// Length of datagrams that do not arrive there, octets without headers of UDP and IP.
        datagram: usize,
        /// Length of the longest datagram that leaves from now on, octets without headers of UDP and IP.
        limit: usize,
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

/// Sends the octets of `input` until its end, or until `stop` is set. `make` makes the engine for our own address.
///
/// # Errors
/// If the transmission cannot begin or continue. An error of reading is [`NetError::Socket`], too.
pub fn send_stream<S: StreamSenderEngine, E: std::error::Error + Send + Sync + 'static>(
    job: StreamSendJob<'_>,
    input: &mut (impl Read + AsFd),
    make: impl FnOnce(SocketAddr) -> Result<S, E>,
    observer: &mut dyn FnMut(&S, &StreamSendNotice<'_, S::Event>),
) -> Result<S, NetError> {
    let StreamSendJob { options, mut seal, stop } = job;
    let mut ears = StreamReader::new();
    let transport = options.transport;
    let endpoint = Endpoint::sender(options.to, &options.socket, transport)?;
    let own = endpoint.local();
    let mut engine = make(own).map_err(NetError::config)?;
    let group = options.to.ip().is_multicast() && engine.hears_group();
    let group =
        group.then(|| Endpoint::listener(options.to, None, &options.socket, transport)).transpose()?;
    let mut source = StreamInput { pending: Vec::new(), at: 0, over: false, lines: options.lines };
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
        // The flag stays set: data that has been read may take long to arrive, and a second request to stop waits no
        // longer.
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
        // A receiver without keys cannot open any message.
        if !opened && seal.as_ref().is_none_or(|seal| !seal.begins()) {
            opened = true;
            engine.open(now);
        }
        engine.handle_timeout(now);
        let idle = opened && source.feed(now, &mut engine, input, readable)?;
        for _ in 0..TURN {
            if !opened {
                break;
            }
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
        if beside.octets > 0 {
            engine.spend(beside.datagrams as u64, beside.octets as u64);
        }
        if let Some(narrow) = endpoint.asked_to_cut() {
            let NarrowReport { receiver, length, limit } = narrow;
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
