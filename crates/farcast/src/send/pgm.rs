//! `farcast send` by PGM.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use farcast_core::{Span, Time};
use farcast_files::{Entry, Outgoing};
use farcast_lab::shipped;
use farcast_mftp::settings::Parity;
use farcast_norm::settings::Parity as Ahead;
use farcast_pgm::settings::{self, RateControl, Sent, Way};
use farcast_pgm::{
    Codec, Grouping, Gsi, NodeId, Object, Pgm, Sender, SenderConfig, SenderEvent, SenderOutcome, Sending,
    Settings, Tsi,
};
use farcast_sim::scenario::pgm as scenario;
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

/// How PGM behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "PGM")]
pub(crate) struct PgmArgs {
    /// After everything was sent, how long to stay while named receivers say nothing [default: 20 s, longer where round
    /// trips are].
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) linger: Option<Span>,
    /// Send as IP protocol 113, without UDP, which takes IPv4 and the right to open raw sockets; receivers do the same.
    #[arg(long)]
    pub(crate) raw: bool,
    /// With --stream, send from this UDP port, where OpenPGM's receivers ask for repair (its option
    /// `PGM_UDP_ENCAP_UCAST_PORT`); others ask where the stream comes from [default: any that is free].
    #[arg(long, value_name = "PORT", requires = "stream", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) unicast_port: Option<u16>,
}

fn some_time(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("it must be more than nothing".into()) } else { Ok(time) }
}

/// Prefix that separates the sources of one host that send to several groups.
const SOURCE: &[u8] = b"farcast: the PGM source at ";
/// Data-destination port if UDP has a port of its own: that of OpenPGM.
const PORT: u16 = 7500;

pub(super) fn run(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Exit, Failure> {
    let settings = settings(args)?;
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
    announce(&mut output, &name, &outgoing, ("PGM", to, named.len()), (args, sealing));
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
    let mut face = PgmFace { named: Named::new(("pgm", sealing.is_some()), &named) };
    deliver(args, delivery, (&Codec { raw: args.pgm.raw }, &mut face), make, &stop, &mut output)
}

/// Returns the settings that `args` ask for. Options override a plan, and a plan overrides defaults.
pub(super) fn settings(args: &SendArgs) -> Result<Settings, Failure> {
    let mut settings = base(args, "PGM", scenario::plan, Settings::new)?;
    let (nack, protocol) = (&args.nack, &args.protocol);
    settings.parity = parity(args, settings.parity)?;
    set(&mut settings.control, args.norm.cc.then_some(RateControl::Pgmcc));
    settings.segment_size = nack.segment_size.or(settings.segment_size);
    settings.receivers = nack.group_size.or(settings.receivers);
    set(&mut settings.round_trip, protocol.rtt);
    if settings.round_trip.is_zero() {
        return Err(Failure::usage("--rtt is more than nothing"));
    }
    settings.backoff = protocol.spread.or(settings.backoff);
    settings.linger = args.pgm.linger.or(settings.linger);
    set(&mut settings.burst, protocol.burst.map(|burst| burst.0));
    set(&mut settings.time_limit, protocol.time_limit);
    Ok(settings)
}

/// Returns the parity that `args` ask for. Values without an option are those of `planned`.
fn parity(args: &SendArgs, planned: Option<Grouping>) -> Result<Option<Grouping>, Failure> {
    let (parity, size, ahead) = (args.protocol.parity, args.protocol.block_size, args.nack.parity_ahead);
    if parity.is_none() && size.is_none() && ahead.is_none() {
        return Ok(planned);
    }
    let on_demand = match parity {
        None => planned.is_some_and(|planned| planned.on_demand),
        Some(Parity::Auto) => true,
        Some(Parity::Symbols(0)) => false,
        Some(Parity::Symbols(_)) => {
            return Err(Failure::usage(
                "--parity: by PGM \"auto\" or \"off\"; a group has as much as is asked for",
            ));
        }
    };
    let ahead = match ahead {
        None => planned.map_or(0, |planned| planned.ahead),
        Some(Ahead::Symbols(symbols)) => symbols.into(),
        Some(Ahead::Auto) => {
            return Err(Failure::usage(
                "--parity-ahead: by PGM a number of parity packets behind each group",
            ));
        }
    };
    let grouping = settings::grouping(size.or(planned.map(|planned| planned.size)), ahead, on_demand);
    if grouping.is_none() && size.is_some() {
        return Err(Failure::usage("--block-size: by PGM with --parity auto or --parity-ahead"));
    }
    Ok(grouping)
}

/// Returns the room for the names of files.
fn room(
    args: &SendArgs,
    (settings, sealing): (&Settings, Option<&Sealing>),
    (outgoing, named): (&[Outgoing], &BTreeMap<farcast_norm::NodeId, String>),
    to: SocketAddr,
) -> NameRoom {
    let sent = sent(args, outgoing, (named, sealing), (to, to));
    let segment = configuration(args, (settings, sealing.is_some()), sent).tsdu.into();
    NameRoom { by: "PGM", segment, beside: farcast_pgm::NAME_OVERHEAD, longest: farcast_pgm::MOST_NAME }
}

/// Returns the objects and addresses for sending from `source` to `to`.
fn sent(
    args: &SendArgs,
    outgoing: &[Outgoing],
    (named, sealing): (&BTreeMap<farcast_norm::NodeId, String>, Option<&Sealing>),
    (source, to): (SocketAddr, SocketAddr),
) -> Sent {
    let object = |entry: &Entry| {
        let (size, name, vouched) = said_of(args, entry);
        Object { size, name, vouched }
    };
    let objects = outgoing.iter().flat_map(|one| one.manifest().entries()).map(object).collect();
    Sent {
        tsi: session((source, to), sealing),
        sending: Sending::Files(objects),
        source,
        group: to,
        named: named.keys().map(|node| NodeId(node.0)).collect(),
    }
}

/// Returns the session id of a transfer. The source part is the same for the same two addresses, or in a sealed
/// transfer follows from the key. The port part is another for each session: receivers thereby know that the session
/// before is over.
#[expect(
    clippy::disallowed_methods,
    reason = "one session is told from the other by when it is, and the command line is no engine"
)]
pub(super) fn session((source, to): (SocketAddr, SocketAddr), sealing: Option<&Sealing>) -> Tsi {
    let who = [SOURCE, source.ip().to_string().as_bytes(), b" to ", to.to_string().as_bytes()].concat();
    let mut gsi = [0; 6];
    blake3::Hasher::new().update(&who).finalize_xof().fill(&mut gsi);
    let gsi = sealing.map_or(gsi, |sealing| sealing.number().source());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Two sessions that begin within these 16 ms do no harm: the second waits for the first.
    let port = (now.as_millis() / 16) as u16;
    Tsi { gsi: Gsi(gsi), port }
}

