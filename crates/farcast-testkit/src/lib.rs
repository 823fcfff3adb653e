//! draft
mod host;
pub mod laws;
mod link;
pub mod log;
mod network;

pub use host::{Handle, Host};
pub use link::Link;
pub use log::{Departure, Happening, Leg, Log};
pub use network::{Cut, Network, Setup, Wake};
