//! The studies themselves, each in a module of its own.

#[cfg(feature = "emulator")]
mod agreement;
mod efficiency;
mod ftp_emulated;
mod ftp_umts;
mod mdp_ftp;
mod mftp_bgan;
mod pgm_satellite;
mod tcp_mlppp;
mod tcp_reference;

use crate::study::{Options, Results, Study, StudyError};

/// Every study that is known.
pub(crate) const STUDIES: &[Study] = &[
    mftp_bgan::STUDY,
    mdp_ftp::STUDY,
    ftp_umts::STUDY,
    tcp_mlppp::STUDY,
    pgm_satellite::STUDY,
    tcp_reference::STUDY,
    efficiency::STUDY,
    #[cfg(feature = "emulator")]
    agreement::STUDY,
    ftp_emulated::STUDY,
];

/// The columns of a published study.
const PUBLISHED: [&str; 2] = ["published", "farcast"];

/// What is drawn of a study's rows: of each plot the name of its file and its SVG.
pub(crate) fn plots(results: &Results) -> Vec<(String, String)> {
    if results.name == pgm_satellite::STUDY.name {
        pgm_satellite::plots::of(&results.rows)
    } else {
        Vec::new()
    }
}

/// Of a machine that simulates nothing is needed.
#[expect(clippy::unnecessary_wraps, reason = "others need something")]
fn nothing(_: &Options<'_>) -> Result<(), StudyError> {
    Ok(())
}
