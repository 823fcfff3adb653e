//! `farcast send` by MDP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use farcast_core::{Span, Time};
use farcast_files::Outgoing;
use farcast_mdp::settings::{Counts, Sent, Way};
use farcast_mdp::{Codec, Mdp, NodeId, Object, Sender, SenderConfig, SenderEvent, Settings};
use serde_json::{Value, json};

use super::delivery::{Delivery, Face, Receiver, Told, Verdict, deliver};
use super::named::{Named, figures, word};
use super::norm::{NO_RATE, named, octets, scan, set};
use super::turn::Turn;
use super::{await_network, burst, destination, product_name, socket_options};
use crate::args::{RateArg, SendArgs};
use crate::node;
use crate::output::Output;
use crate::progress::size;
use crate::{Exit, Failure};

/// How MDP behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "MDP")]
pub(crate) struct MdpArgs {
    /// How long after the last segment of a file the next one begins [default: 0 s].
    #[arg(long, value_name = "TIME")]
    pub(crate) gap: Option<Span>,
    /// What --rate counts [default: packet].
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) counts: Option<Counted>,
}

/// What a rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Counted {
    /// File content and parity alone.
    Payload,
    /// MDP's messages.
    Message,
    /// Whole packets.
    Packet,
}

/// Octets that leave in one burst, where it is not said.
const BURST: u64 = 16 << 10;

/// How long a transfer may take, where it is not said.
const TIME_LIMIT: Span = Span::from_secs(24 * 3600);

pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let settings = settings(args)?;
    let to = destination(args)?;
    let named = named(&args.group.receivers)?;
    let limit = args.protocol.time_limit.unwrap_or(TIME_LIMIT);
    let mut output = Output::new(&args.output)?;
    let mut outgoing = scan(args, &mut output)?;
    let stop = crate::interrupt::interrupted()?;
    await_network(args, (to, limit), &mut output, &stop)?;
    let (_lock, waited) = Turn::new(args, to).lock(&mut output, &stop)?;
    if waited {
        // What has changed meanwhile is sent as it is now.
        outgoing = scan(args, &mut output)?;
    }
    let name = product_name(args);
    let whom = match named.len() {
        0 => "whoever listens".to_owned(),
        n => format!("{n} named receivers"),
    };
    let what = size(octets(&outgoing));
    output.line(&format!("sending {name} ({what}) by MDP to {to}, for {whom}"));
    let files = outgoing.clone();
    let make = |source: SocketAddr| Sender::new(configuration(args, &settings, &files, &named, (source, to)));
    let delivery = Delivery {
        to,
        name,
        objects: outgoing,
        burst: burst(Some(settings.rate), args.protocol.burst.map_or(BURST, |burst| burst.0)),
        time_limit: limit,
    };
    let mut face = MdpFace { named: Named::new("mdp", &named) };
    deliver(args, delivery, (&Codec, &mut face), make, &stop, &mut output)
}

/// The settings that `args` ask for.
fn settings(args: &SendArgs) -> Result<Settings, Failure> {
    let (mdp, protocol) = (&args.mdp, &args.protocol);
    if protocol.plan.is_some() || protocol.predict.is_some() {
        return Err(Failure::usage(
            "--plan and --predict are not there for MDP: simulate a scenario instead",
        ));
    }
    let mut settings = match args.rate {
        Some(RateArg::Max) => {
            return Err(Failure::usage(
                "--rate max is MFTP's, where receivers set the pace: by MDP give a rate, as in --rate \"20 Mbit/s\"",
            ));
        }
        Some(RateArg::Rate(rate)) => Settings::new(rate),
        None => return Err(Failure::usage(NO_RATE)),
    };
    let symbols = |what: &str, number: u32| {
        u8::try_from(number).map_err(|_| Failure::usage(format!("--{what} is at most 254 by MDP")))
    };
    set(&mut settings.block_len, protocol.block_size.map(|block| symbols("block-size", block)).transpose()?);
    if let Some(farcast_mftp::settings::Parity::Symbols(parity)) = protocol.parity {
        settings.parity = symbols("parity", parity)?;
    }
    set(&mut settings.round_trip, protocol.rtt);
    set(&mut settings.gap, mdp.gap);
    let counts = |counted| match counted {
        Counted::Payload => Counts::Payload,
        Counted::Message => Counts::Message,
        Counted::Packet => Counts::Packet,
    };
    set(&mut settings.counts, mdp.counts.map(counts));
    Ok(settings)
}

/// What is sent from `source` to `to`.
fn configuration(
    args: &SendArgs,
    settings: &Settings,
    outgoing: &[Outgoing],
    named: &BTreeMap<NodeId, String>,
    (source, to): (SocketAddr, SocketAddr),
) -> SenderConfig {
    let object = |entry: &farcast_files::Entry| {
        let size = if let farcast_files::EntryKind::File { size, .. } = entry.kind { size } else { 0 };
        // One file may have the name that the user gave it.
        let alone = args.paths.len() == 1 && !entry.path.contains(&b'/');
        let name = args.name.as_ref().filter(|_| alone);
        Object { size, info: name.map_or_else(|| entry.path.clone(), |name| name.clone().into_bytes()) }
    };
    let sent = Sent {
        node: node::of_sender(source.ip()),
        source,
        group: to,
        objects: outgoing.iter().flat_map(|one| one.manifest().entries()).map(object).collect(),
        ackers: named.keys().copied().collect(),
    };
    let mtu = farcast_net::path_mtu(to, &socket_options(&args.socket)).ok().flatten();
    settings.sender(sent, Way { headers: if to.is_ipv6() { 48 } else { 28 }, mtu })
}

/// What is told of a transfer by MDP.
struct MdpFace {
    named: Named,
}

impl Face for MdpFace {
    type Protocol = Mdp;

    fn told(&mut self, now: Time, event: &SenderEvent) -> Option<Told> {
        let (kind, fields) = match *event {
            SenderEvent::Started { ackers } => ("started", json!({ "named_receivers": ackers })),
            SenderEvent::Round { round, segments } => {
                ("round", json!({ "round": round, "segments": segments }))
            }
            SenderEvent::Object(object) => ("object", json!({ "object": object })),
            SenderEvent::Acknowledged(node) => return Some(self.named.acknowledged(now, node)),
            SenderEvent::Lost(node) => return Some(self.named.lost(node)),
            SenderEvent::Delivered => ("delivered", json!({})),
            SenderEvent::Ended(outcome) => ("ended", json!({ "outcome": word(outcome) })),
        };
        Some(Told { line: None, kind, fields })
    }

    fn receivers(&self) -> Vec<Receiver> {
        self.named.receivers()
    }

    fn verdict(&self, end: &SenderEvent) -> Verdict {
        self.named.verdict(if let SenderEvent::Ended(outcome) = *end { Some(outcome) } else { None })
    }

    fn figures(&self, sender: &Sender) -> Value {
        figures(sender.sent_per_round(), sender.grtt().as_secs_f64(), sender.rejects())
    }
}
