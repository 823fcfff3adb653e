//! `farcast send` by MFTP.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_transfer::send::ReportOf;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Controls, Exit, Failure, Predict, SendArgs, SendMftp, SendProtocol, Steps, scan, transfer};

mod advice;
mod closing;
mod view;

use view::View;

type SendReport = ReportOf<SendMftp>;

/// Error if standard input has ended and nobody can press Enter.
const NO_ENTER: &str = "--start-on-enter: standard input has ended, so nobody can press Enter; run this on a terminal, or \
    leave it out (--wait-for and --start-after say when to begin)";

pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let job = &args.job;
    let mut view = View::new(Steps::new(args)?);
    if let Some(link) = &args.predict {
        let protocol = SendMftp::new(job, farcast_transfer::send::prepare(job)?)?;
        let files = scan(&protocol, job, &mut view)?;
        return protocol.predict(args, &files, link, view.output());
    }
    let (start, stop) = (Arc::new(AtomicBool::new(false)), crate::interrupt::interrupted()?);
    if job.group.start_on_enter {
        check_enter()?;
        start_on_enter(Arc::clone(&start), Arc::clone(&stop));
    }
    let sent = transfer::<SendMftp>(args, &mut view, Controls { start: &start, stop: &stop })?;
    view.close(&sent)
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
