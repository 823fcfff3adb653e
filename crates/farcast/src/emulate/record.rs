//! `--log`, `--trace` and `--report`: files that a run writes. `timeline.rs` writes the page of plots.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_capture::history::HistorySink;
use farcast_capture::output::{Output, StagedFile};
use farcast_capture::packets::{self, PacketLog};
use farcast_capture::pcapng::Writer;
use farcast_capture::recorder::{Recorder, RecorderConfig};
use farcast_emu::emulation::Report;

use super::inside::nothing_passed;
use super::plan::Wish;
use super::timeline::Shared;
use crate::args::EmulateArgs;
use crate::{Failure, outputs};

/// Checks that every file can be written, before the run begins: a user should not learn it after the results are
/// there.
pub(crate) fn check(args: &EmulateArgs) -> Result<(), Failure> {
    let files = [
        ("--log", args.log.as_deref()),
        ("--trace", args.trace.as_deref()),
        ("--report", args.report.as_deref()),
        ("--timeline", args.timeline.as_deref()),
    ];
    outputs::files(&files)?;
    let link = args.link.as_deref().map(Path::new).filter(|path| path.is_file());
    outputs::distinct(&[&[("the link", link)], &files[..]].concat())?;
    for path in [&args.log, &args.trace, &args.report, &args.timeline].into_iter().flatten() {
        // The staged file has no name yet, and never gets one.
        StagedFile::create(path)
            .map_err(|error| Failure::usage(format!("cannot write \"{}\": {error}", path.display())))?;
    }
    Ok(())
}

/// Starts the recorder, if anything is to be recorded.
pub(crate) fn start(
    args: &EmulateArgs,
    wish: &Wish,
    history: Option<Shared>,
) -> Result<Option<Recorder>, Failure> {
    let seed = wish.plan.link.seed.to_string();
    let about =
        [("farcast", env!("CARGO_PKG_VERSION")), ("link", wish.name.as_str()), ("seed", seed.as_str())];
    let log = args.log.as_ref().map(|path| packets::create(path, &about)).transpose()?;
    let log = match history {
        Some(history) => Some(Box::new(HistorySink::new(history, log)) as Box<dyn PacketLog>),
        None => log,
    };
    let capture = args.trace.as_ref().map(|path| capture(path, wish)).transpose()?;
    if log.is_none() && capture.is_none() {
        return Ok(None);
    }
    Ok(Some(Recorder::start(&RecorderConfig::default(), log, capture)?))
}

/// Creates a capture with an interface for each host, the hub's first.
fn capture(path: &Path, wish: &Wish) -> Result<Writer<Box<dyn Output>>, Failure> {
    let file: Box<dyn Output> = Box::new(StagedFile::create(path).map_err(|error| {
        Failure::usage(format!("cannot write the capture \"{}\": {error}", path.display()))
    })?);
    let mut writer = Writer::starting_at(file, unix_nanos());
    let application = concat!("farcast ", env!("CARGO_PKG_VERSION"));
    writer.section(application, &format!("link {}, seed {}", wish.name, wish.plan.link.seed));
    for place in super::session::places(&wish.plan) {
        writer.interface(&wish.name_of(place), &place.address().to_string());
    }
    Ok(writer)
}

#[expect(clippy::disallowed_methods, reason = "a capture says when, and the command line is no engine")]
fn unix_nanos() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Writes the report, whole or not at all.
pub(crate) fn report(
    path: &Path,
    wish: &Wish,
    report: &Report,
    (exit, programs_exit): (u8, u8),
) -> Result<(), Failure> {
    #[derive(serde::Serialize)]
    struct Whole<'a> {
        farcast: &'static str,
        link: &'a str,
        exit: u8,
        programs_exit: u8,
        nothing_passed: bool,
        #[serde(flatten)]
        report: &'a Report,
    }
    let farcast = env!("CARGO_PKG_VERSION");
    let nothing_passed = nothing_passed(report);
    let whole = Whole { farcast, link: &wish.name, exit, programs_exit, nothing_passed, report };
    let text = serde_json::to_string_pretty(&whole)?;
    let write = || -> io::Result<()> {
        let mut file = Box::new(StagedFile::create(path)?);
        writeln!(file, "{text}")?;
        file.commit()
    };
    write()
        .map_err(|error| Failure::usage(format!("cannot write the report \"{}\": {error}", path.display())))
}
