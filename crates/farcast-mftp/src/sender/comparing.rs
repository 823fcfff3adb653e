//! Comparison before the first pass, for receivers that hold older versions of the product. The list of files is sent
//! alone. The receivers compare it with their files, and then request what they lack.

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run, Span, Time};

use super::delivery::SendStep;
use super::members::Member;
use super::{Phase, Sender, Timer};
use crate::message::{ClientId, Nak};

/// Maximum time for which the other receivers wait for those that compare, and number of requests in a row without an
/// answer after which a comparing receiver is no longer waited for.
const COMPARE_WAIT: Span = Span::from_secs(60);
const COMPARE_ROUNDS: u32 = 5;

/// Maximum number of receivers that are asked by name.
const FEW: usize = 64;
/// Minimum size of a DTU, in octets, that always tells the length of the list.
const LEAST_DTU: u32 = 16;

/// Progress of the list of files.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    /// Segments of the list that are to be sent.
    wanted: Bitmap,
    /// Time at which the whole list had been sent for the first time.
    since: Option<Time>,
    /// `true` while the list is being sent.
    sending: bool,
    /// Number of requests since it was sent.
    rounds: u32,
}

impl Sender {
    /// Returns the number of segments that were never sent, because all receivers held them.
    pub fn left_out(&self) -> u32 {
        self.progress.asked.as_ref().map_or(0, |asked| asked.len() - asked.count())
    }

    /// Returns `true` if receivers compare their files with the list of files before anything else is sent.
    pub fn compares(&self) -> bool {
        self.progress.listing.is_some()
    }

    /// Returns `true` if there is a list to compare with, whose first segment can tell its length.
    pub(super) fn can_list(&self) -> bool {
        self.config.list_segments > 0 && u32::from(self.geometry.segment_size()) >= LEAST_DTU
    }

    /// Begins to send the list of files alone if any receiver compares it. Returns `true` if so.
    pub(super) fn begin_listing(&mut self, now: Time) -> bool {
        let segments = self.config.list_segments.min(self.geometry.segments());
        let compared = self.can_list() && self.members.values().any(|m| m.is_active() && m.compares);
        let Some(all) = Run::new(0, segments).filter(|_| compared) else { return false };
        let mut wanted = Bitmap::new(segments);
        wanted.insert_run(all);
        if let Some(asked) = &mut self.progress.asked {
            asked.insert_run(all);
        }
        self.progress.listing = Some(Listing { wanted, since: None, sending: false, rounds: 0 });
        self.send_list(now);
        true
    }

    /// Sends the requested segments of the list.
    pub(super) fn send_list(&mut self, now: Time) {
        let Some(listing) = &mut self.progress.listing else { return };
        (listing.sending, listing.rounds) = (true, 0);
        self.phase = Phase::Sending;
        self.timers.stop(Timer::StatusRetry);
        self.pacer.begin(now);
        let progress = &mut self.progress;
        (progress.block, progress.step, progress.sent_in_pass) = (None, SendStep::NextBlock, 0);
        (progress.twice, progress.parity) = (true, 0);
    }

    /// Returns the list while it is being sent.
    fn listing(&self) -> Option<&Listing> {
        self.progress.listing.as_ref().filter(|listing| listing.sending)
    }

    pub(super) fn is_listing(&self) -> bool {
        self.listing().is_some()
    }

    /// Returns the number of segments of the list that are yet to be sent, while it is being sent.
    pub(super) fn left_of_list(&self) -> Option<u32> {
        self.listing().map(|listing| listing.wanted.count())
    }

    /// Returns the first block at or after `from` with such segments.
    pub(super) fn list_block(&self, from: u32) -> Option<u32> {
        let next = self.listing()?.wanted.next_set(from.checked_mul(self.geometry.block_size())?)?;
        Some(self.geometry.block_of(next))
    }

    /// Takes these segments of `block`, as DTUs of the block.
    pub(super) fn take_list(&mut self, block: u32) -> Vec<Run> {
        let (first, run) = (block * self.geometry.block_size(), self.geometry.block_run(block));
        let (Some(listing), Some(run)) = (&mut self.progress.listing, run) else { return Vec::new() };
        let mut runs = Vec::new();
        while let Some(next) =
            listing.wanted.next_run(run.first()).and_then(|r| r.clip(run.first(), run.end()))
        {
            listing.wanted.remove_run(next);
            runs.extend(Run::new(next.first() - first, next.count()));
        }
        runs
    }

    /// Ends the sending of the list. Returns `true` if more of it was requested meanwhile.
    pub(super) fn end_list(&mut self, now: Time) -> bool {
        let Some(listing) = self.progress.listing.as_mut().filter(|listing| listing.sending) else {
            return false;
        };
        listing.sending = false;
        // Receivers can compare from now on.
        listing.since.get_or_insert(now);
        let more = !listing.wanted.is_empty();
        more && self.is_patient(now)
    }

    /// Returns `true` if comparing receivers are still waited for.
    fn is_patient(&self, now: Time) -> bool {
        let since = self.progress.listing.as_ref().and_then(|listing| listing.since);
        since.is_none_or(|since| now.since(since) < COMPARE_WAIT)
    }

    /// Handles a NAK before the first pass. A receiver without the whole list requests that alone. Returns `true` if it
    /// did.
    pub(super) fn nak_of_list(&mut self, now: Time, m: &Nak) -> bool {
        let before_data = self.progress.pass == 0 && m.pass == 0 && self.is_patient(now);
        let Some(listing) = self.progress.listing.as_mut().filter(|_| before_data) else { return false };
        let first = m.block * self.geometry.block_size();
        let end = listing.wanted.len();
        let runs = || m.missing.iter_runs().filter_map(|run| Run::new(first + run.first(), run.count()));
        let member = self.members.get_mut(m.client).filter(|member| member.compares);
        let Some(member) = member else { return false };
        if runs().any(|run| run.end() > end) {
            member.compares = false;
            return false;
        }
        for run in runs().filter_map(|run| run.clip(0, end)) {
            listing.wanted.insert_run(run);
        }
        if self.phase == Phase::Waiting && self.progress.pass == 0 && !listing.wanted.is_empty() {
            self.send_list(now);
        }
        true
    }

    /// Returns the comparing receivers, if only they are to be asked because the others have already answered; `None`
    /// to ask everyone.
    pub(super) fn still_comparing(&self, now: Time) -> Option<Vec<ClientId>> {
        let compares = |(&id, m): (&ClientId, &Member)| (m.is_active() && m.compares).then_some(id);
        let hosts: Vec<ClientId> = self.members.iter().filter_map(compares).collect();
        let few = hosts.len() <= FEW && hosts.len() < self.members.active() as usize;
        (few && self.awaits_comparison(now)).then_some(hosts)
    }

    /// Counts another request for missing segments before the first pass.
    pub(super) fn count_comparing(&mut self) {
        if let Some(listing) = &mut self.progress.listing {
            listing.rounds = listing.rounds.saturating_add(1);
        }
    }

    /// Returns the number of vain requests to comparing receivers.
    pub(super) fn comparing_rounds(&self) -> u32 {
        let listing = self.progress.listing.as_ref().filter(|_| self.progress.pass == 0);
        listing.map_or(0, |listing| listing.rounds)
    }

    /// Returns `true` if the first pass waits for a comparing receiver.
    pub(super) fn awaits_comparison(&self, now: Time) -> bool {
        let patient = self.compares() && self.progress.pass == 0 && self.is_patient(now);
        let compares = |m: &Member| m.is_active() && m.compares && m.silent_rounds <= COMPARE_ROUNDS;
        patient && self.members.values().any(compares)
    }
}
