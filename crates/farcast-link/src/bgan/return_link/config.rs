//! Settings of the return link.

use farcast_core::{BitRate, Span};

use crate::bgan::{BganError, rate_of};
use crate::pipe::QueueLimit;

/// Packets that a request for slots covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestFor {
    /// Everything that waits at the terminal when the request is sent. A terminal has one request under way.
    Queue,
    /// One packet. Each packet has a request of its own; two requests of a terminal may collide in a slot.
    Packet,
}

/// Access of requests to the hub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Slotted ALOHA: a request that is alone in its slot is heard; requests that share a slot are not.
    Contention,
    /// Every request is heard, as if all terminals had contention slots of their own. Without contention slots a
    /// request takes the time of one at the start of a frame.
    Ideal,
}

/// Settings of the return link. The default is the study's (4C,3R) schedule of R5T1X-L1 and R20T1X-R bursts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReturnConfig {
    /// The length of a frame; frame 0 begins at time 0. Default 80 ms.
    pub frame: Span,
    /// Contention slots at the start of each frame. At least 1, except for ideal access. Default 4.
    pub contention_slots: u32,
    /// The length of a contention slot. Default 5 ms.
    pub contention_slot: Span,
    /// Reservation slots right behind the contention slots; at least 1. Default 3.
    pub reservation_slots: u32,
    /// The length of a reservation slot. Default 20 ms.
    pub reservation_slot: Span,
    /// The octets of packets that a reservation slot carries, at least 1. Default 168: 20 ms of 33.6 ksymbol/s in
    /// 16-QAM are 336 octets gross, about half of which is coding. The study says that a slot carries one NACK.
    pub r_slot_octets: u32,
    /// The one-way delay between a terminal and the hub: flight, coding and decoding. Default 450 ms.
    pub propagation: Span,
    /// Time from the arrival of a request at the RNC until the schedule that answers it leaves. It does not delay data:
    /// the study's round trip of 1 s counts it once. Default 100 ms.
    pub processing: Span,
    /// W0: after a collision a terminal lets 0 to W0 - 1 frames go by, uniformly; at least 1. Default 12.
    pub backoff_frames: u32,
    /// Doublings of the window: it doubles with each collision after a request's first, up to W0 times 2 to this power,
    /// at most 31. Default none.
    pub backoff_doubling: Option<u32>,
    /// Packets that a request covers. Default the queue.
    pub request: RequestFor,
    /// Requests without contention: packets that enter before the last burst reserved for their terminal wait for that
    /// burst and are requested in it. Default no.
    pub piggyback: bool,
    /// Access of requests to the hub. Default by contention.
    pub access: Access,
    /// Limit of the packets that a terminal holds until the last of their slots has ended, as a number of packets or of
    /// their octets. A packet that would exceed it is dropped. Each terminal has a queue of its own. Default no limit.
    pub queue: QueueLimit,
    /// Collisions after which a terminal drops the packets of a request; at least 1. Default never.
    pub give_up_after: Option<u32>,
}

impl Default for ReturnConfig {
    fn default() -> Self {
        Self {
            frame: Span::from_millis(80),
            contention_slots: 4,
            contention_slot: Span::from_millis(5),
            reservation_slots: 3,
            reservation_slot: Span::from_millis(20),
            r_slot_octets: 168,
            propagation: Span::from_millis(450),
            processing: Span::from_millis(100),
            backoff_frames: 12,
            backoff_doubling: None,
            request: RequestFor::Queue,
            piggyback: false,
            access: Access::Contention,
            queue: QueueLimit::Unbounded,
            give_up_after: None,
        }
    }
}

impl ReturnConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn check(&self) -> Result<(), BganError> {
        let contends = self.access == Access::Contention;
        for (zero, what) in [
            (self.frame.is_zero(), "the return frame"),
            (self.contention_slot.is_zero(), "the length of a contention slot"),
            (self.reservation_slot.is_zero(), "the length of a reservation slot"),
            (contends && self.contention_slots == 0, "the number of contention slots"),
            (self.reservation_slots == 0, "the number of reservation slots"),
            (self.r_slot_octets == 0, "the octets of a reservation slot"),
            (self.backoff_frames == 0, "the back-off window"),
            (matches!(self.queue, QueueLimit::Packets(0) | QueueLimit::Octets(0)), "the limit of the queue"),
            (self.give_up_after == Some(0), "the number of attempts before giving up"),
        ] {
            if zero {
                return Err(BganError::Zero(what));
            }
        }
        if let Some(times) = self.backoff_doubling.filter(|&times| times > 31) {
            return Err(BganError::Doubling(times));
        }
        let slots = self.contention_time() + self.reservation_slot * u64::from(self.reservation_slots);
        if slots > self.frame {
            return Err(BganError::Slots { slots, frame: self.frame });
        }
        Ok(())
    }

    /// Returns the time that an access takes: a request up, its processing, a schedule down. A terminal's first
    /// reservation slot begins no earlier than this after the end of the request's slot. A terminal knows of a
    /// collision this long after it.
    pub fn round_trip(&self) -> Span {
        self.propagation * 2 + self.processing
    }

    /// Returns the bit rate of packets in all reservation slots, rounded down. A terminal gets this rate while no other
    /// terminal asks for slots. `None` below 1 bit/s.
    pub fn capacity(&self) -> Option<BitRate> {
        let octets = u64::from(self.reservation_slots).saturating_mul(u64::from(self.r_slot_octets));
        rate_of(octets, self.frame)
    }

    /// Returns the number of reservation slots that a packet of `octets` takes: whole ones, at least 1.
    pub fn r_slots(&self, octets: u64) -> u64 {
        octets.div_ceil(u64::from(self.r_slot_octets.max(1))).max(1)
    }

    /// Returns the length of all contention slots of a frame together.
    pub(super) fn contention_time(&self) -> Span {
        self.contention_slot * u64::from(self.contention_slots)
    }
}
