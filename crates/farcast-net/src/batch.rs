//! Outgoing batches: headers and file bytes gathered into one buffer and sent as one.

use std::io::IoSliceMut;
use std::net::SocketAddr;

use farcast_core::Run;
use farcast_core::engine::Message as _;
use farcast_delivery::Geometry;
use farcast_files::Outgoing;
use farcast_mftp::message::{Data, DataKind};
use farcast_mftp::{Body, Message, Sender, wire};

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
    pub(crate) fn prepare_parity(&mut self, sender: &Sender) {
        if let Some(parity) = &mut self.parity {
            parity.prepare(sender.parity_ahead());
        }
    }
}

/// Datagrams of equal length (the last may be shorter) for one destination.
#[derive(Debug)]
pub(crate) struct Batch {
    buffer: Vec<u8>,
    header: Vec<u8>,
    stride: usize,
    filled: usize,
    destination: Option<SocketAddr>,
    /// The last datagram is shorter, so nothing may follow it.
    closed: bool,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BATCH_BYTES],
            header: Vec::new(),
            stride: 0,
            filled: 0,
            destination: None,
            closed: false,
        }
    }

    /// Adds a message, sending what must leave before it.
    pub(crate) fn push(
        &mut self,
        out: &mut Outlet<'_>,
        message: &Message,
        to: SocketAddr,
    ) -> Result<(), NetError> {
        if let Body::Data(data) = &message.body {
            return self.push_data(out, message, data, to);
        }
        self.flush(&out.endpoint)?;
        self.header.clear();
        wire::encode(message, 0, &mut self.header);
        let sent = out.endpoint.send(to, &self.header, self.header.len());
        // Where a unicast answer goes was its asker's choice; it must not end the transmission.
        if to.ip().is_multicast() || to == out.group { sent } else { Ok(()) }
    }

    fn push_data(
        &mut self,
        out: &mut Outlet<'_>,
        message: &Message,
        data: &Data,
        to: SocketAddr,
    ) -> Result<(), NetError> {
        let stride = wire::data_len(usize::from(out.geometry.dtu_size()));
        // Where the kernel takes no batch, it is one for the reading of files alone.
        let most = match out.endpoint.batch() {
            1 => BATCH_BYTES / stride,
            most => most.min(BATCH_BYTES / stride),
        };
        let most = most.max(1);
        let mut next = 0;
        while next < data.dtus.count() {
            if self.closed || self.destination.is_some_and(|d| d != to) || self.filled >= most * stride {
                self.flush(&out.endpoint)?;
            }
            (self.stride, self.destination) = (stride, Some(to));
            let room = (most - self.filled / stride) as u32;
            let count = room.min(data.dtus.count() - next);
            self.fill(out, message, data, next, count)?;
            next += count;
        }
        Ok(())
    }

    /// Writes datagrams `first .. first + count` of `message` behind what is there.
    fn fill(
        &mut self,
        out: &mut Outlet<'_>,
        message: &Message,
        data: &Data,
        first: u32,
        count: u32,
    ) -> Result<(), NetError> {
        let start = self.filled;
        let mut slots = Vec::with_capacity(count as usize);
        let mut rest = &mut self.buffer[start..];
        for segment in first..first + count {
            let (len, payload) = (message.wire_len(segment), data.payload_len(segment));
            let (datagram, behind) = rest.split_at_mut(len);
            rest = behind;
            self.header.clear();
            wire::encode(message, segment, &mut self.header);
            let (header, body) = datagram.split_at_mut(wire::DATA_HEADER_LEN);
            header.copy_from_slice(&self.header);
            let (slot, padding) = body.split_at_mut(payload);
            padding.fill(0);
            slots.push(IoSliceMut::new(slot));
            self.filled += len;
        }
        self.closed = !(self.filled - start).is_multiple_of(self.stride);
        let run = Run::new(data.dtus.first() + first, count).unwrap_or(data.dtus);
        match data.kind {
            DataKind::Source => {
                let segment =
                    u64::from(data.block) * u64::from(out.geometry.block_size()) + u64::from(run.first());
                out.outgoing.read_segments(segment * u64::from(out.geometry.dtu_size()), &mut slots)?;
            }
            DataKind::Parity => {
                let Some(parity) = &mut out.parity else { return Ok(()) };
                for (symbol, slot) in run.segments().zip(&mut slots) {
                    slot.copy_from_slice(parity.symbol(out.outgoing, data.block, symbol)?);
                }
            }
        }
        Ok(())
    }

    /// Drops what is there: it could not be sent.
    pub(crate) fn forget(&mut self) {
        (self.destination, self.filled, self.closed) = (None, 0, false);
    }

    /// Sends what is there.
    pub(crate) fn flush(&mut self, endpoint: &Endpoint) -> Result<(), NetError> {
        if let Some(destination) = self.destination.take() {
            endpoint.send(destination, &self.buffer[..self.filled], self.stride)?;
        }
        (self.filled, self.closed) = (0, false);
        Ok(())
    }
}
