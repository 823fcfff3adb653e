//! Outgoing batches: equally long datagrams, gathered in one buffer and sent with one system call.
//!
//! A [`Batch`] encodes the headers that an engine asks for and reads file bytes or parity symbols behind them. An
//! [`Outlet`] holds what this takes: the socket, the objects and their parity, and the seal.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::ops::{AddAssign, Range};

use farcast_core::Run;
use farcast_core::engine::{Message as _, Transmit};
use farcast_delivery::{
    Ahead, Codec, Content, Delivery, Geometry, Gone, ObjectId, Purpose, SenderEngine, Transport,
};
use farcast_files::{Outgoing, SourceError};

use crate::envelope::Envelope;
use crate::error::NetError;
use crate::parity::{BlockParity, ParityEncoder, WholeParity};
use crate::seal::SendSeal;
use crate::socket::Endpoint;

/// Most objects whose parity is computed at once. Each of them needs a thread and memory for the symbols of some
/// blocks.
const MOST_CODING: usize = 4;

/// Most objects whose files are open at once.
const MOST_READ: usize = 8;

/// Most bytes that the kernel takes as one batch.
const BATCH_BYTES: usize = 65_000;

/// Socket through which batches leave, and the objects that their bytes come from.
pub(crate) struct Outlet<'a> {
    pub(crate) endpoint: Endpoint,
    /// Objects, in the order of their numbers.
    pub(crate) sources: Vec<ObjectSource>,
    /// Address of the group that data is sent to.
    pub(crate) group: SocketAddr,
    /// Objects whose parity is being computed; the most recently sent one is the last.
    coding: Vec<ObjectId>,
    /// Objects whose files are open; the most recently read one is the last.
    read: Vec<ObjectId>,
    /// Seal of all datagrams; absent if the transfer is not sealed.
    pub(crate) seal: Option<&'a mut SendSeal>,
    /// Content leaves before any receiver can have answered.
    pub(crate) early: bool,
    /// Address that announcements are sent to; all receivers listen there.
    pub(crate) announcements: SocketAddr,
}

impl<'a> Outlet<'a> {
    /// Returns an outlet that sends `sources` to `group`.
    ///
    /// # Errors
    /// If the parity of the first object cannot be made.
    pub(crate) fn new(
        endpoint: Endpoint,
        sources: Vec<ObjectSource>,
        group: SocketAddr,
        seal: Option<&'a mut SendSeal>,
    ) -> Result<Self, NetError> {
        let mut outlet = Self {
            endpoint,
            sources,
            group,
            coding: Vec::new(),
            read: Vec::new(),
            seal,
            early: false,
            announcements: group,
        };
        // A parity setting that the code cannot do is best reported before anything leaves.
        outlet.code(ObjectId::FIRST)?;
        Ok(outlet)
    }

    /// Has worker threads compute the parity that `sender` sends soon.
    pub(crate) fn prepare_parity(&mut self, sender: &impl SenderEngine) {
        if self.coding.is_empty() {
            return;
        }
        let ahead = sender.parity_ahead();
        for soon in ahead.iter().flatten() {
            // An object whose parity cannot be made is tried again when it is sent, and the error is reported then.
            let _ = self.code(soon.object);
        }
        for &object in &self.coding {
            let source = self.sources.get_mut(object.get() as usize);
            let Some(ParitySource::InTurn(parity)) = source.and_then(|source| source.parity.as_mut()) else {
                continue;
            };
            let of_it = |soon: &Ahead| soon.object == object;
            parity.prepare(ahead.map(|soon| soon.filter(of_it).map(|soon| (soon.block, soon.symbols))));
        }
    }

    /// Marks `object` as the most recently read one. If too many objects are open then, closes the files of the one
    /// read least recently.
    fn keep_few_open(&mut self, object: ObjectId) {
        if self.read.last() == Some(&object) {
            return;
        }
        self.read.retain(|&other| other != object);
        self.read.push(object);
        if self.read.len() > MOST_READ {
            let idle = self.read.remove(0);
            if let Some(source) = self.sources.get_mut(idle.get() as usize) {
                source.outgoing.rest();
            }
        }
    }

    /// Prepares the computation of `object`'s parity, if it has any. If too many objects are prepared then, drops the
    /// one sent least recently.
    fn code(&mut self, object: ObjectId) -> Result<(), NetError> {
        if self.coding.last() == Some(&object) {
            return Ok(());
        }
        let Some(source) =
            self.sources.get_mut(object.get() as usize).filter(|source| source.code.symbols > 0)
        else {
            return Ok(());
        };
        if source.parity.is_none() {
            source.parity = Some(source.coding()?);
        }
        self.coding.retain(|&other| other != object);
        self.coding.push(object);
        if self.coding.len() > MOST_CODING {
            let idle = self.coding.remove(0);
            if let Some(source) = self.sources.get_mut(idle.get() as usize) {
                source.parity = None;
            }
        }
        Ok(())
    }
}

