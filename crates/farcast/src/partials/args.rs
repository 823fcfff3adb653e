//! What `partials` is asked, and what `receive` is told of the same.

use std::path::PathBuf;

use clap::Args;
use farcast_transfer::receive::options::QuotaOptions;

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
    pub(crate) quota: QuotaOptions,
}
