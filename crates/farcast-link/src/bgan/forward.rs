//! The forward bearer: a continuous stream of FEC blocks from the hub to all terminals.

use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use farcast_core::stage::{Frame, NotSettable, Output, Port, Setting, Settings, Totals};
use farcast_core::{Deadline, Message, Span, Stage, Time};

use crate::bgan::BganError;
use crate::pipe::{QueueLimit, WaitingFrames};

mod config;
mod losses;
mod packing;

pub use config::{ForwardConfig, LossUnit, Packing};
pub use losses::ForwardLosses;
use packing::{Memo, Packer};

/// The forward bearer. Packets that enter at the hub leave at [`Port::Terminals`], each at the end of its last FEC
/// block plus the propagation, first come first served.
///
/// The time at which a packet leaves is known when it enters, so there are no timers. Segments of a run that leave
/// evenly spaced leave as one run.
///
/// The propagation, and the limit of the queue if there is one, can be [set](Stage::set) while it runs; the rate is the
/// bearer's. A new setting holds for packets that enter from then on, as a [`Pipe`](crate::Pipe)'s does. Where packets
/// share blocks, [`ForwardLosses`] compare arrivals to tell which do. They can be wrong about packets that left on
/// either side of a change of the propagation.
#[derive(Clone, Debug)]
pub struct Forward<M> {
    config: ForwardConfig,
    /// Time at which the last packet leaves; no later packet leaves before it.
    latest: Time,
    packer: Packer,
    length: Memo,
    waiting: Queue,
    outputs: VecDeque<Output<M>>,
    counters: ForwardCounters,
}

/// Counters of a [`Forward`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForwardCounters {
    /// Packets carried.
    pub packets: u64,
    /// Their octets, without PDU overheads.
    pub octets: u64,
    /// FEC blocks used, in part or in whole.
    pub fec_blocks: u64,
    /// Time on the air of these blocks.
    pub airtime: Span,
    /// Packets that found no room in the queue.
    pub dropped: u64,
    /// Packets that entered at another port than the hub; they go nowhere.
    pub misdirected: u64,
}

impl<M: Message> Forward<M> {
    /// Creates an idle bearer.
    ///
    /// # Errors
    /// The first error that [`ForwardConfig::check`] finds.
    pub fn new(config: ForwardConfig) -> Result<Self, BganError> {
        config.check()?;
        Ok(Self {
            packer: Packer::new(&config),
            config,
            latest: Time::ZERO,
            length: Memo::default(),
            waiting: Queue::default(),
            outputs: VecDeque::new(),
            counters: ForwardCounters::default(),
        })
    }

    /// Returns the counters.
    pub fn counters(&self) -> &ForwardCounters {
        &self.counters
    }

    /// Takes one packet. Returns the time at which it leaves, or `None` if it is dropped.
    fn admit(&mut self, entry: Time, octets: u64) -> Option<Time> {
        let octets = octets.min(config::LONGEST_PACKET);
        let length = self.length.get(octets, |octets| self.config.octets_on_air(octets));
        let place = self.packer.place(entry, length);
        if self.config.queue != QueueLimit::Unbounded {
            let busy = self.packer.free_at() > entry;
            let limit = if busy { self.config.queue } else { QueueLimit::Unbounded };
            if !self.waiting.admit(entry, place.begin, octets, limit) {
                self.counters.dropped += 1;
                return None;
            }
        }
        self.packer.take(&place);
        self.counters.packets += 1;
        self.counters.octets += octets;
        self.counters.fec_blocks += place.blocks;
        self.latest = self.latest.max(place.end + self.config.propagation);
        Some(self.latest)
    }

    /// Queues `frame` for output at the times of its group; drops it if the group is dropped.
    fn emit(&mut self, mut frame: Frame<M>, group: &FrameGroup) {
        if let Some(at) = group.first {
            frame.spacing = group.spacing;
            self.outputs.push_back(Output { at, port: Port::Terminals, frame });
        }
    }

    /// Takes the segments one by one and cuts the run where they stop leaving evenly spaced.
    fn carry(&mut self, now: Time, frame: Frame<M>) {
        let (segments, spacing) = (frame.segments(), frame.spacing);
        let mut rest = frame;
        let mut entry = now;
        let mut group = FrameGroup::default();
        for _ in 0..segments {
            let leaves = self.admit(entry, rest.octets(group.count));
            if !group.take(leaves) {
                let (head, tail) = rest.split(NonZeroU32::new(group.count).unwrap_or(NonZeroU32::MIN));
                self.emit(head, &group);
                let Some(tail) = tail else { return };
                rest = tail;
                group = FrameGroup { first: leaves, spacing: Span::ZERO, count: 1 };
            }
            entry += spacing;
        }
        self.emit(rest, &group);
    }
}

impl<M: Message> Stage<M> for Forward<M> {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>) {
        if port == Port::Hub {
            self.carry(now, frame);
            self.counters.airtime = self.config.block_time() * self.counters.fec_blocks;
        } else {
            self.counters.misdirected += u64::from(frame.segments());
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output<M>> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn totals(&self) -> Totals {
        let ForwardCounters { packets, dropped, airtime, .. } = self.counters;
        Totals { sent: packets, dropped, airtime, ..Totals::default() }
    }

    fn settings(&self, _port: Port) -> Settings {
        Settings { rate: None, delay: Some(self.config.propagation), queue: self.config.queue.octets() }
    }

    fn may_set(&self, _port: Port, setting: Setting) -> Result<(), NotSettable> {
        match setting {
            Setting::Delay(_) => Ok(()),
            Setting::Queue(_) if self.config.queue.is_limit() => Ok(()),
            other => Err(NotSettable::Absent(other.name())),
        }
    }

    fn set(&mut self, _now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        match setting {
            Setting::Delay(delay) => self.config.propagation = delay,
            Setting::Queue(octets) => self.config.queue = QueueLimit::Octets(octets.get()),
            _ => {}
        }
        Ok(())
    }
}

/// Consecutive segments that leave evenly spaced, or are all dropped.
#[derive(Clone, Copy, Debug, Default)]
struct FrameGroup {
    /// Time at which the first leaves; `None` if they are dropped.
    first: Option<Time>,
    spacing: Span,
    count: u32,
}

impl FrameGroup {
    /// Takes the next segment if it leaves in step. Returns `false` if it does not.
    fn take(&mut self, leaves: Option<Time>) -> bool {
        let in_step = match (self.count, self.first, leaves) {
            (0, ..) => {
                self.first = leaves;
                true
            }
            (_, None, None) => true,
            (1, Some(first), Some(at)) => {
                self.spacing = at.since(first);
                true
            }
            (count, Some(first), Some(at)) => at == first + self.spacing * u64::from(count),
            _ => false,
        };
        self.count += u32::from(in_step);
        in_step
    }
}

/// Packets that wait for the start of their first block, when they leave the queue. Kept only if the queue has a limit.
#[derive(Clone, Debug, Default)]
struct Queue(WaitingFrames);

impl Queue {
    /// Takes a packet that enters at `entry` and begins at `begin`, if it need not wait or `limit` has room for it.
    /// Returns `false` if there is no room.
    fn admit(&mut self, entry: Time, begin: Time, octets: u64, limit: QueueLimit) -> bool {
        self.0.settle(entry);
        if begin <= entry {
            return true;
        }
        let fits = limit.room(self.0.total(), octets) > 0;
        if fits {
            self.0.push_one(begin, octets);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
