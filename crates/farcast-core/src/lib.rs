//! The ground floor of farcast: time, units, runs, bitmaps, random streams and the engine contract.
//!
//! Everything here is `no_std` with `alloc`: a crate that cannot name a socket, a clock, a thread or a file cannot use
//! one. So the compiler checks the rule "engines do no I/O", on every build, for every crate with `#![no_std]`.
//!
//! Start with [`engine`], which holds the contract and a small complete engine.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bitmap;
pub mod engine;
pub mod losses;
pub mod payload;
pub mod queue;
pub mod random;
pub mod run;
pub mod setting;
pub mod stage;
pub mod time;
pub mod timers;
pub mod units;

pub use bitmap::Bitmap;
pub use engine::{Arrival, Deadline, Engine, Message, Transmit};
pub use losses::{Among, Losses};
pub use payload::{Payload, Piece};
pub use queue::EventQueue;
pub use run::Run;
pub use setting::{Setting, SettingSource};
pub use stage::Stage;
pub use time::{Span, Time};
pub use timers::Timers;
pub use units::{BitRate, Probability};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
