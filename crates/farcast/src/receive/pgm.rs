//! `farcast receive` by PGM.

use clap::Args;
use farcast_core::Span;
use farcast_pgm::{Codec, NodeId, Pgm, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome, settings};
use serde_json::Value;

use super::nack::own_node;
use super::{Face, Heard, Report, Told, own_address, plain, receive, seed_of};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure};

/// How PGM behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "PGM")]
pub(crate) struct PgmArgs {
    /// The round trip to the sender, at most: how long to wait until a request that was not answered is made again
    /// [default: 500 ms].
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    rtt: Option<Span>,
    /// Receive IP protocol 113, without UDP, which takes IPv4 and the right to open raw sockets; the sender does the same.
    #[arg(long)]
    pub(crate) raw: bool,
    /// With --stream, ask for repair at this UDP port of the source, as OpenPGM's sources want it
    /// (`PGM_UDP_ENCAP_UCAST_PORT`) [default: where the stream comes from].
    #[arg(long, value_name = "PORT", requires = "stream", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) unicast_port: Option<u16>,
}

fn round_trip(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("it must be more than nothing".into()) } else { Ok(time) }
}

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let config = configure(args, &heard)?;
    let seed = config.seed;
    receive(args, (&heard, true, seed), (&Codec { raw: args.pgm.raw }, PgmFace), |_| Receiver::new(config))
}

pub(super) fn configure(args: &ReceiveArgs, heard: &Heard) -> Result<ReceiverConfig, Failure> {
    let node = NodeId(own_node(args, heard)?.0);
    let base = settings::receiver(node, heard.from, args.pgm.rtt.unwrap_or(settings::ROUND_TRIP));
    Ok(ReceiverConfig {
        // PGMCC takes several receivers at one address for one.
        address: Some(own_address(args, heard.from)).filter(|own| !own.is_multicast()),
        port: args.pgm.raw.then(|| heard.from.port()),
        silent: args.nack.silent,
        expiry: args.patience,
        seed: seed_of(args.seed, node.0),
        ..base
    })
}

/// Messages about a reception by PGM.
struct PgmFace;

impl Face for PgmFace {
    type Protocol = Pgm;

    const SEVERAL: bool = true;

    fn told(&self, _event: &ReceiverEvent, _own: &str) -> Option<Told> {
        None
    }

    fn outcome(&self, report: &Report<Self>) -> String {
        use farcast_norm::ReceiverOutcome as Common;
        let end = match report.end {
            ReceiverEvent::Ended(_, ReceiverOutcome::Complete(at)) => Common::Complete(at),
            ReceiverEvent::Ended(_, ReceiverOutcome::Lost) => Common::Lost,
            _ => Common::Stopped,
        };
        plain::outcome(report, end)
    }

    fn figures(&self, report: &Report<Self>, _receiver: &Receiver) -> Value {
        plain::figures(report)
    }
}
