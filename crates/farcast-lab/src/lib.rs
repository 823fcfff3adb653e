//! The laboratory of farcast: work with scenarios for the command line and other programs.
//!
//! | module | task |
//! |---|---|
//! | [`shipped`] | the scenarios and links that ship inside the program, and documents in files |
//! | [`traffic`] | turns a link into a scenario, by adding what is sent over it |
//! | [`study`], [`studies`] | repeats published studies and sets their numbers beside ours: rows, rules, tables, files |
//! | [`replications`] | runs a scenario's replications, within memory and with progress reports |
//! | [`vary`] | varied settings and their values |
//! | [`points`] | runs the replications of many points on all cores |
//! | [`tune`] | finds the best settings, and how sure that is |
//! | [`compare`], [`table`] | compare results in files |
//! | [`report`] | pages of all these results |
//! | [`figures`] | results of replications, as a table of numbers |
//! | [`sweep`] | runs every combination of some settings, resumable, with files |
//!
//! Nothing is printed and no argument is parsed here. A callback receives reports of progress ([`Progress`]), and the
//! caller ends work by a flag.
//!
//! The feature `emulator` adds the study that compares simulation with real time in this process. It brings in the
//! emulator and the network driver.
#![forbid(unsafe_code)]

pub mod compare;
pub mod figures;
pub mod points;
mod progress;
pub mod replications;
pub mod report;
pub mod shipped;
pub mod studies;
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
