//! Burst losses by a chain of two states.

use alloc::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::{Probability, Span, Time};

use super::hazard::Hazard;
use super::{Among, Losses, sorted};
use crate::LinkError;

/// Moves of a receiver between the good and the bad state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Transitions {
    /// One move a frame, after it: netem's `gemodel`. Time does not matter. `p` and `r` may not both be 0.
    PerFrame {
        /// Probability of a move from good to bad; netem's p.
        p: Probability,
        /// Probability of a move from bad to good; netem's r. Without losses in the good state and with only losses in
        /// the bad one, a burst has a mean length of 1 / r frames.
        r: Probability,
    },
    /// Moves in continuous time, with exponential sojourns of these means, both above zero.
    Timed {
        /// Mean sojourn in the good state.
        good: Span,
        /// Mean sojourn in the bad state.
        bad: Span,
    },
}

/// The parameters of [`GilbertElliott`].
///
/// Gilbert (*Capacity of a burst-noise channel*, Bell System Technical Journal 39, 1960) loses nothing in the good
/// state; Elliott (*Estimates of error rates for codes on burst-noise channels*, BSTJ 42, 1963) adds losses there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliottConfig {
    /// Moves between the states.
    pub transitions: Transitions,
    /// The probability that a frame is lost in the good state; netem's 1-k.
    pub loss_good: Probability,
    /// The probability that a frame is lost in the bad state; netem's 1-h.
    pub loss_bad: Probability,
}

