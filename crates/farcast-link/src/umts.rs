//! A UMTS bearer: Radio Link Control in Acknowledged Mode over a dedicated channel (DCH) in each direction.
//!
//! Time on a channel is cut into transmission time intervals (TTI). In each, the transmitter hands over at most as many
//! RLC PDUs as the rate allows; they arrive together when the interval is over and the processing delay has passed.
//! Erasures take a whole interval or single PDUs. RLC repairs them by the rules of its settings.
//!
//! The hub is the network's side (UTRAN), so forward is the downlink; the terminal is the user's (UE).

mod bearer;
mod channel;
mod sdu;

pub use bearer::{Bearer, BearerConfig, BearerError, Counters};
pub use channel::{ChannelConfig, ChannelCounters, ChannelError, ErasureUnit, Erasures, Misfit};
