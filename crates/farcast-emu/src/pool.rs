//! Packets between their devices: octets in buffers that are used again.
//!
//! A [`Packet`] is the message that stages carry. Copies of it share one buffer. A packet that a stage drops is not
//! told to anybody by the stage; it is by the packet: when its last copy goes without having [left](Packet::leave), its
//! [`Label`] goes to [`Pool::gone`].

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farcast_core::Time;
use farcast_core::engine::Message;
use farcast_link::End;

use crate::link::Sum;

/// What is known of a packet from its entry on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label {
    /// Its number among all that entered the link, from 0.
    pub number: u64,
    /// The end that it goes to.
    pub to: End,
    /// The terminal that it comes from or goes to; none if it goes to all.
    pub terminal: Option<u32>,
    /// When it entered.
    pub entered: Time,
    /// Its octets, with its IP header.
    pub octets: u32,
}

/// A buffer with what it holds.
#[derive(Debug)]
struct Held {
    label: Label,
    octets: Vec<u8>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    free: Vec<Arc<Held>>,
    gone: Vec<Label>,
    /// Packets that are somewhere and their octets, to the terminals and to the hub.
    inside: [Sum; 2],
}

/// Nothing is done under the lock that could panic; should it be poisoned, what it holds is still whole.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The buffers. After the first packets nothing is allocated any more.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Mutex<Shared>>,
}

impl Pool {
    /// No buffers yet.
    pub fn new() -> Self {
        Self { shared: Arc::default() }
    }

    /// A packet with these octets; `label.octets` is set to how many there are.
    pub fn packet(&self, label: Label, octets: &[u8]) -> Packet {
        let mut shared = lock(&self.shared);
        shared.inside[label.to.way()].count(octets.len());
        let free = shared.free.pop();
        drop(shared);
        let mut held = free.unwrap_or_else(|| {
            Arc::new(Held { label, octets: Vec::new(), shared: Arc::clone(&self.shared) })
        });
        // What is free has no other owner.
        if let Some(held) = Arc::get_mut(&mut held) {
            held.label = Label { octets: octets.len() as u32, ..label };
            held.octets.clear();
            held.octets.extend_from_slice(octets);
        }
        Packet(Some(held))
    }

    /// The packets that have neither left nor gone: to the terminals, and to the hub.
    pub fn inside(&self) -> [Sum; 2] {
        lock(&self.shared).inside
    }

    /// Moves the labels of the packets that have gone since the last call behind those in `into`.
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
pub struct Packet(Option<Arc<Held>>);

impl Packet {
    /// What is known of it.
    pub fn label(&self) -> &Label {
        &self.held().label
    }

    /// Its octets.
    pub fn octets(&self) -> &[u8] {
        &self.held().octets
    }

    /// Ends it: it has arrived, or what became of it is known.
    pub fn leave(mut self) {
        if let Some(held) = self.0.take() {
            retire(held, false);
        }
    }

    fn held(&self) -> &Held {
        // It is only taken by what consumes the packet.
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

/// Gives the buffer back if this was its last owner.
fn retire(mut held: Arc<Held>, gone: bool) {
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

    /// With its IP header.
    fn wire_len(&self, _segment: u32) -> usize {
        self.octets().len()
    }

    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        Some(self.octets())
    }

    /// What is no packet of the length that went in is left as it was: hosts take only what they understand, and a
    /// codec's fault shows in its stage's figures.
    fn put_octets(&mut self, _segment: u32, octets: &[u8]) {
        if let Some(held) = self.0.as_mut().and_then(Arc::get_mut)
            && held.octets.len() == octets.len()
        {
            held.octets.copy_from_slice(octets);
        }
    }
}
