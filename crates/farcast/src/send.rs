//! `farcast send`.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_files::{Outgoing, SourceError};
use farcast_mftp::{
    ClientId, Group, Invited, MemberState, NakTiming, Pace, PassWait, Phase, Product, Sender, SenderConfig,
    SenderEvent, SenderOutcome, Start, wire,
};
use farcast_net::{SendOptions, SendReport, SocketOptions};
use serde_json::{Value, json};

use crate::args::{NakTimingArg, PassWaitArg, RateArg, SendArgs, SocketArgs};
use crate::output::Output;
use crate::progress::{Progress, percent, rate, size, time_left};
use crate::state::State;
use crate::table::{Align, Table};
use crate::{Exit, Failure};

const NO_RATE: &str = "--rate is missing: give what the slowest link on the way carries, such as --rate \"20 Mbit/s\" \
    for a satellite carrier of 20 Mbit/s (everything above it is lost in its queue), or --rate max on a local network, \
    where receivers set the pace";
/// How far ahead of the clock datagrams may leave together, at most.
const MOST_AHEAD: Span = Span::from_millis(1);
/// How much sending time a late wake-up may make up for at once.
const CREDIT: Span = Span::from_millis(5);
/// DTUs in a block when receivers set the pace: three full batches, so that a small receive buffer holds it.
const WINDOW_BLOCK: u32 = 132;
/// The window when receivers set the pace, DTUs: 4 MiB or so; receivers with smaller buffers shrink it.
const WINDOW: u32 = 2904;

pub(crate) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let pace = args.rate.ok_or_else(|| Failure::usage(NO_RATE))?;
    check(args, pace)?;
    let mut output = Output::new(&args.output)?;
    let outgoing = scan(args, &mut output)?;
    let name = product_name(args);
    let mut state = State::load(outgoing.id(), args.to);
    let options = SendOptions {
        public: args.announce.unwrap_or(args.to),
        private: args.to,
        socket: socket_options(&args.socket),
        burst: burst(args, pace),
        done: state.done().to_vec(),
    };
    let (start, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    if args.group.start_on_enter {
        start_on_enter(Arc::clone(&start));
    }
    announce_plan(args, &outgoing, &name, &output);
    let size = outgoing.size();
    let mut view = View { output, progress: None, args, size, data_began: None, name: name.clone() };
    let mut observer = |now: Time, sender: &Sender, event: Option<&SenderEvent>| {
        if let Some(SenderEvent::Done { client, .. }) = event {
            state.add(*client);
        }
        view.observe(now, sender, event);
    };
    let configure = |product: Product, server: SocketAddr| configure(args, pace, product, server);
    let report = farcast_net::send(outgoing, &name, &options, configure, (&start, &stop), &mut observer)?;
    if report.outcome == SenderOutcome::Finished && report.error.is_none() {
        state.forget();
    }
    view.close(&report)
}

/// What clap cannot see.
fn check(args: &SendArgs, pace: RateArg) -> Result<(), Failure> {
    if args.group.unlimited && pace == RateArg::Max {
        return Err(Failure::usage(
            "--rate max needs receivers that register, and --unlimited has none; set a rate",
        ));
    }
    if args.announce.is_some_and(|announce| announce.port() != args.to.port()) {
        return Err(Failure::usage("--announce and --to must have the same port: receivers listen on one"));
    }
    if args.announce.is_some_and(|announce| announce.is_ipv4() != args.to.is_ipv4()) {
        return Err(Failure::usage("--announce and --to must both be IPv4 or both IPv6"));
    }
    if args.to.port() == 0 {
        return Err(Failure::usage("--to must not have port 0"));
    }
    Ok(())
}

