//! The Inmarsat BGAN bearers: one forward to all terminals, one shared return by reservation.
//!
//! The model is the one of Thilakawardana, Acar, Hale and Tafazolli, "Impact of Status Retry Timer values on MFTP
//! performance over BGAN satellite multicast" (PIMRC 2007), called *the study* here. The air interface behind it is
//! ETSI TS 102 744 (Family SL) and, as its users see it, Cobham's `FleetBroadband` training manual TT-100-MSO-030207.
//!
//! - [`Forward`] carries packets from the hub in FEC blocks of a continuous bearer; [`ForwardLosses`] says which
//!   receivers lose which of them.
//! - [`Return`] carries packets to the hub: a terminal asks for slots by slotted ALOHA, is given them, and sends.
//!
//! What the study leaves open is a setting; the defaults are what explains its results best.

mod error;
mod forward;
#[cfg(test)]
mod probe;
mod return_link;

pub use error::BganError;
pub use forward::{Forward, ForwardConfig, ForwardCounters, ForwardLosses, LossUnit, Packing};
pub use return_link::{Access, RequestFor, Return, ReturnConfig, ReturnCounters};