impl GilbertElliottConfig {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`LinkError::NoTransitions`] if p and r are both 0, [`LinkError::ZeroMean`] if a mean sojourn is.
    pub fn check(&self) -> Result<(), LinkError> {
        match self.transitions {
            Transitions::PerFrame { p, r } if p.get() + r.get() <= 0.0 => Err(LinkError::NoTransitions),
            Transitions::Timed { good: Span::ZERO, .. } => {
                Err(LinkError::ZeroMean("sojourn in the good state"))
            }
            Transitions::Timed { bad: Span::ZERO, .. } => {
                Err(LinkError::ZeroMean("sojourn in the bad state"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the share of frames that a receiver loses in the long run.
    pub fn loss(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad.get() + (1.0 - bad) * self.loss_good.get()
    }

    /// Returns the share of receivers that are in the bad state in the stationary distribution.
    fn bad_share(&self) -> f64 {
        let (to_bad, to_good) = match self.transitions {
            Transitions::PerFrame { p, r } => (p.get(), r.get()),
            Transitions::Timed { good, bad } => (bad.as_secs_f64(), good.as_secs_f64()),
        };
        to_bad / (to_bad + to_good)
    }
}

/// Burst losses: each receiver is in a good or a bad state and loses frames with that state's probability.
///
/// Receivers are independent, start in the stationary distribution, and move on with every frame, whichever receivers
/// are drawn. Only receivers in the bad state are kept, as a list, and both transitions are drawn by jumps: the cost of
/// a frame grows with the number of bad receivers and of transitions.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    config: GilbertElliottConfig,
    receivers: u32,
    /// Receivers in the bad state, ascending.
    bad: Vec<u32>,
    moves: Moves,
    loss_good: (f64, Hazard),
    loss_bad: (f64, Hazard),
    /// Time of the last frame on the channel.
    last: Option<Time>,
    drawn: Vec<u32>,
    victims: Vec<u32>,
    scratch: Vec<u32>,
}

/// The draws of transitions.
#[derive(Clone, Debug)]
struct Moves {
    to_bad: Hazard,
    to_good: Hazard,
    /// Length of one step, and the hazards of a transition to bad and to good over it. The length is zero for a chain
    /// that moves with the frames.
    step: (Span, f64, f64),
    falling: Vec<u32>,
    rising: Vec<u32>,
}

impl GilbertElliott {
    /// Creates `receivers` chains with the transitions of `config`.
    ///
    /// # Errors
    /// The error of [`GilbertElliottConfig::check`].
    pub fn new(
        config: GilbertElliottConfig,
        receivers: u32,
        mut stream: RandomStream,
    ) -> Result<Self, LinkError> {
        config.check()?;
        let seed = stream.bits();
        let hazard = |label| Hazard::new(RandomStream::derive(seed, &[label]));
        let mut bad = Vec::new();
        hazard(0).lost(-libm::log1p(-config.bad_share()), receivers, Among::All, &mut bad);
        let (falling, rising) = (Vec::new(), Vec::new());
        let step = match config.transitions {
            Transitions::PerFrame { p, r } => (Span::ZERO, Hazard::of(p), Hazard::of(r)),
            Transitions::Timed { .. } => (Span::ZERO, 0.0, 0.0),
        };
        Ok(Self {
            config,
            receivers,
            bad,
            moves: Moves { to_bad: hazard(1), to_good: hazard(2), step, falling, rising },
            loss_good: (Hazard::of(config.loss_good), hazard(3)),
            loss_bad: (Hazard::of(config.loss_bad), hazard(4)),
            last: None,
            drawn: Vec::new(),
            victims: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Advances chains in continuous time to `now`.
    fn catch_up(&mut self, now: Time, good: Span, bad: Span) {
        let elapsed = now.since(self.last.unwrap_or(now));
        self.last = Some(now);
        if elapsed.is_zero() {
            return;
        }
        if self.moves.step.0 != elapsed {
            let Hazards { to_bad, to_good } = hazards_over(elapsed, good, bad);
            self.moves.step = (elapsed, to_bad, to_good);
        }
        self.step();
    }

    /// Moves every chain by one step.
    fn step(&mut self) {
        let Moves { to_bad, to_good, step, falling, rising } = &mut self.moves;
        rising.clear();
        to_good.each(step.2, self.bad.len(), |position, _| rising.push(self.bad[position]));
        // All receivers are candidates to fall, so the good ones need no search. A receiver that is bad already stays
        // as drawn.
        falling.clear();
        to_bad.lost(step.1, self.receivers, Among::All, falling);
        sorted::subtract(falling, &self.bad);
        sorted::subtract(&mut self.bad, rising);
        sorted::add(&mut self.bad, falling, &mut self.scratch);
    }

    /// Draws the receivers that lose a frame, in the present states, into `drawn`.
    fn lose(&mut self) {
        self.drawn.clear();
        let (lambda, hazard) = &mut self.loss_good;
        hazard.lost(*lambda, self.receivers, Among::All, &mut self.drawn);
        sorted::subtract(&mut self.drawn, &self.bad);
        let (lambda, hazard) = &mut self.loss_bad;
        self.victims.clear();
        hazard.lost(*lambda, self.receivers, Among::These(&self.bad), &mut self.victims);
        sorted::add(&mut self.drawn, &self.victims, &mut self.scratch);
    }
}

impl Losses for GilbertElliott {
    fn draw(&mut self, now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        if let Transitions::Timed { good, bad } = self.config.transitions {
            self.catch_up(now, good, bad);
        }
        self.lose();
        sorted::answer(&self.drawn, among, lost);
        if let Transitions::PerFrame { .. } = self.config.transitions {
            self.step();
        }
    }

    fn is_memoryless(&self) -> bool {
        false
    }
}

/// The hazards of being found in the other state after some time.
struct Hazards {
    /// Hazard that a good receiver is found bad.
    to_bad: f64,
    /// Hazard that a bad receiver is found good.
    to_good: f64,
}

/// Returns the hazards after `elapsed`.
///
/// With sojourns of mean g and b a chain forgets its state at the rate 1/g + 1/b: after t it has moved with
/// probability (share of the other state) × (1 - exp(-t (1/g + 1/b))).
fn hazards_over(elapsed: Span, good: Span, bad: Span) -> Hazards {
    let (t, g, b) = (elapsed.as_secs_f64(), good.as_secs_f64(), bad.as_secs_f64());
    let forgotten = -libm::expm1(-t * (1.0 / g + 1.0 / b));
    let hazard = |share: f64| -libm::log1p(-share * forgotten);
    Hazards { to_bad: hazard(b / (g + b)), to_good: hazard(g / (g + b)) }
}

#[cfg(test)]
mod tests;
