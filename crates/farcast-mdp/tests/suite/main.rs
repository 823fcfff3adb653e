//! MDP's engines, one file for each behaviour.

mod common;
mod completion;
mod laws;
