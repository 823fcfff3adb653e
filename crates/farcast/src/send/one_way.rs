//! `farcast send --one-way`.

mod predict;

use std::net::SocketAddr;

use clap::Args;
use farcast_core::units::Bytes;
use farcast_core::{Span, Time};
use farcast_files::Outgoing;
use farcast_lab::shipped;
use farcast_oneway::settings::{PathLimits, Sent, Settings};
use farcast_oneway::{Codec, Duration, OneWay, Sender, SenderConfig, SenderEvent};
use farcast_seal::Contents;
use farcast_sim::scenario::one_way as scenario;
use serde_json::{Value, json};

use super::delivery::{Delivery, Face, Receiver, Told, Verdict, deliver};
use super::turn::Turn;
use super::{await_network, burst, destination, product_name, socket_options};
use crate::args::{RateArg, SendArgs};
use crate::output::Output;
use crate::sealing::{self, Sealing};
use crate::{Exit, Failure};

/// How it is sent to receivers that cannot answer.
#[derive(Args, Debug)]
#[command(next_help_heading = "One-way")]
pub(crate) struct OneWayArgs {
    /// Send to receivers that cannot answer: symbols of a large code, of which any do that are about as large as the
    /// files. Nobody can tell who has received them, so the exit code is 4. The same as --protocol one-way.
    #[arg(long, conflicts_with = "speaks")]
    pub(crate) one_way: bool,
    /// Go on for so long.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "repeat")]
    pub(crate) duration: Option<Span>,
    /// Go round so often; each time other symbols leave, until the code is used up [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,
    /// What a round sends more than the files have, in per cent, 0 to 900 [default: 10].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=900))]
    pub(crate) overhead: Option<u32>,
    /// Octets of a symbol [default: what fits 1500 bytes with all headers].
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(2..=65_000))]
    pub(crate) symbol_size: Option<u16>,
}

/// Longest wait for a path out of this host.
const PATIENCE: Span = Span::from_secs(180);