/// Origin of an object's parity symbols.
pub(crate) enum ParitySource {
    /// The parity of a block is sent for that block alone, and is computed shortly before.
    InTurn(ParityEncoder),
    /// The parity of all blocks leaves in turns, some symbols of each block at a time.
    Whole(WholeParity),
}

/// An object to be sent: its files, its geometry and its parity.
pub(crate) struct ObjectSource {
    pub(crate) outgoing: Outgoing,
    /// Parity symbols of each block.
    code: BlockParity,
    /// Number of symbols of each block that leave in turns with those of the other blocks
    /// ([`SenderEngine::parity_of_all`]).
    of_all: u32,
    /// Computation of the parity symbols; absent if no symbol was needed lately.
    parity: Option<ParitySource>,
    pub(crate) geometry: Geometry,
}

/// Seal of content. Content that leaves `early` leaves before any receiver can have answered.
struct ContentSeal<'a> {
    seal: &'a mut SendSeal,
    early: bool,
}

impl ObjectSource {
    /// Returns the object as `sender` cuts it.
    pub(crate) fn new(
        sender: &impl SenderEngine,
        object: ObjectId,
        outgoing: Outgoing,
    ) -> Result<Self, NetError> {
        let geometry = *sender.geometry(object).ok_or(NetError::UnknownObject(object))?;
        let code = BlockParity { symbols: sender.parity_symbols(object), kind: sender.erasure_code(object) };
        Ok(Self { outgoing, code, of_all: sender.parity_of_all(object), parity: None, geometry })
    }

    /// Starts the computation of the parity.
    fn coding(&self) -> Result<ParitySource, NetError> {
        let (geometry, code, outgoing) = (self.geometry, self.code, self.outgoing.clone());
        if self.of_all > 0 {
            return WholeParity::start(geometry, code, self.of_all, outgoing).map(ParitySource::Whole);
        }
        ParityEncoder::new(geometry, code, outgoing).map(ParitySource::InTurn)
    }

    /// Returns the segments that are lost if `bytes` of the object are lost.
    pub(crate) fn segments_of(&self, bytes: &Range<u64>) -> Option<Gone> {
        let segment = u64::from(self.geometry.segment_size());
        let run = |first: u64, end: u64| {
            let (first, end) = (u32::try_from(first).ok()?, u32::try_from(end).ok()?);
            Run::new(first, end.checked_sub(first)?)
        };
        // The last segment may be short.
        let end =
            if bytes.end == self.geometry.size() { bytes.end.div_ceil(segment) } else { bytes.end / segment };
        let whole = run(bytes.start.div_ceil(segment), end);
        Some(Gone { whole, touched: run(bytes.start / segment, bytes.end.div_ceil(segment))? })
    }

