//! `--wait`: one's turn on a group that another sender has.

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

/// How often is looked whether the sender on this host has gone.
const LOOK_EVERY: Span = Span::from_millis(500);

/// Waits for the group, as far as `--wait` allows.
pub(super) struct Turn<'a> {
    args: &'a SendArgs,
    /// Where data goes.
    to: SocketAddr,
    clock: Clock,
    /// When the time is over; it begins with the first wait.
    end: Option<Time>,
    /// For whom it waits, as was said last.
    said: String,
}

impl<'a> Turn<'a> {
    pub(super) fn new(args: &'a SendArgs, to: SocketAddr) -> Self {
        Self { args, to, clock: Clock::start(), end: None, said: String::new() }
    }

    /// Takes the lock that only one sender of this host has at a time; and whether it had to be waited for.
    ///
    /// # Errors
    /// Another has it, and is not waited for any longer; or it was stopped.
    pub(super) fn lock(&mut self, output: &mut Output, stop: &AtomicBool) -> Result<(Lock, bool), Failure> {
        self.take(("", self.to, Beside::Nobody), output, stop)
    }

    /// The same of announcements of sealed transfers to `public`: one in which nobody registers is over for its receivers
    /// once they hear of another, and so has them for itself.
    ///
    /// # Errors
    /// As of [`lock`](Self::lock).
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
            // Our own address, of which the name is made, may have changed meanwhile.
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

    /// When the time is over for who begins to wait now, or has begun before; at once without `--wait`.
    fn end(&mut self, now: Time) -> Time {
        let limit = self.args.group.wait.unwrap_or(Span::ZERO);
        *self.end.get_or_insert(now + limit)
    }

    /// Says for whom it waits, if that is news.
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

    /// Shows the same on a terminal; elsewhere one line is enough.
    fn show(&self, progress: &mut Progress, output: &Output, whom: &str) {
        if progress.shows_lines() {
            progress.update(output, self.clock.now(), ("waiting", &format!("for {whom}")), (0, 1), &[]);
        }
    }
}

/// Another sender that is known by what it sends.
pub(super) fn other(by: SocketAddr) -> String {
    format!("a transmission from {by}")
}

/// Why nothing is sent to a group that is in use by `whom`.
pub(super) fn refusal(args: &SendArgs, to: SocketAddr, whom: &str) -> String {
    let still = if args.group.wait.is_some() { "still " } else { "" };
    format!("{to} is {still}in use by {whom}; wait for its end (--wait) or choose another group or port")
}
