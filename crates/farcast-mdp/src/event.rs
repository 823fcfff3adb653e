//! Events that the engines report.

use core::convert::Infallible;

use farcast_delivery::nack;

/// Event of a sender.
pub type SenderEvent = nack::SenderEvent<ObjectBegun>;

/// Event of a receiver.
pub type ReceiverEvent = nack::ReceiverEvent<Infallible>;

/// Beginning of an object, given by its number from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectBegun(pub u32);
