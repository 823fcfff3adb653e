//! `farcast send`.

use std::io::BufRead;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{BitRate, Span, Time};
use farcast_files::{Outgoing, SourceError};
use farcast_mftp::message::cancel;
use farcast_mftp::{
    Codec, ConfigError, Group, Invited, Mftp, NakTiming, Pace, PassWait, Product, Sender, SenderConfig,
    SenderEvent, SenderOutcome, Start, wire,
};
use farcast_net::{NetError, SendOptions, SocketOptions, Waited};
use serde_json::json;

use crate::args::{NakTimingArg, ParityArg, PassWaitArg, RateArg, SendArgs, SocketArgs};
use crate::host::{Endpoint, Family, HostError};
use crate::output::Output;
use crate::progress::{Progress, size};
use crate::state::{Known, State};
use crate::{Exit, Failure, outputs};

mod advice;
mod closing;
mod turn;
mod view;

use turn::Turn;
use view::View;

type SendNotice<'a> = farcast_net::SendNotice<'a, SenderEvent>;
type SendReport = farcast_net::SendReport<Sender>;

const NO_RATE: &str = "--rate is missing: give what the slowest link on the way carries, such as --rate \"20 Mbit/s\" \
    for a satellite carrier of 20 Mbit/s (everything above it is lost in its queue), or --rate max on a local network, \
    where receivers set the pace";
/// How far ahead of the clock datagrams may leave together, at most.
const MOST_AHEAD: Span = Span::from_millis(1);
/// How much sending time a late wake-up may make up for at once: what the burst takes at the rate, within these bounds.
/// A busy machine takes the processor away for a time slice or more, whose sending time would else be lost for good. Behind
/// the most, and what leaves ahead, waits 21 ms at a link of the sender's rate: less than any queue that suits the link.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// Between announcements while data runs.
const LATE_ANNOUNCE: Span = Span::from_secs(2);
/// DTUs in a block when receivers set the pace: four and a half full batches, about what a receive buffer as systems have it
/// holds. The longer it is, the less its losses vary; the cheapest code has room here for parity of a loss of a quarter.
const WINDOW_BLOCK: u32 = 198;
/// The window when receivers set the pace, DTUs: 4 MiB or so; receivers with smaller buffers shrink it.
const WINDOW: u32 = 15 * WINDOW_BLOCK;
/// The longest block, DTUs: what receivers answer takes no fewer octets in longer ones, and coding takes longer.
const LONGEST_BLOCK: u32 = 2048;

/// When data begins in an open group, at the latest.
const OPEN_START: Span = Span::from_secs(3);
/// For how long data may leave behind the first announcement: longer than registrations take over a satellite, and less than
/// what makes others take the group for used.
const EARLY: Span = Span::from_millis(900);

/// Where it goes, with names resolved.
#[derive(Clone, Copy, Debug)]
struct Destination {
    /// Announcements.
    public: SocketAddr,
    /// Data.
    private: SocketAddr,
}

impl Destination {
    fn of(args: &SendArgs) -> Result<Self, HostError> {
        // What is an address has no choice of its family.
        let wanted = args.announce.as_ref().and_then(Endpoint::address).map(Family::of);
        let private = args.to.resolve("--to", wanted)?;
        let family = Some(Family::of(private.ip()));
        let public =
            args.announce.as_ref().map(|announce| announce.resolve("--announce", family)).transpose()?;
        Ok(Self { public: public.unwrap_or(private), private })
    }
}

