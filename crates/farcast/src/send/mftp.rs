//! `farcast send` by MFTP.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_files::Outgoing;
use farcast_mftp::message::cancel;
use farcast_mftp::settings::{Rate, Settings};
use farcast_mftp::{Codec, ConfigError, Mftp, Product, Sender, SenderConfig, SenderEvent, SenderOutcome};
use farcast_net::{SendOptions, Waited};
use farcast_seal::Contents;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::turn::{self, Turn};
use super::{await_network, burst, datagram_to, product_name, receivers, socket_options};
use crate::args::SendArgs;
use crate::host::Family;
use crate::output::Output;
use crate::sealing::{self, Sealing};
use crate::state::{Known, State};
use crate::{Exit, Failure};

mod advice;
mod closing;
mod predict;
mod settings;
mod view;

use settings::configuration;
use view::View;

type SendNotice<'a> = farcast_net::SendNotice<'a, SenderEvent>;
type SendReport = farcast_net::SendReport<Sender>;

/// Longest time for which data leaves after the first announcement, before receivers have registered. It is longer than
/// registrations take over a satellite, and shorter than the time after which others take the group for used.
const EARLY: Span = Span::from_millis(900);

/// Error if standard input has ended and nobody can press Enter.
const NO_ENTER: &str = "--start-on-enter: standard input has ended, so nobody can press Enter; run this on a terminal, or \
    leave it out (--wait-for and --start-after say when to begin)";

/// Addresses of a transfer, with names resolved.
#[derive(Clone, Copy, Debug)]
struct Destination {
    /// Address of announcements.
    public: SocketAddr,
    /// Address of data.
    private: SocketAddr,
}

impl Destination {
    fn of(args: &SendArgs) -> Result<Self, Failure> {
        let private = super::destination(args)?;
        let family = Some(Family::of(private.ip()));
        let public =
            args.announce.as_ref().map(|announce| announce.resolve("--announce", family)).transpose()?;
        Ok(Self { public: public.unwrap_or(private), private })
    }
}

