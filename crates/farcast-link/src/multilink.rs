//! Multilink PPP over links whose calls drop: a [bundle] as a stage.
//!
//! What the ends of a bundle send each other, and how packets are cut and put together, is in
//! [`farcast_ppp::multilink`].

pub mod bundle;
pub mod error;

pub use bundle::{
    CallCounters, CallDrop, Calls, Detection, LineCounters, LinkConfig, Multilink, MultilinkConfig,
    WayCounters,
};
pub use error::MultilinkError;
