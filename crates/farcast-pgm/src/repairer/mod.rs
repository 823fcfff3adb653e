//! A designated local repairer (RFC 3208 §9.5): an element that receives sessions itself, and repairs what it has.
//!
//! On the tree it is an element with a store. NAKs come to it because the SPMs that it forwards bear its address. It
//! forwards those that it cannot serve, as any element does. Beside the tree it answers a POLL for repairers, and its
//! parent asks it.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | settings |
//! | `store.rs` | stored data, and repairs that wait |
//!
//! What an element with a store does is in [`element`](crate::element).

mod config;
mod store;

pub use config::{Asks, StoreConfig};
pub(crate) use store::{Served, Store, TpduId, Waiting, single};
