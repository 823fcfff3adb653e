//! `farcast send`.
//!
//! This module holds the parts that all protocols share. Each protocol has a module of its own, which [`run`] chooses.
//! The module `delivery` shows the protocols without a view of their own.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use farcast_core::{BitRate, Span};
use farcast_files::{Change, ChangedFile, Grain, Outgoing, ScanProgress, Scanning, Skipped, SourceError};
use farcast_net::{NetError, SocketOptions};
use serde_json::{Value, json};

use crate::args::{ChangingArg, SendArgs, SocketArgs};
use crate::host::{Endpoint, Family};
use crate::output::Output;
use crate::progress::{Progress, size};
use crate::protocols::Speaks;
use crate::sealing::{self, Sealing};
use crate::{Exit, Failure, names, outputs, report};

mod compress;
mod delivery;
mod mdp;
mod mftp;
mod nack;
mod named;
mod narrow;
mod norm;
mod one_way;
mod pgm;
mod predict;
mod stream;
mod turn;

pub(crate) use mdp::MdpArgs;
pub(crate) use nack::NackArgs;
pub(crate) use norm::NormArgs;
pub(crate) use one_way::OneWayArgs;
pub(crate) use pgm::PgmArgs;
pub(crate) use stream::StreamArgs;

/// Most changed files that a message names.
const MOST_CHANGED: usize = 10;
/// Longest time by which datagrams that leave together may be ahead of the clock.
const MOST_AHEAD: Span = Span::from_millis(1);

/// Highest number of transmissions, if files change during each.
const TRIES: usize = 10;

pub(crate) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    for number in 0..TRIES {
        match once(args) {
            Ok(Exit::Again) => {}
            // The command line was right at the first try, so a later error is not wrong usage.
            Err(failure) if number > 0 => return Err(Failure { exit: Exit::Failed, ..failure }),
            ended => return ended,
        }
    }
    let sentence =
        format!("files changed each of the {TRIES} times that they were sent; send a copy of them");
    Err(Failure { sentence, exit: Exit::Failed })
}

/// Sends once. Files that change meanwhile are not sent again.
fn once(args: &SendArgs) -> Result<Exit, Failure> {
    args.stream.check()?;
    names::check_all("--receivers", &args.group.receivers)?;
    answer_port(args)?;
    if args.pgm.unicast_port.is_some() && !args.stream.stream {
        return Err(Failure::usage("--unicast-port goes with --stream"));
    }
    let (log, page) = (args.output.log.as_deref(), args.page.report.as_deref());
    for path in &args.paths {
        outputs::outside(
            &[("--log", log), ("--report", page)],
            path,
            "which must not change while it is sent",
        )?;
    }
    if page.is_some() && args.stream.stream {
        return Err(Failure::usage("--report draws how files are delivered, and --stream sends none"));
    }
    if page.is_some() && args.protocol.predict.is_some() {
        return Err(Failure::usage(
            "--report draws a transfer, and --predict sends nothing; farcast simulate --report draws a prediction",
        ));
    }
    compress::check(args)?;
    report::check(&args.output, &args.page, &[("--plan", args.protocol.plan.as_deref())])?;
    let sealing = Sealing::to_send(args)?;
    match args.speaks() {
        Speaks::Mftp => mftp::run(args, sealing.as_ref()),
        Speaks::Norm if args.stream.stream => stream::by_norm(args, sealing.as_ref()),
        Speaks::Pgm if args.stream.stream => stream::by_pgm(args, sealing.as_ref()),
        Speaks::Norm => norm::run(args, sealing.as_ref()),
        Speaks::Mdp => mdp::run(args, sealing.as_ref()),
        Speaks::Pgm => pgm::run(args, sealing.as_ref()),
        Speaks::OneWay => one_way::run(args, sealing.as_ref()),
    }
}