pub(crate) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let pace = args.rate.ok_or_else(|| Failure::usage(NO_RATE))?;
    let to = Destination::of(args)?;
    check(args, to, pace)?;
    for path in &args.paths {
        outputs::log_outside(args.output.log.as_deref(), path, "which must not change while it is sent")?;
    }
    let mut output = Output::new(&args.output)?;
    let mut outgoing = scan(args, &mut output)?;
    let name = product_name(args);
    let (start, stop) = (Arc::new(AtomicBool::new(false)), crate::interrupt::interrupted()?);
    await_network(args, to, &mut output, &stop)?;
    let mut turn = Turn::new(args, to.private);
    let (_lock, waited) = turn.lock(&mut output, &stop)?;
    if waited {
        // What has changed meanwhile is sent as it is now.
        outgoing = scan(args, &mut output)?;
    }
    if args.group.start_on_enter {
        start_on_enter(Arc::clone(&start));
    }
    announce_plan(args, to, &outgoing, &name, &output);
    loop {
        let mut view = View::new(&mut output, args, to.private, name.clone(), &outgoing);
        let mut report = transmit(args, (to, pace), outgoing, &name, (&start, &stop), &mut view)?;
        let &SenderOutcome::GroupInUse { by, transmission } = outcome(&report) else {
            return view.close(&report);
        };
        match turn.after((by, transmission), view.rest(), &stop)? {
            Waited::Free => {}
            Waited::Over => return view.close(&report),
            Waited::Stopped => {
                let stopped = SenderOutcome::Aborted { reason: cancel::ABORT_APPLICATION };
                report.end = SenderEvent::Ended(stopped);
                return view.close(&report);
            }
        }
        await_network(args, to, &mut output, &stop)?;
        outgoing = scan(args, &mut output)?;
    }
}

/// How it ended.
fn outcome(report: &SendReport) -> &SenderOutcome {
    match &report.end {
        SenderEvent::Ended(outcome) => outcome,
        _ => &SenderOutcome::Finished,
    }
}

/// Sends it once.
fn transmit(
    args: &SendArgs,
    (to, pace): (Destination, RateArg),
    outgoing: Outgoing,
    name: &str,
    (start, stop): (&AtomicBool, &AtomicBool),
    view: &mut View<'_>,
) -> Result<SendReport, Failure> {
    let mut state = State::load(outgoing.id(), to.private);
    let options =
        SendOptions { to: to.private, socket: socket_options(&args.socket), burst: burst(args, pace) };
    let remembered = state.done().to_vec();
    let mut known = Known::load(to.private);
    let early_data = if state.done().is_empty() { early(args, &known, name) } else { Span::ZERO };
    let waits = args.group.wait.is_some();
    let mut observer = |now: Time, sender: &Sender, notice: &SendNotice<'_>| match notice {
        // That is not the end yet.
        SendNotice::Event(SenderEvent::Ended(SenderOutcome::GroupInUse { .. })) if waits => {}
        SendNotice::Event(event) => {
            if let SenderEvent::Done { client, .. } = event {
                state.add(*client);
            }
            view.observe(now, sender, Some(event));
        }
        SendNotice::Tick => view.observe(now, sender, None),
        notice => view.way(notice),
    };
    let secret = if args.group.draft { None } else { Some(crate::state::random_secret()?) };
    let list = outgoing.manifest().head_len();
    let product = Product { id: *outgoing.id().as_bytes(), size: outgoing.size(), name: name.into() };
    let make = |server: SocketAddr| {
        let config = configure(args, to, pace, product, server);
        // Receivers that have an older version compare it with that.
        let list_segments = u32::try_from(list.div_ceil(config.dtu_size.into())).unwrap_or(u32::MAX);
        let mut sender = Sender::new(SenderConfig { secret, list_segments, early_data, ..config })?;
        // Who had everything in an earlier run is not waited for.
        for client in remembered {
            sender.remember(client);
        }
        Ok::<_, ConfigError>(sender)
    };
    let report = farcast_net::send::<Mftp, _>(outgoing, &Codec, &options, make, (start, stop), &mut observer);
    let report = report.map_err(Failure::of_net)?;
    let finished = *outcome(&report) == SenderOutcome::Finished;
    if finished {
        let got_it = report.sender.members().filter(|(_, member)| view::has_it(member, args.group.draft));
        known.add(name, report.sender.compares(), got_it.map(|(_, member)| member.label.as_str()));
    }
    let everyone = report.sender.members().all(|(_, member)| view::has_it(member, args.group.draft));
    if finished && report.error.is_none() && everyone {
        state.forget();
    }
    Ok(report)
}

