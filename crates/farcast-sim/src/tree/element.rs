//! Interface of a protocol to trees: its elements, and the names of its packets.

use std::convert::Infallible;
use std::marker::PhantomData;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, RejectCounts, Transmit};
use farcast_delivery::{Delivery as _, ElementEngine, ElementRequest, Figure, Protocol, Purpose};

/// Protocol that trees can carry.
pub trait OnTree: Protocol {
    /// Engine type of the protocol's elements; [`NoElement`] for a protocol without elements.
    type Element: ElementEngine<Message = Self::Message>;

    /// Names of the kinds of packets that edges count.
    const KINDS: &'static [&'static str] = &COMMON_KINDS;

    /// Returns the index of a message's kind in [`KINDS`](Self::KINDS).
    fn kind(message: &Self::Message) -> usize {
        kind_of(message.purpose())
    }
}

/// Kinds of packets by their [`Purpose`]. Content that is sent for the first time is `data`, repeated content `repair`.
pub const COMMON_KINDS: [&str; 7] =
    ["announcement", "data", "repair", "query", "nak", "confirmation", "other"];

/// Returns the index of a purpose in [`COMMON_KINDS`].
pub const fn kind_of(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Announcement => 0,
        Purpose::Content { round: 0 | 1 } => 1,
        Purpose::Content { .. } => 2,
        Purpose::Query => 3,
        Purpose::Nak { .. } => 4,
        Purpose::Confirmation => 5,
        Purpose::Other => 6,
    }
}

/// Element type of a protocol that has no elements. There is no value of this type.
#[derive(Debug)]
pub struct NoElement<M>(Infallible, PhantomData<fn() -> M>);

impl<M: Message> Engine for NoElement<M> {
    type Message = M;
    type Event = ();

    fn handle(&mut self, _now: Time, _from: &Arrival, _message: &M) -> Result<(), Reject> {
        match self.0 {}
    }

    fn handle_timeout(&mut self, _now: Time) {
        match self.0 {}
    }

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<M>> {
        match self.0 {}
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        match self.0 {}
    }

    fn poll_event(&mut self) -> Option<()> {
        match self.0 {}
    }

    fn settled_until(&self) -> Time {
        match self.0 {}
    }
}

impl<M: Message> ElementEngine for NoElement<M> {
    fn request(_event: &()) -> Option<ElementRequest> {
        None
    }

    fn overhears(&self) -> bool {
        match self.0 {}
    }

    fn figures(&self) -> Vec<Figure> {
        match self.0 {}
    }

    fn rejects(&self) -> &RejectCounts {
        match self.0 {}
    }
}

/// Implements [`OnTree`] for protocols that have no elements.
macro_rules! without_elements {
    ($($protocol:ty),+ $(,)?) => {
        $(impl $crate::tree::OnTree for $protocol {
            type Element = $crate::tree::NoElement<<Self as farcast_delivery::Protocol>::Message>;
        })+
    };
}
pub(crate) use without_elements;