/// Refuses options that do not go with `--answer-port`.
fn answer_port(args: &SendArgs) -> Result<(), Failure> {
    if args.socket.answer_port.is_none() {
        return Ok(());
    }
    if args.pgm.raw {
        return Err(Failure::usage("--answer-port is of UDP, and --raw does without"));
    }
    if args.pgm.unicast_port.is_some() {
        return Err(Failure::usage(
            "--unicast-port and --answer-port both say where to send from: leave one out",
        ));
    }
    if args.speaks() == Speaks::OneWay {
        return Err(Failure::usage("--answer-port: nobody answers what is sent one way"));
    }
    Ok(())
}

/// Returns the destination, with its name resolved.
fn destination(args: &SendArgs) -> Result<SocketAddr, Failure> {
    // A host that is given as an address fixes the family.
    let wanted = args.announce.as_ref().and_then(Endpoint::address).map(Family::of);
    let to = args.to.resolve("--to", wanted)?;
    if to.port() == 0 {
        return Err(Failure::usage("--to must not have port 0"));
    }
    Ok(to)
}

/// Waits until the network has a path to the destination, up to `limit`.
fn await_network(
    args: &SendArgs,
    (to, limit): (SocketAddr, Span),
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut say = |missing: &NetError| {
        output.line(&format!("waiting: {missing}"));
        output.event("waiting", json!({ "reason": missing.to_string() }));
    };
    let socket = socket_options(&args.socket);
    if farcast_net::wait_to_send(to, &socket, limit, stop, &mut say).map_err(Failure::of_net)? {
        return Ok(());
    }
    Err(Failure { sentence: "stopped before there was a way to send".into(), exit: Exit::Failed })
}

/// Returns the octets of a datagram to `to` that passes unfragmented, as far as this host knows.
fn datagram_to(args: &SendArgs, to: SocketAddr) -> usize {
    let mtu = farcast_net::path_mtu(to, &socket_options(&args.socket)).ok().flatten().unwrap_or(1500);
    (mtu as usize).saturating_sub(sealing::headers(to, false).into())
}

/// Reports whether the transfer is sealed, for whom, and with which kinds of receivers' keys.
fn tell_seal(args: &SendArgs, to: SocketAddr, sealing: Option<&Sealing>, output: &mut Output) {
    let Some(sealing) = sealing else { return output.line("not sealed") };
    output.line(&sealing.sentence());
    let Some(hybrids) = sealing.hybrids(datagram_to(args, to)) else { return };
    for line in hybrids.lines() {
        output.line(&line);
    }
    output.event("hybrid_keys", hybrids.fields());
}

/// Returns the message about a file that has changed, in a line and for programs.
fn changed(args: &SendArgs, file: &ChangedFile, name: &str) -> (String, Value) {
    let then = match args.changing {
        ChangingArg::Skip if matches!(args.speaks(), Speaks::Mftp | Speaks::Norm | Speaks::Mdp) => {
            "nothing of it is sent any more"
        }
        // These protocols cannot withdraw a file: its new content is sent, and receivers find it wrong.
        ChangingArg::Skip => "no receiver can complete it",
        ChangingArg::Again => "all is sent again",
        ChangingArg::Fail => "so this ends",
    };
    let line = format!("{name} {}: {then}", file.change.words_while_sent());
    (line, json!({ "path": name, "change": change_word(file.change) }))
}

/// Returns the word for programs on the change of a file.
fn change_word(change: Change) -> &'static str {
    match change {
        Change::Changed => "changed",
        Change::Removed => "removed",
        Change::Replaced => "replaced",
        Change::Unreadable => "unreadable",
    }
}

/// Returns the files that have changed, in words.
fn changed_files(changed: &[ChangedFile]) -> String {
    let one = |file: &ChangedFile| format!("\"{}\" {}", shown(&file.path), file.change.words_while_sent());
    let mut words: Vec<String> = changed.iter().take(MOST_CHANGED).map(one).collect();
    if changed.len() > MOST_CHANGED {
        words.push(format!("and {} more", changed.len() - MOST_CHANGED));
    }
    words.join(", ")
}

