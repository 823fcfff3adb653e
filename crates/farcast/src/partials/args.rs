//! What `partials` is asked, and what `receive` is told of the same.

use std::path::PathBuf;

use clap::Args;
use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_files::Quota;

/// How much is kept of what is not complete.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Products that are not complete")]
pub(crate) struct QuotaArgs {
    /// What all of them may take on disk; the oldest makes room [default: 95 % of what is free].
    #[arg(long, value_name = "SIZE")]
    pub(crate) quota: Option<Bytes>,
    /// For how long one is kept after something of it last came.
    #[arg(long, default_value = "14 d", value_name = "TIME")]
    pub(crate) keep_partials: Span,
}

impl QuotaArgs {
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            octets: self.quota.map(|Bytes(octets)| octets),
            age: std::time::Duration::from_nanos(self.keep_partials.as_nanos()),
            ..Quota::default()
        }
    }
}

/// Which unfinished products are shown, and which removed.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub(crate) struct PartialsArgs {
    /// The directory that `receive --into` names.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Remove the product whose identifier begins so; may be given again.
    #[arg(long, value_name = "ID", conflicts_with_all = ["expired", "all"])]
    pub(crate) remove: Vec<String>,
    /// Remove those that are older than --keep-partials, or whose list of files never came.
    #[arg(long, conflicts_with = "all")]
    pub(crate) expired: bool,
    /// Remove all that no process is receiving.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only, and with --json the result.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) quota: QuotaArgs,
}
