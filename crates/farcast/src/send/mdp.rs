//! `farcast send` by MDP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use farcast_core::{Span, Time};
use farcast_files::{Entry, Outgoing};
use farcast_lab::shipped;
use farcast_mdp::settings::{Counts, Sent, Way};
use farcast_mdp::{Codec, Mdp, NodeId, Object, Sender, SenderConfig, SenderEvent, Settings};
use farcast_mftp::settings::Parity;
use farcast_norm::settings::Parity as Ahead;
use farcast_sim::scenario::mdp as scenario;
use serde_json::{Value, json};

use super::delivery::{Delivery, Face, Receiver, Told, Verdict, deliver};
use super::nack::{NameRoom, announce, base, check_names, how_many, named, octets, said_of, scan, seal, set};
use super::named::{Named, figures, word};
use super::predict::{Predicted, predict, remedies};
use super::turn::Turn;
use super::{await_network, burst, datagram_to, destination, product_name, socket_options};
use crate::args::SendArgs;
use crate::output::Output;
use crate::sealing::{Sealing, signed_headers};
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
    /// Says of a file its name and nothing else, for receivers that are not farcast and take what stands behind the
    /// name for part of it: then nothing vouches for files, and what is stopped begins anew.
    #[arg(long)]
    pub(crate) names_alone: bool,
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

