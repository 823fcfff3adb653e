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
//! Each point that the study leaves open is a setting; its default is the value that explains the study's results best.

mod error;
mod forward;
mod return_link;
#[cfg(test)]
mod tests;

use farcast_core::{BitRate, Span};

pub use error::BganError;
pub use forward::{Forward, ForwardConfig, ForwardCounters, ForwardLosses, LossUnit, Packing};
pub use return_link::{Access, RequestFor, Return, ReturnConfig, ReturnCounters};

/// Returns the bit rate of `octets` in each `frame`, rounded down; `None` below 1 bit/s.
fn rate_of(octets: u64, frame: Span) -> Option<BitRate> {
    let bits = u128::from(octets) * 8 * 1_000_000_000;
    let rate = bits.checked_div(frame.as_nanos().into())?;
    BitRate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
}
