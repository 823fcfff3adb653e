//! `farcast send --one-way`.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use farcast_core::{BitRate, Span, Time};
use farcast_delivery::RatePace;
use farcast_files::Outgoing;
use farcast_net::{NetError, SendOptions};
use farcast_oneway::{Codec, ConfigError, Duration, OneWay, Sender, SenderConfig, SenderEvent, Shape, wire};
use serde_json::json;

use super::{Destination, await_network, product_name, scan, socket_options};
use crate::args::{RateArg, SendArgs};
use crate::output::Output;
use crate::progress::{Progress, percent, rate, size, time_left};
use crate::{Exit, Failure};

type SendNotice<'a> = farcast_net::SendNotice<'a, SenderEvent>;
type SendReport = farcast_net::SendReport<Sender>;

/// Octets of a datagram with all headers where the way does not say otherwise.
const MTU: u32 = 1500;
/// How far ahead of the clock datagrams may leave together: at most so many octets, and so long.
const BURST: u64 = 64 << 10;
const MOST_AHEAD: Span = Span::from_millis(1);
/// How much sending time a late wake-up may make up for.
const CREDIT: Span = Span::from_millis(5);
/// How long is waited for a way to send.
const PATIENCE: Span = Span::from_secs(180);
/// Between reports of progress for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let speed = speed(args)?;
    let to = Destination::of(args)?;
    if to.private.port() == 0 {
        return Err(Failure::usage("--to must not have port 0"));
    }
    let mut output = Output::new(&args.output)?;
    let outgoing = scan(args, &mut output)?;
    let name = product_name(args);
    let stop = crate::interrupt::interrupted()?;
    await_network(args, (to, PATIENCE), &mut output, &stop)?;
    let config = configuration(args, speed, to.private, &outgoing, &name)?;
    let (octets, rounds) = (outgoing.manifest().content_len(), how_long(config.duration));
    output.line(&format!(
        "sending {name} ({}) one way to {}, {rounds}, {} % added each time",
        size(octets),
        to.private,
        config.overhead_percent
    ));
    let burst = speed.time_of_bytes(BURST).min(MOST_AHEAD);
    let options = SendOptions { to: to.private, socket: socket_options(&args.socket), burst };
    let make = |source: SocketAddr| Sender::new(SenderConfig { source, ..config.clone() });
    let make = |source| make(source).map_err(|error: ConfigError| error);
    let mut view = View { output: &mut output, progress: None, name: &name, octets, began: None, next_report: Time::ZERO };
    let mut observer = |now: Time, sender: &Sender, notice: &SendNotice<'_>| view.observe(now, sender, notice);
    let start = AtomicBool::new(false);
    let report =
        farcast_net::send::<OneWay, _>(vec![outgoing], &Codec, &options, make, (&start, &stop), &mut observer);
    let report = report.map_err(Failure::of_net)?;
    view.close(&report)
}

/// How fast; there is nobody who could say that it is too fast.
fn speed(args: &SendArgs) -> Result<BitRate, Failure> {
    match args.rate {
        Some(RateArg::Rate(rate)) => Ok(rate),
        Some(RateArg::Max) => {
            Err(Failure::usage("--rate max needs receivers that answer; with --one-way set a rate"))
        }
        None => Err(Failure::usage(
            "--rate is missing: with --one-way, give what the slowest link on the way carries, as in --rate \"20 Mbit/s\"",
        )),
    }
}

fn how_long(duration: Duration) -> String {
    match duration {
        Duration::Rounds(1) => "once".into(),
        Duration::Rounds(rounds) => format!("{rounds} times"),
        Duration::For(span) => format!("for {span}"),
    }
}

fn configuration(
    args: &SendArgs,
    rate: BitRate,
    group: SocketAddr,
    outgoing: &Outgoing,
    name: &str,
) -> Result<SenderConfig, Failure> {
    let overhead = if group.is_ipv4() { 28 } else { 48 };
    let mtu = farcast_net::path_mtu(group, &socket_options(&args.socket)).ok().flatten();
    let room = mtu.map_or(MTU, |mtu| mtu.min(MTU)).saturating_sub(overhead + wire::HEADER_LEN as u32);
    // The large code has symbols of an even length.
    let segment = args.protocol.dtu_size.unwrap_or(room) & !1;
    let segment = u16::try_from(segment).unwrap_or(u16::MAX & !1);
    let shape = Shape::new(outgoing.size(), segment).map_err(Failure::wrong)?;
    let id = *outgoing.id().as_bytes();
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let one_way = &args.one_way;
    let mut config = SenderConfig::new(id, shape, unknown, group, rate);
    config.session = super::transmission();
    config.name = name.as_bytes()[..name.len().min(255)].to_vec();
    config.head = u32::try_from(outgoing.manifest().head_len().div_ceil(segment.into())).unwrap_or(u32::MAX);
    config.pace = RatePace { rate, overhead: overhead as u16, credit: CREDIT, granule: 1 };
    config.duration = one_way.duration.map_or(Duration::Rounds(one_way.repeat.unwrap_or(1)), Duration::For);
    config.overhead_percent = one_way.overhead.unwrap_or(config.overhead_percent);
    Ok(config)
}