fn scan(args: &SendArgs, output: &mut Output) -> Result<Outgoing, Failure> {
    let mut progress = Progress::new(output);
    let clock = farcast_net::Clock::start();
    let outgoing = Outgoing::scan(&args.paths, |p| {
        let message = format!("{} of {}", size(p.hashed), size(p.total));
        progress.update(output, clock.now(), ("hashing", &message), (p.hashed, p.total), &[]);
    });
    progress.clear();
    let outgoing = outgoing.map_err(|error| {
        let exit = if matches!(error, SourceError::Changed { .. }) { Exit::Failed } else { Exit::Usage };
        Failure { sentence: error.to_string(), exit }
    })?;
    for skipped in outgoing.skipped() {
        output.line(&format!("not sent: {} ({})", skipped.path.display(), skipped.reason));
        output.event(
            "skipped",
            json!({ "path": skipped.path.to_string_lossy(), "reason": skipped.reason.to_string() }),
        );
    }
    Ok(outgoing)
}

fn product_name(args: &SendArgs) -> String {
    let first = args.paths.first().map_or("product", |path| path.to_str().unwrap_or("product"));
    let base =
        first.trim_end_matches('/').rsplit('/').next().filter(|base| !base.is_empty() && *base != "..");
    let mut name = args.name.clone().unwrap_or_else(|| base.unwrap_or("product").into());
    let end = (0..=name.len().min(256)).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    name.truncate(end);
    name
}

pub(crate) fn socket_options(args: &SocketArgs) -> SocketOptions {
    SocketOptions {
        interface: args.interface.clone(),
        ttl: u32::from(args.ttl),
        dscp: args.dscp,
        receive_buffer: usize::try_from(args.receive_buffer.0).unwrap_or(usize::MAX),
        offload: !args.no_offload,
        ..SocketOptions::default()
    }
}

/// How far ahead of the clock a batch may reach: the burst at the rate, a millisecond at most.
fn burst(args: &SendArgs, pace: RateArg) -> Span {
    match pace {
        RateArg::Max => MOST_AHEAD,
        RateArg::Rate(rate) => rate.time_of_bytes(args.protocol.burst.0).min(MOST_AHEAD),
    }
}

fn configure(args: &SendArgs, pace: RateArg, product: Product, server: SocketAddr) -> SenderConfig {
    let protocol = &args.protocol;
    let mut config = SenderConfig::new(product, server, args.to);
    let overhead: u16 = if args.to.is_ipv6() { 48 } else { 28 };
    config.public = args.announce.unwrap_or(args.to);
    config.transmission = transmission();
    config.dtu_size = protocol.dtu_size.unwrap_or(config.dtu_size);
    let largest = u32::try_from(wire::block_size_for(config.datagram, 32)).unwrap_or(u32::MAX);
    let datagram = wire::data_len(config.dtu_size as usize) as u64 + u64::from(overhead);
    config.pace = match pace {
        RateArg::Max => Pace::Window { segments: WINDOW },
        RateArg::Rate(rate) => Pace::Rate { rate, overhead, credit: CREDIT },
    };
    config.block_size = protocol.block_size.unwrap_or(match pace {
        RateArg::Max => WINDOW_BLOCK,
        // A quarter of a second's DTUs: the first NAKs come while most of the product is still to be sent. Large
        // groups get longer blocks, so that answers stay a small part of what is sent.
        RateArg::Rate(rate) => {
            let members = args.group.receivers.len().max(16) as u64;
            let milliseconds = 250.max(members * 4);
            u32::try_from(rate.as_bps() / 8 * milliseconds / 1000 / datagram).unwrap_or(largest)
        }
    });
    config.block_size = config.block_size.clamp(1, largest).max(16.min(largest));
    if let Some(wanted) = protocol.block_size {
        config.block_size = wanted.min(largest);
    }
    config.group = match &args.group {
        g if g.unlimited => Group::OpenUnlimited,
        g if g.receivers.is_empty() => Group::OpenLimited { limit: g.limit },
        g => Group::Closed(g.receivers.iter().map(|label| Invited::new(label)).collect()),
    };
    let waits =
        !args.group.receivers.is_empty() || args.group.wait_for.is_some() || args.group.start_on_enter;
    config.start = Start {
        receivers: args.group.wait_for,
        after: args.group.start_after.or((!waits).then_some(Span::from_secs(3))),
    };
    config.announce_limit = args.group.announce_time;
    config.late_entry = !args.group.no_late_entry;
    config.join_delay = if config.public == config.private { Span::ZERO } else { config.announce_interval };
    config.pass_wait = match protocol.pass_wait {
        PassWaitArg::Draft => PassWait::Draft,
        PassWaitArg::Fixed => PassWait::FixedTimer,
    };
    config.nak_timing = match protocol.nak_timing {
        NakTimingArg::EachBlock => NakTiming::EachBlock,
        NakTimingArg::EndOfFirstPass => NakTiming::EndOfFirstPass,
    };
    config.status_retry = protocol.status_retry;
    config.status_retry_count = protocol.status_retries;
    config.round_trip = protocol.rtt.max(Span::from_millis(1));
    config.backoff_window = protocol.spread;
    config.parity_symbols = protocol.parity;
    // The first DTU always carries the beginning of the manifest, and often all of it.
    config.head_segments = 1;
    config.transfer_limit = protocol.time_limit;
    slow_link(&mut config, pace, datagram);
    config
}

