//! `farcast send` by NORM.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::Args;
use farcast_core::{BitRate, Probability, Time};
use farcast_files::{Entry, Outgoing};
use farcast_lab::shipped;
use farcast_norm::settings::{Parity, RateControl, Sent, Way};
use farcast_norm::{Codec, Kind, NodeId, Norm, Object, Pacing, Sender, SenderConfig, SenderEvent, Settings};
use farcast_sim::scenario::norm as scenario;
use serde_json::{Value, json};

use super::delivery::{Delivery, Face, Receiver, Told, Verdict, deliver};
use super::nack::{NameRoom, announce, base, check_names, how_many, named, octets, said_of, scan, seal, set};
use super::named::{Named, figures, word};
use super::predict::{Predicted, predict, remedies};
use super::turn::Turn;
use super::{await_network, burst, datagram_to, destination, product_name, socket_options};
use crate::args::SendArgs;
use crate::output::Output;
use crate::protocols::NORM_AND_PGM;
use crate::sealing::{Sealing, signed_headers};
use crate::{Exit, Failure};

/// How NORM behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "NORM")]
pub(crate) struct NormArgs {
    /// Lets receivers decide how fast: as fast as TCP would send to the one that can take least, and at most --rate
    /// (NORM-CC; by PGM PGMCC).
    #[arg(help_heading = NORM_AND_PGM, long)]
    pub(crate) cc: bool,
    /// With --cc, how slow nobody makes it [default: a thousandth of --rate].
    #[arg(long, value_name = "RATE", requires = "cc")]
    pub(crate) least_rate: Option<BitRate>,
    /// What part of the datagrams receivers are expected to lose [default: 0 %].
    #[arg(long, value_name = "PART")]
    pub(crate) expected_loss: Option<Probability>,
    /// Over how many round trips of the group receivers spread what they ask for, 0 to 15 [default: by their number].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) backoff: Option<u8>,
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
    announce(&mut output, &name, &outgoing, ("NORM", to, named.len()), (args, sealing));
    let config = {
        let sent = sent(args, &outgoing, (&named, sealing), (to, to));
        configuration(args, (&settings, sealing.is_some()), sent)
    };
    // The code does not depend on the source address.
    let codec = Codec { fec: config.fec };
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
    let mut face = NormFace { named: Named::new(("norm", sealing.is_some()), &named) };
    deliver(args, delivery, (&codec, &mut face), make, &stop, &mut output)
}

