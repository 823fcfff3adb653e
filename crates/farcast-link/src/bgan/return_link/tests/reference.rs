//! The return link once more, frame by frame, with all entries known ahead, for requests of the queue without
//! piggyback.

use alloc::vec;

use super::*;

/// A packet that enters.
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) terminal: u32,
    pub(super) octets: u64,
}

/// Results of the link.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) left: Vec<(Time, u32)>,
    pub(super) requests: u64,
    pub(super) collided: u64,
    pub(super) given_up: u64,
    pub(super) waited: u64,
}

#[derive(Clone, Default)]
struct Station {
    waiting: Vec<u32>,
    /// Not before this frame and this time.
    frame: u64,
    free_from: u64,
    collisions: u32,
}

/// Plays every frame that contends until `until`.
pub(super) fn reference(
    config: &ReturnConfig,
    entries: &[Entry],
    mut stream: RandomStream,
    until: u64,
) -> Outcome {
    let (frame_time, slot_time) = (config.frame.as_nanos(), config.contention_slot.as_nanos());
    let round_trip = 2 * config.propagation.as_nanos() + config.processing.as_nanos();
    let contention = u64::from(config.contention_slots) * slot_time;
    let reserved_start = |slot: u64| {
        let per_frame = u64::from(config.reservation_slots);
        slot / per_frame * frame_time + contention + slot % per_frame * config.reservation_slot.as_nanos()
    };
    let mut outcome = Outcome::default();
    let mut stations = vec![Station::default(); 6];
    for (id, entry) in entries.iter().enumerate() {
        stations[entry.terminal as usize].waiting.push(id as u32);
    }
    let mut next_reserved = 0;
    for frame in 0.. {
        let start = frame * frame_time;
        if start + contention > until {
            return outcome;
        }
        let ready = |station: &Station| {
            let first = station.waiting.first().is_some_and(|&id| entries[id as usize].at <= start);
            first && station.frame <= frame && station.free_from <= start
        };
        let senders: Vec<usize> = (0..6).filter(|&terminal| ready(&stations[terminal])).collect();
        let slots: Vec<u64> =
            senders.iter().map(|_| stream.below(u64::from(config.contention_slots))).collect();
        outcome.requests += senders.len() as u64;
        for slot in 0..u64::from(config.contention_slots) {
            let here: Vec<usize> =
                senders.iter().zip(&slots).filter(|&(_, &s)| s == slot).map(|(&sender, _)| sender).collect();
            let sent = start + slot * slot_time;
            let told = sent + slot_time + round_trip;
            for &sender in &here {
                let station = &mut stations[sender];
                if here.len() > 1 && config.access == Access::Contention {
                    outcome.collided += 1;
                    station.collisions += 1;
                    if Some(station.collisions) != config.give_up_after {
                        let doublings = (station.collisions - 1).min(config.backoff_doubling.unwrap_or(0));
                        let window = u64::from(config.backoff_frames) * 2u64.pow(doublings);
                        station.frame = told.div_ceil(frame_time) + stream.below(window);
                        continue;
                    }
                }
                let given_up = Some(station.collisions) == config.give_up_after;
                while station.waiting.first().is_some_and(|&id| entries[id as usize].at <= sent) {
                    let id = station.waiting.remove(0);
                    let entry = &entries[id as usize];
                    if given_up {
                        outcome.given_up += 1;
                        continue;
                    }
                    while reserved_start(next_reserved) < told {
                        next_reserved += 1;
                    }
                    outcome.waited += reserved_start(next_reserved) - entry.at;
                    next_reserved += entry.octets.div_ceil(u64::from(config.r_slot_octets));
                    let end = reserved_start(next_reserved - 1) + config.reservation_slot.as_nanos();
                    outcome.left.push((Time::from_nanos(end) + config.propagation, id));
                }
                (station.free_from, station.collisions) = (told, 0);
            }
        }
    }
    outcome
}