    /// Fills `slots` with the payloads of `content`, from its datagram number `first` on.
    fn read(&mut self, content: Content, first: u32, slots: &mut [IoSliceMut<'_>]) -> Result<(), NetError> {
        let count = slots.len() as u32;
        match content {
            // A sender keeps no content of other hosts.
            Content::None | Content::Passing { .. } | Content::Kept { .. } => {}
            Content::Source { block, segments, .. } => {
                let size = self.geometry.size();
                let past = SourceError::OutOfRange { offset: size, size };
                let wanted = Run::new(segments.first() + first, count);
                let wanted =
                    wanted.and_then(|within| self.geometry.segments_of(block, within)).ok_or(past)?;
                let offset = u64::from(wanted.first()) * u64::from(self.geometry.segment_size());
                self.outgoing.read_segments(offset, slots)?;
            }
            Content::Parity { block, symbols, .. } => {
                let first = symbols.first() + first;
                let Some(parity) = &mut self.parity else {
                    let reason = "the sender has said that there is none".into();
                    return Err(NetError::Parity { block, parity: first, reason });
                };
                match parity {
                    ParitySource::Whole(parity) => parity.read(block, first, slots)?,
                    ParitySource::InTurn(parity) => {
                        for (symbol, slot) in (first..).zip(slots) {
                            slot.copy_from_slice(parity.symbol(&mut self.outgoing, block, symbol)?);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Datagrams and octets that have left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentCounts {
    /// Number of datagrams.
    pub datagrams: u64,
    /// Octets of these datagrams, with headers of UDP and IP.
    pub octets: u64,
    /// The same octets by purpose.
    pub kinds: Kinds,
}

/// Octets of datagrams by purpose, all headers included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kinds {
    /// Segments in the first round.
    pub data: u64,
    /// Segments in later rounds.
    pub repairs: u64,
    /// Parity symbols.
    pub parity: u64,
    /// Messages without content of an object.
    pub control: u64,
}

impl Kinds {
    /// Returns the counter of messages like `message`.
    fn of(&mut self, message: &impl Delivery) -> &mut u64 {
        match (message.content(), message.purpose()) {
            (Content::Parity { .. }, _) => &mut self.parity,
            (Content::Source { .. }, Purpose::Content { round: 2.. }) => &mut self.repairs,
            (Content::Source { .. }, _) => &mut self.data,
            _ => &mut self.control,
        }
    }
}

impl AddAssign for Kinds {
    fn add_assign(&mut self, more: Self) {
        self.data += more.data;
        self.repairs += more.repairs;
        self.parity += more.parity;
        self.control += more.control;
    }
}

/// Datagrams of equal length (the last may be shorter) that leave in one envelope.
#[derive(Debug)]
pub(crate) struct Batch<'a, C> {
    codec: &'a C,
    buffer: Vec<u8>,
    header: Vec<u8>,
    stride: usize,
    filled: usize,
    envelope: Option<Envelope>,
    /// The last datagram is shorter than the others, so no other may follow it.
    closed: bool,
    sent: SentCounts,
    /// Octets in the buffer that have yet to leave, by purpose.
    waiting: Kinds,
}

impl<'a, C: Codec<Message: Delivery>> Batch<'a, C> {
    pub(crate) fn new(codec: &'a C) -> Self {
        Self {
            codec,
            buffer: vec![0; BATCH_BYTES],
            header: Vec::new(),
            stride: 0,
            filled: 0,
            envelope: None,
            closed: false,
            sent: SentCounts::default(),
            waiting: Kinds::default(),
        }
    }

    /// Returns the datagrams and octets that have left so far.
    pub(crate) fn sent(&self) -> SentCounts {
        self.sent
    }

    /// Returns the length of `datagrams` datagrams with `octets` octets in all, sent to `to`, with headers of UDP and
    /// IP.
    fn with_headers(&self, to: SocketAddr, octets: usize, datagrams: usize) -> u64 {
        let ip = if to.is_ipv4() { 20 } else { 40 };
        let udp = if self.codec.transport() == Transport::Udp { 8 } else { 0 };
        (octets + datagrams * (ip + udp)) as u64
    }

    /// Counts datagrams to `to` that no engine knows of, as control messages. `octets` are without headers of UDP and
    /// IP.
    pub(crate) fn count_control(&mut self, to: SocketAddr, octets: usize, datagrams: usize) {
        let kinds = Kinds { control: self.with_headers(to, octets, datagrams), ..Kinds::default() };
        self.count(to, octets, datagrams, kinds);
    }

    /// Counts datagrams that have left to `to`. `octets` are without headers of UDP and IP, `kinds` with them.
    fn count(&mut self, to: SocketAddr, octets: usize, datagrams: usize, kinds: Kinds) {
        self.sent.datagrams += datagrams as u64;
        self.sent.octets += self.with_headers(to, octets, datagrams);
        self.sent.kinds += kinds;
    }

    /// Adds what an engine sends. A waiting batch that does not match leaves first.
    pub(crate) fn push(
        &mut self,
        out: &mut Outlet<'_>,
        transmit: &Transmit<C::Message>,
    ) -> Result<(), NetError> {
        let (message, envelope) = (&transmit.message, Envelope::of(transmit));
        let content = message.content();
        match content {
            Content::None | Content::Passing { .. } | Content::Kept { .. } => {
                self.push_alone(out, message, &envelope)
            }
            Content::Source { object, .. } | Content::Parity { object, .. } => {
                if matches!(content, Content::Parity { .. }) {
                    out.code(object)?;
                }
                out.keep_few_open(object);
                self.push_run(out, message, envelope)
            }
        }
    }

    /// Sends a message without content.
    fn push_alone(
        &mut self,
        out: &mut Outlet<'_>,
        message: &C::Message,
        envelope: &Envelope,
    ) -> Result<(), NetError> {
        self.flush(&out.endpoint)?;
        self.header.clear();
        self.codec.encode(message, 0, &mut self.header);
        self.codec.finish(&mut self.header);
        let for_all =
            envelope.to.ip().is_multicast() || [out.group, out.announcements].contains(&envelope.to);
        if let Some(seal) = &mut out.seal
            && !seal.control(&mut self.header, (!for_all).then_some(envelope.to))
        {
            return Ok(());
        }
        let sent = out.endpoint.send(envelope, &self.header, self.header.len());
        if sent.is_ok() {
            let mut kinds = Kinds::default();
            *kinds.of(message) = self.with_headers(envelope.to, self.header.len(), 1);
            self.count(envelope.to, self.header.len(), 1, kinds);
        }
        // The asker chose the address of a unicast answer, so a failure there must not end the transmission.
        if for_all { sent } else { Ok(()) }
    }

    fn push_run(
        &mut self,
        Outlet { endpoint, sources, seal, early, .. }: &mut Outlet<'_>,
        message: &C::Message,
        envelope: Envelope,
    ) -> Result<(), NetError> {
        let (Content::Source { object, segments: run, .. } | Content::Parity { object, symbols: run, .. }) =
            message.content()
        else {
            return Ok(());
        };
        let source = sources.get_mut(object.get() as usize).ok_or(NetError::UnknownObject(object))?;
        // Some headers may be longer than that of most segments.
        let most = self.codec.datagram_len(usize::from(source.geometry.segment_size()));
        let (before, behind) = seal.as_ref().map_or((0, 0), |seal| seal.around_content());
        let stride = before + most.max(message.wire_len(0)) + behind;
        // Where the kernel takes no batch, a batch serves only to read many file bytes at once.
        let most = match endpoint.batch() {
            1 => BATCH_BYTES / stride,
            most => most.min(BATCH_BYTES / stride),
        };
        let most = most.max(1);
        let mut next = 0;
        while next < run.count() {
            // Objects may be cut differently.
            let other = self.envelope.is_some_and(|e| e != envelope) || self.stride != stride;
            if self.closed || other || self.filled >= most * stride {
                self.flush(endpoint)?;
            }
            (self.stride, self.envelope) = (stride, Some(envelope));
            let room = (most - self.filled / stride) as u32;
            let count = room.min(run.count() - next);
            let filled = self.filled;
            let seal = seal.as_deref_mut().map(|seal| ContentSeal { seal, early: *early });
            self.fill(source, seal, message, next..next + count)?;
            let octets = self.with_headers(envelope.to, self.filled - filled, count as usize);
            *self.waiting.of(message) += octets;
            next += count;
        }
        Ok(())
    }

    /// Appends these datagrams of `message` to the buffer.
    fn fill(
        &mut self,
        source: &mut ObjectSource,
        seal: Option<ContentSeal<'_>>,
        message: &C::Message,
        segments: Range<u32>,
    ) -> Result<(), NetError> {
        let start = self.filled;
        let (before, behind) = seal.as_ref().map_or((0, 0), |one| one.seal.around_content());
        let mut slots = Vec::with_capacity(segments.len());
        let mut rest = &mut self.buffer[start..];
        for segment in segments.clone() {
            let (len, payload) = (message.wire_len(segment), message.payload_len(segment));
            let (datagram, others) = rest[before..].split_at_mut(len);
            rest = &mut others[behind..];
            self.header.clear();
            self.codec.encode(message, segment, &mut self.header);
            let (header, body) = datagram.split_at_mut(self.header.len());
            header.copy_from_slice(&self.header);
            let (slot, padding) = body.split_at_mut(payload);
            padding.fill(0);
            slots.push(IoSliceMut::new(slot));
            self.filled += before + len + behind;
        }
        self.closed = !(self.filled - start).is_multiple_of(self.stride);
        source.read(message.content(), segments.start, &mut slots)?;
        let datagrams = self.buffer[start..self.filled].chunks_mut(self.stride);
        match seal {
            None => datagrams.for_each(|datagram| self.codec.finish(datagram)),
            Some(ContentSeal { seal, early }) => {
                for datagram in datagrams {
                    let end = datagram.len() - behind;
                    self.codec.finish(&mut datagram[before..end]);
                    seal.content(datagram, early)?;
                }
            }
        }
        Ok(())
    }

    /// Drops the datagrams that wait in the buffer, which could not be sent.
    pub(crate) fn forget(&mut self) {
        (self.envelope, self.filled, self.closed) = (None, 0, false);
        self.waiting = Kinds::default();
    }

    /// Sends the datagrams that wait in the buffer.
    pub(crate) fn flush(&mut self, endpoint: &Endpoint) -> Result<(), NetError> {
        let kinds = std::mem::take(&mut self.waiting);
        if let Some(envelope) = self.envelope.take() {
            endpoint.send(&envelope, &self.buffer[..self.filled], self.stride)?;
            self.count(envelope.to, self.filled, self.filled.div_ceil(self.stride.max(1)), kinds);
        }
        (self.filled, self.closed) = (0, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