pub(super) fn run(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Exit, Failure> {
    let settings = settings(args, sealing)?;
    let to = destination(args)?;
    let named = named(args, sealing)?;
    let mut output = Output::new(&args.output)?;
    let mut outgoing = scan(args, &mut output)?;
    check_names(args, &outgoing, &room(args, (&settings, sealing), (&outgoing, &named), to))?;
    if let Some(link) = &args.protocol.predict {
        return predict_over(args, (to, &settings, sealing), (&outgoing, &named), link, &mut output);
    }
    let stop = crate::interrupt::interrupted()?;
    await_network(args, (to, settings.time_limit), &mut output, &stop)?;
    let (_lock, waited) = Turn::new(args, to).lock(&mut output, &stop)?;
    if waited {
        // Files that have changed meanwhile are sent as they are now.
        outgoing = scan(args, &mut output)?;
    }
    let name = product_name(args);
    announce(&mut output, &name, &outgoing, ("MDP", to, named.len()), (args, sealing));
    let files = outgoing.clone();
    let make = |source: SocketAddr| {
        let sent = sent(args, &files, (&named, sealing), (source, to));
        Sender::new(configuration(args, (&settings, sealing.is_some()), sent))
    };
    let delivery = Delivery {
        to,
        name,
        objects: outgoing,
        compressed: None,
        burst: burst(Some(settings.rate), settings.burst),
        time_limit: settings.time_limit,
        seal: seal(args, (to, settings.rate), sealing)?,
    };
    let mut face = MdpFace { named: Named::new(("mdp", sealing.is_some()), &named) };
    deliver(args, delivery, (&Codec, &mut face), make, &stop, &mut output)
}

/// Returns the settings that `args` ask for. Options override a plan, and a plan overrides defaults.
fn settings(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Settings, Failure> {
    let mut settings = base(args, "MDP", scenario::plan, Settings::new)?;
    let (mdp, nack, protocol) = (&args.mdp, &args.nack, &args.protocol);
    settings.segment_size = nack.segment_size.or(settings.segment_size);
    set(&mut settings.block_len, protocol.block_size.map(|block| symbols("block-size", block)).transpose()?);
    if let Some(Parity::Symbols(parity)) = protocol.parity {
        settings.parity = symbols("parity", parity)?;
    }
    if let Some(Ahead::Symbols(ahead)) = nack.parity_ahead {
        settings.auto_parity = symbols("parity-ahead", ahead.into())?;
    }
    set(&mut settings.receivers, nack.group_size);
    set(&mut settings.round_trip, protocol.rtt);
    set(&mut settings.unicast, nack.unicast());
    // Only the sender can open a sealed answer.
    settings.unicast |= sealing.is_some();
    set(&mut settings.robust, nack.robust);
    set(&mut settings.gap, mdp.gap);
    let counts = |counted| match counted {
        Counted::Payload => Counts::Payload,
        Counted::Message => Counts::Message,
        Counted::Packet => Counts::Packet,
    };
    set(&mut settings.counts, mdp.counts.map(counts));
    set(&mut settings.burst, protocol.burst.map(|burst| burst.0));
    set(&mut settings.time_limit, protocol.time_limit);
    Ok(settings)
}

/// Returns a number of symbols of a block, if it is at most 254.
fn symbols(what: &str, number: u32) -> Result<u8, Failure> {
    let fits = u8::try_from(number).ok().filter(|number| *number < u8::MAX);
    fits.ok_or_else(|| Failure::usage(format!("--{what} is at most 254 by MDP")))
}

/// Returns the room for the names of files.
fn room(
    args: &SendArgs,
    (settings, sealing): (&Settings, Option<&Sealing>),
    (outgoing, named): (&[Outgoing], &BTreeMap<NodeId, String>),
    to: SocketAddr,
) -> NameRoom {
    let sent = sent(args, outgoing, (named, sealing), (to, to));
    let segment = configuration(args, (settings, sealing.is_some()), sent).segment_size.into();
    NameRoom {
        by: "MDP",
        segment,
        beside: if args.mdp.names_alone { 0 } else { farcast_mdp::VOUCHED_LEN },
        longest: usize::MAX,
    }
}

/// Returns the objects and addresses for sending from `source` to `to`.
fn sent(
    args: &SendArgs,
    outgoing: &[Outgoing],
    (named, sealing): (&BTreeMap<NodeId, String>, Option<&Sealing>),
    (source, to): (SocketAddr, SocketAddr),
) -> Sent {
    let object = |entry: &Entry| {
        let (size, info, vouched) = said_of(args, entry);
        Object { size, info, vouched: vouched.filter(|_| !args.mdp.names_alone) }
    };
    Sent {
        node: args.nack.node(source, sealing),
        source,
        group: to,
        objects: outgoing.iter().flat_map(|one| one.manifest().entries()).map(object).collect(),
        ackers: named.keys().copied().collect(),
    }
}

fn configuration(args: &SendArgs, (settings, sealed): (&Settings, bool), sent: Sent) -> SenderConfig {
    let mtu = farcast_net::path_mtu(sent.group, &socket_options(&args.socket)).ok().flatten();
    let headers = signed_headers(sent.group, sealed);
    settings.sender(sent, Way { headers, mtu })
}

fn predict_over(
    args: &SendArgs,
    (to, settings, sealing): (SocketAddr, &Settings, Option<&Sealing>),
    (outgoing, named): (&[Outgoing], &BTreeMap<NodeId, String>),
    link: &str,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let said = args.nack.group_size.or(args.protocol.plan.as_ref().map(|_| settings.receivers));
    let receivers = how_many(named, said)?;
    let sent = sent(args, outgoing, (named, sealing), (to, to));
    let config = configuration(args, (settings, sealing.is_some()), sent);
    // A configuration that cannot be sent is not predicted either.
    Sender::new(config.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    let document = shipped::open_link(link).map_err(Failure::wrong)?;
    let sealed = sealing.map(|sealing| sealing.predicted(datagram_to(args, to)));
    let scenario = scenario::over(&document, (settings, &config), receivers, (settings.time_limit, sealed));
    let scenario = scenario.map_err(|error| Failure::usage(error.to_string()))?;
    let octets = octets(outgoing);
    let help = remedies(
        "Raise --robust.",
        "Name the receivers with --receivers, so that each is waited for, or raise --robust.",
    );
    predict(args, &Predicted { scenario, link, receivers, octets, rounds: "rounds", help }, output)
}

/// Messages about a transfer by MDP.
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
        figures(sender.sent_per_round(), Some(sender.grtt()), sender.rejects())
    }

    fn settings(&self, sender: &Sender) -> Vec<(&'static str, String)> {
        let config = sender.config();
        vec![
            ("rate", config.rate.to_string()),
            ("segment-size", format!("{} B", config.segment_size)),
            ("block-size", format!("{} segments", config.block_len)),
            ("parity", format!("{} symbols of a block", config.parity)),
            ("parity-ahead", format!("{} symbols of a block", config.auto_parity)),
            ("rtt", config.grtt.to_string()),
            ("robust", config.robust.to_string()),
            ("gap", config.gap.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use farcast_scenario::document::Document;
    use farcast_sim::scenario::Scenario;

    use super::*;
    use crate::args::{Cli, Command};

    /// Returns the configuration with which `farcast send` with these arguments sends 1 MB.
    fn real(args: &[&str]) -> SenderConfig {
        let fixed = ["farcast", "send", "file", "--protocol", "mdp", "--to", "239.255.54.2:5402"];
        let words = fixed.iter().chain(&["--interface", "lo"]).chain(args);
        let cli = Cli::read(words.map(Into::into)).unwrap();
        let Command::Send(args) = cli.command else { panic!("send") };
        let named = named(&args, None).unwrap();
        let to = SocketAddr::from(([239, 255, 54, 2], 5402));
        let sent = Sent {
            objects: vec![Object { size: 1_000_000, info: b"file".to_vec(), vouched: None }],
            ..sent(&args, &[], (&named, None), (SocketAddr::from(([10, 0, 0, 1], 5402)), to))
        };
        configuration(&args, (&settings(&args, None).unwrap(), false), sent)
    }

    /// Returns the configuration of a scenario with these lines in its `[protocol]`.
    fn simulated(lines: &str) -> SenderConfig {
        let text = format!("receivers = 3\n[protocol]\nname = \"mdp\"\nfile = \"1 MB\"\n{lines}");
        let scenario = Scenario::read(&Document::parse("test.toml", &text).unwrap()).unwrap();
        scenario::sender(&scenario).unwrap().clone()
    }

    /// Compares two configurations without their nodes and addresses, which the simulator chooses itself.
    #[track_caller]
    fn assert_equal(mut real: SenderConfig, simulated: &SenderConfig) {
        assert_eq!(real.ackers.len(), simulated.ackers.len());
        real.ackers.clone_from(&simulated.ackers);
        (real.node, real.source, real.group) = (simulated.node, simulated.source, simulated.group);
        assert_eq!(real, *simulated);
    }

    #[test]
    fn a_scenario_at_its_defaults_sends_as_the_command_line_does() {
        for rate in ["2 Mbit/s", "64 kbit/s"] {
            assert_equal(real(&["--rate", rate]), &simulated(&format!("rate = \"{rate}\"")));
            let named = simulated(&format!("rate = \"{rate}\"\nnamed = true"));
            assert_equal(real(&["--rate", rate, "--receivers", "1,2,3"]), &named);
        }
    }

    #[test]
    fn options_and_keys_are_the_same_settings() {
        for (args, lines) in [
            (&["--parity", "16"][..], "parity = 16"),
            (&["--parity", "off", "--segment-size", "500"], "parity = 0\nsegment_size = \"500 B\""),
            (&["--block-size", "100", "--parity-ahead", "3"], "block_size = 100\nparity_ahead = 3"),
            (&["--rtt", "3 s", "--robust", "9"], "round_trip = \"3 s\"\nrobust = 9"),
            (&["--answers", "sender", "--gap", "2 s"], "answers = \"sender\"\ngap = \"2 s\""),
            (&["--counts", "payload"], "counts = \"payload\""),
        ] {
            let keys = simulated(&format!("rate = \"2 Mbit/s\"\n{lines}"));
            assert_ne!(keys, simulated("rate = \"2 Mbit/s\""), "{lines} changes nothing");
            assert_equal(real(&[&["--rate", "2 Mbit/s"], args].concat()), &keys);
        }
    }
}