fn configuration(args: &SendArgs, (settings, sealed): (&Settings, bool), sent: Sent) -> SenderConfig {
    let way = way(args, (sent.group, sealed));
    on_wire(args, settings.sender(sent, way))
}

/// Returns the properties of the path to `group`.
pub(super) fn way(args: &SendArgs, (group, sealed): (SocketAddr, bool)) -> Way {
    let mtu = farcast_net::path_mtu(group, &socket_options(&args.socket)).ok().flatten();
    // Without UDP, packets that network elements have to look at carry the router alert, an IP option of four octets.
    let headers = if args.pgm.raw { 24 } else { signed_headers(group, sealed) };
    Way { headers, mtu, granule: 1 }
}

/// Returns `config` for UDP or for IP alone.
pub(super) fn on_wire(args: &SendArgs, config: SenderConfig) -> SenderConfig {
    let raw = args.pgm.raw;
    // Without a UDP port, PGM's own port separates the transfers of a group.
    let port = if raw { config.group.port() } else { PORT };
    SenderConfig { port, router_alert: raw, ..config }
}

fn predict_over(
    args: &SendArgs,
    (to, settings, sealing): (SocketAddr, &Settings, Option<&Sealing>),
    (outgoing, named): (&[Outgoing], &BTreeMap<farcast_norm::NodeId, String>),
    link: &str,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let receivers = how_many(named, settings.receivers)?;
    let sent = sent(args, outgoing, (named, sealing), (to, to));
    let config = configuration(args, (settings, sealing.is_some()), sent);
    // A configuration that cannot be sent is not predicted either.
    Sender::new(config.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    let document = shipped::open_link(link).map_err(Failure::wrong)?;
    let sealed = sealing.map(|sealing| sealing.predicted(datagram_to(args, to)));
    let scenario =
        scenario::over(&document, (&config, settings.round_trip), receivers, (settings.time_limit, sealed));
    let scenario = scenario.map_err(|error| Failure::usage(error.to_string()))?;
    let octets = octets(outgoing);
    let help = remedies(
        "Raise --linger.",
        "Name the receivers with --receivers, so that each is waited for, or raise --linger.",
    );
    predict(args, &Predicted { scenario, link, receivers, octets, rounds: "rounds", help }, output)
}

/// Messages about a transfer by PGM.
struct PgmFace {
    named: Named,
}

/// Returns a node id as the type that all protocols here share.
pub(super) fn node(node: NodeId) -> farcast_norm::NodeId {
    farcast_norm::NodeId(node.0)
}

/// Returns an outcome as the type that all protocols here share.
pub(super) fn outcome(outcome: SenderOutcome) -> farcast_norm::SenderOutcome {
    use farcast_norm::SenderOutcome as Common;
    match outcome {
        SenderOutcome::Acknowledged => Common::Acknowledged,
        SenderOutcome::Unknown => Common::Unknown,
        SenderOutcome::Incomplete { lacking } => Common::Incomplete { lacking },
        SenderOutcome::Aborted => Common::Aborted,
    }
}

impl Face for PgmFace {
    type Protocol = Pgm;

    fn told(&mut self, now: Time, event: &SenderEvent) -> Option<Told> {
        let (kind, fields) = match *event {
            SenderEvent::Started { named } => ("started", json!({ "named_receivers": named })),
            SenderEvent::Round { round, segments } => {
                ("round", json!({ "round": round, "segments": segments }))
            }
            SenderEvent::Acknowledged(who) => return Some(self.named.acknowledged(now, node(who))),
            SenderEvent::Lost(who) => return Some(self.named.lost(node(who))),
            SenderEvent::Delivered => ("delivered", json!({})),
            SenderEvent::Ended(how) => ("ended", json!({ "outcome": word(outcome(how)) })),
            // A transfer of files keeps everything.
            SenderEvent::Released(_) => return None,
        };
        Some(Told { line: None, kind, fields })
    }

    fn receivers(&self) -> Vec<Receiver> {
        self.named.receivers()
    }

    fn verdict(&self, end: &SenderEvent) -> Verdict {
        let ended = if let SenderEvent::Ended(how) = *end { Some(outcome(how)) } else { None };
        self.named.verdict(ended)
    }

    fn figures(&self, sender: &Sender) -> Value {
        figures(sender.sent_per_round(), None, sender.rejects())
    }

    fn settings(&self, sender: &Sender) -> Vec<(&'static str, String)> {
        let config = sender.config();
        let mut settings = vec![
            ("rate", config.pace.rate.to_string()),
            ("segment-size", format!("{} B", config.tsdu)),
            ("linger", config.linger.to_string()),
        ];
        settings.extend(config.backoff.map(|backoff| ("spread", backoff.to_string())));
        match config.parity {
            Some(Grouping { size, ahead, on_demand }) => settings.extend([
                ("parity", if on_demand { "auto" } else { "off" }.to_owned()),
                ("block-size", format!("{size} packets")),
                ("parity-ahead", format!("{ahead} packets of a group")),
            ]),
            None => settings.push(("parity", "off".into())),
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
        let fixed = ["farcast", "send", "file", "--protocol", "pgm", "--to", "239.255.54.2:5402"];
        let words = fixed.iter().chain(&["--interface", "lo"]).chain(args);
        let cli = Cli::read(words.map(Into::into)).unwrap();
        let Command::Send(args) = cli.command else { panic!("send") };
        let named = named(&args, None).unwrap();
        let to = SocketAddr::from(([239, 255, 54, 2], 5402));
        let file = Object { size: 1_000_000, name: b"file".to_vec(), vouched: None };
        let sent = Sent {
            sending: Sending::Files(vec![file]),
            ..sent(&args, &[], (&named, None), (SocketAddr::from(([10, 0, 0, 1], 5402)), to))
        };
        configuration(&args, (&settings(&args).unwrap(), false), sent)
    }

    /// Returns the configuration of a scenario with these lines in its `[protocol]`.
    fn simulated(lines: &str) -> SenderConfig {
        let text = format!("receivers = 3\n[protocol]\nname = \"pgm\"\nfile = \"1 MB\"\n{lines}");
        let scenario = Scenario::read(&Document::parse("test.toml", &text).unwrap()).unwrap();
        scenario::sender(&scenario).unwrap().clone()
    }

    /// Compares two configurations without their nodes and addresses, which the simulator chooses itself.
    #[track_caller]
    fn assert_equal(mut real: SenderConfig, simulated: &SenderConfig) {
        assert_eq!(real.named.len(), simulated.named.len());
        real.named.clone_from(&simulated.named);
        (real.tsi, real.source, real.group) = (simulated.tsi, simulated.source, simulated.group);
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
            (&["--segment-size", "500"][..], "segment_size = \"500 B\""),
            (&["--group-size", "500"], "group_size = 500"),
            (&["--rtt", "3 s", "--burst", "1 MiB"], "round_trip = \"3 s\"\nburst = \"1 MiB\""),
            (&["--spread", "2 s", "--linger", "1 min"], "backoff = \"2 s\"\nlinger = \"1 min\""),
            (&["--cc"], "rate_control = \"pgmcc\""),
            (&["--parity", "auto"], "parity = \"auto\""),
            (&["--parity-ahead", "2", "--block-size", "8"], "parity_ahead = 2\nblock_size = 8"),
        ] {
            let keys = simulated(&format!("rate = \"2 Mbit/s\"\n{lines}"));
            assert_ne!(keys, simulated("rate = \"2 Mbit/s\""), "{lines} changes nothing");
            assert_equal(real(&[&["--rate", "2 Mbit/s"], args].concat()), &keys);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a session is told from the next by when it is")]
    fn a_source_is_the_same_each_time_and_its_sessions_are_not() {
        let address = |text: &str| text.parse().unwrap();
        let (source, to) = (address("10.0.0.1:4000"), address("239.1.1.1:5402"));
        let (one, port) = (session((source, to), None), address("10.0.0.1:4001"));
        assert_eq!(one.gsi, session((port, to), None).gsi);
        assert_ne!(one.gsi, session((source, address("239.1.1.2:5402")), None).gsi);
        std::thread::sleep(std::time::Duration::from_millis(40));
        assert_ne!(one, session((source, to), None));
    }
}
