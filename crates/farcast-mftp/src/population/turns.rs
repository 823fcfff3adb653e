//! Turns of a population's receivers, and the losses that they report when they register.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use farcast_core::{Run, Time};

use super::Population;
use crate::receiver::control::{Action, Control};
use crate::turn::{HeardData, Turn, place};

/// Value for a receiver that has not spoken in any round, and for one that has heard no data.
const NONE: u32 = u32::MAX;

/// Turns of all receivers.
#[derive(Clone, Debug)]
pub(super) struct PopulationTurns {
    /// Places of the receivers in `round`, in ascending order, with the receivers.
    places: Vec<(u32, u32)>,
    round: Option<u16>,
    /// Round in which each receiver last spoke by turn.
    spoke: Vec<u32>,
    /// Receivers that will speak, by time.
    due: BTreeSet<(Time, u32)>,
}

impl PopulationTurns {
    pub(super) fn new(receivers: u32) -> Self {
        let spoke = alloc::vec![NONE; receivers as usize];
        Self { places: Vec::new(), round: None, spoke, due: BTreeSet::new() }
    }

    /// Returns the time at which the next receiver speaks.
    pub(super) fn next_due(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |&(at, _)| at)
    }
}

/// Losses of the first pass of all receivers.
#[derive(Clone, Debug)]
pub(super) struct HeardByAll {
    /// First segment that each receiver heard.
    first: Vec<u32>,
    /// Segments that each receiver lost since.
    lost: Vec<u32>,
    /// Last segment that each receiver lost, and the number of segments lost in a row up to it.
    last: Vec<(u32, u32)>,
    /// Receivers that have not heard any segment.
    unstarted: Vec<u32>,
    /// End of the segments sent.
    end: u32,
}

impl HeardByAll {
    pub(super) fn new(receivers: u32) -> Self {
        let n = receivers as usize;
        Self {
            first: alloc::vec![NONE; n],
            lost: alloc::vec![0; n],
            last: alloc::vec![(NONE, 0); n],
            unstarted: (0..receivers).collect(),
            end: 0,
        }
    }

    /// Records that `segment` was sent for the first time, and that the receivers in `lost`, in ascending order, did not
    /// get it.
    pub(super) fn sent(&mut self, segment: u32, lost: &[u32]) {
        if !self.unstarted.is_empty() {
            let first = &mut self.first;
            self.unstarted.retain(|receiver| {
                let deaf = lost.binary_search(receiver).is_ok();
                if !deaf {
                    first[*receiver as usize] = segment;
                }
                deaf
            });
        }
        for &receiver in lost {
            let receiver = receiver as usize;
            if self.first[receiver] == NONE {
                continue;
            }
            self.lost[receiver] += 1;
            let (before, row) = self.last[receiver];
            self.last[receiver] = (segment, if before.wrapping_add(1) == segment { row + 1 } else { 1 });
        }
        self.end = segment + 1;
    }

    /// Records that `run` was sent for the first time and reached every receiver.
    pub(super) fn sent_to_all(&mut self, run: Run) {
        self.sent(run.first(), &[]);
        self.end = run.end();
    }

    /// Returns the losses that `receiver` reports.
    fn of(&self, receiver: u32) -> HeardData {
        let receiver = receiver as usize;
        let missed = self.first[receiver];
        if missed == NONE {
            return HeardData::default();
        }
        let (last, row) = self.last[receiver];
        let behind = if last.wrapping_add(1) == self.end { row } else { 0 };
        HeardData { missed, sent: self.end - behind - missed, lost: self.lost[receiver] - behind }
    }
}

impl Population {
    /// Lets the receivers that `turn` calls, and that hear it, speak after a part of its time. The receivers in
    /// `self.lost` do not hear it.
    pub(super) fn called(&mut self, now: Time, turn: Option<Turn>) {
        let (Some(turn), Some(transmission)) = (turn, self.terms.as_ref().map(|terms| terms.transmission))
        else {
            return;
        };
        if self.turns.round != Some(turn.round) {
            let places = (0..self.receivers)
                .map(|receiver| (place(transmission, turn.round, self.id(receiver)), receiver));
            let mut places: Vec<(u32, u32)> = places.collect();
            places.sort_unstable();
            (self.turns.places, self.turns.round) = (places, Some(turn.round));
        }
        let from = self.turns.places.partition_point(|&(place, _)| place < turn.first);
        let to = self.turns.places.partition_point(|&(place, _)| place <= turn.last);
        for index in from..to {
            let (_, receiver) = self.turns.places[index];
            let speaks = self.cohorts.control(self.cohorts.of(receiver)).is_some_and(Control::has_to_speak)
                && self.turns.spoke[receiver as usize] != u32::from(turn.round)
                && self.lost.binary_search(&receiver).is_err();
            if speaks {
                self.turns.spoke[receiver as usize] = turn.round.into();
                let wait = self.wait(now, receiver, turn.spread());
                self.turns.due.insert((now + wait, receiver));
            }
        }
    }

    /// Adds the receivers that `turn` does not call to those that lost the message.
    pub(super) fn pass_over_uncalled(&mut self, turn: &Turn) {
        let Some(transmission) = self.terms.as_ref().map(|terms| terms.transmission) else { return };
        if turn.first == 0 && turn.last == u32::MAX {
            return;
        }
        let lost = core::mem::take(&mut self.lost);
        let silent = |&receiver: &u32| {
            !turn.calls(transmission, self.id(receiver)) || lost.binary_search(&receiver).is_ok()
        };
        self.lost = (0..self.receivers).filter(silent).collect();
    }

    /// Lets the receivers speak whose time has come.
    pub(super) fn speak_due(&mut self, now: Time) {
        while let Some(&(at, receiver)) = self.turns.due.first()
            && at <= now
        {
            self.turns.due.pop_first();
            let act = self.cohorts.control(self.cohorts.of(receiver)).map_or(Action::Nothing, Control::speak);
            if matches!(act, Action::Register | Action::RegisterDone) {
                self.say_registration(at, receiver);
            }
            if matches!(act, Action::Done | Action::RegisterDone) {
                self.say_done(at, receiver);
            }
        }
    }

    /// Returns the losses that `receiver` reports in its registration, if receivers take turns.
    pub(super) fn heard_by(&self, receiver: u32) -> Option<HeardData> {
        self.takes_turns(receiver).then(|| self.heard.of(receiver))
    }

    /// Returns the round in which `receiver` was last called, if receivers take turns.
    pub(super) fn round_of(&self, receiver: u32) -> Option<u16> {
        let round = u16::try_from(self.turns.spoke[receiver as usize]).ok();
        round.filter(|_| self.takes_turns(receiver))
    }

    fn takes_turns(&self, receiver: u32) -> bool {
        self.cohorts.control(self.cohorts.of(receiver)).is_some_and(Control::speaks_by_turns)
    }
}
