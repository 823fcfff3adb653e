//! The options of `farcast send --one-way`.

use clap::Args;
use farcast_core::Span;

/// For receivers that cannot answer.
#[derive(Args, Debug)]
#[command(next_help_heading = "One way")]
pub(crate) struct OneWayArgs {
    /// Send to receivers that cannot answer: symbols of a large code, of which any that are about as large as the files
    /// do. Nobody can tell who has received them, and the exit code is 4.
    #[arg(long, conflicts_with_all = ["receivers", "wait_for", "start_on_enter", "announce", "plan", "predict"])]
    pub(crate) one_way: bool,
    /// With --one-way: go on for so long.
    #[arg(long = "for", value_name = "TIME", requires = "one_way", conflicts_with = "repeat")]
    pub(crate) duration: Option<Span>,
    /// With --one-way: go round so often; each time other symbols leave, until all of the code have [default: 1].
    #[arg(long, value_name = "N", requires = "one_way", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,
    /// With --one-way: what a round sends more than the files have, in per cent [default: 10].
    #[arg(long, value_name = "PERCENT", requires = "one_way", value_parser = clap::value_parser!(u32).range(0..=900))]
    pub(crate) overhead: Option<u32>,
}
