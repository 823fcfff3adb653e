//! Arguments of `farcast partials`, and the quota that `farcast receive` shares.

use std::path::PathBuf;

use clap::Args;
use farcast_transfer::receive::options::QuotaOptions;

/// Arguments of `farcast partials`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub(crate) struct PartialsArgs {
    /// Directory of `receive --into`.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Remove the product whose identifier begins with this; may be given again.
    #[arg(long, value_name = "ID", conflicts_with_all = ["expired", "all"])]
    pub(crate) remove: Vec<String>,
    /// Remove the products that are older than --keep-partials, or whose list of files never came.
    #[arg(long, conflicts_with = "all")]
    pub(crate) expired: bool,
    /// Remove all products that no process is receiving.
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
