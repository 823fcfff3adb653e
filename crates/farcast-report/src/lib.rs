//! What people look at: pages and tables.
//!
//! What is drawn arrives as plain data: this crate knows no engine, no simulator and no emulator.
//!
//! | module | what it draws |
//! |---|---|
//! | [`timeline`] | a replication of a simulated transfer: who sent, waited and asked again |
//! | [`page`] | pages with figures and tables, for any command |
//! | [`plot`] | curves of numbers, with their intervals |
//! | [`emulation`] | a run of an emulated link: throughput, delay and losses of both ways |
//! | [`text`] | what strangers wrote, so that nothing in it is obeyed |
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
