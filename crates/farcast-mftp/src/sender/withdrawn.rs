//! Withdrawn segments, which cannot be sent any more because their source is gone.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Gone;

use super::{Phase, Sender};
use crate::message::{ClientId, cancel};

/// Number of further passes in which a segment that is gone in part is sent, because some receivers may lack the rest
/// of it. A receiver with the rest still requests the segment, because the content sent in place of the missing part is
/// wrong.
const PARTLY_PASSES: u32 = 5;

/// Segments that are not sent any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Withdrawn {
    /// Segments that are gone, and those that are gone at least in part; `None` while there are none.
    segments: Option<(Bitmap, Bitmap)>,
    /// First pass in which the segments gone in part are no longer sent.
    partly_until: u32,
    /// Reason for which the first source is gone.
    why: String,
    /// Number of further sources that are gone.
    others: u32,
}

impl Sender {
    /// Withdraws the segments `gone`, whose source is gone for the reason `why`. A receiver that lacks nothing else is
    /// not waited for.
    pub fn withdraw(&mut self, gone: &Gone, why: &str) {
        let total = self.geometry.segments();
        let Some(touched) = gone.touched.clip(0, total) else { return };
        let (whole, partly) =
            self.withdrawn.segments.get_or_insert_with(|| (Bitmap::new(total), Bitmap::new(total)));
        partly.insert_run(touched);
        if let Some(run) = gone.whole.and_then(|run| run.clip(0, total)) {
            whole.insert_run(run);
        }
        self.withdrawn.partly_until = self.progress.pass + PARTLY_PASSES;
        if self.withdrawn.why.is_empty() {
            self.withdrawn.why = why.to_string();
        } else {
            self.withdrawn.others = self.withdrawn.others.saturating_add(1);
        }
        let (first, last) = (self.geometry.block_of(touched.first()), self.geometry.block_of(touched.last()));
        for block in first..=last {
            let gone = self.withdrawn_of(block);
            self.schedule.forget(block, &gone);
        }
    }

    /// Returns `true` if a part of `block` is gone, so that its parity has changed.
    pub(super) fn is_torn(&self, block: u32) -> bool {
        let run = self.geometry.block_run(block);
        self.withdrawn.segments.as_ref().zip(run).is_some_and(|((_, partly), run)| partly.count_in(run) > 0)
    }

    /// Returns `true` if any segment is withdrawn.
    pub(super) fn has_withdrawn(&self) -> bool {
        self.withdrawn.segments.is_some()
    }

    /// Returns the withdrawn DTUs of `block`, in order.
    pub(super) fn withdrawn_of(&self, block: u32) -> Vec<Run> {
        let (Some((whole, partly)), Some(run)) = (&self.withdrawn.segments, self.geometry.block_run(block))
        else {
            return Vec::new();
        };
        let withdrawn = if self.progress.pass >= self.withdrawn.partly_until { partly } else { whole };
        let kept = |segment: u32| !withdrawn.contains(segment);
        let mut gone = Vec::new();
        let mut at = run.first();
        while at < run.end() {
            let end = (at..run.end()).find(|&segment| kept(segment) != kept(at)).unwrap_or(run.end());
            if !kept(at) {
                gone.extend(Run::new(at - run.first(), end - at));
            }
            at = end;
        }
        gone
    }

    /// Returns `missing` of `block` without the withdrawn DTUs; `None` if there are none among them.
    pub(super) fn without_withdrawn(&self, block: u32, missing: &Bitmap) -> Option<Bitmap> {
        let mut rest = missing.clone();
        for gone in self.withdrawn_of(block) {
            rest.remove_run(gone);
        }
        (rest.count() < missing.count()).then_some(rest)
    }

    /// Returns `missing` of `block` without segments of which any part is gone. Such a segment was never sent, or came
    /// and is wrong, so it was not lost on the way. `None` if the block has no such segments.
    pub(super) fn without_gone(&self, block: u32, missing: &Bitmap) -> Option<Bitmap> {
        let ((_, touched), run) = self.withdrawn.segments.as_ref().zip(self.geometry.block_run(block))?;
        if touched.count_in(run) == 0 {
            return None;
        }
        let mut rest = Bitmap::new(missing.len());
        let kept = missing.iter_runs().flat_map(Run::segments);
        kept.filter(|&at| !touched.contains(run.first() + at)).for_each(|at| {
            rest.insert(at);
        });
        Some(rest)
    }

    /// Records that a NAK of `client` has requested withdrawn DTUs.
    pub(super) fn note_bereft(&mut self, client: ClientId) {
        let pass = self.progress.pass;
        if let Some(member) = self.members.get_mut(client) {
            member.bereft = Some(pass);
        }
    }

    /// Ends the transmission if no receiver lacks anything that can be sent. Returns `true` if it has ended.
    pub(super) fn end_bereft(&mut self, now: Time) -> bool {
        let pass = Some(self.progress.pass);
        let waits = self.phase == Phase::Waiting && self.has_withdrawn() && self.schedule.is_empty();
        let mut active = self.members.values().filter(|member| member.is_active()).peekable();
        let any = active.peek().is_some();
        if !waits || !any || !active.all(|member| member.bereft == pass) {
            return false;
        }
        let Withdrawn { why, others, .. } = &self.withdrawn;
        let others = match others {
            0 => String::new(),
            1 => ", and another file is not what it was either".into(),
            others => alloc::format!(", and {others} other files are not what they were either"),
        };
        let text = alloc::format!("{why}{others}; all else was delivered");
        self.abort_with(now, cancel::ABORT_SOURCE_CHANGED, Some(text));
        true
    }
}
