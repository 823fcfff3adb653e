//! Descriptions in TOML of what is simulated or emulated: documents, and the tables that simulator and emulator
//! share.
//!
//! | module | what it reads |
//! |---|---|
//! | [`document`] | any document, with errors that say where they are; it knows no schema |
//! | [`links`] | `[link]`: the stages of the links, and the losses on them |
//! | [`programs`] | `[[programs]]`: what the hosts of an emulation run |
//! | [`receivers`] | `receivers` or `[[groups]]` |
//!
//! [`streams`] names the random streams of both.
#![forbid(unsafe_code)]

pub mod document;
pub mod links;
pub mod programs;
pub mod receivers;
pub mod streams;

pub use document::{Document, DocumentError, Origin, Reader};
pub use links::Links;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
