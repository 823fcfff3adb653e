//! Preparation and reception of files and directories as one product.
//!
//! A sender makes an [`Outgoing`] of some paths and answers its protocol engine's wishes for segments with
//! [`Outgoing::read_segments`]. A receiver makes an [`Incoming`] of a directory and hands each segment that arrives, in
//! any order, to [`Incoming::store`]. Neither knows a protocol, a socket or a clock.
//!
//! # On the wire
//!
//! A product is a stream of bytes that is cut into segments of equal length (the last may be shorter):
//!
//! | bytes | what |
//! |---|---|
//! | 4 | magic "FCM1" |
//! | 4 | length of the manifest, big-endian, at most 64 MiB |
//! | n | the [manifest]: path, mode, time, size and BLAKE3 digest of every file |
//! | rest | the content of all files, or what it was [compressed](compression) to, in the order of the manifest, back to back |
//!
//! The first three rows are the *head*; its BLAKE3 digest is the [`ProductId`]. The manifest holds the digests of all
//! files and of the parts of large ones. A receiver that knows the id can therefore check every byte, and damage never
//! reaches a final name: a damaged part is discarded and received again.
//!
//! # On disk
//!
//! | below the receiving directory | what |
//! |---|---|
//! | `.farcast/<id>/lock` | locked while a process receives; how many bytes and files the reception takes at most, two u64 |
//! | `.farcast/<id>/spool` | all bytes until the head is complete, then the head |
//! | `.farcast/<id>/journal` | what a later run may rely on, see [`journal`] |
//! | `.farcast/<id>/journal.new` | a journal that is being written |
//! | `.farcast/<id>/made` | the directories that were made for it |
//! | `<path>/.<name>.<8 digits of id>.farcast-part` | a file that is not complete; of a compressed one what came of it, until the product is complete |
//! | `<path>/.<name>.<8 digits of id>-unpacked.farcast-part` | a compressed file that is being decompressed |
//! | `<path>/<name>` | a file whose digest is right |
//!
//! Nothing is written for a product before its first segment is stored. A directory is made when something goes into it
//! or when the product is complete. A [`Quota`] limits the space that incomplete products take.
//!
//! An object from a sender other than farcast has no manifest ([`Incoming::open_plain`]). Its `<id>` is a digest of the
//! properties that tell it from other objects, and its spool file gets the final name.
//!
//! If the name of a partial file would be too long, it is cut, and the number of the file follows the digits of the id.
//! Nothing outside the receiving directory can be reached: the kernel resolves paths below a descriptor of the
//! directory, without following symbolic links. Anything but regular files and directories is refused.
//!
//! # Example
//!
//! ```
//! use std::io::IoSliceMut;
//! use farcast_files::{Incoming, Options, Outgoing};
//!
//! let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(from.path().join("greeting"), b"hello")?;
//!
//! let mut outgoing = Outgoing::scan(&[from.path().join("greeting")], |_progress| {})?;
//! let mut incoming = Incoming::open(to.path(), outgoing.id(), outgoing.size(), 32, Options::default())?;
//! let mut slot = [0; 32];
//! for segment in 0..outgoing.segment_count(32).unwrap_or(0) {
//!     let len = outgoing.read_segments(u64::from(segment) * 32, &mut [IoSliceMut::new(&mut slot)])?;
//!     incoming.store(segment, &[&slot[..len as usize]])?;
//! }
//! assert!(incoming.is_complete());
//! incoming.finish()?;
//! assert_eq!(std::fs::read(to.path().join("greeting"))?, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod beneath;
pub mod chunks;
pub mod compression;
mod delivered;
mod descriptors;
mod error;
#[cfg(test)]
mod faults;
mod id;
mod incoming;
pub mod journal;
mod layout;
pub mod manifest;
mod name;
pub mod names;
mod nicety;
mod outgoing;
pub mod partials;
mod parts;
mod process;
mod quota;
mod scratch;
mod system;
mod transfer;
mod tree;

pub use delivered::Delivered;
pub use descriptors::capacity;
pub use error::{SourceError, StoreError, UnsafeReason};
pub use id::ProductId;
pub use incoming::{
    Checkpoint, Coding, Durability, Happening, Incoming, Naming, Options, Overwrite, ParitySymbol,
    PlainObject, Vouched,
};
pub use manifest::{Compressed, Entry, EntryKind, Manifest, ManifestError};
pub use name::{safe_path, shown_name};
pub use nicety::{Nicety, Refusal, Refusals};
pub use outgoing::{Change, ChangedFile, Outgoing, ScanProgress, Scanning, SkipReason, Skipped};
pub use parts::Grain;
pub use process::{is_running, this_process};
pub use quota::{Quota, Usage};
pub use scratch::nameless;
