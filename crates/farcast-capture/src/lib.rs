//! Captures and logs of the packets that passed a link.
//!
//! | module | purpose |
//! |---|---|
//! | [`packets`] | log with a line for each packet: its times, length and fate, as CSV or Parquet |
//! | [`pcapng`] | the packets themselves, for protocol analysers |
//! | [`recorder`] | writes both from a thread of its own, so that a real-time thread never waits for a file |
//! | [`history`] | counts over time, in bins: for plots |
//! | [`output`] | files that take their names only once they are complete |
//! | [`lateness`] | lateness of a real-time run, as a histogram |
//!
//! This crate knows no engine and no emulator: the code that carries packets records them.
#![forbid(unsafe_code)]

pub mod history;
pub mod lateness;
pub mod output;
pub mod packets;
pub mod pcapng;
pub mod recorder;
