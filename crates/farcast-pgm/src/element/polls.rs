//! Polls (RFC 3208 §14): an element seeks repairers beside the tree, and is counted by the one above.

use alloc::vec::Vec;
use core::net::IpAddr;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Span, Time};

use super::Element;
use super::config::ElementConfig;
use crate::message::{Body, Opt, Poll, Polr, Sqn};
use crate::ports::Ports;

/// Sub-type of polls that every node answers (§14.7.1).
pub(crate) const GENERAL: u16 = 0;
/// Sub-type of polls that seek repairers (§14.7.2).
const REPAIRERS: u16 = 1;
/// Interval over which repairers spread their answers, in microseconds: a round trip of a LAN or a short path; not in
/// RFC 3208.
const POLL_BACKOFF_US: u32 = 100_000;

/// The latest poll that was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    sqn: Sqn,
    round: u16,
    /// The poll seeks repairers.
    seeks: bool,
    /// Time at which the poll will be answered; `None` if it will not, or was.
    pub(super) answer: Option<Time>,
}

/// Returns the seed of an element's random draws, which also decides the polls that it answers: its repairer's seed, or
/// its address.
pub(super) fn lot(config: &ElementConfig) -> u64 {
    match (&config.store, config.ports.first()) {
        (Some(store), _) => store.seed,
        (None, Some(IpAddr::V4(own))) => own.to_bits().into(),
        (None, Some(IpAddr::V6(own))) => own.to_bits() as u64,
        (None, None) => 0,
    }
}

impl Element {
    /// Seeks repairers beside the tree, if it is time for that (§14).
    pub(super) fn poll_if_due(&mut self, now: Time, at: usize) {
        let Some(interval) = self.config.polls.filter(|_| self.sessions[at].next_poll <= now) else { return };
        let random = self.random.bits() as u32;
        let session = &mut self.sessions[at];
        session.next_poll = now + interval;
        session.polls = session.polls.wrapping_add(1);
        let (sqn, upstream, group) = (Sqn(session.polls), session.upstream.port, session.group);
        for port in self.ports().without(Ports::one(upstream)).numbers() {
            let Some(path) = self.address(port, group) else { continue };
            let poll = Poll {
                sqn,
                round: 0,
                subtype: REPAIRERS,
                path: path.ip(),
                backoff_us: POLL_BACKOFF_US,
                random,
                mask: 0,
                options: Vec::new(),
            };
            self.send_down(at, port, Body::Poll(poll));
        }
    }

    /// Handles a poll of the parent, which counts its neighbours or seeks repairers. Only a repairer beside the tree
    /// answers the latter.
    pub(super) fn hear_poll(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        poll: &Poll,
    ) -> Result<(), Reject> {
        let session = &self.sessions[at];
        let is_parent = self.is_from_above(at, from) && poll.path == session.upstream.address.ip();
        let seeks = poll.subtype == REPAIRERS && self.is_beside();
        if !is_parent || !(seeks || poll.subtype == GENERAL) {
            return Err(Reject::Unexpected);
        }
        poll.follows(session.polled.map(|heard| (heard.sqn, heard.round)))?;
        let is_meant = (lot(&self.config) as u32 ^ poll.random) & poll.mask == 0;
        let most = u64::from(poll.backoff_us).max(1) * 1000;
        let answer = is_meant.then(|| now + Span::from_nanos(1 + self.random.below(most)));
        // The answer to an earlier poll is no longer wanted.
        self.sessions[at].polled = Some(Polled { sqn: poll.sqn, round: poll.round, seeks, answer });
        Ok(())
    }

    /// Answers the latest poll, if it is time for that.
    pub(super) fn answer_poll(&mut self, now: Time, at: usize) {
        let session = &mut self.sessions[at];
        let Some(polled) =
            session.polled.as_mut().filter(|polled| polled.answer.is_some_and(|due| due <= now))
        else {
            return;
        };
        polled.answer = None;
        let (Polled { sqn, round, seeks, .. }, upstream) = (*polled, session.upstream);
        if let Some(own) = self.address(upstream.port, upstream.address) {
            let options = if seeks { alloc::vec![Opt::Redirect(own.ip())] } else { Vec::new() };
            self.send_to(at, upstream, Body::Polr(Polr { sqn, round, parity: false, options }));
        }
    }
}
