//! `--report` of `send` and `receive`: the record of a transfer for a page, and the page's file.
//!
//! [`farcast_report::transfer`] decides what the page shows, and how much of the record it keeps.

mod receiving;
mod sending;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_capture::output::{Output as _, StagedFile};
use farcast_report::page::Page;

pub(crate) use receiving::Receiving;
pub(crate) use sending::{End, Sending};

use crate::args::{OutputArgs, PageArgs};
use crate::{Failure, outputs, stdio};

/// Checks that the page and the log can be written, and that they differ from the other `files` of the command line. A
/// user should learn of an error before the transfer begins.
pub(crate) fn check(
    output: &OutputArgs,
    page: &PageArgs,
    files: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    let Some(path) = &page.report else { return Ok(()) };
    outputs::distinct(&[files, &[("--log", output.log.as_deref()), ("--report", Some(path))]].concat())?;
    outputs::files(&[("--report", Some(path))])?;
    // The staged file has no name yet, and never gets one.
    match StagedFile::create(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("cannot write the page \"{}\": {error}", path.display()))),
    }
}

/// File of a page. It is written as a whole or not at all.
#[derive(Clone, Debug)]
struct PageFile(PathBuf);

impl PageFile {
    /// Writes the page. Returns `false` after an error, which it reports.
    fn write(&self, page: &Page) -> bool {
        let write = || -> io::Result<()> {
            let mut file = Box::new(StagedFile::create(&self.0)?);
            file.write_all(page.html().as_bytes())?;
            file.commit()
        };
        let written = write();
        if let Err(error) = &written {
            stdio::lose(&format!("cannot write the page \"{}\": {error}", self.0.display()));
        }
        written.is_ok()
    }
}

/// Returns the date and time, for a later reader of the page.
#[expect(clippy::disallowed_methods, reason = "a page says when, and the command line is no engine")]
fn now() -> String {
    moment(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Returns the date and time in UTC that is this number of seconds after the beginning of 1970.
fn moment(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last day of a year. 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month < 3);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Returns the text with one full stop at its end.
fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(moment(seconds), expected);
        }
    }
}
