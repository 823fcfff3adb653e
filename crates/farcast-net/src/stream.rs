//! Streams between a file descriptor and the network.
//!
//! One thread does everything. What cannot be read or written waits, and with it the other side: a sender reads no
//! further ahead than its window, and a receiver whose output is full leaves what comes to the kernel, and asks again
//! for what that had no room for.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::{Span, Time};
use farcast_delivery::StreamEngine;
use quinn_udp::RecvMeta;

use crate::clock::{Clock, sharpen_timers};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::socket::Endpoint;

mod gate;
mod receiving;
mod sending;

pub use receiving::{StreamEnd, StreamNotice, StreamReceiveOptions, receive_stream};
pub use sending::{StreamSendNotice, StreamSendOptions, send_stream};

/// Buffers of one system call, and octets of each.
const SLOTS: usize = 32;
const SLOT_LEN: usize = 1 << 16;
/// Octets that are read of the stream at a time.
const CHUNK: usize = 1 << 16;
/// How often it is looked whether somebody wants an end.
const TICK: Span = Span::from_millis(100);
/// How long this host may refuse to send, where nothing has left before, until that is the end.
const LONGEST_REFUSED: Span = Span::from_secs(3);

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
