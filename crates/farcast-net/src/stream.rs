//! Streams between a file descriptor and the network: octets without end instead of files.
//!
//! One thread does everything. Data that cannot be read or written waits, and the other side waits with it. A sender
//! reads no further ahead than its window. A receiver whose output is full leaves data to the kernel's buffer, and
//! requests again the data that had no room there.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::{Span, Time};
use farcast_delivery::StreamEngine;
use quinn_udp::RecvMeta;

use crate::clock::{Clock, Readable, sharpen_timers};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::socket::Endpoint;

mod gate;
mod receiving;
mod sending;

pub use receiving::{StreamEnd, StreamNotice, StreamReceiveJob, StreamReceiveOptions, receive_stream};
pub use sending::{StreamSendJob, StreamSendNotice, StreamSendOptions, send_stream};

/// Number of buffers of one system call, and octets of each.
const SLOTS: usize = 32;
const SLOT_LEN: usize = 1 << 16;
/// Octets of the stream that are read or written at a time.
const CHUNK: usize = 1 << 16;
/// Longest wait before the loop checks whether it is to stop.
const TICK: Span = Span::from_millis(100);

/// Callback that opens a datagram in place. Returns the range of the message for the engine, if there is any.
type OpenDatagram<'a, E> =
    dyn FnMut(Time, &RecvMeta, &mut E, &mut [u8]) -> Result<Option<Range<usize>>, NetError> + 'a;

/// Clock of the loop, and a buffer for received datagrams.
struct StreamReader {
    clock: Clock,
    buffer: Vec<u8>,
}

impl StreamReader {
    fn new() -> Self {
        sharpen_timers();
        Self { clock: Clock::start(), buffer: vec![0; SLOTS * SLOT_LEN] }
    }

    /// Reads the datagrams that have arrived at `endpoint`, and gives `engine` the messages that `open` returns.
    /// Returns `true` if any datagram arrived.
    fn hear<E: StreamEngine>(
        &mut self,
        endpoint: &Endpoint,
        engine: &mut E,
        open: &mut OpenDatagram<'_, E>,
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

    /// Waits until one of `sources` can be read, `until` has come, or the next tick is due.
    fn wait(&self, sources: &[BorrowedFd<'_>], until: Time) -> Result<Readable, NetError> {
        let until = until.min(self.clock.now() + TICK);
        self.clock.wait(sources, until).map_err(NetError::socket("wait for the network"))
    }
}

fn send(endpoint: &Endpoint, transmit: &Transmit<()>, datagram: &[u8]) -> Result<(), NetError> {
    match endpoint.send(&Envelope::of(transmit), datagram, datagram.len()) {
        // The path may be back in a moment. A datagram that does not leave is lost, and requested again.
        Err(error) if error.may_pass() => Ok(()),
        // The refusal is reported elsewhere, and its cause may be mended.
        Err(NetError::Refused(_)) => Ok(()),
        other => other,
    }
}
