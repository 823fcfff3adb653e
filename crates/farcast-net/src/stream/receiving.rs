//! Reception of a stream: from the network to a file descriptor.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Probability, Span, Time};
use farcast_delivery::{StreamReceiverEngine, Taken, Transport};
use ipnet::IpNet;
use quinn_udp::RecvMeta;

use super::gate::Gate;
use super::{CHUNK, Refusals, StreamReader, send};
use crate::error::NetError;
use crate::loss::Loss;
use crate::narrow::NarrowWatch;
use crate::receiving::Unlike;
use crate::seal::ReceiveSeal;
use crate::socket::{Endpoint, SocketOptions};

/// Pause without datagrams after which a receiver stops answering once its stream has ended, and the longest time for
/// which it answers then.
const LINGER: Span = Span::from_secs(2);
const LONGEST_LINGER: Span = Span::from_secs(30);

/// Options of a stream's receiver, besides its engine.
#[derive(Clone, Debug)]
pub struct StreamReceiveOptions {
    /// Group to listen to, or our own address.
    pub from: SocketAddr,
    /// Only sender, if the network is to deliver datagrams from it alone.
    pub source: Option<IpAddr>,
    /// Prefixes of the senders to accept; empty to accept all.
    pub accept: Vec<IpNet>,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Transport of the datagrams.
    pub transport: Transport,
    /// Send nothing to the sender.
    pub silent: bool,
    /// Probability with which each datagram is lost on purpose.
    pub simulate_loss: Probability,
    /// Seed of these losses.
    pub seed: u64,
}

/// Event of a stream that is received.
#[derive(Debug)]
pub enum StreamNotice<'a, E> {
    /// The receiver listens.
    Listening,
    /// Event of the engine.
    Event(&'a E),
    /// Octets are lost for good. Holds the offset of the gap in the stream, and the offset of its end if that is known.
    Gap(u64, Option<u64>),
    /// The stream begins, or continues, at this offset.
    Begins(u64),
    /// This host itself refused to send an answer; reported once.
    Refused(&'a NetError),
    /// Notes about sealed streams cannot be saved, so no stream is accepted.
    Forgetful(&'a NetError),
    /// A datagram was ignored that only another seal opens, or that has no seal; reported once.
    Unlike {
        /// Address of its sender.
        source: IpAddr,
        /// Reason for which it is ignored.
        why: Unlike,
    },
    /// Short datagrams of a sender arrive and no long one does, as in
    /// [`ReceiveNotice::Narrow`](crate::ReceiveNotice::Narrow).
    Narrow {
        /// The sender.
        source: IpAddr,
        /// Length of the datagrams that do not arrive, octets without headers of UDP and IP.
        datagram: usize,
        /// Length of datagrams that pass everywhere, octets without headers of UDP and IP.
        passes: usize,
        /// The sender is told of it.
        told: bool,
    },
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
    let mut ears = StreamReader::new();
    let transport = options.transport;
    let public = Endpoint::listener(options.from, options.source, &options.socket, transport)?;
    let multicast = options.from.ip().is_multicast();
    let public = public.watching(NarrowWatch::new(&options.accept, multicast, !options.silent));
    let answers =
        multicast.then(|| Endpoint::answers(options.from, &options.socket, transport)).transpose()?;
    let mouth = answers.as_ref().unwrap_or(&public);
    let (mut loss, mut out) = (Loss::new(options.simulate_loss, options.seed), Vec::new());
    let mut is_heard = |meta: &RecvMeta| {
        let accept = &options.accept;
        let accepted = accept.is_empty() || accept.iter().any(|prefix| prefix.contains(&meta.addr.ip()));
        // Our own messages come back on the group. Without ports they cannot be told from those of other programs here.
        let tells = answers.as_ref().filter(|_| transport == Transport::Udp);
        accepted
            && tells.is_none_or(|own| meta.addr.port() != own.local().port() || !is_own(meta.addr))
            && !loss.strikes()
    };
    let mut refusals = Refusals::default();
    let mut gate = Gate::new(seal);
    let mut reader =
        StreamWriter { output, out: Vec::new(), observer, begins: true, ended: None, over: None };
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
                    // The rest of the last session is read before anything of the new one is handled. So is what lies
                    // behind a gap that nobody will fill any more.
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
        if let Some(why) = gate.check_memory(now)?
            && !(reader.observer)(&StreamNotice::Forgetful(&why))
        {
            return Ok(StreamEnd::Enough);
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
            // A sender without keys here yet gets its answer later.
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
            return reader.ended.map_or(Ok(StreamEnd::Stopped), |(at, ..)| gate.close(at));
        }
        if let Some((at, since, heard)) = &mut reader.ended {
            if any {
                *heard = now;
            }
            if engine.has_left() || now.since(*heard) >= LINGER || now.since(*since) >= LONGEST_LINGER {
                return gate.close(*at);
            }
        }
        let sources: Vec<BorrowedFd<'_>> =
            [Some(&public), answers.as_ref()].into_iter().flatten().map(AsFd::as_fd).collect();
        ears.wait(&sources, engine.poll_timeout(), 0)?;
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

fn is_own(address: SocketAddr) -> bool {
    crate::interface::is_ours(address.ip())
}
