//! Status requests and their answers (draft §11.2.2, §4.1.1).

use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::Geometry;

use super::Receiver;
use super::control::Terms;
use super::session::Pending;
use crate::message::{Ack, Body, ClientId, Nak, StatusRequest, StatusType};

/// Content of a status request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    pub(crate) pass: u32,
    pub(crate) blocks: Run,
    pub(crate) dtus: Run,
    pub(crate) status: StatusType,
}

impl Question {
    pub(crate) fn of(m: &StatusRequest) -> Self {
        Self { pass: m.pass, blocks: m.blocks, dtus: m.dtus, status: m.status }
    }

    /// Returns the segments of the block that the request asks about, if it is one of several in the first pass.
    pub(crate) fn single_block(&self, geometry: &Geometry) -> Option<Run> {
        let single = self.pass == 1 && self.blocks.count() == 1 && geometry.blocks() > 1;
        geometry.block_run(self.blocks.first()).filter(|_| single)
    }

    /// Returns the segments of `block` that the request asks about.
    pub(crate) fn segments(&self, terms: &Terms, block: u32) -> Option<Run> {
        let run = terms.geometry().block_run(block)?;
        let first = run.first() + self.dtus.first().min(run.count());
        Run::new(first, self.dtus.count().min(run.count()))?.clip(run.first(), run.end())
    }
}

/// Segments that a receiver lacks: a bitmap in an engine, a list for one receiver of a population.
pub(crate) trait Gaps {
    /// Returns the first lacking segment at or after `from`.
    fn next_gap(&self, from: u32) -> Option<u32>;
    /// Calls `each` with the runs of lacking segments in `run`, in order.
    fn gaps_in(&self, run: Run, each: &mut dyn FnMut(Run));
    /// Returns `true` if the owner is rebuilding `block` from parity, so that none of it need be requested.
    fn is_rebuilding(&self, block: u32) -> bool;
    /// Returns the number of parity symbols of `block` that are held.
    fn parity_held(&self, block: u32) -> u32;
}

/// Returns the NAKs of `client` that answer `question`, at most `most`: one for each block of which it lacks segments.
pub(crate) fn naks(
    gaps: &impl Gaps,
    question: &Question,
    terms: &Terms,
    client: ClientId,
    most: u32,
) -> Vec<Nak> {
    let mut naks = Vec::new();
    let mut block = question.blocks.first();
    while block < question.blocks.end() && naks.len() < most as usize {
        // Complete blocks are skipped: a restart may ask about many.
        let Some(gap) = gaps.next_gap(block.saturating_mul(terms.geometry().block_size())) else { break };
        block = block.max(terms.geometry().block_of(gap));
        if block >= question.blocks.end() {
            break;
        }
        naks.extend(nak(gaps, question, terms, client, block));
        block += 1;
    }
    naks
}

/// Returns the NAK of `block`, if a requested segment is missing there and is not being rebuilt.
pub(crate) fn nak(
    gaps: &impl Gaps,
    question: &Question,
    terms: &Terms,
    client: ClientId,
    block: u32,
) -> Option<Nak> {
    let asked = question.segments(terms, block).filter(|_| !gaps.is_rebuilding(block))?;
    let mut missing = empty_map(terms, block);
    let first = block * terms.geometry().block_size();
    gaps.gaps_in(asked, &mut |gap| {
        if let Some(run) = Run::new(gap.first() - first, gap.count()) {
            missing.insert_run(run);
        }
    });
    let parity_held = gaps.parity_held(block);
    let (server, pass) = (terms.server, question.pass);
    let nak = Nak { server, client, pass, block, missing, parity_held, unstored: 0 };
    (!nak.missing.is_empty()).then_some(nak)
}

