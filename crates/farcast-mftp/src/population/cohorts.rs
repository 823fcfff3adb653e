//! Receivers of a population that are in the same state.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use farcast_core::Time;

use crate::receiver::control::Control;

/// The number of a cohort.
pub(super) type CohortId = u32;

/// Where everyone begins.
const ALL: CohortId = 0;
/// Those for whom the transmission is over and who have the product.
pub(super) const FINISHED: CohortId = 1;
/// Those for whom it is over and who lack something.
pub(super) const GONE: CohortId = 2;

/// Receivers that share one [`Control`].
#[derive(Clone, Debug, Default)]
struct Cohort {
    /// `None` where no announcement was heard, or the transmission is over.
    control: Option<Control>,
    /// Its members and some that have moved on: who is a member is said by [`Cohorts::of`].
    members: Vec<u32>,
    /// Whether `members` may be out of order.
    unsorted: bool,
    count: u32,
    /// Its place in [`Cohorts::due`].
    due: Option<Time>,
}

/// All cohorts. A receiver is in exactly one.
#[derive(Clone, Debug)]
pub(super) struct Cohorts {
    list: Vec<Cohort>,
    /// The cohort of each receiver.
    of: Vec<CohortId>,
    free: Vec<CohortId>,
    due: BTreeSet<(Time, CohortId)>,
    /// `None` where something has changed since.
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

    /// The cohorts that have members and are in the transmission, or outside and may join.
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

    /// The members of a cohort, ascending, into `list`.
    pub(super) fn members(&mut self, id: CohortId, list: &mut Vec<u32>) {
        let (cohort, of) = (&mut self.list[id as usize], &self.of);
        if cohort.members.len() != cohort.count as usize || cohort.unsorted {
            cohort.members.retain(|&receiver| of[receiver as usize] == id);
            if cohort.unsorted {
                cohort.members.sort_unstable();
                cohort.unsorted = false;
            }
            // One that left and came back is there twice.
            cohort.members.dedup();
        }
        list.clear();
        list.extend_from_slice(&cohort.members);
    }

    /// A cohort of its own for `control`, without members yet.
    pub(super) fn found(&mut self, control: Option<Control>) -> CohortId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(Cohort::default());
            self.list.len() as CohortId - 1
        });
        self.put(id, control);
        id
    }

    /// Gives a cohort another control.
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
        // Who finishes took data before, and needs none now: for the survey nothing has changed.
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

    /// The cohort that wants to be woken first, and when.
    pub(super) fn next_due(&self) -> Option<(Time, CohortId)> {
        self.due.first().copied()
    }

    /// Brings up to date what is known of all cohorts together, where something has changed.
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
                survey.unconfirmed |= self.control(id).is_some_and(Control::is_unconfirmed);
            }
            survey.deaf.sort_unstable();
            survey.outside.sort_unstable();
            self.survey = Some(survey);
        }
        self.survey.get_or_insert_default()
    }
}

/// What is known of all cohorts together.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// Those who take no data, ascending: it is as if they lost it. Who has finished lacks nothing and is not among
    /// them.
    pub(super) deaf: Vec<u32>,
    /// Those who do not take part (yet, or any more) and lack something, ascending.
    pub(super) outside: Vec<u32>,
    /// Whether some take part without confirmation and have not yet begun to repeat their registration: the first
    /// DTU that they hear begins that.
    pub(super) unconfirmed: bool,
}