/// Returns the settings that `args` ask for. Options override a plan, and a plan overrides defaults.
pub(super) fn settings(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Settings, Failure> {
    let mut settings = base(args, "NORM", scenario::plan, Settings::new)?;
    let nack = &args.nack;
    let (norm, protocol) = (&args.norm, &args.protocol);
    set(&mut settings.control, norm.cc.then_some(RateControl::NormCc));
    settings.least_rate = norm.least_rate.or(settings.least_rate);
    if settings.least_rate.is_some_and(|least| least > settings.rate) {
        return Err(Failure::usage("--least-rate is more than --rate"));
    }
    settings.segment_size = nack.segment_size.or(settings.segment_size);
    if let Some(block) = protocol.block_size {
        let block = u16::try_from(block).ok().filter(|block| *block <= 254);
        settings.block_len =
            Some(block.ok_or_else(|| Failure::usage("--block-size is at most 254 by NORM"))?);
    }
    set(&mut settings.parity, protocol.parity.map(parity).transpose()?);
    set(&mut settings.ahead, nack.parity_ahead);
    set(&mut settings.loss, norm.expected_loss);
    settings.receivers = nack.group_size.or(settings.receivers);
    set(&mut settings.round_trip, protocol.rtt);
    settings.backoff = norm.backoff.or(settings.backoff);
    set(&mut settings.unicast, nack.unicast());
    // Only the sender can open a sealed answer.
    settings.unicast |= sealing.is_some();
    set(&mut settings.robust, nack.robust);
    set(&mut settings.burst, protocol.burst.map(|burst| burst.0));
    set(&mut settings.time_limit, protocol.time_limit);
    Ok(settings)
}

/// Returns the value of `--parity`, an option that all protocols share.
fn parity(chosen: farcast_mftp::settings::Parity) -> Result<Parity, Failure> {
    use farcast_mftp::settings::Parity as Chosen;
    match chosen {
        Chosen::Auto => Ok(Parity::Auto),
        Chosen::Symbols(symbols) => match u16::try_from(symbols).ok().filter(|symbols| *symbols <= 254) {
            Some(symbols) => Ok(Parity::Symbols(symbols)),
            None => Err(Failure::usage("--parity is at most 254 by NORM")),
        },
    }
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
    NameRoom { by: "NORM", segment, beside: 0, longest: usize::MAX }
}

/// Returns the objects and addresses for sending from `source` to `to`.
fn sent(
    args: &SendArgs,
    outgoing: &[Outgoing],
    (named, sealing): (&BTreeMap<NodeId, String>, Option<&Sealing>),
    (source, to): (SocketAddr, SocketAddr),
) -> Sent {
    Sent {
        node: args.nack.node(source, sealing),
        instance: instance(outgoing),
        objects: outgoing
            .iter()
            .flat_map(|one| one.manifest().entries())
            .map(|one| object(args, one))
            .collect(),
        source,
        group: to,
        ackers: named.keys().copied().collect(),
    }
}

/// Returns an instance id that is the same for the same files and most likely another for other files. Receivers
/// thereby recognise the objects that they have.
fn instance(outgoing: &[Outgoing]) -> u16 {
    let mut hasher = blake3::Hasher::new();
    for one in outgoing {
        hasher.update(one.id().as_bytes());
    }
    let [a, b, ..] = *hasher.finalize().as_bytes();
    u16::from_be_bytes([a, b])
}

fn object(args: &SendArgs, entry: &Entry) -> Object {
    let (size, info, vouched) = said_of(args, entry);
    Object { kind: Kind::File, size, info, vouched }
}

fn configuration(args: &SendArgs, (settings, sealed): (&Settings, bool), sent: Sent) -> SenderConfig {
    let mtu = farcast_net::path_mtu(sent.group, &socket_options(&args.socket)).ok().flatten();
    let way = Way { headers: signed_headers(sent.group, sealed), mtu, granule: 1 };
    settings.sender(sent, way)
}

fn predict_over(
    args: &SendArgs,
    (to, settings, sealing): (SocketAddr, &Settings, Option<&Sealing>),
    (outgoing, named): (&[Outgoing], &BTreeMap<NodeId, String>),
    link: &str,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let receivers = how_many(named, settings.receivers)?;
    let sent = sent(args, outgoing, (named, sealing), (to, to));
    let config = configuration(args, (settings, sealing.is_some()), sent);
    let document = shipped::open_link(link).map_err(Failure::wrong)?;
    let sealed = sealing.map(|sealing| sealing.predicted(datagram_to(args, to)));
    let scenario = scenario::over(&document, &config, receivers, (settings.time_limit, sealed));
    let scenario = scenario.map_err(|error| Failure::usage(error.to_string()))?;
    let octets = octets(outgoing);
    let help = remedies(
        "Raise --robust.",
        "Name the receivers with --receivers, so that each is waited for, or raise --robust.",
    );
    predict(args, &Predicted { scenario, link, receivers, octets, rounds: "rounds", help }, output)
}

/// Messages about a transfer by NORM.
struct NormFace {
    named: Named,
}

impl Face for NormFace {
    type Protocol = Norm;

    fn told(&mut self, now: Time, event: &SenderEvent) -> Option<Told> {
        let (kind, fields) = match *event {
            SenderEvent::Started { ackers } => ("started", json!({ "named_receivers": ackers })),
            SenderEvent::Round { round, segments } => {
                ("round", json!({ "round": round, "segments": segments }))
            }
            SenderEvent::Reached { node, object } => {
                ("reached", json!({ "receiver": self.named.label(node), "object": object.get() }))
            }
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
        let mut settings = vec![
            ("rate", config.pace.rate.to_string()),
            ("segment-size", format!("{} B", config.segment_size)),
            ("block-size", format!("{} segments", config.block_len)),
            ("parity", format!("{} symbols of a block", config.parity)),
            ("parity-ahead", format!("{} symbols of a block", config.auto_parity)),
            ("rtt", config.grtt.to_string()),
            ("backoff", config.backoff.to_string()),
            ("robust", config.robust.to_string()),
        ];
        if let Pacing::NormCc { least } = config.pacing {
            settings.push(("least-rate", least.to_string()));
        }
        settings
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
        let fixed = ["farcast", "send", "file", "--protocol", "norm", "--to", "239.255.54.2:6003"];
        let words = fixed.iter().chain(&["--interface", "lo"]).chain(args);
        let cli = Cli::read(words.map(Into::into)).unwrap();
        let Command::Send(args) = cli.command else { panic!("send") };
        let named = named(&args, None).unwrap();
        let to = SocketAddr::from(([239, 255, 54, 2], 6003));
        let sent = Sent {
            objects: vec![Object {
                kind: Kind::File,
                size: 1_000_000,
                info: b"file".to_vec(),
                vouched: None,
            }],
            ..sent(&args, &[], (&named, None), (SocketAddr::from(([10, 0, 0, 1], 6003)), to))
        };
        configuration(&args, (&settings(&args, None).unwrap(), false), sent)
    }

    /// Returns the configuration of a scenario with these lines in its `[protocol]`.
    fn simulated(lines: &str) -> SenderConfig {
        let text = format!("receivers = 3\n[protocol]\nname = \"norm\"\nfile = \"1 MB\"\n{lines}");
        let scenario = Scenario::read(&Document::parse("test.toml", &text).unwrap()).unwrap();
        scenario::sender(&scenario).unwrap().clone()
    }

    /// Compares two configurations without their nodes and addresses, which the simulator chooses itself.
    #[track_caller]
    fn assert_equal(mut real: SenderConfig, simulated: &SenderConfig) {
        assert_eq!(real.ackers.len(), simulated.ackers.len());
        real.ackers.clone_from(&simulated.ackers);
        (real.node, real.instance) = (simulated.node, simulated.instance);
        (real.source, real.group) = (simulated.source, simulated.group);
        assert_eq!(real, *simulated);
    }

    #[test]
    fn a_scenario_at_its_defaults_sends_as_the_command_line_does() {
        for rate in ["2 Mbit/s", "64 kbit/s", "500 Mbit/s"] {
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
            (&["--expected-loss", "5 %", "--group-size", "50"], "expected_loss = 0.05\ngroup_size = 50"),
            (&["--backoff", "2", "--robust", "9"], "backoff = 2\nrobust = 9"),
            (&["--rtt", "3 s", "--burst", "1 MiB"], "round_trip = \"3 s\"\nburst = \"1 MiB\""),
            (&["--answers", "sender"], "answers = \"sender\""),
        ] {
            let keys = simulated(&format!("rate = \"2 Mbit/s\"\n{lines}"));
            assert_ne!(keys, simulated("rate = \"2 Mbit/s\""), "{lines} changes nothing");
            assert_equal(real(&[&["--rate", "2 Mbit/s"], args].concat()), &keys);
        }
    }
}
