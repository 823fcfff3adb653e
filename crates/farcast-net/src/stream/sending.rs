//! The sender of a stream: from a file descriptor to the network.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::Time;
use farcast_delivery::{StreamSenderEngine, Transport};

use super::{CHUNK, Ears, Refusals, send};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::seal::SendSeal;
use crate::socket::{Endpoint, Narrow, SocketOptions};

/// Datagrams that leave before it is heard what has come.
const TURN: usize = 64;

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
        if beside.octets > 0 {
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