/// Waits until there is a way to where is sent to, as long as receivers would be waited for.
fn await_network(
    args: &SendArgs,
    to: Destination,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut say = |missing: &NetError| {
        output.line(&format!("waiting: {missing}"));
        output.event("waiting", json!({ "reason": missing.to_string() }));
    };
    let limit = args.group.announce_time;
    let socket = socket_options(&args.socket);
    if farcast_net::wait_to_send(to.private, &socket, limit, stop, &mut say).map_err(Failure::of_net)? {
        return Ok(());
    }
    Err(Failure { sentence: "stopped before there was a way to send".into(), exit: Exit::Failed })
}

/// What only one sender of this host may have at a time: a group or receiver, as seen from one of our addresses.
fn lock_name(args: &SendArgs, to: SocketAddr) -> String {
    let own = farcast_net::own_address(to, &socket_options(&args.socket));
    format!("{to}-{}", own.map_or_else(|_| "any".into(), |own| own.to_string()))
}

/// What clap cannot see.
fn check(args: &SendArgs, to: Destination, pace: RateArg) -> Result<(), Failure> {
    if args.group.unlimited && pace == RateArg::Max {
        return Err(Failure::usage(
            "--rate max needs receivers that register, and --unlimited has none; set a rate",
        ));
    }
    if to.public.port() != to.private.port() {
        return Err(Failure::usage("--announce and --to must have the same port: receivers listen on one"));
    }
    if to.public.is_ipv4() != to.private.is_ipv4() {
        return Err(Failure::usage("--announce and --to must both be IPv4 or both IPv6"));
    }
    if to.private.port() == 0 {
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
        output.line(&format!("not sent: {} ({})", shown(&skipped.path), skipped.reason));
        output
            .event("skipped", json!({ "path": shown(&skipped.path), "reason": skipped.reason.to_string() }));
    }
    Ok(outgoing)
}

fn shown(path: &Path) -> String {
    farcast_files::shown_name(path.as_os_str().as_bytes())
}

