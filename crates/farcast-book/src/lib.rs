//! The book of farcast: what is generated of it, how it is built, and whether its links lead anywhere.
//!
//! | module | what |
//! |---|---|
//! | [`keys`] | the page of all keys of scenarios, from what the reader of scenarios asks for |
//! | [`links`] | whether links of the book and of the README lead anywhere |
//! | [`html`] | the book as HTML |
#![forbid(unsafe_code)]

pub mod html;
pub mod keys;
pub mod links;

use std::path::{Path, PathBuf};

/// The root of the repository in which this crate was built.
pub fn repository() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default()
}