/// On a slow link announcements must leave room for data: at most a twentieth of the rate.
fn slow_link(config: &mut SenderConfig, pace: RateArg, datagram: u64) {
    if let RateArg::Rate(rate) = pace {
        let room = rate.time_of_bytes(datagram.min(400)) * 20;
        config.announce_interval = config.announce_interval.max(room);
        config.late_announce_interval = config.late_announce_interval.max(room);
        config.completion_interval = config.completion_interval.max(rate.time_of_bytes(100) * 4);
    }
}

/// A Transmission Identifier that no earlier run is likely to have had.
#[expect(clippy::disallowed_methods, reason = "the command line is no engine")]
fn transmission() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mixed =
        (since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 32) as u32).max(1)
}

#[expect(clippy::disallowed_methods, reason = "the command line owns its threads")]
fn start_on_enter(start: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        // Without a terminal nobody presses Enter, and the other conditions decide.
        if std::io::stdin().lock().read_line(&mut line).is_ok_and(|n| n > 0) {
            start.store(true, Ordering::Relaxed);
        }
    });
}

fn announce_plan(args: &SendArgs, outgoing: &Outgoing, name: &str, output: &Output) {
    let files = outgoing.manifest().entries().iter().filter(|entry| entry.is_file()).count();
    let what = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let whom = match args.group.receivers.len() {
        0 if args.group.unlimited => "whoever listens".to_owned(),
        0 => "whoever registers".to_owned(),
        n => format!("{n} receivers"),
    };
    let size = size(outgoing.manifest().content_len());
    output.line(&format!("sending {name} ({what}, {size}) to {}, for {whom}", args.to));
}

/// What the person at the sender sees.
struct View<'a> {
    output: Output,
    progress: Option<Progress>,
    args: &'a SendArgs,
    size: u64,
    data_began: Option<Time>,
    name: String,
}

