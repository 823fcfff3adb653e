//! Outgoing batches: headers and file bytes gathered into one buffer and sent as one.

use std::io::IoSliceMut;
use std::net::SocketAddr;

use farcast_core::Run;
use farcast_core::engine::{Message as _, Transmit};
use farcast_delivery::{Codec, Content, Delivery, Geometry, SenderEngine};
use farcast_files::Outgoing;

use crate::envelope::Envelope;
use crate::error::NetError;
use crate::parity::ParityEncoder;
use crate::socket::Endpoint;

/// The most bytes that the kernel takes as one batch.
const BATCH_BYTES: usize = 65_000;

/// Where a batch leaves and where its bytes come from.
pub(crate) struct Outlet<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) outgoing: &'a mut Outgoing,
    pub(crate) parity: Option<&'a mut ParityEncoder>,
    pub(crate) geometry: Geometry,
    /// Where data goes.
    pub(crate) group: SocketAddr,
}

impl Outlet<'_> {
    /// Has the parity computed that `sender` sends soon.
    pub(crate) fn prepare_parity(&mut self, sender: &impl SenderEngine) {
        if let Some(parity) = &mut self.parity {
            parity.prepare(sender.parity_ahead().map(|soon| soon.map(|soon| (soon.block, soon.symbols))));
        }
    }
}

/// What a run of datagrams carries of the object.
#[derive(Clone, Copy, Debug)]
enum Carried {
    /// Segments of a block.
    Segments { block: u32 },
    /// Parity symbols of one.
    Symbols { block: u32 },
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
    /// The last datagram is shorter, so nothing may follow it.
    closed: bool,
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
        }
    }

    /// Adds what an engine sends, sending what must leave before it.
    pub(crate) fn push(
        &mut self,
        out: &mut Outlet<'_>,
        transmit: &Transmit<C::Message>,
    ) -> Result<(), NetError> {
        let (message, envelope) = (&transmit.message, Envelope::of(transmit));
        match message.content() {
            Content::None => self.push_alone(out, message, &envelope),
            Content::Source { block, segments, .. } => {
                self.push_run(out, message, (Carried::Segments { block }, segments), envelope)
            }
            Content::Parity { block, symbols, .. } => {
                self.push_run(out, message, (Carried::Symbols { block }, symbols), envelope)
            }
        }
    }

    /// Sends a message without content.
    fn push_alone(
        &mut self,
        out: &Outlet<'_>,
        message: &C::Message,
        envelope: &Envelope,
    ) -> Result<(), NetError> {
        self.flush(&out.endpoint)?;
        self.header.clear();
        self.codec.encode(message, 0, &mut self.header);
        self.codec.finish(&mut self.header);
        let sent = out.endpoint.send(envelope, &self.header, self.header.len());
        // Where a unicast answer goes was its asker's choice; it must not end the transmission.
        if envelope.to.ip().is_multicast() || envelope.to == out.group { sent } else { Ok(()) }
    }

    fn push_run(
        &mut self,
        out: &mut Outlet<'_>,
        message: &C::Message,
        (carried, run): (Carried, Run),
        envelope: Envelope,
    ) -> Result<(), NetError> {
        let stride = self.codec.datagram_len(usize::from(out.geometry.segment_size()));
        // Where the kernel takes no batch, it is one for the reading of files alone.
        let most = match out.endpoint.batch() {
            1 => BATCH_BYTES / stride,
            most => most.min(BATCH_BYTES / stride),
        };
        let most = most.max(1);
        let mut next = 0;
        while next < run.count() {
            if self.closed || self.envelope.is_some_and(|e| e != envelope) || self.filled >= most * stride {
                self.flush(&out.endpoint)?;
            }
            (self.stride, self.envelope) = (stride, Some(envelope));
            let room = (most - self.filled / stride) as u32;
            let count = room.min(run.count() - next);
            self.fill(out, message, (carried, run), next, count)?;
            next += count;
        }
        Ok(())
    }

    /// Writes datagrams `first .. first + count` of `message` behind what is there.
    fn fill(
        &mut self,
        out: &mut Outlet<'_>,
        message: &C::Message,
        (carried, run): (Carried, Run),
        first: u32,
        count: u32,
    ) -> Result<(), NetError> {
        let start = self.filled;
        let mut slots = Vec::with_capacity(count as usize);
        let mut rest = &mut self.buffer[start..];
        for segment in first..first + count {
            let (len, payload) = (message.wire_len(segment), message.payload_len(segment));
            let (datagram, behind) = rest.split_at_mut(len);
            rest = behind;
            self.header.clear();
            self.codec.encode(message, segment, &mut self.header);
            let (header, body) = datagram.split_at_mut(self.codec.header_len());
            header.copy_from_slice(&self.header);
            let (slot, padding) = body.split_at_mut(payload);
            padding.fill(0);
            slots.push(IoSliceMut::new(slot));
            self.filled += len;
        }
        self.closed = !(self.filled - start).is_multiple_of(self.stride);
        let run = Run::new(run.first() + first, count).unwrap_or(run);
        match carried {
            Carried::Segments { block } => {
                let segment = u64::from(out.geometry.first_of(block)) + u64::from(run.first());
                out.outgoing.read_segments(segment * u64::from(out.geometry.segment_size()), &mut slots)?;
            }
            Carried::Symbols { block } => {
                let Some(parity) = &mut out.parity else {
                    let reason = "the sender has said that there is none".into();
                    return Err(NetError::Parity { block, parity: run.first(), reason });
                };
                for (symbol, slot) in run.segments().zip(&mut slots) {
                    slot.copy_from_slice(parity.symbol(out.outgoing, block, symbol)?);
                }
            }
        }
        for datagram in self.buffer[start..self.filled].chunks_mut(self.stride) {
            self.codec.finish(datagram);
        }
        Ok(())
    }

    /// Drops what is there: it could not be sent.
    pub(crate) fn forget(&mut self) {
        (self.envelope, self.filled, self.closed) = (None, 0, false);
    }

    /// Sends what is there.
    pub(crate) fn flush(&mut self, endpoint: &Endpoint) -> Result<(), NetError> {
        if let Some(envelope) = self.envelope.take() {
            endpoint.send(&envelope, &self.buffer[..self.filled], self.stride)?;
        }
        (self.filled, self.closed) = (0, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
