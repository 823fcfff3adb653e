//! The engines of PGM, each behaviour by itself, and the laws.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod absent;
mod anew;
mod between;
mod common;
mod congestion;
mod elements;
mod elements_parity;
mod files;
mod hostile;
mod laws;
mod live;
mod messages;
mod neighbours;
mod parity;
mod repair;
mod streams;
mod tree;
mod tshark;
mod withdrawn;
