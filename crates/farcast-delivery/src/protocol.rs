//! Set of types that make up a protocol.

use crate::codec::Codec;
use crate::content::Delivery;
use crate::population::Population;
use crate::receiver::ReceiverEngine;
use crate::sender::SenderEngine;
use crate::words::Words;

/// Merged messages of many receivers of `P`.
pub type Merged<P> = <<P as Protocol>::Sender as SenderEngine>::Merged;

/// Protocol: a name for the types that belong together. No value of it exists.
pub trait Protocol: Sized + 'static {
    /// Terms of the protocol for common things.
    const WORDS: Words = Words::COMMON;

    /// Message type of its engines.
    type Message: Delivery;
    /// Sender engine.
    type Sender: SenderEngine<Message = Self::Message>;
    /// Receiver engine.
    type Receiver: ReceiverEngine<Message = Self::Message>;
    /// Population: many receivers as one.
    type Population: Population<Message = Self::Message, Merged = Merged<Self>>;
    /// Encoding of its messages as bytes.
    type Codec: Codec<Message = Self::Message>;
}
