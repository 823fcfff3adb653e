//! The command line of `farcast send`.

use std::path::PathBuf;

use clap::Args;
use farcast_transfer::send::SendJob;

use super::{OutputArgs, PageArgs};

#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) job: SendJob,
    /// Send nothing, and predict this transfer over LINK: a shipped link (see farcast emulate --list), or a TOML file
    /// with only a link.
    #[arg(help_heading = "Protocol", long, value_name = "LINK")]
    pub(crate) predict: Option<String>,
    /// Number of simulations for --predict.
    #[arg(help_heading = "Protocol", long, default_value_t = 100, value_name = "N", requires = "predict", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) replications: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Print at the end how many bytes were sent, by their purpose, and how many were left out.
    #[arg(long, conflicts_with_all = ["predict", "stream"])]
    pub(crate) stats: bool,
    /// Write at the end, also after a failure, which receivers are not known to have everything: a row for each, with
    /// its state, what it lacks, and how long it has not been heard.
    #[arg(help_heading = "Output", long, value_name = "FILE.csv", conflicts_with_all = ["predict", "stream"])]
    pub(crate) missing: Option<PathBuf>,
}
