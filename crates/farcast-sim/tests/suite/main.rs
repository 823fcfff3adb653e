//! Comparison of the simulator with itself in another form, and with closed forms.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod addressed;
mod advice;
mod agreement;
mod bearers;
mod closed_forms;
mod history;
mod law11;
mod mdp;
mod pgm;
mod queues;
mod scenarios;
mod sealed;
mod thousands;
mod trace;
mod traffic;
mod tree;
mod worlds;
