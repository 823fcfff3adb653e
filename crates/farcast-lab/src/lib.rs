//! The laboratory of farcast: what the command line and other programs do with scenarios.
//!
//! | module | what it does |
//! |---|---|
//! | [`shipped`] | the scenarios and links that ship inside the program, and documents in files |
//! | [`traffic`] | makes a scenario of a link alone, by saying what is sent over it |
//! | [`study`] | published studies again, their numbers beside ours: rows, rules, tables, files |
//! | [`replications`] | runs a scenario's replications, within memory and for somebody who waits |
//! | [`vary`] | which settings are varied, and over which values |
//! | [`points`] | runs the replications of many points on all cores |
//! | [`tune`] | the best settings, and how sure that is |
//! | [`compare`], [`table`] | what differs between results in files |
//! | [`report`] | pages of all that |
//! | [`figures`] | what replications come to, as a table of numbers |
//! | [`sweep`] | every combination of some settings, resumable, with files |
//!
//! Nothing is printed and no argument is parsed here. Who waits is told by a callback how work stands ([`Progress`]),
//! and ends it by a flag.
//!
//! The feature `emulator` adds the study that sets simulated and real time side by side in this process, and with it
//! the emulator and the network driver.
#![forbid(unsafe_code)]

pub mod compare;
pub mod figures;
pub mod points;
mod progress;
pub mod replications;
pub mod report;
pub mod shipped;
mod studies;
pub mod study;
pub mod sweep;
pub mod table;
pub mod traffic;
pub mod tune;
mod unused;
pub mod vary;
mod world;

pub use progress::Progress;
pub use unused::unused;
pub use world::{Outcome, World};