impl View<'_> {
    fn observe(&mut self, now: Time, sender: &Sender, event: Option<&SenderEvent>) {
        let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
        let Some(event) = event else {
            return tick(&self.output, progress, now, sender, self.data_began, self.size);
        };
        if let SenderEvent::Started { .. } = event {
            self.data_began = Some(now);
        }
        if let Some(line) = describe(sender, event) {
            progress.line(&self.output, &line);
        }
        let (kind, fields) = fields(sender, event);
        self.output.event(kind, fields);
    }

    fn close(mut self, report: &SendReport) -> Result<Exit, Failure> {
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
        let incomplete: Vec<String> = incomplete(&report.sender);
        let exit = exit_code(report, &incomplete);
        self.output.event("summary", summary(report, &self.name, self.size, exit));
        self.output.result(&closing_table(report, self.size));
        let failure = |sentence: String| Err(Failure { sentence, exit: Exit::Failed });
        if let Some(error) = &report.error {
            return failure(error.to_string());
        }
        match &report.outcome {
            SenderOutcome::NoReceivers => failure(no_receivers(self.args, &report.sender)),
            SenderOutcome::GroupInUse { by } => failure(format!(
                "{} is in use by a transmission from {by}; wait for its end or choose another group or port",
                self.args.to
            )),
            SenderOutcome::Aborted { reason: 3003 } => failure(format!(
                "no receiver answers any more: {}; check their links, then send again: they keep what they have",
                incomplete.join(", ")
            )),
            SenderOutcome::Aborted { reason: 3002 } => {
                failure("the transfer took longer than --time-limit".into())
            }
            SenderOutcome::Aborted { .. } => {
                failure("stopped; receivers keep what they have for the next try".into())
            }
            SenderOutcome::Finished if incomplete.is_empty() => Ok(exit),
            SenderOutcome::Finished => {
                let sentence = format!("not every receiver has it: {}", incomplete.join(", "));
                Err(Failure { sentence, exit: Exit::Incomplete })
            }
        }
    }
}

fn exit_code(report: &SendReport, incomplete: &[String]) -> Exit {
    match report.outcome {
        _ if report.error.is_some() => Exit::Failed,
        SenderOutcome::Finished if incomplete.is_empty() => Exit::Done,
        SenderOutcome::Finished => Exit::Incomplete,
        _ => Exit::Failed,
    }
}

/// The receivers that do not have everything, each with what became of it.
fn incomplete(sender: &Sender) -> Vec<String> {
    sender
        .members()
        .filter(|(_, member)| member.state != MemberState::Done)
        .map(|(_, member)| format!("{} ({})", member.label, state(&member.state)))
        .collect()
}

fn state(state: &MemberState) -> String {
    match state {
        MemberState::Invited => "did not register".into(),
        MemberState::Active => "incomplete".into(),
        MemberState::Declined(reason) => format!("declined: {reason}"),
        MemberState::Done => "done".into(),
        MemberState::Quit(_, Some(text)) => format!("left: {text}"),
        MemberState::Quit(reason, None) => format!("left: {}", quit_reason(*reason)),
        MemberState::Lost => "no longer answers".into(),
    }
}

fn quit_reason(reason: u32) -> String {
    match reason {
        2001 => "stopped there".into(),
        2002 => "it took too long".into(),
        2003 => "a problem of its system".into(),
        2004 => "it lost too much".into(),
        other => format!("reason {other}"),
    }
}

fn no_receivers(args: &SendArgs, sender: &Sender) -> String {
    let group = args.to.ip();
    let interface = args.socket.interface.as_deref().unwrap_or("IFACE");
    if incomplete(sender).iter().any(|one| one.contains("declined")) {
        return format!("no receiver takes part: {}", incomplete(sender).join(", "));
    }
    if !group.is_multicast() {
        return format!(
            "{group} does not answer; check that `farcast receive --from {}` runs there and that no firewall drops \
             UDP port {} (`ping {group}`, `nft list ruleset`)",
            args.to,
            args.to.port()
        );
    }
    format!(
        "nobody answered on {}; check, in this order: that receivers run (`farcast receive --from {}`); the interface \
         at both ends (--interface; `ip route get {group}` shows the one in use); the TTL, {} now, if routers lie \
         between (--ttl); IGMP snooping without a querier on switches (`bridge mdb show`); firewalls (`nft list \
         ruleset`: UDP port {} and IGMP must pass); `tcpdump -ni {interface} host {group}` at a receiver shows \
         whether anything arrives",
        args.to,
        args.to,
        args.socket.ttl,
        args.to.port()
    )
}

