//! The book of farcast: its generated parts, its build, and a check of its links.
//!
//! | module | purpose |
//! |---|---|
//! | [`keys`] | the page of all keys of scenarios, from the questions of the scenario reader |
//! | [`links`] | check of the links in the book and in the README |
//! | [`html`] | the book as HTML |
#![forbid(unsafe_code)]

pub mod html;
pub mod keys;
pub mod links;

use std::path::{Path, PathBuf};

/// Returns the root of the repository in which this crate was built.
pub fn repository() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default()
}
