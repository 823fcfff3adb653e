//! What makes a protocol.

use crate::codec::Codec;
use crate::content::Delivery;
use crate::population::Population;
use crate::receiver::ReceiverEngine;
use crate::sender::SenderEngine;
use crate::words::Words;

/// What many receivers of `P` say as one.
pub type Merged<P> = <<P as Protocol>::Sender as SenderEngine>::Merged;

/// A protocol: a name for the types that belong together. It is never made.
pub trait Protocol: Sized + 'static {
    /// What it calls what every protocol has.
    const WORDS: Words = Words::COMMON;

    /// What its engines speak.
    type Message: Delivery;
    /// The engine that sends.
    type Sender: SenderEngine<Message = Self::Message>;
    /// The engine that receives.
    type Receiver: ReceiverEngine<Message = Self::Message>;
    /// Many receivers as one.
    type Population: Population<Message = Self::Message, Merged = Merged<Self>>;
    /// Its messages as bytes.
    type Codec: Codec<Message = Self::Message>;
}
