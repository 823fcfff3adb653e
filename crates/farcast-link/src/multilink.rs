//! Multilink PPP over links whose calls drop: a [bundle] as a stage.
//!
//! [`farcast_ppp::multilink`] has the protocol between the ends of a bundle: cutting packets, headers, reassembly.

pub mod bundle;
pub mod error;

pub use bundle::{
    CallCounters, CallDrop, Calls, Detection, LineCounters, LinkConfig, Multilink, MultilinkConfig,
    WayCounters,
};
pub use error::MultilinkError;
