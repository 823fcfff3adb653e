//! A host: an engine, and the owner that answers its events.

use core::any::Any;
use core::fmt::{self, Debug};
use core::marker::PhantomData;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, Transmit};
use farcast_core::{Span, Time};

/// Identifier of a host of a [`Network`](crate::Network), with the type of its engine.
pub struct Handle<E> {
    pub(crate) index: usize,
    engine: PhantomData<fn() -> E>,
}

impl<E> Handle<E> {
    pub(crate) fn new(index: usize) -> Self {
        Self { index, engine: PhantomData }
    }

    /// Returns the host's number, as in the log.
    pub fn index(self) -> usize {
        self.index
    }
}

impl<E> Clone for Handle<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Handle<E> {}

impl<E> Debug for Handle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.index)
    }
}

/// Closure that answers an engine's events with commands.
type EventOwner<E> = Box<dyn FnMut(&mut E, Time, <E as Engine>::Event)>;

/// An engine and its owner.
pub struct Host<E: Engine> {
    engine: E,
    owner: EventOwner<E>,
    /// Predicate of events whose pieces depend on the places where runs are cut; such events are not logged.
    depends_on_cuts: fn(&E::Event) -> bool,
}

impl<E: Engine> Host<E> {
    /// Creates a host. `owner` is called with each event, at the time of the change that caused it.
    pub fn new(engine: E, owner: impl FnMut(&mut E, Time, E::Event) + 'static) -> Self {
        Self { engine, owner: Box::new(owner), depends_on_cuts: |_| false }
    }

    /// Creates a host whose engine's events need no answer.
    pub fn alone(engine: E) -> Self {
        Self::new(engine, |_, _, _| ())
    }

    /// Excludes events from the log whose pieces depend on the places where runs are cut (such as "store these segments").
    #[must_use]
    pub fn without(self, depends_on_cuts: fn(&E::Event) -> bool) -> Self {
        Self { depends_on_cuts, ..self }
    }
}

/// Text of an event for the log: `None` if the event depends on cuts.
pub(crate) struct EventText(pub(crate) Option<String>);

/// A host without the type of its engine.
pub(crate) trait AnyHost<M> {
    fn handle(&mut self, now: Time, from: &Arrival, message: &M) -> Result<(), Reject>;
    fn handle_timeout(&mut self, now: Time);
    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<M>>;
    fn poll_timeout(&self) -> Option<Deadline>;
    fn settled_until(&self) -> Time;
    fn prefix(&self, message: &M) -> NonZeroU32;
    /// Takes one event, returns its text for the log if `record`, and lets the owner answer.
    fn take_event(&mut self, now: Time, record: bool) -> Option<EventText>;
    fn engine(&self) -> &dyn Any;
    fn engine_mut(&mut self) -> &mut dyn Any;
}

impl<E> AnyHost<E::Message> for Host<E>
where
    E: Engine + 'static,
    E::Event: Debug,
{
    fn handle(&mut self, now: Time, from: &Arrival, message: &E::Message) -> Result<(), Reject> {
        self.engine.handle(now, from, message)
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<E::Message>> {
        self.engine.poll_transmit(now, until)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.engine.poll_timeout()
    }

    fn settled_until(&self) -> Time {
        self.engine.settled_until()
    }

    fn prefix(&self, message: &E::Message) -> NonZeroU32 {
        self.engine.prefix(message)
    }

    fn take_event(&mut self, now: Time, record: bool) -> Option<EventText> {
        let event = self.engine.poll_event()?;
        let told = (record && !(self.depends_on_cuts)(&event)).then(|| format!("{event:?}"));
        (self.owner)(&mut self.engine, now, event);
        Some(EventText(told))
    }

    fn engine(&self) -> &dyn Any {
        &self.engine
    }

    fn engine_mut(&mut self) -> &mut dyn Any {
        &mut self.engine
    }
}

/// Returns the segments `from .. from + count` of `message`.
pub(crate) fn slice<M: Message>(message: &M, from: u32, count: u32) -> Option<M> {
    let rest = match NonZeroU32::new(from) {
        Some(from) => message.clone().split(from).1?,
        None => message.clone(),
    };
    Some(rest.split(NonZeroU32::new(count)?).0)
}

/// Returns the number of `segments`, `spacing` apart from `first` on, that come before `end`; at least one.
pub(crate) fn before(end: Time, first: Time, spacing: Span, segments: u32) -> u32 {
    let most = if spacing.is_zero() {
        if end > first { u64::MAX } else { 0 }
    } else {
        end.since(first).as_nanos().div_ceil(spacing.as_nanos())
    };
    u32::try_from(most).unwrap_or(u32::MAX).clamp(1, segments)
}
