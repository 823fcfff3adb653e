//! The studies that farcast repeats, each in a module of its own.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use farcast_lab::studies;
//! use farcast_lab::study::{Effort, Options, StudyError};
//!
//! # fn main() -> Result<(), StudyError> {
//! let study = studies::named("mdp-ftp")?;
//! let stop = AtomicBool::new(false);
//! let options = Options { effort: Effort::Replications(2), ..Options::new(&stop) };
//! let rows = study.run(&options, &mut |_| {})?;
//! assert!(rows.iter().any(|row| row.item == "segments sent again" && row.row == "a file of 1 MB"));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "emulator")]
mod agreement;
mod efficiency;
mod ftp_emulated;
mod ftp_umts;
mod mdp_ftp;
mod mftp_bgan;
mod pgm_reference;
mod pgm_satellite;
mod tcp_mlppp;
mod tcp_reference;

use crate::study::{Options, Row, Study, StudyError, StudyPlot};

const STUDIES: &[Study] = &[
    mftp_bgan::STUDY,
    mdp_ftp::STUDY,
    ftp_umts::STUDY,
    tcp_mlppp::STUDY,
    pgm_satellite::STUDY,
    tcp_reference::STUDY,
    pgm_reference::STUDY,
    efficiency::STUDY,
    #[cfg(feature = "emulator")]
    agreement::STUDY,
    ftp_emulated::STUDY,
];

/// Headings of the columns of a published study.
const PUBLISHED: [&str; 2] = ["published", "farcast"];

/// Returns all studies, in the order in which they are run.
pub const fn all() -> &'static [Study] {
    STUDIES
}

/// Returns the study of this name.
///
/// # Errors
/// [`StudyError::Unknown`].
pub fn named(name: &str) -> Result<&'static Study, StudyError> {
    let known = || STUDIES.iter().map(|study| study.name).collect();
    let found = STUDIES.iter().find(|study| study.name == name);
    found.ok_or_else(|| StudyError::Unknown { name: name.to_owned(), known: known() })
}

/// Returns no plot: most studies are tables.
fn no_plots(_: &[Row]) -> Vec<StudyPlot> {
    Vec::new()
}

/// Returns success: a study that only simulates needs nothing of the machine.
#[expect(clippy::unnecessary_wraps, reason = "others need something")]
fn nothing(_: &Options<'_>) -> Result<(), StudyError> {
    Ok(())
}
