//! Withdrawn segments of an object, which its sender does not send any more.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run};
use farcast_delivery::Gone;

use super::reception::Reception;
use crate::message::Withdrawn;

/// Withdrawn segments, as far as they are known.
#[derive(Clone, Debug)]
pub(super) struct Withdrawal {
    /// Segments that do not come, or do not come as they were. They count as available, so that nothing waits for
    /// them.
    pub(super) gone: Bitmap,
    /// Segments that are gone at least in part. What is left of them still comes.
    pub(super) touched: Bitmap,
    /// Reason for which a file is withdrawn, and the number of withdrawn files.
    why: String,
    files: u32,
}

impl Withdrawal {
    /// Returns the reason in words, without a full stop.
    pub(super) fn sentence(&self) -> String {
        match self.files {
            0 | 1 => self.why.clone(),
            2 => format!("{}, and another file is not what it was either", self.why),
            files => format!("{}, and {} other files are not what they were either", self.why, files - 1),
        }
    }
}

impl Reception {
    /// Handles a message about withdrawn segments.
    pub(super) fn withdraw(&mut self, said: &Withdrawn) -> Result<(), Reject> {
        let segments = self.geometry().segments();
        let is_there = |gone: &Gone| gone.touched.end() <= segments;
        if said.gone.is_empty() || !said.gone.iter().all(is_there) {
            return Err(Reject::OutOfRange);
        }
        let new = || Withdrawal {
            gone: Bitmap::new(segments),
            touched: Bitmap::new(segments),
            why: said.why.clone(),
            files: 0,
        };
        let withdrawal = self.withdrawal.get_or_insert_with(|| Box::new(new()));
        let before = withdrawal.touched.count();
        withdrawal.files = withdrawal.files.max(said.files);
        for Gone { whole, touched } in &said.gone {
            withdrawal.touched.insert_run(*touched);
            if let Some(whole) = whole {
                withdrawal.gone.insert_run(*whole);
            }
        }
        if withdrawal.touched.count() == before {
            return Err(Reject::Duplicate);
        }
        self.drop_torn_parity();
        self.pass_over_gone();
        Ok(())
    }

    /// Returns `true` if a segment of `run` is withdrawn at least in part. Parity of its block is then useless: it is of
    /// the content before.
    pub(super) fn is_torn(&self, run: Run) -> bool {
        self.withdrawal.as_ref().is_some_and(|withdrawal| withdrawal.touched.count_in(run) > 0)
    }

    /// Counts segments that are gone as available.
    pub(super) fn pass_over_gone(&mut self) {
        if let Some(withdrawal) = self.withdrawal.as_ref().filter(|_| self.is_receiving()) {
            self.have.union(&withdrawal.gone);
        }
    }

    /// Keeps the segments of `lost` that are gone in part: they came, and what they had of other files is stored.
    /// Returns `true` if nothing else was lost.
    pub(super) fn forgive(&mut self, lost: Run) -> bool {
        let Some(withdrawal) = &mut self.withdrawal else { return false };
        for segment in lost.segments().filter(|&segment| withdrawal.touched.contains(segment)) {
            withdrawal.gone.insert(segment);
            self.have.insert(segment);
        }
        self.have.count_in(lost) == lost.count()
    }

    /// Returns `true` if all of `segments` are gone.
    pub(super) fn are_gone(&self, segments: Run) -> bool {
        let all = |withdrawal: &Withdrawal| withdrawal.gone.count_in(segments) == segments.count();
        self.withdrawal.as_deref().is_some_and(all)
    }
}