fn label(sender: &Sender, client: ClientId) -> String {
    sender
        .members()
        .find(|(id, _)| *id == client)
        .map_or_else(|| client.to_string(), |(_, m)| m.label.clone())
}

/// An event in words; `None` for those that the bar shows.
fn describe(sender: &Sender, event: &SenderEvent) -> Option<String> {
    Some(match event {
        SenderEvent::Registered { client, address, held: 0 } => {
            format!("registered: {} ({address})", label(sender, *client))
        }
        SenderEvent::Registered { client, address, held } => {
            let part = percent(u64::from(*held), u64::from(sender.geometry().segments()));
            format!("registered: {} ({address}), has {part} already", label(sender, *client))
        }
        SenderEvent::Declined { client, reason } => {
            format!("declined: {} ({reason})", label(sender, *client))
        }
        SenderEvent::Refused { address, collision: true, client } => {
            format!("refused: {address}, because {} has the same name or address", label(sender, *client))
        }
        SenderEvent::Refused { address, .. } => format!("refused: {address}, which is not in --receivers"),
        SenderEvent::Started { receivers, restart: false } => format!("data begins, {receivers} receivers"),
        SenderEvent::Started { receivers, restart: true } => {
            format!("going on where an earlier run stopped, {receivers} receivers")
        }
        SenderEvent::Done { client, .. } => format!("done: {}", label(sender, *client)),
        SenderEvent::Quit { client, reason, text } => {
            let why = text.clone().unwrap_or_else(|| quit_reason(*reason));
            format!("left: {} ({why})", label(sender, *client))
        }
        SenderEvent::Lost { client } => format!("given up: {} no longer answers", label(sender, *client)),
        SenderEvent::Pass { .. } | SenderEvent::Delivered | SenderEvent::Ended(_) => return None,
    })
}

/// An event for programs.
fn fields(sender: &Sender, event: &SenderEvent) -> (&'static str, Value) {
    let name = |client: &ClientId| label(sender, *client);
    match event {
        SenderEvent::Registered { client, address, held } => (
            "registered",
            json!({ "receiver": name(client), "address": address.to_string(), "segments_held": held }),
        ),
        SenderEvent::Declined { client, reason } => {
            ("declined", json!({ "receiver": name(client), "reason": reason.to_string() }))
        }
        SenderEvent::Refused { client, address, collision } => (
            "refused",
            json!({ "id": client.to_string(), "address": address.to_string(), "collision": collision }),
        ),
        SenderEvent::Started { receivers, restart } => {
            ("started", json!({ "receivers": receivers, "restart": restart }))
        }
        SenderEvent::Pass { pass, dtus } => ("pass", json!({ "pass": pass, "dtus": dtus })),
        SenderEvent::Done { client, naked_dtus } => {
            ("done", json!({ "receiver": name(client), "naked_dtus": naked_dtus }))
        }
        SenderEvent::Quit { client, reason, text } => {
            ("quit", json!({ "receiver": name(client), "reason": reason, "text": text }))
        }
        SenderEvent::Lost { client } => ("lost", json!({ "receiver": name(client) })),
        SenderEvent::Delivered => ("delivered", json!({})),
        SenderEvent::Ended(outcome) => ("ended", json!({ "outcome": format!("{outcome:?}") })),
    }
}

