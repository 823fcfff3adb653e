//! MDP's engines, one file for each behaviour.

mod alone;
mod common;
mod completion;
mod laws;
mod rules;