fn product_name(args: &SendArgs) -> String {
    // As the list of files calls it: receivers look under this name for an older version.
    let base = |path: &PathBuf| match path.file_name() {
        Some(base) => Some(base.to_owned()),
        None => path.canonicalize().ok()?.file_name().map(ToOwned::to_owned),
    };
    let base = args.paths.first().and_then(base).and_then(|base| base.into_string().ok());
    let mut name = args.name.clone().or(base).unwrap_or_else(|| "product".into());
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

/// How much sending time a late wake-up may make up for at once.
fn credit(args: &SendArgs, rate: BitRate) -> Span {
    let (least, most) = CREDIT;
    rate.time_of_bytes(args.protocol.burst.0).clamp(least, most)
}

fn configure(
    args: &SendArgs,
    to: Destination,
    pace: RateArg,
    product: Product,
    server: SocketAddr,
) -> SenderConfig {
    let protocol = &args.protocol;
    let mut config = SenderConfig::new(product, server, to.private);
    fit(&mut config, args, to);
    let overhead: u16 = if to.private.is_ipv6() { 48 } else { 28 };
    config.public = to.public;
    config.transmission = transmission();
    config.dtu_size = protocol.dtu_size.unwrap_or(config.dtu_size);
    let largest = u32::try_from(wire::block_size_for(config.datagram, 32)).unwrap_or(u32::MAX);
    let datagram = wire::data_len(config.dtu_size as usize) as u64 + u64::from(overhead);
    config.pace = match pace {
        RateArg::Max => Pace::Window { segments: WINDOW, paced: true },
        RateArg::Rate(rate) => Pace::Rate { rate, overhead, credit: credit(args, rate), granule: 1 },
    };
    config.block_size = protocol.block_size.unwrap_or(match pace {
        RateArg::Max => WINDOW_BLOCK,
        // A quarter of a second's DTUs: the first NAKs come while most of the product is still to be sent. Large
        // groups get longer blocks, so that answers stay a small part of what is sent.
        RateArg::Rate(rate) => {
            let members = args.group.receivers.len().max(16) as u64;
            let milliseconds = 250.max(members * 4);
            let dtus = u32::try_from(rate.as_bps() / 8 * milliseconds / 1000 / datagram);
            dtus.unwrap_or(LONGEST_BLOCK).min(LONGEST_BLOCK)
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
        after: args.group.start_after.or((!waits).then_some(OPEN_START)),
    };
    // A receiver that comes late, or starts again after a power cut, waits for the next.
    config.late_announce_interval = LATE_ANNOUNCE;
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
    config.silence = protocol.silence;
    config.round_trip = protocol.rtt.max(Span::from_millis(1));
    config.backoff_window = protocol.spread;
    config.parity_symbols = match protocol.parity {
        ParityArg::Symbols(symbols) => symbols,
        // Nothing shows there that receivers know of parity.
        ParityArg::Auto if args.group.unlimited || args.group.draft => 0,
        ParityArg::Auto => config.automatic_parity(),
    };
    config.parity_ahead = protocol.parity == ParityArg::Auto;
    // The first DTU always carries the beginning of the manifest, and often all of it.
    config.head_segments = 1;
    config.repeat_small_passes = true;
    config.transfer_limit = protocol.time_limit;
    slow_link(&mut config, pace, args.group.receivers.len() as u64);
    config
}

/// For how long data may leave before anybody has registered: where receivers are there most likely, and had no older
/// version the last time.
fn early(args: &SendArgs, known: &Known, name: &str) -> Span {
    let group = &args.group;
    let told = group.start_on_enter || group.wait_for.is_some();
    // Receivers of the draft throw away what comes before they are confirmed.
    let listed = !group.receivers.is_empty() && known.has_all(&group.receivers);
    if listed && !group.draft && !told && !known.compares(name) { EARLY } else { Span::ZERO }
}

/// Makes datagrams fit the way, where it is known to be narrower than Ethernet.
fn fit(config: &mut SenderConfig, args: &SendArgs, to: Destination) {
    let headers = if to.private.is_ipv6() { 48 } else { 28 };
    if let Ok(Some(mtu)) = farcast_net::path_mtu(to.private, &socket_options(&args.socket)) {
        config.datagram = config.datagram.min((mtu as usize).saturating_sub(headers));
        config.dtu_size =
            u32::try_from(wire::dtu_size_for(config.datagram)).unwrap_or(config.dtu_size).max(4);
    }
}

/// About what an announcement without its host list takes, with headers.
const ANNOUNCE_BYTES: u64 = 300;

/// On a slow link announcements must leave room for data: at most a twentieth of the rate.
fn slow_link(config: &mut SenderConfig, pace: RateArg, receivers: u64) {
    if let RateArg::Rate(rate) = pace {
        let room = rate.time_of_bytes(ANNOUNCE_BYTES + 8 * receivers) * 20;
        config.announce_interval = config.announce_interval.max(room);
        config.late_announce_interval = config.late_announce_interval.max(room);
        config.ask_twice = rate.as_bps() >= 1_000_000;
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

fn announce_plan(args: &SendArgs, to: Destination, outgoing: &Outgoing, name: &str, output: &Output) {
    let files = outgoing.manifest().entries().iter().filter(|entry| entry.is_file()).count();
    let what = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let whom = match args.group.receivers.len() {
        0 if args.group.unlimited => "whoever listens".to_owned(),
        0 => "whoever registers".to_owned(),
        n => format!("{n} receivers"),
    };
    let size = size(outgoing.manifest().content_len());
    output.line(&format!("sending {name} ({what}, {size}) to {}, for {whom}", to.private));
}
