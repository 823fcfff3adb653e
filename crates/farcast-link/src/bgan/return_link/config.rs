//! Settings of the return link.

use farcast_core::{BitRate, Span};

use crate::bgan::{BganError, rate_of};
use crate::pipe::QueueLimit;

/// What a request for slots asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestFor {
    /// Everything that waits at the terminal when the request is sent. A terminal has one request under way.
    Queue,
    /// One packet. Each packet has a request of its own, on its own way; two of a terminal may meet in a slot.
    Packet,
}

/// How a request reaches the hub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// By slotted ALOHA: a request that is alone in its slot is heard; all that meet in one are not.
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
    /// Contention slots, which begin the frame. At least 1, but for ideal access. Default 4.
    pub contention_slots: u32,
    /// The length of a contention slot. Default 5 ms.
    pub contention_slot: Span,
    /// Reservation slots, which follow at once; at least 1. Default 3.
    pub reservation_slots: u32,
    /// The length of a reservation slot. Default 20 ms.
    pub reservation_slot: Span,
    /// The octets of packets that a reservation slot carries, at least 1. Default 168: 20 ms of 33.6 ksymbol/s in
    /// 16-QAM are 336 octets gross, about half of which is coding. The study says that a slot carries one NACK.
    pub r_slot_octets: u32,
    /// The one-way delay between a terminal and the hub: flight, coding and decoding. Default 450 ms.
    pub propagation: Span,
    /// The time from the arrival of a request at the RNC until the schedule that answers it leaves. Data is not held up
    /// by it: the study's round trip of 1 s counts it once. Default 100 ms.
    pub processing: Span,
    /// W0: after a collision a terminal lets 0 to W0 - 1 frames go by, uniformly; at least 1. Default 12.
    pub backoff_frames: u32,
    /// If given, the window doubles with each collision after a request's first, up to W0 times 2 to this power, at
    /// most 31. Default none.
    pub backoff_doubling: Option<u32>,
    /// What a request asks for. Default the queue.
    pub request: RequestFor,
    /// Whether packets that enter before the last burst that is reserved for their terminal wait for it, and are
    /// asked for in it, without contention. Default no.
    pub piggyback: bool,
    /// How a request reaches the hub. Default by contention.
    pub access: Access,
    /// How much a terminal may hold, in packets or octets of them, until the last of their slots has ended; what would
    /// pass it is dropped. Each terminal has a queue of its own. Default no limit.
    pub queue: QueueLimit,
    /// After how many collisions a terminal drops what a request was for; at least 1. Default never.
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
    /// Whether the settings make sense.
    ///
    /// # Errors
    /// The first setting that does not.
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

    /// The time that an access takes: a request up, its processing, a schedule down. A terminal's first reservation
    /// slot begins no earlier than this after the end of the request's slot; and so long after it a terminal
    /// knows of a collision.
    pub fn round_trip(&self) -> Span {
        self.propagation * 2 + self.processing
    }

    /// The bit rate of what its reservation slots carry of packets, rounded down: what a terminal is given while no
    /// other asks. `None` below 1 bit/s.
    pub fn capacity(&self) -> Option<BitRate> {
        let octets = u64::from(self.reservation_slots).saturating_mul(u64::from(self.r_slot_octets));
        rate_of(octets, self.frame)
    }

    /// The reservation slots that a packet of `octets` takes: whole ones, at least 1.
    pub fn r_slots(&self, octets: u64) -> u64 {
        octets.div_ceil(u64::from(self.r_slot_octets.max(1))).max(1)
    }

    /// All contention slots of a frame together.
    pub(super) fn contention_time(&self) -> Span {
        self.contention_slot * u64::from(self.contention_slots)
    }
}
