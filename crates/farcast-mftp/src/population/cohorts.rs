//! Cohorts: receivers of a population that are in the same state.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use farcast_core::Time;

use crate::receiver::control::Control;

/// Number of a cohort.
pub(super) type CohortId = u32;

/// Initial cohort of all receivers.
const ALL: CohortId = 0;
/// Receivers for which the transmission is over and that have the product.
pub(super) const FINISHED: CohortId = 1;
/// Receivers for which the transmission is over and that lack some of the product.
pub(super) const GONE: CohortId = 2;

/// Receivers that share one [`Control`].
#[derive(Clone, Debug, Default)]
struct Cohort {
    /// Shared control; `None` before any announcement was heard, or after the transmission.
    control: Option<Control>,
    /// Members, and some former members; [`Cohorts::of`] decides who is a member.
    members: Vec<u32>,
    /// `true` if `members` may be out of order.
    unsorted: bool,
    count: u32,
    /// Time of the cohort's entry in [`Cohorts::due`].
    due: Option<Time>,
}

/// All cohorts. A receiver is in exactly one.
#[derive(Clone, Debug)]
pub(super) struct Cohorts {
    list: Vec<Cohort>,
    /// Cohort of each receiver.
    of: Vec<CohortId>,
    free: Vec<CohortId>,
    due: BTreeSet<(Time, CohortId)>,
    /// Cached survey; `None` after a change.
    survey: Option<Survey>,
}

impl Cohorts {
    pub(super) fn new(receivers: u32) -> Self {
        let mut cohorts = alloc::vec![Cohort::default(); 3];
        cohorts[ALL as usize].members = (0..receivers).collect();
        cohorts[ALL as usize].count = receivers;
        Self {
            list: cohorts,
            of: alloc::vec![ALL; receivers as usize],
            free: Vec::new(),
            due: BTreeSet::new(),
            survey: None,
        }
    }

    /// Returns the cohorts with members that take part in the transmission, or that are outside and may join.
    pub(super) fn ids(&self) -> impl Iterator<Item = CohortId> + use<> {
        let ids: Vec<CohortId> = (0..self.list.len() as CohortId)
            .filter(|&id| id != FINISHED && id != GONE && self.list[id as usize].count > 0)
            .collect();
        ids.into_iter()
    }

    pub(super) fn of(&self, receiver: u32) -> CohortId {
        self.of[receiver as usize]
    }

    pub(super) fn control(&self, id: CohortId) -> Option<&Control> {
        self.list[id as usize].control.as_ref()
    }

    pub(super) fn count(&self, id: CohortId) -> u32 {
        self.list[id as usize].count
    }

    /// Copies the members of a cohort into `list`, in ascending order.
    pub(super) fn members(&mut self, id: CohortId, list: &mut Vec<u32>) {
        let (cohort, of) = (&mut self.list[id as usize], &self.of);
        if cohort.members.len() != cohort.count as usize || cohort.unsorted {
            cohort.members.retain(|&receiver| of[receiver as usize] == id);
            if cohort.unsorted {
                cohort.members.sort_unstable();
                cohort.unsorted = false;
            }
            // A member that left and came back is in the list twice.
            cohort.members.dedup();
        }
        list.clear();
        list.extend_from_slice(&cohort.members);
    }

    /// Creates a cohort for `control`, without members.
    pub(super) fn found(&mut self, control: Option<Control>) -> CohortId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(Cohort::default());
            self.list.len() as CohortId - 1
        });
        self.put(id, control);
        id
    }

    /// Replaces the control of a cohort.
    pub(super) fn put(&mut self, id: CohortId, control: Option<Control>) {
        self.survey = None;
        let cohort = &mut self.list[id as usize];
        let due = control.as_ref().and_then(Control::deadline).map(|deadline| deadline.at);
        if cohort.due != due {
            if let Some(old) = cohort.due {
                self.due.remove(&(old, id));
            }
            if let Some(new) = due {
                self.due.insert((new, id));
            }
            cohort.due = due;
        }
        cohort.control = control;
    }

    /// Moves a receiver to another cohort.
    pub(super) fn shift(&mut self, receiver: u32, to: CohortId) {
        let from = core::mem::replace(&mut self.of[receiver as usize], to);
        if from == to {
            return;
        }
        // A receiver that finishes took data before and needs none now. The survey stays the same.
        if to != FINISHED {
            self.survey = None;
        }
        let target = &mut self.list[to as usize];
        target.unsorted |= target.members.last().is_some_and(|&last| last >= receiver);
        target.members.push(receiver);
        target.count += 1;
        let source = &mut self.list[from as usize];
        source.count -= 1;
        if source.count == 0 && from != FINISHED && from != GONE {
            source.members.clear();
            source.unsorted = false;
            self.put(from, None);
            self.free.push(from);
        }
    }

    /// Returns the cohort with the earliest timer, and its time.
    pub(super) fn next_due(&self) -> Option<(Time, CohortId)> {
        self.due.first().copied()
    }

    /// Returns the survey of all cohorts, and updates it if it is out of date.
    pub(super) fn survey(&mut self, takes: impl Fn(&Control) -> bool) -> &Survey {
        if self.survey.is_none() {
            let (mut survey, mut list) = (Survey::default(), Vec::new());
            for id in (0..self.list.len() as CohortId).filter(|&id| id != FINISHED) {
                if self.count(id) == 0 {
                    continue;
                }
                if !self.control(id).is_some_and(&takes) {
                    self.members(id, &mut list);
                    survey.deaf.extend_from_slice(&list);
                }
                if self.control(id).is_none() {
                    self.members(id, &mut list);
                    survey.outside.extend_from_slice(&list);
                }
                survey.unconfirmed |= self.control(id).is_some_and(Control::is_changed_by_data);
            }
            survey.deaf.sort_unstable();
            survey.outside.sort_unstable();
            self.survey = Some(survey);
        }
        self.survey.get_or_insert_default()
    }
}

/// Properties of all cohorts together.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// Receivers that take no data, in ascending order: for them all data counts as lost. A receiver that has finished
    /// lacks nothing and is not in the list.
    pub(super) deaf: Vec<u32>,
    /// Receivers that do not take part, yet or any more, and lack some of the product, in ascending order.
    pub(super) outside: Vec<u32>,
    /// `true` if some receivers take part without confirmation and do not yet repeat their registration. The first DTU
    /// that they hear starts the repetition.
    pub(super) unconfirmed: bool,
}