/// What the person at the sender sees.
struct View<'a> {
    output: &'a mut Output,
    progress: Option<Progress>,
    name: &'a str,
    octets: u64,
    began: Option<Time>,
    next_report: Time,
}

impl View<'_> {
    fn observe(&mut self, now: Time, sender: &Sender, notice: &SendNotice<'_>) {
        match notice {
            SendNotice::Event(SenderEvent::Began) => self.began = Some(now),
            SendNotice::Event(SenderEvent::Round { round, symbols }) => {
                self.output.event("round", json!({ "round": round, "symbols": symbols }));
            }
            SendNotice::Event(_) => {}
            SendNotice::Tick => self.tick(now, sender),
            SendNotice::Waiting { why } => self.waiting(why),
            SendNotice::Back => self.say("the network is back"),
            SendNotice::Moved { address } => self.say(&format!("sending from {address} now")),
            SendNotice::Fragmenting => self.say("datagrams leave in fragments: the way has become narrower"),
        }
    }

    fn waiting(&mut self, why: &NetError) {
        self.say(&format!("waiting: {why}"));
        self.output.event("waiting", json!({ "reason": why.to_string() }));
    }

    fn say(&self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(self.output, text),
            None => self.output.line(text),
        }
    }

    fn tick(&mut self, now: Time, sender: &Sender) {
        let (Some(began), round) = (self.began, sender.progress()) else { return };
        let (sent, total) = (u64::from(round.sent), u64::from(round.segments));
        let all: u64 = sender.sent().iter().sum();
        let octets = all * u64::from(sender.config().shape.geometry().segment_size());
        let elapsed = now.since(began);
        let message = format!(
            "{}, round {}, {}{}",
            self.name,
            round.round,
            rate(octets, elapsed),
            time_left(all, total.saturating_sub(sent) + all, elapsed)
        );
        let progress = self.progress.get_or_insert_with(|| Progress::new(self.output));
        progress.update(self.output, now, ("sending", &message), (sent, total.max(1)), &[]);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            self.output.event(
                "progress",
                json!({
                    "elapsed_s": elapsed.as_secs_f64(), "round": round.round, "symbols_sent": round.sent,
                    "symbols": round.segments,
                }),
            );
        }
    }

    fn close(&mut self, report: &SendReport) -> Result<Exit, Failure> {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let sender = &report.sender;
        let geometry = sender.config().shape.geometry();
        let symbols: u64 = sender.sent().iter().sum();
        let stopped = matches!(report.end, SenderEvent::Ended { stopped: true });
        let whole = symbols.saturating_sub(sender.sent().first().copied().unwrap_or(0)) > 0
            || symbols >= u64::from(geometry.segments());
        self.output.event(
            "summary",
            json!({
                "product": self.name,
                "size_bytes": geometry.size(),
                "time_s": report.duration.as_secs_f64(),
                "data_time_s": report.data_duration.as_secs_f64(),
                "rounds": sender.sent().len(),
                "symbols": symbols,
                "symbols_per_round": sender.sent(),
                "segments": geometry.segments(),
                "symbol_bytes": geometry.segment_size(),
                "complete": null,
                "stopped": stopped,
                "error": report.error.as_ref().map(ToString::to_string),
            }),
        );
        if let Some(error) = &report.error {
            return Err(Failure { sentence: error.to_string(), exit: Exit::Failed });
        }
        let sent = symbols * u64::from(geometry.segment_size());
        let times = percent(symbols, geometry.segments().into());
        self.output.line(&format!(
            "{} of symbols sent ({times} of {}) in {}, {}",
            size(sent),
            size(self.octets),
            report.data_duration,
            rate(sent, report.data_duration)
        ));
        if stopped && !whole {
            let sentence = "stopped before everything was sent once; receivers keep what they have".into();
            return Err(Failure { sentence, exit: Exit::Failed });
        }
        self.output.line("who has received it, nobody here can tell: receivers cannot answer");
        Ok(Exit::Unknown)
    }
}
