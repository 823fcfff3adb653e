//! The inner process: hosts, programs, and the end of everything.

use std::os::fd::RawFd;

use farcast_capture::history;
use farcast_emu::control::{ControlServer, socket_name};
use farcast_emu::emulation::{Emulation, Report};
use farcast_emu::supervise::{Guard, Programs};

use super::live::Live;
use super::session::Session;
use super::{INVALID, NOTHING_PASSED, plan, record, show, timeline};
use crate::Failure;
use crate::args::EmulateArgs;

/// Runs the emulation. Returns the exit code.
pub(crate) fn run(args: &EmulateArgs, lifeline: RawFd) -> Result<u8, Failure> {
    let guard = Guard::adopt(lifeline)?;
    let wish = plan::read(args)?;
    if let Some(error) = guard.refused_proc().filter(|_| !args.quiet) {
        show::line(&format!("note: programs see the processes of the whole machine in /proc: {error}"));
    }
    let history = args.timeline.is_some().then(history::shared);
    let recorder = record::start(args, &wish, history.clone())?;
    let emulation = Emulation::start(wish.plan.clone(), recorder)?;
    if !args.quiet {
        show::begin(&wish, guard.outer());
    }
    let live = Live::new(&wish, guard.outer(), emulation.handle())?;
    let server = ControlServer::start(&socket_name(guard.outer()), live.handler())?;
    let mut session = Session::new(&wish, &emulation, Programs::new(&guard)?, &live);
    let programs = session.run(&guard)?;
    drop(server);
    let report = emulation.finish()?;
    let exit = if programs == 0 { verdict(&report) } else { programs };
    if let Some(path) = &args.report {
        record::report(path, &wish, &report, (exit, programs))?;
    }
    if let (Some(path), Some(history)) = (&args.timeline, &history) {
        timeline::write(path, &wish, &report, history, live.events())?;
    }
    if !args.quiet {
        show::end(&wish, &report, programs);
    }
    Ok(exit)
}

/// Returns the exit code of a run whose programs ended well.
fn verdict(report: &Report) -> u8 {
    if nothing_passed(report) {
        NOTHING_PASSED
    } else if report.valid {
        0
    } else {
        INVALID
    }
}

/// Returns `true` if no packet came through the link. Such a run cannot be valid.
pub(super) fn nothing_passed(report: &Report) -> bool {
    let ways = [&report.forward, &report.back];
    ways.iter().all(|way| way.counts.delivered.packets == 0)
}
