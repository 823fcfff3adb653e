//! Driver of chains: moves frames from stage to stage and wakes stages.
//!
//! A [`Driver`] owns the stages and no queue. After each call its [`ChainOwner`] [follows](follow) it, keeps later events
//! among its own, and hands each back at its time. So simulated and emulated packets pass the same stages by the same
//! rules, whatever else happens between them.

use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{End, Fate, Frame, NotSettable, Output, Port, Setting};
use farcast_core::{Span, Time};

use super::Chains;

/// A frame that is about to enter a chain, or a later stage of one. Its owner keeps it until then.
#[derive(Clone, Debug)]
pub struct Entry<M> {
    to: End,
    spot: Spot,
    frame: Frame<M>,
}

/// The number of a stage, or no number, in four octets: queues hold many entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spot(u32);

impl Spot {
    /// The first stage of the chain, if there is one. Other frames may enter there that nobody knows ahead.
    const CHAIN: Self = Self(u32::MAX);
}

impl<M> Entry<M> {
    /// Creates the entry of a frame from the other end into the chain that leads to `to`.
    pub const fn new(to: End, frame: Frame<M>) -> Self {
        Self { to, spot: Spot::CHAIN, frame }
    }

    /// Returns the end that the frame travels to.
    pub const fn to(&self) -> End {
        self.to
    }

    /// Returns the message of the frame.
    pub const fn message(&self) -> &M {
        &self.frame.message
    }

    /// Returns the message of a frame that is not to enter any more.
    pub fn into_message(self) -> M {
        self.frame.message
    }
}

/// Owner of driven chains, which keeps their future events.
pub trait ChainOwner<M: Message> {
    /// Returns the driver of the chains.
    fn driver(&mut self) -> &mut Driver<M>;

    /// Keeps `entry`, which [enters](Driver::enter) at `at`: a frame that left a stage for the next, or the rest of a
    /// run whose head has entered.
    fn keep(&mut self, at: Time, entry: Entry<M>);

    /// Takes a frame that leaves the last stage of the chain that leads to `to`, its first datagram at `at`.
    fn left(&mut self, at: Time, to: End, frame: Frame<M>);

    /// Notes that all outputs of `stage` so far have been reported. `wake` is the time at which the stage is to be
    /// [woken](Driver::wake); `None` if that has not changed or there is none.
    fn drained(&mut self, stage: u32, wake: Option<Time>);
}

/// Reports the results of the last call of a [`Driver`] to the owner of its chains, in the order in which the owner is
/// to keep them. The owner calls this before its next call of the driver.
#[inline]
pub fn follow<M: Message>(owner: &mut impl ChainOwner<M>) {
    let driver = owner.driver();
    let stage = driver.driven.take();
    // A look comes before the take: there is seldom a rest, and moving a frame is costly.
    if driver.rest.is_some()
        && let Some((at, entry)) = driver.rest.take()
    {
        owner.keep(at, entry);
    }
    let Some(stage) = stage else {
        if let Some((at, to, frame)) = owner.driver().through.take() {
            owner.left(at, to, frame);
        }
        return;
    };
    while let Some(Output { at, port, frame }) = owner.driver().chains.stage(stage).poll_output() {
        let to = End::of(port);
        match owner.driver().chains.next(stage, to) {
            Some(next) => owner.keep(at, Entry { to, spot: Spot(next), frame }),
            None => owner.left(at, to, frame),
        }
    }
    let wake = owner.driver().chains.new_wake(stage);
    owner.drained(stage, wake);
}

/// Chains that are driven: after each call their owner [follows](follow).
#[derive(Debug)]
pub struct Driver<M> {
    chains: Chains<M>,
    /// The rest of the run whose head was handed over last, and the time at which it follows.
    rest: Option<(Time, Entry<M>)>,
    /// The stage that may have outputs.
    driven: Option<u32>,
    /// The frame that passes a chain without stages.
    through: Option<(Time, End, Frame<M>)>,
}

impl<M: Message> Driver<M> {
    /// Creates a driver of `chains`, which hold no frames yet.
    pub const fn new(chains: Chains<M>) -> Self {
        Self { chains, rest: None, driven: None, through: None }
    }

    /// Returns the stages, to look at.
    pub const fn chains(&self) -> &Chains<M> {
        &self.chains
    }

    /// Returns `true` if the first stage of the chain to `to` would take a packet of `octets` octets at `now`. A chain
    /// without stages takes every packet.
    pub fn has_room(&mut self, now: Time, port: Port, to: End, octets: u64) -> bool {
        self.chains.first(to).is_none_or(|stage| self.chains.stage(stage).has_room(now, port, octets))
    }

