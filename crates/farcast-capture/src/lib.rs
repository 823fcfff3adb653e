//! What passed a link, packet by packet: captures and logs.
//!
//! | module | what it does |
//! |---|---|
//! | [`packets`] | a line for each packet, with its times, length and fate, as CSV or Parquet |
//! | [`pcapng`] | the packets themselves, for protocol analysers |
//! | [`recorder`] | writes both from a thread of its own, so that a real-time thread never waits for a file |
//! | [`history`] | what passed over time, in bins: for plots |
//! | [`output`] | files that take their names only once they are complete |
//! | [`lateness`] | how late a real-time run was, as a histogram |
//!
//! This crate knows no engine and no emulator: whoever carries packets tells it of them.
#![forbid(unsafe_code)]

pub mod history;
pub mod lateness;
pub mod output;
pub mod packets;
pub mod pcapng;
pub mod recorder;
