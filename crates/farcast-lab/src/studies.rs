//! The studies themselves, each in a module of its own.

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

use crate::study::{Options, Results, Study, StudyError};

/// All studies.
pub(crate) const STUDIES: &[Study] = &[
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

/// Returns the plots of a study's rows, each with the name of its file and its SVG.
pub(crate) fn plots(results: &Results) -> Vec<(String, String)> {
    if results.name == pgm_satellite::STUDY.name {
        pgm_satellite::plots::of(&results.rows)
    } else {
        Vec::new()
    }
}

/// Returns success: a study that only simulates needs nothing of the machine.
#[expect(clippy::unnecessary_wraps, reason = "others need something")]
fn nothing(_: &Options<'_>) -> Result<(), StudyError> {
    Ok(())
}