    /// Takes a frame that enters at `now` through `port`: the hub's port on the way to terminals, the port of the
    /// sending terminal on the way to the hub.
    ///
    /// The stage gets the head of a run, as long as `cut` chooses; the owner keeps the rest. `cut` is given the number
    /// of datagrams that come before anything else can enter. Only the owner knows what else enters from outside:
    /// nothing does before `known`.
    #[inline]
    pub fn enter(
        &mut self,
        now: Time,
        port: Port,
        entry: Entry<M>,
        known: Time,
        cut: impl FnOnce(NonZeroU32) -> NonZeroU32,
    ) {
        debug_assert!(self.rest.is_none() && self.driven.is_none(), "followed");
        let Entry { to, spot, frame } = entry;
        // A later stage that carries one way gets frames only from the stage before it, in order. Nothing comes between
        // the pieces of a run.
        let (stage, known) = match spot {
            Spot::CHAIN => (self.chains.first(to), known),
            Spot(stage) => (Some(stage), Time::NEVER),
        };
        if frame.segments() == 1 {
            return self.hand(now, port, to, stage, frame);
        }
        let before = stage.map_or(known, |stage| self.chains.alone_until(stage, now, known));
        let count = cut(frame.due_before(now, before));
        let later = now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        self.rest = tail.map(|frame| (later, Entry { to, spot, frame }));
        self.hand(now, port, to, stage, head);
    }

    /// Passes a single datagram of `octets` octets that enters at `now` through `port`. Its owner keeps the contents.
    ///
    /// Returns the datagram's fate if the chain has at most one stage and that stage [knows](farcast_core::Stage::pass)
    /// the fate; there is nothing to follow then. Returns `None` otherwise: nothing has happened, and the datagram must
    /// [enter](Self::enter) as others do.
    #[inline]
    pub fn pass(&mut self, now: Time, port: Port, to: End, octets: u64) -> Option<Fate> {
        let Some(stage) = self.chains.first(to) else { return Some(Fate::Leaves(now)) };
        if self.chains.next(stage, to).is_some() {
            return None;
        }
        self.chains.stage(stage).pass(now, port, octets)
    }

    /// Hands a frame to a stage, or straight through a chain that has none.
    #[inline]
    fn hand(&mut self, now: Time, port: Port, to: End, stage: Option<u32>, frame: Frame<M>) {
        match stage {
            None => self.through = Some((now, to, frame)),
            Some(stage) => {
                self.chains.stage(stage).handle(now, port, frame);
                self.driven = Some(stage);
            }
        }
    }

    /// Wakes a stage that was to be woken at `now`; does nothing if its time has changed since.
    pub fn wake(&mut self, now: Time, stage: u32) {
        if self.chains.take_wake(stage, now) {
            self.chains.stage(stage).handle_timeout(now);
            self.driven = Some(stage);
        }
    }

    /// Changes a setting of a stage at `now`, for frames that enter the stage at `port`.
    ///
    /// # Errors
    /// [`NotSettable`], and then nothing changes.
    pub fn set(&mut self, now: Time, stage: u32, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.driven = Some(stage);
        self.chains.stage(stage).set(now, port, setting)
    }
}

impl<M: Message> Chains<M> {
    /// Returns the time until which no other frame can change the fate of a frame that enters the stage at `now`. The
    /// stage before it lets nothing out until `known`. A stage that carries both ways also takes frames of the other
    /// direction, which nobody knows ahead.
    fn alone_until(&self, number: u32, now: Time, known: Time) -> Time {
        if self.stages[number as usize].both { now + Span::from_nanos(1) } else { known }
    }

    fn stage(&mut self, number: u32) -> &mut super::BoxedStage<M> {
        &mut self.stages[number as usize].stage
    }

    /// Returns the first stage of the chain to `to`.
    fn first(&self, to: End) -> Option<u32> {
        if to == End::Terminal { self.forward.first() } else { self.back.first() }.copied()
    }

    /// Returns the stage behind `number` in the chain to `to`.
    fn next(&self, number: u32, to: End) -> Option<u32> {
        self.stages[number as usize].next[to.way()]
    }

    /// Returns `true` if the stage is due at `now`, and clears its wake-up time then.
    fn take_wake(&mut self, number: u32, now: Time) -> bool {
        let wake = &mut self.stages[number as usize].wake;
        let due = *wake == now;
        if due {
            *wake = Time::NEVER;
        }
        due
    }

    /// Returns the time at which the stage is to be woken; `None` if that has not changed or there is none.
    fn new_wake(&mut self, number: u32) -> Option<Time> {
        let place = &mut self.stages[number as usize];
        let due = place.stage.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        (due != core::mem::replace(&mut place.wake, due) && due != Time::NEVER).then_some(due)
    }
}

#[cfg(test)]
mod tests;
