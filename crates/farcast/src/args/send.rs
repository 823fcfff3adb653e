//! The command line of `farcast send`.

use clap::Args;
use farcast_transfer::send::SendJob;

use super::{OutputArgs, PageArgs};

#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) job: SendJob,
    /// Send nothing; say what this command would take over LINK: one that ships with farcast (see farcast emulate
    /// --list) or a file of TOML with a link alone.
    #[arg(help_heading = "Protocol", long, value_name = "LINK")]
    pub(crate) predict: Option<String>,
    /// How often --predict simulates it.
    #[arg(help_heading = "Protocol", long, default_value_t = 100, value_name = "N", requires = "predict", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) replications: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Say at the end what was sent and what was left out.
    #[arg(help_heading = "MFTP", long, conflicts_with = "predict")]
    pub(crate) stats: bool,
}
