//! `--report` of `send` and `receive`: what they see, noted for a page, and the file that it goes into.
//!
//! What is drawn, and how much of it is kept, is [`farcast_report::transfer`]'s business.

mod options;
mod receiving;
mod sending;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use farcast_capture::output::{Output as _, StagedFile};
use farcast_report::page::Page;

pub(crate) use options::{Chosen, options};
pub(crate) use receiving::Receiving;
pub(crate) use sending::{End, Sending};

use crate::args::{OutputArgs, PageArgs};
use crate::{Failure, outputs, stdio};

/// Whether the page and the log can be written where they are asked for, next to other `files` that the command line
/// names: who waits for a transfer wants to know before.
pub(crate) fn check(
    output: &OutputArgs,
    page: &PageArgs,
    files: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    let Some(path) = &page.report else { return Ok(()) };
    outputs::distinct(&[files, &[("--log", output.log.as_deref()), ("--report", Some(path))]].concat())?;
    // It has no name yet, and never gets one.
    match StagedFile::create(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("cannot write the page \"{}\": {error}", path.display()))),
    }
}

/// The file of a page, which is there as a whole or not at all.
#[derive(Clone, Debug)]
struct PageFile(PathBuf);

impl PageFile {
    /// Writes it; where that cannot be done, says so.
    fn write(&self, page: &Page) {
        let write = || -> io::Result<()> {
            let mut file = Box::new(StagedFile::create(&self.0)?);
            file.write_all(page.html().as_bytes())?;
            file.commit()
        };
        if let Err(error) = write() {
            stdio::lose(&format!("cannot write the page \"{}\": {error}", self.0.display()));
        }
    }
}

/// A sentence, which ends.
fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}