fn tick(
    output: &Output,
    progress: &mut Progress,
    now: Time,
    sender: &Sender,
    began: Option<Time>,
    size: u64,
) {
    let (pass, sent, total) = sender.pass();
    let elapsed = began.map_or(Span::ZERO, |began| now.since(began));
    let segments = u64::from(sender.geometry().segments());
    let lines: Vec<String> = sender
        .members()
        .map(|(id, member)| {
            let have = u64::from(sender.received_by(id));
            let asked = member.naked_dtus;
            let sent: u64 = sender.stats().dtus_per_pass.iter().sum();
            format!(
                "  {:<24} {:>7}  loss {:>7}  {:>12}  {}",
                member.label,
                percent(have, segments),
                percent(asked.min(sent), sent),
                rate(size * have / segments, elapsed),
                if member.is_active() { String::new() } else { state(&member.state) }
            )
        })
        .collect();
    let (prefix, message, bar) = match sender.phase() {
        Phase::Announcing => {
            let registered = sender.members().filter(|(_, m)| m.is_active()).count();
            ("announcing".to_owned(), format!("{registered} registered"), (0, 1))
        }
        Phase::Waiting => (format!("pass {pass}"), "waiting for answers".to_owned(), (1, 1)),
        Phase::Completing | Phase::Ended => ("closing".to_owned(), String::new(), (1, 1)),
        _ => {
            let sent_rate = rate(sender.stats().bytes, elapsed);
            let left = time_left(u64::from(sent), u64::from(total), elapsed);
            let left = if pass == 1 { left } else { String::new() };
            (
                format!("pass {pass}"),
                format!("{sent} of {total} DTUs, {sent_rate}{left}"),
                (u64::from(sent), u64::from(total)),
            )
        }
    };
    progress.update(output, now, (&prefix, &message), bar, &lines);
}

fn closing_table(report: &SendReport, size_bytes: u64) -> String {
    let stats = report.sender.stats();
    let mut table = Table::new(&[
        ("receiver", Align::Left),
        ("state", Align::Left),
        ("time", Align::Right),
        ("asked again", Align::Right),
        ("loss", Align::Right),
        ("NAKs", Align::Right),
    ]);
    let sent: u64 = stats.dtus_per_pass.iter().sum();
    for (_, member) in report.sender.members() {
        let time = member.done_at.map_or_else(|| "-".into(), |at| at.since(Time::ZERO).to_string());
        table.row([
            member.label.clone(),
            state(&member.state),
            time,
            format!("{} DTUs", member.naked_dtus),
            percent(member.naked_dtus.min(sent), sent),
            member.naks.to_string(),
        ]);
    }
    let passes = stats.dtus_per_pass.len();
    let overhead = stats.bytes as f64 / size_bytes.max(1) as f64;
    format!(
        "{}\n\n{} in {} ({} of data), {passes} passes, {} on the wire, {overhead:.3} times the size, {}",
        table.render(),
        size(size_bytes),
        report.duration,
        report.data_duration,
        size(stats.bytes),
        rate(size_bytes, report.duration),
    )
}

fn summary(report: &SendReport, name: &str, size: u64, exit: Exit) -> Value {
    let stats = report.sender.stats();
    let members: Vec<Value> = report
        .sender
        .members()
        .map(|(_, member)| {
            json!({
                "receiver": member.label,
                "state": state(&member.state),
                "complete": member.state == MemberState::Done,
                "time_s": member.done_at.map(|at| at.as_secs_f64()),
                "naked_dtus": member.naked_dtus,
                "naks": member.naks,
            })
        })
        .collect();
    let rejects: Vec<Value> = report
        .sender
        .rejects()
        .iter()
        .map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n }))
        .collect();
    json!({
        "product": name,
        "outcome": format!("{:?}", report.outcome),
        "error": report.error.as_ref().map(ToString::to_string),
        "exit_code": exit as u8,
        "size_bytes": size,
        "time_s": report.duration.as_secs_f64(),
        "data_time_s": report.data_duration.as_secs_f64(),
        "round_trip_s": report.sender.round_trip().as_secs_f64(),
        "passes": stats.dtus_per_pass.len(),
        "dtus_per_pass": stats.dtus_per_pass,
        "parity_dtus": stats.parity_sent,
        "wire_bytes": stats.bytes,
        "wire_bytes_over_size": stats.bytes as f64 / size.max(1) as f64,
        "datagrams": stats.datagrams,
        "naks": stats.naks,
        "status_requests": stats.status_requests,
        "malformed_datagrams": report.malformed,
        "rejected_messages": rejects,
        "receivers": members,
    })
}