pub(super) fn run(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Exit, Failure> {
    let settings = settings(args, sealing.is_some())?;
    let to = destination(args)?;
    let mut output = Output::new(&args.output)?;
    let mut outgoing = super::scan(args, sealing.is_some(), &mut output)?;
    if let Some(link) = &args.protocol.predict {
        let config = configuration(args, (&settings, sealing.is_some()), &outgoing, to)?;
        let octets = outgoing.manifest().content_len();
        let sealed = sealing.map(|sealing| sealing.predicted(keys_in(&settings)));
        return predict::predict(args, (&config, sealed), octets, link, &mut output);
    }
    let stop = crate::interrupt::interrupted()?;
    await_network(args, (to, PATIENCE), &mut output, &stop)?;
    let (_lock, waited) = Turn::new(args, to).lock(&mut output, &stop)?;
    if waited {
        // Files that have changed meanwhile are sent as they are now.
        outgoing = super::scan(args, sealing.is_some(), &mut output)?;
    }
    let name = product_name(args);
    output.line(&format!(
        "sending {name} ({}) one way to {to}, {}, with {} % added",
        super::files_size(&outgoing),
        how_long(settings.duration),
        settings.overhead_percent
    ));
    super::tell_seal(args, to, sealing, &mut output);
    let config = configuration(args, (&settings, sealing.is_some()), &outgoing, to)?;
    let segments = config.shape.geometry().segments();
    let delivery = Delivery {
        to,
        name,
        compressed: super::compress::brought(args, &outgoing),
        objects: vec![outgoing],
        burst: burst(Some(settings.rate), settings.burst),
        time_limit: args.protocol.time_limit.unwrap_or(Span::MAX),
        // No receiver can ask for a key.
        seal: sealing
            .map(|sealing| {
                let scope = sealing::scope(args.speaks(), false, to);
                sealing.sender((scope, Contents::Together), (Some(settings.rate), keys_in(&settings)))
            })
            .transpose()?,
    };
    let make = |source: SocketAddr| Sender::new(SenderConfig { source, ..config });
    let mut face = OneWayFace { segments };
    let exit = deliver(args, delivery, (&Codec, &mut face), make, &stop, &mut output)?;
    if exit == Exit::Unknown {
        output.line("who has received it, nobody here can tell: receivers cannot answer");
    }
    Ok(exit)
}

/// Returns the most octets of a datagram with keys.
fn keys_in(settings: &Settings) -> usize {
    settings.symbol_size.unwrap_or(1472).into()
}

/// Returns the duration in words.
fn how_long(duration: Duration) -> String {
    match duration {
        Duration::Rounds(1) => "once".into(),
        Duration::Rounds(rounds) => format!("{rounds} times"),
        Duration::For(time) => format!("for {time}"),
    }
}

/// Returns the configuration for sending `outgoing` to `to`. The source address is not known yet.
fn configuration(
    args: &SendArgs,
    (settings, sealed): (&Settings, bool),
    outgoing: &Outgoing,
    to: SocketAddr,
) -> Result<SenderConfig, Failure> {
    let mtu = farcast_net::path_mtu(to, &socket_options(&args.socket)).ok().flatten();
    let way = PathLimits { headers: sealing::headers(to, sealed), mtu };
    let name = product_name(args);
    let sent = Sent {
        session: super::mftp::transmission(),
        id: *outgoing.id().as_bytes(),
        name: name.as_bytes()[..name.len().min(255)].to_vec(),
        size: outgoing.size(),
        head: outgoing.manifest().head_len(),
        source: to,
        group: to,
    };
    settings.sender(sent, way).map_err(Failure::wrong)
}

/// Returns the settings that `args` ask for. Options override a plan, and a plan overrides defaults.
fn settings(args: &SendArgs, sealed: bool) -> Result<Settings, Failure> {
    let rate = match args.rate {
        Some(RateArg::Rate(rate)) => Some(rate),
        Some(RateArg::Max) => {
            return Err(Failure::usage("--rate max needs receivers that answer; one way, set a rate"));
        }
        None => None,
    };
    let protocol = &args.protocol;
    let other = [
        // In a sealed transfer these receivers get the keys.
        ("--receivers", !args.group.receivers.is_empty() && !sealed),
        ("--parity", protocol.parity.is_some()),
        ("--block-size", protocol.block_size.is_some()),
        ("--rtt", protocol.rtt.is_some()),
    ];
    if let Some((option, _)) = other.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{option} has no meaning one way")));
    }
    let mut settings = match (&protocol.plan, rate) {
        (Some(path), rate) => {
            let document = shipped::file(path).map_err(Failure::wrong)?;
            scenario::plan(&document, rate).map_err(|error| Failure::usage(error.to_string()))?
        }
        (None, Some(rate)) => Settings::new(rate),
        (None, None) => {
            return Err(Failure::usage(
                "--rate is missing: one way, give what the slowest link on the way carries, as in --rate \"20 Mbit/s\"",
            ));
        }
    };
    let one_way = &args.one_way;
    settings.symbol_size = one_way.symbol_size.or(settings.symbol_size);
    let rounds = one_way.repeat.map(Duration::Rounds);
    settings.duration = one_way.duration.map(Duration::For).or(rounds).unwrap_or(settings.duration);
    settings.overhead_percent = one_way.overhead.unwrap_or(settings.overhead_percent);
    settings.burst = protocol.burst.map_or(settings.burst, |Bytes(burst)| burst);
    Ok(settings)
}

/// Messages about a transmission without answers.
struct OneWayFace {
    /// Number of segments of the object.
    segments: u32,
}

impl Face for OneWayFace {
    type Protocol = OneWay;

    const SEGMENT_SIZE: &str = "--symbol-size";

    fn told(&mut self, _now: Time, event: &SenderEvent) -> Option<Told> {
        match event {
            SenderEvent::Round { round, symbols } => {
                let fields = json!({ "round": round, "symbols": symbols });
                Some(Told { line: None, kind: "round", fields })
            }
            _ => None,
        }
    }

