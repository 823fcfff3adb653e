//! `farcast emulate`: unmodified programs behind an emulated link, in real time.
//!
//! The process that the user starts reads the wish first, so that errors come before anything else. It then starts
//! itself again as the inner process ([`farcast_emu::supervise`] says why). The inner process makes the hosts, starts
//! the programs and waits.

mod events;
mod inside;
mod live;
mod plan;
mod record;
mod session;
mod show;
mod timeline;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use farcast_emu::supervise::{self, Exit};
use farcast_lab::shipped;

use crate::args::EmulateArgs;
use crate::text::Text;
use crate::{Failure, output, stdio};

/// Exit code of farcast's own failures.
pub(crate) const OWN_FAILURE: u8 = 125;
/// Exit code if the programs ended well but this machine was too busy for the link.
pub(crate) const INVALID: u8 = 122;
/// Exit code if the programs ended well but no packet came through the link.
pub(crate) const NOTHING_PASSED: u8 = 123;

/// Runs the command. The exit code is that of the near program.
pub(crate) fn run(args: &EmulateArgs) -> ExitCode {
    let (result, failed) = match (&args.control, args.inside) {
        (Some(which), _) => (view::run(which), crate::Exit::Failed as u8),
        (None, Some(lifeline)) => (inside::run(args, lifeline), OWN_FAILURE),
        (None, None) => (outside(args), OWN_FAILURE),
    };
    let exit = result.unwrap_or_else(|failure| {
        output::error(&failure.sentence);
        failed
    });
    ExitCode::from(if exit == 0 && stdio::lost() { failed } else { exit })
}

/// Checks the wish, and starts the inner process.
fn outside(args: &EmulateArgs) -> Result<u8, Failure> {
    if args.list {
        let out = output::Output::for_people();
        for link in shipped::links() {
            out.result(&Text::line(&format!("{:<14}  {}", link.name(), link.title())));
        }
        return Ok(0);
    }
    if let (Some(log), Some(page)) = (&args.from, &args.timeline) {
        return timeline::from_log(args, log, page).map(|()| 0);
    }
    plan::read(args)?;
    record::check(args)?;
    let exit = supervise::contain(|lifeline| {
        // The flag stands before what the user wrote, which may end in a command.
        let own: [OsString; 3] = ["emulate".into(), "--inside".into(), lifeline.to_string().into()];
        own.into_iter().chain(std::env::args_os().skip(2)).collect()
    })?;
    match exit {
        Exit::Code(_) => Ok(exit.code()),
        Exit::Signal(signal) => Err(Failure::usage(format!(
            "signal {signal} ended the process that ran the emulation, and everything with it: if it was not you, see \
             what the kernel's log says of memory"
        ))),
    }
}

/// Exit code for a command line that makes no sense. Elsewhere that is 2, which may be the near program's code here.
pub(crate) fn usage_exit() -> ExitCode {
    ExitCode::from(OWN_FAILURE)
}