/// Returns the files that have changed, for programs.
fn changed_fields(changed: &[ChangedFile]) -> Value {
    changed
        .iter()
        .map(|file| json!({ "path": shown(&file.path), "change": change_word(file.change) }))
        .collect()
}

/// Returns a number of receivers in words.
fn receivers(n: usize) -> String {
    if n == 1 { "1 receiver".into() } else { format!("{n} receivers") }
}

/// Returns the name of the lock: a group or receiver, as seen from one of our addresses. One sender of this host may
/// hold it.
fn lock_name(args: &SendArgs, to: SocketAddr) -> String {
    let own = farcast_net::own_address(to, &socket_options(&args.socket));
    format!("{to}-{}", own.map_or_else(|_| "any".into(), |own| own.to_string()))
}

/// Scans the files that are sent as one product, with a list of files. Sealed products have small parts, because an
/// attacker gains more from damaging them.
fn scan(args: &SendArgs, sealed: bool, output: &mut Output) -> Result<Outgoing, Failure> {
    let grain = if sealed { Grain::Fine } else { Grain::Coarse };
    let scanning = Scanning { grain, compress: args.compress.then(farcast_net::scratch_dir) };
    let outgoing = hashed(output, |progress| Outgoing::scan_by(&scanning, &args.paths, progress))?;
    tell_skipped(outgoing.skipped(), output);
    compress::tell(args, &outgoing, output);
    Ok(outgoing)
}

/// Scans and hashes files by `scan`, and shows the progress.
fn hashed<T>(
    output: &mut Output,
    scan: impl FnOnce(&mut dyn FnMut(ScanProgress)) -> Result<T, SourceError>,
) -> Result<T, Failure> {
    let mut progress = Progress::new(output);
    let clock = farcast_net::Clock::start();
    let found = scan(&mut |p| {
        let message = format!("{} of {}", size(p.hashed), size(p.total));
        progress.update(output, clock.now(), ("hashing", &message), (p.hashed, p.total), &[]);
    });
    progress.clear();
    found.map_err(|error| {
        let failed = matches!(
            error,
            SourceError::Changed { .. } | SourceError::Removed { .. } | SourceError::Spool { .. }
        );
        let exit = if failed { Exit::Failed } else { Exit::Usage };
        Failure { sentence: error.to_string(), exit }
    })
}

/// Reports files that were found and are not sent.
fn tell_skipped(skipped: &[Skipped], output: &mut Output) {
    for skipped in skipped {
        output.line(&format!("not sent: {} ({})", shown(&skipped.path), skipped.reason));
        output
            .event("skipped", json!({ "path": shown(&skipped.path), "reason": skipped.reason.to_string() }));
    }
}

/// Returns the size of the files, and the size as sent if it differs.
fn files_size(outgoing: &Outgoing) -> String {
    let (files, content) = (outgoing.manifest().files_len(), outgoing.manifest().content_len());
    if files == content {
        size(files)
    } else {
        format!("{}, {} as they are sent", size(files), size(content))
    }
}

fn shown(path: &Path) -> String {
    farcast_files::shown_name(path.as_os_str().as_bytes())
}

fn product_name(args: &SendArgs) -> String {
    // The name is the same as in the list of files: receivers look under it for an older version.
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
        port: args.answer_port.unwrap_or(0),
        ttl: u32::from(args.ttl),
        dscp: args.dscp,
        receive_buffer: usize::try_from(args.receive_buffer.0).unwrap_or(usize::MAX),
        offload: !args.no_offload,
        ..SocketOptions::default()
    }
}

/// Returns the time by which a batch may be ahead of the clock: that of the burst at the rate, a millisecond at most.
fn burst(rate: Option<BitRate>, burst: u64) -> Span {
    rate.map_or(MOST_AHEAD, |rate| rate.time_of_bytes(burst).min(MOST_AHEAD))
}
