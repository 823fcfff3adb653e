//! The command line of `farcast receive`.

use clap::Args;
use farcast_transfer::receive::ReceiveJob;

use super::{OutputArgs, PageArgs};

#[derive(Args, Debug)]
pub(crate) struct ReceiveArgs {
    #[command(flatten)]
    pub(crate) job: ReceiveJob,
    /// Run this shell command when a product is complete. Its environment has FARCAST_DIR, FARCAST_PRODUCT and
    /// FARCAST_SENDER.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_complete: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
