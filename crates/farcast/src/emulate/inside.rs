//! The inner process: hosts, programs, and the end of everything.

use std::os::fd::RawFd;

use farcast_capture::history;
use farcast_emu::control::{ControlServer, socket_name};
use farcast_emu::emulation::Emulation;
use farcast_emu::supervise::{Guard, Programs};

use super::live::Live;
use super::session::Session;
use super::{plan, record, show, timeline};
use crate::Failure;
use crate::args::EmulateArgs;

/// Runs what was asked for; the exit code.
pub(crate) fn run(args: &EmulateArgs, lifeline: RawFd) -> Result<u8, Failure> {
    let guard = Guard::adopt(lifeline)?;
    let wish = plan::read(args)?;
    allow_descriptors();
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
    let exit = session.run(&guard)?;
    drop(server);
    let report = emulation.finish()?;
    if let Some(path) = &args.report {
        record::report(path, &wish, &report, exit)?;
    }
    if let (Some(path), Some(history)) = (&args.timeline, &history) {
        timeline::write(path, &wish, &report, history, live.events())?;
    }
    if !args.quiet {
        show::end(&wish, &report);
    }
    Ok(exit)
}

/// Lets this process open as many files as it may: each host has a namespace and a device.
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // What cannot be raised stays, and who runs out of it is told so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
