//! Waiting until a group carries no data of another sender.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_delivery::{Codec, Occupancy};
use farcast_seal::Kind;
use quinn_udp::RecvMeta;

use crate::clock::Clock;
use crate::error::NetError;
use crate::socket::{Endpoint, SocketOptions};

/// Interval between two reads; reading at a fast neighbour's pace would never end.
const LISTEN_EVERY: Span = Span::from_millis(100);
/// Kernel buffer for datagrams between two reads, bytes. The further datagrams of a fast neighbour tell nothing more.
const KERNEL_BUFFER: usize = 1 << 18;
/// Octets of a slot, which holds the datagrams that the kernel has joined; and the number of slots.
const SLOT_LEN: usize = 1 << 16;
const SLOTS: usize = 8;
/// Most reads of the socket at a time.
const HEARINGS: usize = 64;

/// Result of waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// The group is free.
    Free,
    /// The time was over before.
    Over,
    /// The owner stopped the wait before.
    Stopped,
}

/// Wait for a group that another transmission uses.
pub struct GroupWait<'a, C> {
    /// Address of the group.
    pub group: SocketAddr,
    /// Options of the socket that listens to the group.
    pub socket: &'a SocketOptions,
    /// Codec of the protocol's messages.
    pub codec: &'a C,
    /// Longest wait.
    pub limit: Span,
    /// Flag that ends the wait; it is cleared then.
    pub stop: &'a AtomicBool,
}

/// Waits until the group is free. `occupied` makes the judge of the group's messages for the time at which the wait
/// begins. `tick` is called ten times a second with the sender that was heard last.
///
/// # Errors
/// If the group cannot be listened to.
pub fn wait_until_free<C: Codec, O: Occupancy<Message = C::Message>>(
    wait: &GroupWait<'_, C>,
    occupied: impl FnOnce(Time) -> O,
    tick: &mut dyn FnMut(Option<SocketAddr>),
) -> Result<Waited, NetError> {
    let GroupWait { group, socket, codec, limit, stop } = *wait;
    let clock = Clock::start();
    let options = SocketOptions { receive_buffer: KERNEL_BUFFER, ..socket.clone() };
    let endpoint = Endpoint::listener(group, None, &options, codec.transport())?;
    let mut occupancy = occupied(clock.now());
    let mut buffer = vec![0; SLOTS * SLOT_LEN];
    loop {
        listen(&endpoint, &mut buffer, |from, datagram| {
            // Other datagrams to the group do not count.
            if Kind::of(datagram).is_some() {
                occupancy.hear_sealed(clock.now(), from);
            } else if let Ok(packet) = codec.decode(datagram) {
                occupancy.hear(clock.now(), from, &packet.message);
            }
        })?;
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
        tick(occupancy.heard());
        let _ = clock.wait(&[], now + LISTEN_EVERY).map_err(NetError::socket("wait for the network"))?;
    }
}

/// Passes the datagrams that have arrived to `hear`, with their senders.
fn listen(
    endpoint: &Endpoint,
    buffer: &mut [u8],
    mut hear: impl FnMut(SocketAddr, &[u8]),
) -> Result<(), NetError> {
    for _ in 0..HEARINGS {
        let mut meta = [RecvMeta::default(); SLOTS];
        let mut slots: Vec<IoSliceMut<'_>> = buffer.chunks_mut(SLOT_LEN).map(IoSliceMut::new).collect();
        let count = endpoint.receive(&mut slots, &mut meta)?;
        for (slot, meta) in slots.iter().zip(&meta[..count]) {
            let Some(content) = endpoint.content(&slot[..meta.len]) else { continue };
            slot[content].chunks(meta.stride.max(1)).for_each(|datagram| hear(meta.addr, datagram));
        }
        if count < SLOTS {
            break;
        }
    }
    Ok(())
}
