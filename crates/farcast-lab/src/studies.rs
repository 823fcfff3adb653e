//! The studies themselves, each in a module of its own.

#[cfg(feature = "emulator")]
mod agreement;
mod efficiency;
mod ftp_emulated;
mod ftp_umts;
mod mdp_ftp;
mod mftp_bgan;
mod pgm_reference;
mod tcp_mlppp;
mod tcp_reference;

use crate::study::{Options, Study, StudyError};

/// Every study that is known.
pub(crate) const STUDIES: &[Study] = &[
    mftp_bgan::STUDY,
    mdp_ftp::STUDY,
    ftp_umts::STUDY,
    tcp_mlppp::STUDY,
    tcp_reference::STUDY,
    pgm_reference::STUDY,
    efficiency::STUDY,
    #[cfg(feature = "emulator")]
    agreement::STUDY,
    ftp_emulated::STUDY,
];

/// The columns of a published study.
const PUBLISHED: [&str; 2] = ["published", "farcast"];

/// Of a machine that simulates nothing is needed.
#[expect(clippy::unnecessary_wraps, reason = "others need something")]
fn nothing(_: &Options<'_>) -> Result<(), StudyError> {
    Ok(())
}