pub(super) fn run(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Exit, Failure> {
    let settings = settings::of(args)?;
    let to = Destination::of(args)?;
    check(args, to, (&settings, sealing.is_some()))?;
    let mut output = Output::new(&args.output)?;
    let mut outgoing = super::scan(args, sealing.is_some(), &mut output)?;
    let name = product_name(args);
    if let Some(link) = &args.protocol.predict {
        return predict::predict(args, (to, &settings), (&outgoing, sealing), link, &mut output);
    }
    let (start, stop) = (Arc::new(AtomicBool::new(false)), crate::interrupt::interrupted()?);
    await_network(args, (to.private, settings.announce_time), &mut output, &stop)?;
    let mut turn = Turn::new(args, to.private);
    let (_lock, waited) = turn.lock(&mut output, &stop)?;
    let announced = sealing.map(|_| turn.lock_announcements(to.public, &mut output, &stop)).transpose()?;
    if waited || announced.as_ref().is_some_and(|&(_, waited)| waited) {
        // Files that have changed meanwhile are sent as they are now.
        outgoing = super::scan(args, sealing.is_some(), &mut output)?;
    }
    if args.group.start_on_enter {
        start_on_enter(Arc::clone(&start), Arc::clone(&stop));
    }
    announce_plan(args, to, &outgoing, &name, &output);
    super::tell_seal(args, to.private, sealing, &mut output);
    loop {
        let mut view = View::new(&mut output, args, to.private, name.clone(), &outgoing);
        let sent = transmit(args, (to, &settings, sealing), outgoing, &name, (&start, &stop), &mut view);
        let mut report = match sent {
            Ok(report) => report,
            Err(failure) => return view.failed(failure),
        };
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
        await_network(args, (to.private, settings.announce_time), &mut output, &stop)?;
        outgoing = super::scan(args, sealing.is_some(), &mut output)?;
    }
}

/// Returns the outcome of the transfer.
fn outcome(report: &SendReport) -> &SenderOutcome {
    match &report.end {
        SenderEvent::Ended(outcome) => outcome,
        // Any other event is no success.
        _ => &SenderOutcome::Aborted { reason: cancel::ABORT_SYSTEM },
    }
}

/// Sends the product once.
fn transmit(
    args: &SendArgs,
    (to, settings, sealing): (Destination, &Settings, Option<&Sealing>),
    outgoing: Outgoing,
    name: &str,
    (start, stop): (&AtomicBool, &AtomicBool),
    view: &mut View<'_>,
) -> Result<SendReport, Failure> {
    let mut state = State::load(outgoing.id(), to.private);
    let options = SendOptions {
        to: to.private,
        socket: socket_options(&args.socket),
        burst: burst(limit(settings), settings.burst),
        changing: args.changing.of(),
        // A receiver that is done has verified its data.
        look_again: false,
    };
    let remembered = state.done().to_vec();
    let mut known = Known::load(to.private);
    // A long list of keys together with data would be too much at once.
    let few = sealing.is_none_or(Sealing::is_for_few);
    let early_data = if state.done().is_empty() && few { early(args, &known, name) } else { Span::ZERO };
    let waits = args.group.wait.is_some();
    let mut observer = |now: Time, sender: &Sender, notice: &SendNotice<'_>| {
        view.note(now, sender, notice);
        match notice {
            // The sender waits for the group, so this is not the end yet.
            SendNotice::Event(SenderEvent::Ended(SenderOutcome::GroupInUse { .. })) if waits => {}
            SendNotice::Event(event) => {
                if let SenderEvent::Done { client, .. } = event {
                    state.add(*client);
                }
                view.observe(now, sender, Some(event));
            }
            SendNotice::Tick(_) => view.observe(now, sender, None),
            notice => view.way(notice),
        }
    };
    let secret = if args.group.draft { None } else { Some(crate::state::random_secret()?) };
    let list = outgoing.manifest().head_len();
    let product = Product { id: *outgoing.id().as_bytes(), size: outgoing.size(), name: name.into() };
    let make = |server: SocketAddr| {
        let config = configuration(args, (to, settings, sealing.is_some()), list, product, server);
        let mut sender = Sender::new(SenderConfig { secret, early_data, ..config })?;
        // The sender does not wait for a receiver that had everything in an earlier run.
        for client in remembered {
            sender.remember(client);
        }
        Ok::<_, ConfigError>(sender)
    };
    // Without registration no receiver asks for the key of content.
    let contents = if args.group.unlimited { Contents::Together } else { Contents::Apart };
    let scope = sealing::scope(args.speaks(), false, to.public);
    let keys = (limit(settings), keys_in(args, to, settings));
    let seal = |sealing: &Sealing| sealing.sender((scope, contents), keys);
    let mut seal = sealing.map(seal).transpose()?;
    let with = (&Codec, seal.as_mut());
    let report =
        farcast_net::send::<Mftp, _>(vec![outgoing], with, &options, make, (start, stop), &mut observer);
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

/// Returns the most octets of a datagram with keys.
fn keys_in(args: &SendArgs, to: Destination, settings: &Settings) -> usize {
    settings.dtu_size.map_or(usize::MAX, |dtu| dtu as usize).min(datagram_to(args, to.private))
}

/// Returns the rate, or `None` if receivers set the pace.
fn limit(settings: &Settings) -> Option<farcast_core::BitRate> {
    match settings.rate {
        Rate::Max => None,
        Rate::Limit(rate) => Some(rate),
    }
}

/// Checks the options against each other, beyond the checks that clap makes.
fn check(args: &SendArgs, to: Destination, (settings, sealed): (&Settings, bool)) -> Result<(), Failure> {
    if args.group.start_on_enter && args.protocol.predict.is_none() {
        check_enter()?;
    }
    if let Some(after) = settings.start_after.filter(|&after| after > settings.announce_time) {
        let limit = settings.announce_time;
        return Err(Failure::usage(format!(
            "--start-after {after} is later than --announce-time {limit}, at which it begins or gives up: give a longer \
             --announce-time"
        )));
    }
    if args.group.unlimited && settings.rate == Rate::Max {
        return Err(Failure::usage(
            "--rate max needs receivers that register, and --unlimited has none; set a rate",
        ));
    }
    if args.group.unlimited && !args.group.receivers.is_empty() && !sealed {
        return Err(Failure::usage(
            "--receivers names who gets the keys of an --unlimited transfer, and this one is not sealed: leave one of them out",
        ));
    }
    if args.group.unlimited && settings.wait_for.is_some() {
        return Err(Failure::usage(
            "the plan says start_receivers, and with --unlimited nobody registers: leave one of them out",
        ));
    }
    let listed = args.group.receivers.len();
    if let Some(wanted) = settings.wait_for.filter(|&wanted| listed > 0 && wanted as usize > listed) {
        return Err(Failure::usage(format!(
            "--wait-for {wanted} waits for more than the {listed} in --receivers: nobody else is served"
        )));
    }
    if to.public.port() != to.private.port() {
        return Err(Failure::usage("--announce and --to must have the same port: receivers listen on one"));
    }
    if to.public.is_ipv4() != to.private.is_ipv4() {
        return Err(Failure::usage("--announce and --to must both be IPv4 or both IPv6"));
    }
    Ok(())
}

/// Returns the time for which data may leave before any receiver has registered. It is more than zero if the listed
/// receivers are most likely there, and compared no older version the last time.
fn early(args: &SendArgs, known: &Known, name: &str) -> Span {
    let group = &args.group;
    let told = group.start_on_enter || group.wait_for.is_some() || group.unlimited;
    // Receivers of the draft throw away data that arrives before they are confirmed.
    let listed = !group.receivers.is_empty() && known.has_all(&group.receivers);
    if listed && !group.draft && !told && !known.compares(name) { EARLY } else { Span::ZERO }
}

/// Returns a Transmission Identifier that no earlier run is likely to have had.
#[expect(clippy::disallowed_methods, reason = "the command line is no engine")]
pub(super) fn transmission() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mixed =
        (since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 32) as u32).max(1)
}

#[expect(clippy::disallowed_methods, reason = "the command line owns its threads")]
fn start_on_enter(start: Arc<AtomicBool>, stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut line = Vec::new();
        if std::io::stdin().lock().read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            return start.store(true, Ordering::Relaxed);
        }
        crate::output::error(NO_ENTER);
        stop.store(true, Ordering::Relaxed);
    });
}

/// Checks that standard input is not at its end already, so that somebody can press Enter.
fn check_enter() -> Result<(), Failure> {
    let input = std::io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let readable = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0);
    // Text that is there is left for the thread that waits for Enter.
    if !readable || input.lock().fill_buf().is_ok_and(|text| !text.is_empty()) {
        return Ok(());
    }
    Err(Failure::usage(NO_ENTER))
}

fn announce_plan(args: &SendArgs, to: Destination, outgoing: &Outgoing, name: &str, output: &Output) {
    let files = outgoing.manifest().entries().iter().filter(|entry| entry.is_file()).count();
    let what = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let whom = match args.group.receivers.len() {
        0 if args.group.unlimited => "whoever listens".to_owned(),
        0 => "whoever registers".to_owned(),
        n if args.group.unlimited => format!("whoever listens of {}", receivers(n)),
        n => receivers(n),
    };
    let size = super::files_size(outgoing);
    output.line(&format!("sending {name} ({what}, {size}) to {}, for {whom}", to.private));
}
