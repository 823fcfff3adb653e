//! Headings of options that several protocols share, in the help of a command line.

/// Heading of options that NORM and MDP share.
pub const NORM_AND_MDP: &str = "NORM and MDP";
/// Heading of options that NORM, MDP and PGM share.
pub const NORM_MDP_AND_PGM: &str = "NORM and MDP and PGM";
/// Heading of options that NORM and PGM share.
pub const NORM_AND_PGM: &str = "NORM and PGM";
/// Heading of options that MFTP and NORM share.
pub const MFTP_AND_NORM: &str = "MFTP and NORM";
/// Heading of options that MFTP and PGM share.
pub const MFTP_AND_PGM: &str = "MFTP and PGM";
