//! Comparison with stored older versions of the files, whose parts need not be sent.

use farcast_core::{Bitmap, Run, Time};

use super::Receiver;
use super::answers::{Question, naks};
use super::session::Comparison;
use crate::event::ReceiverEvent;
use crate::message::{Body, StatusRequest, StatusType};

/// Number of requests for which the receiver waits until the owner tells the length of the list, once it has the list's
/// first segment.
const ASKED: u8 = 20;

impl Receiver {
    /// Stores the owner's report that the first `segments` are the list of files.
    pub fn list_is(&mut self, segments: u32) {
        if let Some(session) = &mut self.session
            && let Comparison::Due { list, .. } = &mut session.comparison
        {
            *list = Some(segments.min(session.have.len()));
        }
    }

    /// Stores the owner's report that it knows the list of files, and could compare.
    pub fn listed(&mut self) {
        if let Some(session) = &mut self.session
            && let Comparison::Due { .. } = session.comparison
        {
            session.comparison = Comparison::Listed;
        }
    }

    /// Handles the owner's report that it has compared and also holds these segments. A bitmap of another length counts
    /// as empty.
    pub fn compared(&mut self, now: Time, held: &Bitmap) {
        let Some(session) = &mut self.session else { return };
        let Comparison::Running(question) = session.comparison else { return };
        session.comparison = Comparison::None;
        if held.len() == session.have.len() {
            self.held(held);
        }
        // If the product is complete, a Done is the answer.
        if self.session.as_ref().is_some_and(|session| session.control.is_receiving()) {
            self.hold_answers(now, question, None);
        }
    }

    /// Handles a status request if there is something to compare. Returns `true` if it is answered here.
    pub(super) fn asked_to_compare(&mut self, now: Time, m: &StatusRequest) -> bool {
        let Some(session) = &mut self.session else { return false };
        match session.comparison {
            Comparison::None => return false,
            // Everything is being sent, so the usual NAKs answer the request.
            Comparison::Due { .. } | Comparison::Listed if m.pass > 0 && !session.restart => {
                session.whole = true;
                return false;
            }
            Comparison::Due { list, asked } => return self.ask_for_list(now, m, list, asked),
            Comparison::Listed => self.events.push_back(ReceiverEvent::Compare),
            Comparison::Running(_) => {}
        }
        session.comparison = Comparison::Running(Question::of(m));
        // The sender must not mistake the time of the comparison for silence.
        self.acknowledge(now, m.pass, m.blocks);
        true
    }

    /// Requests the missing segments of the list, whose first segment tells its length. Returns `true` if that is the
    /// answer to the status request.
    fn ask_for_list(&mut self, now: Time, m: &StatusRequest, list: Option<u32>, asked: u8) -> bool {
        let Some(session) = &mut self.session else { return false };
        let geometry = *session.geometry();
        let end = list.unwrap_or(1).saturating_sub(1);
        let block = geometry.block_of(end);
        let question = Question {
            blocks: Run::new(0, block + 1).unwrap_or(Run::one(0)),
            dtus: Run::new(0, geometry.block_size()).unwrap_or(Run::one(0)),
            ..Question::of(m)
        };
        let most = self.config.naks_per_request;
        let mut missing = naks(session, &question, &session.terms, self.config.id, most);
        let within = end - block * geometry.block_size() + 1;
        if let Some(behind) = missing.last_mut().filter(|nak| nak.block == block)
            && let Some(run) = Run::new(within, behind.missing.len().saturating_sub(within))
        {
            behind.missing.remove_run(run);
        }
        missing.retain(|nak| !nak.missing.is_empty());
        let nothing = missing.is_empty();
        if nothing && asked >= ASKED {
            session.comparison = Comparison::None;
            return false;
        }
        let asked = if nothing { asked + 1 } else { asked };
        session.comparison = Comparison::Due { list, asked };
        for nak in missing {
            self.answer(now, Body::Nak(nak));
        }
        // If no segment is missing, the owner is about to report.
        if nothing || m.status == StatusType::All {
            self.acknowledge(now, m.pass, m.blocks);
        }
        true
    }
}
