//! The command line of `farcast model`.

use std::str::FromStr;

use clap::{Args, Subcommand};
use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};

/// Arguments of `farcast model`.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    pub(crate) name: Name,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Name {
    /// A long TCP transfer, with timeouts (Padhye, Firoiu, Towsley and Kurose 2000).
    #[command(
        allow_negative_numbers = true,
        after_help = "Example: farcast model pftk --loss 0.001 --rtt '560 ms' --window '64 KiB'"
    )]
    Pftk(PftkArgs),
    /// A long TCP transfer, without timeouts: the square root law (Mathis, Semke, Mahdavi and Ott 1997).
    #[command(
        allow_negative_numbers = true,
        after_help = "Example: farcast model mathis --loss 0.001 --rtt '560 ms'"
    )]
    Mathis(MathisArgs),
    /// Time of a TCP transfer of any size, and its parts (Cardwell, Savage and Anderson 2000).
    #[command(
        allow_negative_numbers = true,
        after_help = "Example: farcast model cardwell --size '100 kB' --loss 0.001 --rtt '560 ms' --window '64 KiB'"
    )]
    Cardwell(CardwellArgs),
    /// A long TCP transfer over a multilink bundle whose calls drop (Zaghloul, Frost and Mohammad 2005).
    ///
    /// The defaults are the bundle of eight Iridium channels of that paper.
    #[command(allow_negative_numbers = true, after_help = "Example: farcast model mlppp --size '5754880 B'")]
    Mlppp(MlpppArgs),
    /// A long PGM session under PGMCC, as its acker sees it (draft-ietf-rmt-bb-pgmcc-03).
    #[command(
        allow_negative_numbers = true,
        after_help = "Example: farcast model pgmcc --loss 0.001 --rtt '530 ms' --mss '1000 B'"
    )]
    Pgmcc(PgmccArgs),
}

/// Options of the path that models share.
#[derive(Args, Debug)]
pub(crate) struct PathArgs {
    /// Probability that a packet begins a loss, as in 0.001 or "0.1 %"; less than 1.
    #[arg(long, value_name = "P")]
    pub(crate) loss: Probability,
    /// Mean round trip with all queueing, as in "560 ms".
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Span,
    /// Largest window: "34 packets", a size ("64 KiB"), or "none" if it never limits.
    #[arg(long, default_value = "none", value_name = "WINDOW")]
    pub(crate) window: WindowArg,
}

/// Options of TCP.
#[derive(Args, Debug)]
pub(crate) struct TcpArgs {
    /// The first retransmission timeout; at least the round trip [default: two round trips, at least 1 s].
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// Packets that an ACK acknowledges, 1 to 64; 2 with delayed ACKs.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) packets_per_ack: u32,
}

/// Options of packets and output.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Octets of data in a packet; headers are not counted.
    #[arg(long, default_value = "1460 B", value_name = "SIZE")]
    pub(crate) mss: Bytes,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PftkArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    #[command(flatten)]
    pub(crate) tcp: TcpArgs,
    /// Print the time of a file of this size.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Args, Debug)]
pub(crate) struct MathisArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Packets that an ACK acknowledges, 1 to 64; 2 with delayed ACKs.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) packets_per_ack: u32,
    /// Print the time of a file of this size.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CardwellArgs {
    /// Size of the file.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Bytes,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    #[command(flatten)]
    pub(crate) tcp: TcpArgs,
    /// The congestion window at the start in packets [default: 10, or the window if that is less].
    #[arg(long, value_name = "N")]
    pub(crate) initial_window: Option<u32>,
    /// Mean wait of a receiver before it acknowledges a first window that is too small to trigger an ACK.
    #[arg(long, default_value = "100 ms", value_name = "TIME")]
    pub(crate) delayed_ack: Span,
    /// The timeout of the first SYN.
    #[arg(long, default_value = "1 s", value_name = "TIME")]
    pub(crate) syn_timeout: Span,
    /// Probability that a packet of the other direction is lost in the handshake; less than 0.5.
    #[arg(long, default_value = "0", value_name = "P")]
    pub(crate) return_loss: Probability,
    /// Leave out the handshake.
    #[arg(long, conflicts_with_all = ["syn_timeout", "return_loss"])]
    pub(crate) no_handshake: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Args, Debug)]
pub(crate) struct MlpppArgs {
    /// Links in the bundle.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) links: u32,
    /// Mean time between call drops of one link.
    #[arg(long, default_value = "50 min", value_name = "TIME")]
    pub(crate) time_between_drops: Span,
    /// Probability that a packet begins a loss, not counting call drops, as in 0.0005 or "0.05 %"; less than 1.
    #[arg(long, default_value = "0.0005", value_name = "P")]
    pub(crate) loss: Probability,
    /// Mean round trip with all queueing.
    #[arg(long, default_value = "19 s", value_name = "TIME")]
    pub(crate) rtt: Span,
    /// First retransmission timeout, which each drop costs; at least the round trip.
    #[arg(long, default_value = "60 s", value_name = "TIME")]
    pub(crate) timeout: Span,
    /// Octets of data in a packet; headers are not counted.
    #[arg(long, default_value = "1448 B", value_name = "SIZE")]
    pub(crate) mss: Bytes,
    /// Largest window: "34 packets", a size ("47.9 KiB"; rounded up to whole packets), or "none".
    #[arg(long, default_value = "34 packets", value_name = "WINDOW")]
    pub(crate) window: WindowArg,
    /// Packets that an ACK acknowledges, 1 to 64; 2 with delayed ACKs.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) packets_per_ack: u32,
    /// Print the time of a file of this size.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PgmccArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Print the time of a file of this size.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Largest window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum WindowArg {
    /// It never limits.
    None,
    /// Packets.
    Packets(f64),
    /// Octets of data.
    Size(Bytes),
}

impl FromStr for WindowArg {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str =
            "it must be a number of packets (\"34 packets\"), a size (\"64 KiB\"), or \"none\"";
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            return number.trim().parse().map(Self::Packets).map_err(|_| FORMS);
        }
        text.parse().map(Self::Size).map_err(|_| FORMS)
    }
}
