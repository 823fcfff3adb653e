//! Waiting until a group is free of another's data.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_delivery::{Codec, Occupancy};
use quinn_udp::RecvMeta;

use crate::clock::Clock;
use crate::error::NetError;
use crate::socket::{Endpoint, SocketOptions};

/// How often is listened: at a fast neighbour's pace there would be no end of it.
const LISTEN_EVERY: Span = Span::from_millis(100);
/// What came since the last time; the rest of what a fast neighbour sends tells no more.
const KERNEL_BUFFER: usize = 1 << 18;
/// A slot holds what the kernel joins to one datagram.
const SLOT_LEN: usize = 1 << 16;
const SLOTS: usize = 8;
/// How often the socket is read at a time, at most.
const HEARINGS: usize = 64;

/// How waiting for something ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// It is there.
    Free,
    /// The time was over before.
    Over,
    /// It was stopped before.
    Stopped,
}

/// Waits until `group` is free as a protocol sees it, of which `codec` reads the messages: until who hears them, made by
/// `occupied` with the time at which it begins, says so, for at most `limit`, or until `stop` is set, which is taken back.
/// `tick` is called ten times a second.
///
/// # Errors
/// The group cannot be listened to.
pub fn wait_until_free<C: Codec, O: Occupancy<Message = C::Message>>(
    group: SocketAddr,
    options: &SocketOptions,
    (codec, occupied): (&C, impl FnOnce(Time) -> O),
    limit: Span,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(),
) -> Result<Waited, NetError> {
    let clock = Clock::start();
    let options = SocketOptions { receive_buffer: KERNEL_BUFFER, ..options.clone() };
    let endpoint = Endpoint::listener(group, None, &options, codec.transport())?;
    let mut occupancy = occupied(clock.now());
    let mut buffer = vec![0; SLOTS * SLOT_LEN];
    loop {
        listen((&endpoint, &clock), &mut buffer, codec, &mut occupancy)?;
        let now = clock.now();
        if stop.swap(false, Ordering::Relaxed) {
            return Ok(Waited::Stopped);
        }
        if occupancy.is_free(now) {
            return Ok(Waited::Free);
        }
        if now >= Time::ZERO + limit {
            return Ok(Waited::Over);
        }
        tick();
        let _ = clock.wait(&[], now + LISTEN_EVERY).map_err(NetError::socket("wait for the network"))?;
    }
}

/// Hears what has come.
fn listen<C: Codec>(
    (endpoint, clock): (&Endpoint, &Clock),
    buffer: &mut [u8],
    codec: &C,
    occupancy: &mut impl Occupancy<Message = C::Message>,
) -> Result<(), NetError> {
    for _ in 0..HEARINGS {
        let mut meta = [RecvMeta::default(); SLOTS];
        let mut slots: Vec<IoSliceMut<'_>> = buffer.chunks_mut(SLOT_LEN).map(IoSliceMut::new).collect();
        let count = endpoint.receive(&mut slots, &mut meta)?;
        for (slot, meta) in slots.iter().zip(&meta[..count]) {
            let Some(content) = endpoint.content(&slot[..meta.len]) else { continue };
            for datagram in slot[content].chunks(meta.stride.max(1)) {
                // Whatever else is sent to the group has no part in it.
                if let Ok(packet) = codec.decode(datagram) {
                    occupancy.hear(clock.now(), meta.addr, &packet.message);
                }
            }
        }
        if count < SLOTS {
            break;
        }
    }
    Ok(())
}
