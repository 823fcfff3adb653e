//! Pages, plots and tables for people.
//!
//! All input is plain data: this crate knows no engine, no simulator and no emulator.
//!
//! | module | content |
//! |---|---|
//! | [`timeline`] | a replication of a simulated transfer: sending, waiting and requests for repair |
//! | [`page`] | pages with figures and tables, for any command |
//! | [`plot`] | curves of numbers, with their intervals |
//! | [`emulation`] | a run of an emulated link: throughput, delay and losses of both directions |
//! | [`text`] | untrusted text, made safe to show |
//! | [`transfer`] | a real transfer, as its sender or a receiver saw it |
#![forbid(unsafe_code)]

pub mod emulation;
pub mod page;
pub mod plot;
mod scale;
mod svg;
#[cfg(test)]
mod tests;
pub mod text;
pub mod timeline;
pub mod transfer;
mod words;
