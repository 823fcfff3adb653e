//! What cannot be sent any more, because its source is gone.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Gone;

use super::{Phase, Sender};
use crate::message::{ClientId, cancel};

/// In so many more passes a segment is sent of which only a part is gone: others may lack the rest of it. Who has the
/// rest asks for it none the less, because what came in place of the part is wrong.
const PARTLY_PASSES: u32 = 5;

/// Segments that are not sent any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Withdrawn {
    /// Those that are gone, and those of which a part is; `None` while there are none.
    segments: Option<(Bitmap, Bitmap)>,
    /// Up to which pass the latter are sent.
    partly_until: u32,
    /// Why, of the first of them.
    why: String,
    /// Sources besides the first that are gone.
    others: u32,
}

impl Sender {
    /// The source of `gone` is gone, which is said as `why`: they are not sent any more, and who lacks nothing else is
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

    /// Whether a part of `block` is gone: its parity is no longer what it was.
    pub(super) fn is_torn(&self, block: u32) -> bool {
        let run = self.geometry.block_run(block);
        self.withdrawn.segments.as_ref().zip(run).is_some_and(|((_, partly), run)| partly.count_in(run) > 0)
    }

    /// Whether anything is not sent any more.
    pub(super) fn has_withdrawn(&self) -> bool {
        self.withdrawn.segments.is_some()
    }

    /// The DTUs of `block` that are not sent any more, in order.
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

    /// `missing` of `block` without what is not sent any more; whether that was any of it.
    pub(super) fn without_withdrawn(&self, block: u32, missing: &Bitmap) -> Option<Bitmap> {
        let mut rest = missing.clone();
        for gone in self.withdrawn_of(block) {
            rest.remove_run(gone);
        }
        (rest.count() < missing.count()).then_some(rest)
    }

    /// `missing` of `block` without segments of which anything is gone: what lacks there was never sent, or came and is
    /// wrong, and was not lost on the way.
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

    /// A NAK of `client` has asked for what is not sent any more.
    pub(super) fn note_bereft(&mut self, client: ClientId) {
        let pass = self.progress.pass;
        if let Some(member) = self.members.get_mut(client) {
            member.bereft = Some(pass);
        }
    }

    /// Ends it where nobody lacks anything that can be sent; whether it has.
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
