//! Driving chains: what enters a stage, where what leaves it goes, and when stages are woken.
//!
//! A [`Driver`] owns the stages and no queue: after each call its [`Owner`] [follows](follow) it, keeps what is to
//! happen later among its other events, and hands it back at that time. So simulated and emulated packets pass the same
//! stages by the same rules, whatever else happens between them.

use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{End, Fate, Frame, NotSettable, Output, Port, Setting};
use farcast_core::{Span, Time};

use super::Chains;

/// A frame that is about to enter a chain, or a stage behind the first. Its owner keeps it until then.
#[derive(Clone, Debug)]
pub struct Entry<M> {
    to: End,
    spot: Spot,
    frame: Frame<M>,
}

/// The number of a stage, or of none in the same four octets: queues hold many entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spot(u32);

impl Spot {
    /// The first stage of the chain, if there is one; nobody knows ahead what else enters there.
    const CHAIN: Self = Self(u32::MAX);
}

impl<M> Entry<M> {
    /// What leaves the other end and enters the chain that leads to this one.
    pub const fn new(to: End, frame: Frame<M>) -> Self {
        Self { to, spot: Spot::CHAIN, frame }
    }

    /// The end that it is on its way to.
    pub const fn to(&self) -> End {
        self.to
    }

    /// What enters.
    pub const fn message(&self) -> &M {
        &self.frame.message
    }

    /// What was to enter.
    pub fn into_message(self) -> M {
        self.frame.message
    }
}

/// Who keeps what is to happen in chains.
pub trait Owner<M: Message> {
    /// The chains.
    fn driver(&mut self) -> &mut Driver<M>;

    /// This [enters](Driver::enter) at `at`: what has left a stage the next one, or the rest of a run where its head
    /// has.
    fn keep(&mut self, at: Time, entry: Entry<M>);

    /// A frame leaves the last stage of the chain that leads to `to`, its first datagram at `at`.
    fn left(&mut self, at: Time, to: End, frame: Frame<M>);

    /// Everything that `stage` has let out so far has been told; it is to be [woken](Driver::wake) at `wake`, if that
    /// has changed.
    fn drained(&mut self, stage: u32, wake: Option<Time>);
}

/// Tells the owner of chains what follows from the last call of their [`Driver`], in the order in which it is to be
/// kept. Comes before the next call.
#[inline]
pub fn follow<M: Message>(owner: &mut impl Owner<M>) {
    let driver = owner.driver();
    let stage = driver.driven.take();
    // Looked at before it is taken: there is seldom any, and a frame is much to move.
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
    /// The rest of the run whose head was handed over last, and when it follows.
    rest: Option<(Time, Entry<M>)>,
    /// The stage that may have something to let out.
    driven: Option<u32>,
    /// What passes a chain without stages.
    through: Option<(Time, End, Frame<M>)>,
}

impl<M: Message> Driver<M> {
    /// Drives `chains`, in which nothing is yet.
    pub const fn new(chains: Chains<M>) -> Self {
        Self { chains, rest: None, driven: None, through: None }
    }

    /// The stages, to look at.
    pub const fn chains(&self) -> &Chains<M> {
        &self.chains
    }

    /// Whether the first stage on the way to `to` would take a packet of so many octets at `now`; where there is none,
    /// it passes.
    pub fn has_room(&mut self, now: Time, port: Port, to: End, octets: u64) -> bool {
        self.chains.first(to).is_none_or(|stage| self.chains.stage(stage).has_room(now, port, octets))
    }

    /// A frame enters at `now` through `port`: the hub's on the way to terminals, that of the terminal which it comes
    /// from on the way to the hub.
    ///
    /// Of a run as much is handed over as `cut` chooses, of at most so many datagrams as come before anything else can
    /// enter; the rest follows. What else enters from outside the owner alone knows: nothing does before `known`.
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
        // A stage behind the first that carries one way hears only the one before it, in order: nothing comes between
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

    /// A single datagram of so many octets enters at `now` through `port`, whose contents its owner keeps: what becomes
    /// of it, where the chain has no more than one stage and that stage [knows](farcast_core::Stage::pass). There is
    /// nothing to follow then. Otherwise nothing has happened, and it [enters](Self::enter) as all else does.
    #[inline]
    pub fn pass(&mut self, now: Time, port: Port, to: End, octets: u64) -> Option<Fate> {
        let Some(stage) = self.chains.first(to) else { return Some(Fate::Leaves(now)) };
        if self.chains.next(stage, to).is_some() {
            return None;
        }
        self.chains.stage(stage).pass(now, port, octets)
    }

    /// Hands a frame to a stage, or past all where there is none.
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

    /// A stage was to be woken at `now`; nothing happens if that has changed since.
    pub fn wake(&mut self, now: Time, stage: u32) {
        if self.chains.take_wake(stage, now) {
            self.chains.stage(stage).handle_timeout(now);
            self.driven = Some(stage);
        }
    }

    /// Changes a setting of a stage at `now`, for what enters it at `port`.
    ///
    /// # Errors
    /// [`NotSettable`], and then nothing changes.
    pub fn set(&mut self, now: Time, stage: u32, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.driven = Some(stage);
        self.chains.stage(stage).set(now, port, setting)
    }
}

impl<M: Message> Chains<M> {
    /// Before when nothing else that enters a stage may change what becomes of what enters it at `now`, if the stage
    /// before it says nothing until `known`. What the other direction brings to one that carries both ways nobody knows
    /// ahead.
    fn alone_until(&self, number: u32, now: Time, known: Time) -> Time {
        if self.stages[number as usize].both { now + Span::from_nanos(1) } else { known }
    }

    fn stage(&mut self, number: u32) -> &mut super::BoxedStage<M> {
        &mut self.stages[number as usize].stage
    }

    /// The first stage on the way to that end.
    fn first(&self, to: End) -> Option<u32> {
        if to == End::Terminal { self.forward.first() } else { self.back.first() }.copied()
    }

    /// The stage behind `number` on the way to that end.
    fn next(&self, number: u32, to: End) -> Option<u32> {
        self.stages[number as usize].next[to.way()]
    }

    /// Whether the stage is due; then it is not any more.
    fn take_wake(&mut self, number: u32, now: Time) -> bool {
        let wake = &mut self.stages[number as usize].wake;
        let due = *wake == now;
        if due {
            *wake = Time::NEVER;
        }
        due
    }

    /// When the stage is to be woken, if that has changed and is ever.
    fn new_wake(&mut self, number: u32) -> Option<Time> {
        let place = &mut self.stages[number as usize];
        let due = place.stage.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        (due != core::mem::replace(&mut place.wake, due) && due != Time::NEVER).then_some(due)
    }
}

#[cfg(test)]
mod tests;
