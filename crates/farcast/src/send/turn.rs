//! `--wait`: waits for a group that another sender uses.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_mftp::{Codec, Neighbourhood};
use farcast_net::{Clock, Waited};
use serde_json::{Value, json};

use super::{lock_name, socket_options};
use crate::args::SendArgs;
use crate::lock::{Beside, Lock};
use crate::output::Output;
use crate::progress::Progress;
use crate::{Exit, Failure};

/// Interval at which the sender on this host is checked for its end.
const LOOK_EVERY: Span = Span::from_millis(500);

/// Wait for a group, as far as `--wait` allows.
pub(super) struct Turn<'a> {
    args: &'a SendArgs,
    /// Destination of data.
    to: SocketAddr,
    clock: Clock,
    /// Time at which the wait is over. The limit starts with the first wait.
    end: Option<Time>,
    /// Last message that named the sender that is waited for.
    said: String,
}

impl<'a> Turn<'a> {
    pub(super) fn new(args: &'a SendArgs, to: SocketAddr) -> Self {
        Self { args, to, clock: Clock::start(), end: None, said: String::new() }
    }

    /// Takes the lock that only one sender of this host has at a time. Returns it with `true` if it had to wait.
    ///
    /// # Errors
    /// Another sender has the lock and the wait is over, or the command was stopped.
    pub(super) fn lock(&mut self, output: &mut Output, stop: &AtomicBool) -> Result<(Lock, bool), Failure> {
        self.take(("", self.to, Beside::Nobody), output, stop)
    }

    /// Takes the lock for announcements of sealed transfers to `public`. Transfers with registration share it. A
    /// transfer without registration needs it alone: its receivers take it for over once they hear another one.
    ///
    /// # Errors
    /// The same errors as those of [`lock`](Self::lock).
    pub(super) fn lock_announcements(
        &mut self,
        public: SocketAddr,
        output: &mut Output,
        stop: &AtomicBool,
    ) -> Result<(Lock, bool), Failure> {
        let beside = if self.args.group.unlimited { Beside::Nobody } else { Beside::Others };
        self.take(("sealed-", public, beside), output, stop)
    }

    fn take(
        &mut self,
        (kind, to, beside): (&str, SocketAddr, Beside),
        output: &mut Output,
        stop: &AtomicBool,
    ) -> Result<(Lock, bool), Failure> {
        let mut waiting: Option<Progress> = None;
        let held = loop {
            // The name contains our own address, which may have changed meanwhile.
            let owner = match Lock::take(&format!("{kind}{}", lock_name(self.args, to)), beside) {
                Ok(lock) => break Ok((lock, waiting.is_some())),
                Err(owner) => owner,
            };
            let process = owner.map_or_else(String::new, |pid| format!(", process {pid}"));
            let whom = format!("another farcast send on this host{process}");
            let now = self.clock.now();
            if now >= self.end(now) {
                break Err(Failure { sentence: refusal(self.args, to, &whom), exit: Exit::Failed });
            }
            if stop.swap(false, Ordering::Relaxed) {
                break Err(Failure { sentence: format!("stopped before {to} was free"), exit: Exit::Failed });
            }
            self.say(output, (to, &whom), json!({ "process": owner }));
            let progress = waiting.get_or_insert_with(|| Progress::new(output));
            self.show(progress, output, &whom);
            let due = (now + LOOK_EVERY).min(self.end(now));
            let _ = self.clock.wait(&[], due)?;
        };
        if let Some(mut progress) = waiting {
            progress.clear();
        }
        held
    }

    /// Waits for the end of a transmission that was heard on the group.
    ///
    /// # Errors
    /// The group cannot be listened to.
    pub(super) fn after(
        &mut self,
        (by, transmission): (SocketAddr, u32),
        output: &mut Output,
        stop: &AtomicBool,
    ) -> Result<Waited, Failure> {
        let now = self.clock.now();
        let left = self.end(now).since(now);
        if left.is_zero() {
            return Ok(Waited::Over);
        }
        let whom = other(by);
        self.say(output, (self.to, &whom), json!({ "address": by.to_string() }));
        let mut progress = Progress::new(output);
        let mut tick = || self.show(&mut progress, output, &whom);
        let socket = socket_options(&self.args.socket);
        let theirs = |now| Neighbourhood::of(now, by, transmission);
        let waited = farcast_net::wait_until_free(self.to, &socket, (&Codec, theirs), left, stop, &mut tick);
        progress.clear();
        waited.map_err(Failure::of_net)
    }

    /// Returns the time at which the wait is over. It is fixed by the first call, and is at once without `--wait`.
    fn end(&mut self, now: Time) -> Time {
        let limit = self.args.group.wait.unwrap_or(Span::ZERO);
        *self.end.get_or_insert(now + limit)
    }

    /// Reports the sender that is waited for, unless that was the last report.
    fn say(&mut self, output: &mut Output, (to, whom): (SocketAddr, &str), mut fields: Value) {
        let reason = format!("{to} is in use by {whom}");
        if self.said == reason {
            return;
        }
        self.said.clone_from(&reason);
        output.line(&format!("waiting: {reason}; this one begins when the group is free"));
        fields["reason"] = reason.into();
        output.event("waiting", fields);
    }

    /// Shows the wait on a terminal. Elsewhere one line is enough.
    fn show(&self, progress: &mut Progress, output: &Output, whom: &str) {
        if progress.shows_lines() {
            progress.update(output, self.clock.now(), ("waiting", &format!("for {whom}")), (0, 1), &[]);
        }
    }
}

/// Describes another sender by its address.
pub(super) fn other(by: SocketAddr) -> String {
    format!("a transmission from {by}")
}

/// Returns the error for a group that is in use by `whom`.
pub(super) fn refusal(args: &SendArgs, to: SocketAddr, whom: &str) -> String {
    let still = if args.group.wait.is_some() { "still " } else { "" };
    format!("{to} is {still}in use by {whom}; wait for its end (--wait) or choose another group or port")
}
