//! Changes of a link while it runs.

use farcast_core::stage::{NotSettable, Port, Setting, Settings};
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::End;
use farcast_link::chain::follow;

use super::Link;
use crate::control::{Change, Way};

/// Why a link was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The name is nobody's.
    #[error("there is no stage \"{name}\" on this way; there are {there}")]
    NoStage {
        /// What was asked for.
        name: String,
        /// What there is.
        there: String,
    },
    /// No stage has such a setting.
    #[error(
        "no stage that is meant has a {0} that can change while it runs; give the link one before it runs"
    )]
    NoneHas(&'static str),
    /// The stage refuses.
    #[error("{stage}: {reason}")]
    Refused {
        /// Its name.
        stage: String,
        /// Why.
        reason: NotSettable,
    },
    /// Losses and outages belong to a way, not to a stage.
    #[error("losses and outages are set for a whole way: leave \"stage\" out")]
    NotOfAStage,
}

/// The settings of a way that are known.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WaySettings {
    /// The rate that a change of the way's rate would change.
    pub rate: Option<BitRate>,
    /// The one-way delay that a change of the way's delay would change.
    pub delay: Option<Span>,
    /// The limit in octets of the queue whose limit a change of the way's queue would change.
    pub queue: Option<u64>,
    /// The probability of loss behind the stages, where packets are lost independently of each other.
    pub per: Option<Probability>,
}

/// A setting of a stage that is to change.
#[derive(Clone, Copy, Debug)]
struct Step {
    stage: u32,
    to: End,
    setting: Setting,
}

/// Where packets enter a stage that are on their way to `to`.
const fn entry(to: End) -> Port {
    match to {
        End::Terminal => Port::Hub,
        End::Hub => Port::Terminal(0),
    }
}

impl Link {
    /// Changes it at `now`, to which it has been advanced. Without a way, each setting changes on every way that has
    /// it.
    ///
    /// # Errors
    /// What cannot be, and then nothing has changed.
    pub fn change(&mut self, now: Time, change: &Change) -> Result<(), ChangeError> {
        self.now = self.now.max(now);
        if change.stage.is_some() && (change.per.is_some() || change.outage.is_some()) {
            return Err(ChangeError::NotOfAStage);
        }
        let ways: &[End] = match change.way {
            Some(Way::Forward) => &[End::Terminal],
            Some(Way::Return) => &[End::Hub],
            None => &[End::Terminal, End::Hub],
        };
        for Step { stage, to, setting } in self.steps(ways, change)? {
            let set = self.stages.set(self.now, stage, entry(to), setting);
            follow(self);
            set.map_err(|reason| self.refused(stage, reason))?;
        }
        for &to in ways {
            if let Some(per) = change.per {
                self.lose(to, per);
            }
            if let Some(outage) = change.outage {
                self.outages[to.way()] = self.now + outage;
            }
        }
        Ok(())
    }

    /// What is to be set where. Nothing is set that would be refused, nor anything beside it.
    fn steps(&self, ways: &[End], change: &Change) -> Result<Vec<Step>, ChangeError> {
        let settings = [
            change.rate.map(Setting::Rate),
            change.delay.map(Setting::Delay),
            change.queue.map(Setting::Queue),
        ];
        let mut steps = Vec::new();
        for setting in settings.into_iter().flatten() {
            let (before, mut nowhere) = (steps.len(), None);
            for &to in ways {
                match self.find(to, change.stage.as_deref(), setting) {
                    Ok(stage) => steps.push(Step { stage, to, setting }),
                    Err(error @ ChangeError::Refused { .. }) => return Err(error),
                    Err(error) => nowhere = nowhere.or(Some(error)),
                }
            }
            if let Some(error) = nowhere.filter(|_| steps.len() == before) {
                return Err(error);
            }
        }
        Ok(steps)
    }

    /// The stage of that name on the way to `to`, or the first [in turn](Self::in_turn) that has such a setting.
    fn find(&self, to: End, name: Option<&str>, setting: Setting) -> Result<u32, ChangeError> {
        let stages = self.in_turn(to);
        for &stage in &stages {
            if name.is_some_and(|name| name != self.stages.chains().name(stage)) {
                continue;
            }
            match self.may_set(stage, to, setting) {
                Ok(()) => return Ok(stage),
                Err(NotSettable::Absent(_)) if name.is_none() => {}
                Err(reason) => return Err(self.refused(stage, reason)),
            }
        }
        match name {
            Some(name) => {
                let there = stages.iter().map(|&stage| format!("\"{}\"", self.stages.chains().name(stage)));
                let there = there.collect::<Vec<_>>().join(", ");
                Err(ChangeError::NoStage { name: name.into(), there })
            }
            None => Err(ChangeError::NoneHas(setting.name())),
        }
    }

    /// The stages on the way to `to` in the order in which they are asked for a setting: the last first, but behind all
    /// others the link's own pipe where the link's description says nothing of it.
    fn in_turn(&self, to: End) -> Vec<u32> {
        let mut stages: Vec<u32> = self.stages.chains().numbers(to).collect();
        stages.reverse();
        let links = &self.config.links;
        let own = if to == End::Terminal { &links.forward } else { &links.back };
        if own.is_nothing() && !stages.is_empty() {
            stages.rotate_left(1);
        }
        stages
    }

    fn may_set(&self, stage: u32, to: End, setting: Setting) -> Result<(), NotSettable> {
        let stage = self.stages.chains().get(stage);
        // A pipe without a rate has no limit to its queue either, and would hold anything from then on.
        if matches!(setting, Setting::Rate(_)) && stage.settings(entry(to)).rate.is_none() {
            return Err(NotSettable::Absent(setting.name()));
        }
        stage.may_set(entry(to), setting)
    }

    fn refused(&self, stage: u32, reason: NotSettable) -> ChangeError {
        ChangeError::Refused { stage: self.stages.chains().name(stage).into(), reason }
    }

    /// From now on each terminal loses packets independently with this probability, and by nothing else.
    fn lose(&mut self, to: End, per: Probability) {
        self.changes += 1;
        self.per[to.way()] = Some(per);
        let streams = self.config.streams();
        match to {
            End::Terminal => {
                for channel in &mut self.channels {
                    channel.lose(per, streams, self.changes);
                }
            }
            End::Hub => self.back_fates.lose(per, streams, self.changes),
        }
    }

    /// The settings of the way to `to` that are known.
    pub fn settings(&self, to: End) -> WaySettings {
        let mut known = WaySettings { per: self.per[to.way()], ..WaySettings::default() };
        for stage in self.in_turn(to) {
            let Settings { rate, delay, queue } = self.stages.chains().get(stage).settings(entry(to));
            known.rate = known.rate.or(rate);
            known.delay = known.delay.or(delay);
            known.queue = known.queue.or(queue);
        }
        known
    }

    /// For how long an outage that was set on the way to `to` will yet last.
    pub fn outage(&self, to: End) -> Option<Span> {
        let left = self.outages[to.way()].since(self.now);
        (!left.is_zero()).then_some(left)
    }
}
