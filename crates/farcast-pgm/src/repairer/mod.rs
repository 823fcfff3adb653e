//! A designated local repairer (RFC 3208 §9.5): an element that receives sessions itself, and repairs what it has.
//!
//! On the tree it is an element with a store: NAKs come to it as its address is in the SPMs that it forwards, and what it
//! cannot serve goes up as from any element. Beside the tree it answers a POLL for repairers, and its parent asks it.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | settings |
//! | `store.rs` | what is kept, and which repairs wait |
//! | `serving.rs` | what an element with a store does besides |

mod config;
mod serving;
mod store;

pub use config::{Asks, StoreConfig};
pub(crate) use store::{Served, Store, Waiting, single};
