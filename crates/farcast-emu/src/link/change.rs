//! Changes of a link while it runs.

use farcast_core::random::RandomStream;
use farcast_core::stage::{NotSettable, Setting};
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::End;
use farcast_link::losses::Bernoulli;
use farcast_scenario::links::LinkSpec;

use super::{LOSSES, Link, way};
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
    #[error(transparent)]
    Refused(#[from] NotSettable),
    /// Losses and outages belong to a way, not to a stage.
    #[error("losses and outages are set for a whole way: leave \"stage\" out")]
    NotOfAStage,
}

/// The settings of a way that are known.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WaySettings {
    /// The rate of its last stage.
    pub rate: Option<BitRate>,
    /// The delay of its last stage.
    pub delay: Option<Span>,
    /// The probability of loss behind it, where packets are lost independently of each other.
    pub per: Option<Probability>,
}

impl WaySettings {
    /// Those of `link.forward` or `link.return`.
    pub(super) fn of(link: &LinkSpec, per: Option<Probability>) -> Self {
        match link {
            LinkSpec::Pipe(pipe) => Self { rate: pipe.config.rate, delay: Some(pipe.config.delay), per },
            _ => Self { per, ..Self::default() },
        }
    }
}

impl Link {
    /// Changes it at `now`, to which it has been advanced.
    ///
    /// # Errors
    /// What cannot be; what stands before it in the order rate, delay, loss, outage has been changed.
    pub fn change(&mut self, now: Time, change: &Change) -> Result<(), ChangeError> {
        self.now = self.now.max(now);
        if change.stage.is_some() && (change.per.is_some() || change.outage.is_some()) {
            return Err(ChangeError::NotOfAStage);
        }
        match change.way {
            Some(Way::Forward) => self.change_way(End::Terminal, change),
            Some(Way::Return) => self.change_way(End::Hub, change),
            // Without a way it holds wherever it can.
            None => {
                let forward = self.change_way(End::Terminal, change);
                let back = self.change_way(End::Hub, change);
                back.or(forward)
            }
        }
    }

    fn change_way(&mut self, to: End, change: &Change) -> Result<(), ChangeError> {
        if let Some(rate) = change.rate {
            self.set(to, change.stage.as_deref(), Setting::Rate(rate))?;
            self.settings[way(to)].rate = Some(rate);
        }
        if let Some(delay) = change.delay {
            self.set(to, change.stage.as_deref(), Setting::Delay(delay))?;
            self.settings[way(to)].delay = Some(delay);
        }
        if let Some(per) = change.per {
            self.lose(to, per);
        }
        if let Some(outage) = change.outage {
            self.outages[way(to)] = self.now + outage;
        }
        Ok(())
    }

    /// Sets the stage of that name, or the last of the way that has such a setting.
    fn set(&mut self, to: End, name: Option<&str>, setting: Setting) -> Result<(), ChangeError> {
        let now = self.now;
        let mut there = Vec::new();
        let stages: Vec<u32> = self.chains.numbers(to).collect();
        for &stage in stages.iter().rev() {
            let is_named = name.is_some_and(|name| name == self.chains.name(stage));
            there.push(format!("\"{}\"", self.chains.name(stage)));
            if name.is_some() && !is_named {
                continue;
            }
            // A pipe without a rate has no limit to its queue either, and would hold anything from then on.
            if matches!(setting, Setting::Rate(_)) && !self.config.links.has_rate(self.chains.name(stage)) {
                continue;
            }
            match self.chains.stage(stage).set(now, setting) {
                Err(NotSettable::Absent(_)) if !is_named => {}
                result => {
                    self.drain(stage);
                    return result.map_err(ChangeError::from);
                }
            }
        }
        match name.filter(|name| !there.contains(&format!("\"{name}\""))) {
            Some(name) => Err(ChangeError::NoStage { name: name.into(), there: there.join(", ") }),
            None => Err(ChangeError::NoneHas(setting.name())),
        }
    }

    /// From now on each terminal loses packets independently with this probability, and by nothing else.
    fn lose(&mut self, to: End, per: Probability) {
        self.changes += 1;
        self.settings[way(to)].per = Some(per);
        for (number, terminal) in (0_u64..).zip(&mut self.terminals) {
            let path = [LOSSES, way(to) as u64, number, self.changes];
            let stream = RandomStream::derive(self.config.seed, &path);
            terminal.losses[way(to)] = Box::new(Bernoulli::new(per, 1, stream));
        }
    }

    /// The settings of the way to `to` that are known.
    pub fn settings(&self, to: End) -> WaySettings {
        self.settings[way(to)]
    }

    /// For how long an outage of the way to `to` will yet last.
    pub fn outage(&self, to: End) -> Option<Span> {
        let left = self.outages[way(to)].since(self.now);
        (!left.is_zero()).then_some(left)
    }
}
