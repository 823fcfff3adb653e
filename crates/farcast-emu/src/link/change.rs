//! Changes of a link while it runs.

use farcast_core::stage::{NotSettable, Port, Setting, Settings};
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::End;
use farcast_link::chain::follow;

use super::Link;
use crate::control::{Change, LinkDirection};

/// Reason for which a link was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// No stage has the name.
    #[error("there is no stage \"{name}\" on this way; there are {there}")]
    NoStage {
        /// Name asked for.
        name: String,
        /// Names that exist.
        there: String,
    },
    /// No stage has the setting.
    #[error(
        "no stage that is meant has a {0} that can change while it runs; give the link one before it runs"
    )]
    NoneHas(&'static str),
    /// The stage refuses the value.
    #[error("{stage}: {reason}")]
    Refused {
        /// Name of the stage.
        stage: String,
        /// Reason of the refusal.
        reason: NotSettable,
    },
    /// Losses and outages belong to a direction, not to a stage.
    #[error("losses and outages are set for a whole way: leave \"stage\" out")]
    NotOfAStage,
}

/// Known settings of a direction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WaySettings {
    /// Rate that a change of the direction's rate would change.
    pub rate: Option<BitRate>,
    /// One-way delay that a change of the direction's delay would change.
    pub delay: Option<Span>,
    /// Limit in octets of the queue that a change of the direction's queue would change.
    pub queue: Option<u64>,
    /// Probability of loss behind the stages, if packets are lost independently of each other.
    pub per: Option<Probability>,
}

/// Change of one setting of a stage.
#[derive(Clone, Copy, Debug)]
struct SettingChange {
    stage: u32,
    to: End,
    setting: Setting,
}

/// Returns the port by which packets to `to` enter a stage.
const fn entry(to: End) -> Port {
    match to {
        End::Terminal => Port::Hub,
        End::Hub => Port::Terminal(0),
    }
}

impl Link {
    /// Changes the link at `now`, to which it has been advanced. Without a direction, each setting changes in every
    /// direction that has it.
    ///
    /// # Errors
    /// The reason for which the change is impossible; then nothing has changed.
    pub fn change(&mut self, now: Time, change: &Change) -> Result<(), ChangeError> {
        self.now = self.now.max(now);
        if change.stage.is_some() && (change.per.is_some() || change.outage.is_some()) {
            return Err(ChangeError::NotOfAStage);
        }
        let ways: &[End] = match change.way {
            Some(LinkDirection::Forward) => &[End::Terminal],
            Some(LinkDirection::Return) => &[End::Hub],
            None => &[End::Terminal, End::Hub],
        };
        for SettingChange { stage, to, setting } in self.steps(ways, change)? {
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

    /// Returns the settings to change, by stage. If one of them would be refused, none is changed.
    fn steps(&self, ways: &[End], change: &Change) -> Result<Vec<SettingChange>, ChangeError> {
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
                    Ok(stage) => steps.push(SettingChange { stage, to, setting }),
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

    /// Returns the stage of that name on the way to `to`. Without a name, returns the first one [in
    /// turn](Self::in_turn) that has the setting.
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

    /// Returns the stages on the way to `to` in the order in which a setting is looked for: the last first. The link's
    /// own pipe comes after all others if the link's description does not mention it.
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
        // A pipe without a rate has no limit to its queue either: with a rate, it would hold any number of packets.
        if matches!(setting, Setting::Rate(_)) && stage.settings(entry(to)).rate.is_none() {
            return Err(NotSettable::Absent(setting.name()));
        }
        stage.may_set(entry(to), setting)
    }

    fn refused(&self, stage: u32, reason: NotSettable) -> ChangeError {
        ChangeError::Refused { stage: self.stages.chains().name(stage).into(), reason }
    }

    /// Makes each terminal lose packets independently with this probability, and by no other process, from now on.
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

    /// Returns the known settings of the way to `to`.
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

    /// Returns the remaining time of an outage that was set on the way to `to`.
    pub fn outage(&self, to: End) -> Option<Span> {
        let left = self.outages[to.way()].since(self.now);
        (!left.is_zero()).then_some(left)
    }
}
