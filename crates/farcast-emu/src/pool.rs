//! Packets between their devices: octets in buffers that are reused.
//!
//! A [`Packet`] is the message that stages carry. Copies of it share one buffer. A stage does not report a packet that
//! it drops; the packet does. When its last copy goes without having [left](Packet::leave), its [`Label`] goes to
//! [`Pool::gone`].

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farcast_core::Time;
use farcast_core::engine::Message;
use farcast_link::End;

use crate::link::Sum;

/// Properties of a packet, known since its entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label {
    /// Number among all packets that entered the link, from 0.
    pub number: u64,
    /// End of the link to which the packet goes.
    pub to: End,
    /// Terminal from which it comes or to which it goes; `None` if it goes to all.
    pub terminal: Option<u32>,
    /// Time of its entry.
    pub entered: Time,
    /// Length in octets, with its IP header.
    pub octets: u32,
}

/// A buffer and its packet.
#[derive(Debug)]
struct PooledBuffer {
    label: Label,
    octets: Vec<u8>,
    shared: Arc<Mutex<PoolState>>,
}

#[derive(Debug, Default)]
struct PoolState {
    free: Vec<Arc<PooledBuffer>>,
    gone: Vec<Label>,
    /// Packets inside and their octets, to the terminals and to the hub.
    inside: [Sum; 2],
}

/// Locks the shared state. No code under the lock can panic; even if the lock were poisoned, the state would be whole.
fn lock(shared: &Mutex<PoolState>) -> MutexGuard<'_, PoolState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pool of buffers. After the first packets it allocates nothing more.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Mutex<PoolState>>,
}

impl Pool {
    /// Creates a pool without buffers.
    pub fn new() -> Self {
        Self { shared: Arc::default() }
    }

    /// Creates a packet with `octets`; sets `label.octets` to their number.
    pub fn packet(&self, label: Label, octets: &[u8]) -> Packet {
        let mut shared = lock(&self.shared);
        shared.inside[label.to.way()].count(octets.len());
        let free = shared.free.pop();
        drop(shared);
        let mut held = free.unwrap_or_else(|| {
            Arc::new(PooledBuffer { label, octets: Vec::new(), shared: Arc::clone(&self.shared) })
        });
        // A free buffer has no other owner.
        if let Some(held) = Arc::get_mut(&mut held) {
            held.label = Label { octets: octets.len() as u32, ..label };
            held.octets.clear();
            held.octets.extend_from_slice(octets);
        }
        Packet(Some(held))
    }

    /// Returns the packets that have neither left nor gone: to the terminals, and to the hub.
    pub fn inside(&self) -> [Sum; 2] {
        lock(&self.shared).inside
    }

    /// Appends to `into` the labels of the packets that have gone since the last call.
    pub fn gone(&self, into: &mut Vec<Label>) {
        into.append(&mut lock(&self.shared).gone);
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// An IP packet, or one of several copies of it.
#[derive(Clone, Debug)]
pub struct Packet(Option<Arc<PooledBuffer>>);

impl Packet {
    /// Returns the label of the packet.
    pub fn label(&self) -> &Label {
        &self.held().label
    }

    /// Returns the octets of the packet.
    pub fn octets(&self) -> &[u8] {
        &self.held().octets
    }

    /// Ends the packet: it has arrived, or its fate is known.
    pub fn leave(mut self) {
        if let Some(held) = self.0.take() {
            retire(held, false);
        }
    }

    fn held(&self) -> &PooledBuffer {
        // Only functions that consume the packet take the buffer.
        self.0.as_deref().expect("a packet has its buffer until it ends")
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            retire(held, true);
        }
    }
}

/// Returns the buffer to the pool if this was its last owner.
fn retire(mut held: Arc<PooledBuffer>, gone: bool) {
    let Some(alone) = Arc::get_mut(&mut held) else { return };
    let (label, shared) = (alone.label, Arc::clone(&alone.shared));
    let mut shared = lock(&shared);
    shared.inside[label.to.way()].uncount(label.octets as usize);
    if gone {
        shared.gone.push(label);
    }
    shared.free.push(held);
}

impl Message for Packet {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    /// Returns the length with the IP header.
    fn wire_len(&self, _segment: u32) -> usize {
        self.octets().len()
    }

    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        Some(self.octets())
    }

    /// Replaces the octets, if their number is unchanged and this is the only copy. Otherwise the packet stays as it
    /// was: hosts accept only valid packets, and a codec's fault shows in its stage's figures.
    fn put_octets(&mut self, _segment: u32, octets: &[u8]) {
        if let Some(held) = self.0.as_mut().and_then(Arc::get_mut)
            && held.octets.len() == octets.len()
        {
            held.octets.copy_from_slice(octets);
        }
    }
}
