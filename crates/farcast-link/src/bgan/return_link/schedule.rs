//! Start and end times of slots.

use farcast_core::{Span, Time};

use super::ReturnConfig;

/// The return schedule: every frame alike, contention slots first. Reservation slots are numbered through all frames.
#[derive(Clone, Debug)]
pub(super) struct SlotSchedule {
    frame: Span,
    contention_slot: Span,
    /// At least 1: with no contention slots, ideal access gives a request the time of one.
    contention_slots: u32,
    /// Time from the start of a frame to its first reservation slot.
    reserved_from: Span,
    reservation_slot: Span,
    reservation_slots: u64,
}

impl SlotSchedule {
    /// Creates the schedule of a checked configuration.
    pub(super) fn new(config: &ReturnConfig) -> Self {
        Self {
            frame: config.frame,
            contention_slot: config.contention_slot,
            contention_slots: config.contention_slots.max(1),
            reserved_from: config.contention_time(),
            reservation_slot: config.reservation_slot,
            reservation_slots: u64::from(config.reservation_slots),
        }
    }

    /// Returns the number of contention slots of a frame.
    pub(super) fn contention_slots(&self) -> u32 {
        self.contention_slots
    }

    /// Returns the first frame that begins at or after `at`.
    pub(super) fn frame_from(&self, at: Time) -> u64 {
        at.as_nanos().div_ceil(self.frame.as_nanos())
    }

    /// Returns the start of contention slot `slot` of `frame`.
    pub(super) fn contention_start(&self, frame: u64, slot: u32) -> Time {
        Time::ZERO + self.frame * frame + self.contention_slot * u64::from(slot)
    }

    /// Returns the end of contention slot `slot` of `frame`.
    pub(super) fn contention_end(&self, frame: u64, slot: u32) -> Time {
        self.contention_start(frame, slot) + self.contention_slot
    }

    /// Returns the first reservation slot that begins at or after `at`.
    pub(super) fn reserved_from(&self, at: Time) -> u64 {
        let (frame, into) = (at.as_nanos() / self.frame.as_nanos(), at.as_nanos() % self.frame.as_nanos());
        let into = Span::from_nanos(into).saturating_sub(self.reserved_from);
        let slot = into.as_nanos().div_ceil(self.reservation_slot.as_nanos());
        // Slots lie within their frame and last at least 1 ns, so a frame has no more slots than nanoseconds.
        frame * self.reservation_slots + slot.min(self.reservation_slots)
    }

    /// Returns the start of reservation slot `slot`.
    pub(super) fn reserved_start(&self, slot: u64) -> Time {
        let (frame, slot) = (slot / self.reservation_slots, slot % self.reservation_slots);
        Time::ZERO + self.frame * frame + self.reserved_from + self.reservation_slot * slot
    }

    /// Returns the end of reservation slot `slot`.
    pub(super) fn reserved_end(&self, slot: u64) -> Time {
        self.reserved_start(slot) + self.reservation_slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lists the slots of the first frames, one after the other.
    fn listed(config: &ReturnConfig) -> Vec<u64> {
        let reserved = |frame: u64| {
            let first = frame * config.frame.as_nanos() + config.contention_time().as_nanos();
            (0..u64::from(config.reservation_slots))
                .map(move |slot| first + slot * config.reservation_slot.as_nanos())
        };
        (0..6).flat_map(reserved).collect()
    }
    use alloc::vec::Vec;

    #[test]
    fn the_study_has_50_contention_and_37_5_reservation_slots_a_second() {
        let schedule = SlotSchedule::new(&ReturnConfig::default());
        assert_eq!(schedule.contention_end(0, 3), Time::ZERO + Span::from_millis(20));
        assert_eq!(schedule.reserved_start(0), Time::ZERO + Span::from_millis(20));
        assert_eq!(schedule.reserved_end(2), schedule.contention_start(1, 0));
        assert_eq!(schedule.contention_start(25, 0), Time::ZERO + Span::from_secs(2));
        assert_eq!(schedule.reserved_start(75), schedule.reserved_start(0) + Span::from_secs(2));
    }

    #[test]
    fn the_end_of_time_is_never() {
        let schedule = SlotSchedule::new(&ReturnConfig::default());
        assert_eq!(schedule.contention_start(u64::MAX, u32::MAX), Time::NEVER);
        assert_eq!(schedule.reserved_end(u64::MAX), Time::NEVER);
        assert!(
            schedule.reserved_start(schedule.reserved_from(Time::NEVER))
                > Time::NEVER - Span::from_millis(80)
        );
    }

    proptest! {
        #[test]
        fn slots_are_where_a_list_has_them(
            contention in 0u32..4, reserved in 1u32..4, idle in 0u64..15, at in 0u64..300,
        ) {
            let config = ReturnConfig {
                contention_slots: contention,
                contention_slot: Span::from_nanos(5),
                reservation_slots: reserved,
                reservation_slot: Span::from_nanos(11),
                frame: Span::from_nanos(u64::from(contention) * 5 + u64::from(reserved) * 11 + idle),
                ..ReturnConfig::default()
            };
            let (schedule, list) = (SlotSchedule::new(&config), listed(&config));
            for (slot, &start) in list.iter().enumerate() {
                prop_assert_eq!(schedule.reserved_start(slot as u64), Time::from_nanos(start));
            }
            if let Some(first) = list.iter().position(|&start| start >= at) {
                prop_assert_eq!(schedule.reserved_from(Time::from_nanos(at)), first as u64);
            }
        }
    }
}
