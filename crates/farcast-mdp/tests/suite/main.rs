//! MDP's engines, one file for each behaviour.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod absent;
mod alone;
mod anew;
mod bounds;
mod broken;
mod common;
mod completion;
mod hostile;
mod laws;
mod many;
mod naming;
mod resuming;
mod rules;
