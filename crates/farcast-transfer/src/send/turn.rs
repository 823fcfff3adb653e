//! Waiting for a group that another sender uses.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_delivery::{Codec, Delivery, Occupancy, QUIET, Silence};
use farcast_net::{Clock, GroupWait, Waited};

use super::{Locked, Preparation, SendJob};
use crate::Error;
use crate::lock::{Beside, Lock};

/// Interval at which the sender on this host is checked for its end.
const LOOK_EVERY: Span = Span::from_millis(500);

/// Wait for a group, as long as the job allows.
#[derive(Debug)]
pub struct Turn<'a> {
    job: &'a SendJob,
    /// Destination of data.
    to: SocketAddr,
    clock: Clock,
    /// Time at which the wait is over. The limit starts with the first wait.
    end: Option<Time>,
    /// Last message that named the sender that is waited for.
    said: String,
}

/// Other transmission on the group.
#[derive(Debug)]
pub(super) struct Other<'a, C, O> {
    /// Address of its sender.
    pub(super) by: SocketAddr,
    /// Codec of its messages.
    pub(super) codec: &'a C,
    /// Maker of the judge that takes the group for used by it at a time.
    pub(super) occupancy: O,
}

impl<'a> Turn<'a> {
    pub(super) fn new(job: &'a SendJob, to: SocketAddr) -> Self {
        Self { job, to, clock: Clock::start(), end: None, said: String::new() }
    }

    /// Takes the lock that only one sender of this host has at a time.
    ///
    /// # Errors
    /// Another sender has the lock and the wait is over, or `stop` was set.
    pub(super) fn lock(
        &mut self,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Locked, Error> {
        self.take("", self.to, Beside::Nobody, note, stop)
    }

    /// Takes the lock for announcements of sealed transfers to `public`. Transfers with registration share it. A
    /// transfer without registration needs it alone: its receivers take it for over once they hear another one.
    ///
    /// # Errors
    /// The same errors as those of [`lock`](Self::lock).
    pub(super) fn lock_announcements(
        &mut self,
        public: SocketAddr,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Locked, Error> {
        let beside = if self.job.group.unlimited { Beside::Nobody } else { Beside::Others };
        self.take("sealed-", public, beside, note, stop)
    }

    fn take(
        &mut self,
        kind: &str,
        to: SocketAddr,
        beside: Beside,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Locked, Error> {
        let mut waited = false;
        let held = loop {
            // The name contains our own address, which may have changed meanwhile.
            let owner = match Lock::take(&format!("{kind}{}", lock_name(self.job, to)), beside) {
                Ok(lock) => break Ok(Locked { locks: vec![lock], waited }),
                Err(owner) => owner,
            };
            let process = owner.map_or_else(String::new, |pid| format!(", process {pid}"));
            let whom = format!("another farcast send on this host{process}");
            let now = self.clock.now();
            if now >= self.end(now) {
                break Err(Error::failed(refusal(self.job, to, &whom)));
            }
            if stop.swap(false, Ordering::Relaxed) {
                break Err(Error::failed(format!("stopped before {to} was free")));
            }
            waited = true;
            self.say(note, to, &whom, (owner, None));
            note(Preparation::Waiting { whom: &whom, now });
            let due = (now + LOOK_EVERY).min(self.end(now));
            let _ = self.clock.wait(&[], due)?;
        };
        if waited {
            note(Preparation::Waited);
        }
        held
    }

    /// Waits for the end of a transmission that was heard on the group.
    ///
    /// # Errors
    /// The group cannot be listened to.
    pub(super) fn after<C: Codec, O: Occupancy<Message = C::Message>>(
        &mut self,
        Other { by, codec, occupancy }: Other<'_, C, impl FnOnce(Time) -> O>,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Waited, Error> {
        let now = self.clock.now();
        let left = self.end(now).since(now);
        if left.is_zero() {
            return Ok(Waited::Over);
        }
        let whom = other(by);
        self.say(note, self.to, &whom, (None, Some(by)));
        let clock = &self.clock;
        let mut tick = |_| note(Preparation::Waiting { whom: &whom, now: clock.now() });
        let socket = self.job.socket.socket();
        let wait = GroupWait { group: self.to, socket: &socket, codec, limit: left, stop };
        let waited = farcast_net::wait_until_free(&wait, occupancy, &mut tick);
        note(Preparation::Waited);
        Ok(waited?)
    }

    /// Listens until no other sender is heard on the group, if the job waits for that. Returns `true` if one was heard.
    ///
    /// # Errors
    /// Another sender is still heard when the wait is over, `stop` was set, or the group cannot be listened to.
    pub(super) fn until_silent<C: Codec<Message: Delivery>>(
        &mut self,
        codec: &C,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<bool, Error> {
        if self.job.group.wait.is_none() || !self.to.ip().is_multicast() {
            return Ok(false);
        }
        let now = self.clock.now();
        let limit = self.end(now).since(now).max(QUIET);
        let socket = self.job.socket.socket();
        let wait = GroupWait { group: self.to, socket: &socket, codec, limit, stop };
        let mut last = None;
        let waited = farcast_net::wait_until_free(&wait, Silence::new, &mut |heard| {
            let Some(by) = heard else { return };
            let whom = other(by);
            if last != Some(by) {
                last = Some(by);
                self.say(note, self.to, &whom, (None, Some(by)));
            }
            note(Preparation::Waiting { whom: &whom, now: self.clock.now() });
        })?;
        if last.is_some() {
            note(Preparation::Waited);
        }
        match (waited, last) {
            (Waited::Stopped, _) => Err(Error::failed(format!("stopped before {} was free", self.to))),
            (Waited::Over, Some(by)) => Err(Error::failed(refusal(self.job, self.to, &other(by)))),
            _ => Ok(last.is_some()),
        }
    }

    /// Returns the time at which the wait is over. It is fixed by the first call, and is at once if the job does not
    /// wait.
    fn end(&mut self, now: Time) -> Time {
        let limit = self.job.group.wait.unwrap_or(Span::ZERO);
        *self.end.get_or_insert(now + limit)
    }

    /// Reports the sender that is waited for, by its process or its address, unless that was the last report.
    fn say(
        &mut self,
        note: &mut dyn FnMut(Preparation<'_>),
        to: SocketAddr,
        whom: &str,
        (process, address): (Option<u32>, Option<SocketAddr>),
    ) {
        let reason = format!("{to} is in use by {whom}");
        if self.said != reason {
            self.said = reason;
            note(Preparation::GroupInUse { to, whom, process, address });
        }
    }
}

/// Returns the name of the lock: a group or receiver, as seen from one of our addresses. One sender of this host may
/// hold it.
fn lock_name(job: &SendJob, to: SocketAddr) -> String {
    let own = farcast_net::own_address(to, &job.socket.socket());
    format!("{to}-{}", own.map_or_else(|_| "any".into(), |own| own.to_string()))
}

/// Describes another sender by its address.
pub(super) fn other(by: SocketAddr) -> String {
    format!("a transmission from {by}")
}

/// Returns the error for a group that is in use by `whom`.
pub(super) fn refusal(job: &SendJob, to: SocketAddr, whom: &str) -> String {
    let still = if job.group.wait.is_some() { "still " } else { "" };
    format!("{to} is {still}in use by {whom}; wait for its end (--wait) or choose another group or port")
}