    fn receivers(&self) -> Vec<Receiver> {
        Vec::new()
    }

    fn verdict(&self, end: &SenderEvent) -> Verdict {
        if matches!(end, SenderEvent::Ended { stopped: false }) {
            return Verdict { word: "unknown", exit: Exit::Unknown, sentence: None };
        }
        let sentence = Some("stopped; receivers keep what has come, if any, for another time".into());
        Verdict { word: "aborted", exit: Exit::Failed, sentence }
    }

    fn figures(&self, sender: &Sender) -> Value {
        let symbols: u64 = sender.sent().iter().sum();
        json!({
            "rounds": sender.sent().len(),
            "symbols": symbols,
            "symbols_per_round": sender.sent(),
            "segments": self.segments,
            "symbol_bytes": sender.config().shape.geometry().segment_size(),
        })
    }

    fn settings(&self, sender: &Sender) -> Vec<(&'static str, String)> {
        let config = sender.config();
        let how_long = match config.duration {
            Duration::Rounds(rounds) => ("repeat", rounds.to_string()),
            Duration::For(time) => ("for", time.to_string()),
        };
        vec![
            ("rate", config.pace.rate.to_string()),
            how_long,
            ("overhead", format!("{} %", config.overhead_percent)),
            ("symbol-size", format!("{} B", config.shape.geometry().segment_size())),
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
        let fixed = ["farcast", "send", "file", "--one-way", "--to", "239.255.54.2:5402"];
        let words = fixed.iter().chain(&["--interface", "lo"]).chain(args);
        let cli = Cli::read(words.map(Into::into)).unwrap();
        let Command::Send(args) = cli.command else { panic!("send") };
        let to = SocketAddr::from(([239, 255, 54, 2], 5402));
        let sent = Sent {
            session: 1,
            id: [1; 32],
            name: b"file".to_vec(),
            size: 1_000_000,
            head: 0,
            source: to,
            group: to,
        };
        settings(&args, false).unwrap().sender(sent, PathLimits { headers: 28, mtu: None }).unwrap()
    }

    /// Returns the configuration of a scenario with these lines in its `[protocol]`.
    fn simulated(lines: &str) -> SenderConfig {
        let text = format!("receivers = 3\n[protocol]\nname = \"one-way\"\nfile = \"1 MB\"\n{lines}");
        let scenario = Scenario::read(&Document::parse("test.toml", &text).unwrap()).unwrap();
        scenario::sender(&scenario).unwrap().clone()
    }

    /// Compares two configurations without their addresses, which the simulator chooses itself.
    #[track_caller]
    fn assert_equal(mut real: SenderConfig, simulated: &SenderConfig) {
        (real.source, real.group) = (simulated.source, simulated.group);
        assert_eq!(real, *simulated);
    }

    #[test]
    fn a_scenario_at_its_defaults_sends_as_the_command_line_does() {
        for rate in ["2 Mbit/s", "64 kbit/s", "500 Mbit/s"] {
            assert_equal(real(&["--rate", rate]), &simulated(&format!("rate = \"{rate}\"")));
        }
    }

    #[test]
    fn options_and_keys_are_the_same_settings() {
        for (args, lines) in [
            (&["--overhead", "25"][..], "overhead_percent = 25"),
            (&["--repeat", "3", "--symbol-size", "500"], "repeat = 3\nsymbol_size = \"500 B\""),
            (&["--for", "90 s"], "for = \"90 s\""),
            (&["--burst", "1 KiB"], "burst = \"1 KiB\""),
        ] {
            let keys = simulated(&format!("rate = \"2 Mbit/s\"\n{lines}"));
            assert_ne!(keys, simulated("rate = \"2 Mbit/s\""), "{lines} changes nothing");
            assert_equal(real(&[&["--rate", "2 Mbit/s"], args].concat()), &keys);
        }
    }
}