/// Returns `true` if a receiver with these gaps would answer `question`, for the block of `theirs`, with a NAK of the
/// same DTUs (draft §4.1.1).
pub(crate) fn says_the_same(gaps: &impl Gaps, question: &Question, terms: &Terms, theirs: &Nak) -> bool {
    let block = theirs.block;
    if question.pass != theirs.pass || !question.blocks.contains(block) || gaps.is_rebuilding(block) {
        return false;
    }
    let Some(asked) = question.segments(terms, block) else { return false };
    let first = block * terms.geometry().block_size();
    let (mut missing, mut contained) = (0, theirs.missing.len() == map_len(terms, block));
    gaps.gaps_in(asked, &mut |gap| {
        missing += gap.count();
        let of_block = Run::new(gap.first() - first, gap.count());
        contained &= of_block.is_some_and(|run| theirs.missing.count_in(run) == run.count());
    });
    contained && missing > 0 && missing == theirs.missing.count()
}

/// Returns the bitmap of a NAK of `block` without missing DTUs.
pub(crate) fn empty_map(terms: &Terms, block: u32) -> Bitmap {
    Bitmap::new(map_len(terms, block))
}

/// Returns the length of the bitmap of a NAK of `block`.
fn map_len(terms: &Terms, block: u32) -> u32 {
    terms.geometry().block_len(block).next_multiple_of(8)
}

impl Receiver {
    /// Answers `question`, after a part of `window`, or else of the back-off window.
    pub(super) fn hold_answers(&mut self, now: Time, question: Question, window: Option<Span>) {
        let Some(session) = &self.session else { return };
        if session.pending.as_ref().is_some_and(|pending| pending.question == question) {
            // A request sent twice against loss must not undo the spreading of its answers.
            return;
        }
        // Answers to the last request that are still held back go before those to a new one (draft §4.1.1).
        self.send_answers(now);
        let backoff = if let Some(window) = window { self.part_of(now, window) } else { self.backoff(now) };
        let Some(session) = &mut self.session else { return };
        session.pending = Some(Pending { question, suppressed: alloc::collections::BTreeSet::new() });
        if backoff.is_zero() {
            self.send_answers(now);
        } else {
            session.control.answer_at(now + backoff);
        }
    }

    /// Sends the NAKs that are held back, and the ACK if it was requested.
    pub(super) fn send_answers(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        session.control.answered();
        let Some(pending) = session.pending.take() else { return };
        let question = pending.question;
        let naks = naks(session, &question, &session.terms, self.config.id, self.config.naks_per_request);
        for mut nak in naks {
            if pending.suppressed.contains(&nak.block) {
                self.stats.suppressed += 1;
                if let Some(session) = &mut self.session {
                    self.stats.lost += u64::from(session.note_asked(&question, &mut nak));
                }
                continue;
            }
            self.stats.naks += 1;
            self.stats.naked_dtus += u64::from(nak.missing.count());
            if let Some(session) = &mut self.session {
                session.naked_dtus += u64::from(nak.missing.count());
                self.stats.lost += u64::from(session.note_asked(&question, &mut nak));
            }
            self.answer(now, Body::Nak(nak));
        }
        if question.status == StatusType::All {
            // The ACK comes last, so that the sender has all NAKs before it.
            self.acknowledge(now, question.pass, question.blocks);
        }
    }

    pub(super) fn acknowledge(&mut self, now: Time, pass: u32, blocks: Run) {
        let Some(session) = &self.session else { return };
        let (server, client) = (session.terms.server, self.config.id);
        self.answer(now, Body::Ack(Ack { server, pass, blocks, client }));
    }

    /// Handles another receiver's NAK, which makes the same NAK of this receiver needless (draft §4.1.1).
    pub(super) fn overheard(&mut self, transmission: u32, theirs: &Nak) -> Result<(), Reject> {
        let id = self.config.id;
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        let other = transmission != session.terms.transmission || theirs.server != session.terms.server;
        if other || theirs.client == id {
            return Err(Reject::OtherSession);
        }
        let question = session.pending.as_ref().map(|pending| pending.question).ok_or(Reject::Unexpected)?;
        if !says_the_same(session, &question, &session.terms, theirs) {
            return Err(Reject::Unexpected);
        }
        if let Some(pending) = &mut session.pending {
            pending.suppressed.insert(theirs.block);
        }
        Ok(())
    }
}
