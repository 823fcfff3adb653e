//! Reactions of a source to the messages that it receives.

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Reject};
use farcast_delivery::Phase;

use super::window::Window;
use super::{MOST_CONFIRMATIONS, REPAIRS, Sender, Timer};
use crate::config::{Advance, Sending};
use crate::event::SenderEvent;
use crate::message::{Ack, Body, Has, Message, Nak, NakKind, NodeId, Opt, Sqn};
use crate::sqn::{GroupWant, Place};

impl Sender {
    pub(super) fn hear(&mut self, now: Time, _from: &Arrival, message: &Message) -> Result<(), Reject> {
        if (message.tsi, message.port) != (self.config.tsi, self.config.port) {
            return Err(Reject::OtherSession);
        }
        if !self.core.is_at_work() {
            return Err(Reject::Unexpected);
        }
        match &message.body {
            Body::Nak(nak) if nak.kind == NakKind::Nak => self.hear_nak(now, nak),
            // A node below repairs what a NNAK names; the source uses only its report of congestion.
            Body::Nak(nak) if nak.kind == NakKind::NullNak => self.hear_report(now, &nak.options, None),
            Body::Spmr => self.hear_spmr(now),
            Body::Ack(ack) => {
                let reported = self.hear_report(now, &ack.options, Some(ack));
                if ack.options.iter().any(|option| matches!(option, Opt::Has(_))) {
                    return self.hear_has(now, ack);
                }
                reported
            }
            _ => Err(Reject::Unexpected),
        }
    }

    /// Confirms a request for repair to all receivers at once, and repairs a little later.
    fn hear_nak(&mut self, now: Time, nak: &Nak) -> Result<(), Reject> {
        let ours = (nak.source, nak.group) == (self.config.source.ip(), self.config.group.ip());
        if !ours {
            return Err(Reject::Inconsistent);
        }
        if nak.parity {
            return self.hear_parity_nak(now, nak);
        }
        let window = self.window.trail..self.window.next;
        let is_there = |place: &Place| window.contains(place) && self.window.has(*place);
        let places: Vec<Place> = nak.sqns().map(|sqn| self.window.next.near(sqn)).filter(is_there).collect();
        if places.is_empty() {
            return Err(Reject::OutOfRange);
        }
        if self.sent.1 > self.sent.0 * REPAIRS.0 + REPAIRS.1 {
            return Err(Reject::Limit);
        }
        // A request without a report of congestion is valid too.
        let _ = self.hear_report(now, &nak.options, None);
        if let Advance::Data { sqns, .. } = self.config.advance
            && places.iter().any(|&place| Window::between(window.start, place) < sqns / 8)
        {
            self.asked_at = Some(now);
        }
        let holdoff = self.config.holdoff;
        let fresh: Vec<Sqn> = places
            .iter()
            .filter(|&&place| self.repairs.ask(now, place, holdoff))
            .map(|place| place.sqn())
            .collect();
        self.confirm(now, nak, &fresh);
        Ok(())
    }

    /// Handles a request for a number of parity packets of each group that it names (RFC 3208 §11.3).
    fn hear_parity_nak(&mut self, now: Time, nak: &Nak) -> Result<(), Reject> {
        let grouping = self.config.parity.filter(|parity| parity.on_demand).ok_or(Reject::Inconsistent)?;
        let asked: Vec<(Sqn, Place, u32)> = nak
            .sqns()
            .filter_map(|sqn| {
                let place = self.window.next.near(sqn);
                let base = place.group(grouping.size);
                let (.., len, _) = self.window.group_at(base)?;
                // The request counts packets of a full group; packets that a short group does not have are not missing.
                let count = (Window::between(base, place) + 1).saturating_sub(grouping.size - len);
                (count > 0 && base >= self.window.trail).then_some((sqn, base, count))
            })
            .collect();
        if self.sent.1 > self.sent.0 * REPAIRS.0 + REPAIRS.1 {
            return Err(Reject::Limit);
        }
        let withdrawn: Vec<Sqn> = nak.sqns().filter(|&sqn| self.is_of_withdrawn(sqn)).collect();
        if asked.is_empty() && withdrawn.is_empty() {
            return Err(Reject::OutOfRange);
        }
        let holdoff = self.config.holdoff;
        let fresh = asked
            .iter()
            .filter(|&&(_, base, count)| self.parities.ask(now, GroupWant { base, count }, holdoff))
            .map(|&(sqn, ..)| sqn);
        let told = |sqn: &Sqn| self.repairs.ask(now, self.window.next.near(*sqn), holdoff);
        let fresh: Vec<Sqn> = fresh.chain(withdrawn.into_iter().filter(told)).collect();
        self.confirm(now, nak, &fresh);
        Ok(())
    }

    /// Confirms the new part of a request, and starts gathering before the repair.
    fn confirm(&mut self, now: Time, nak: &Nak, fresh: &[Sqn]) {
        self.core.note_request(!fresh.is_empty());
        if self.core.phase == Phase::Waiting || self.timers.is_set(Timer::Linger) {
            self.timers.set(Timer::Linger, now + self.linger());
        }
        let Some((&sqn, also)) = fresh.split_first() else { return };
        if self.confirmations.len() < MOST_CONFIRMATIONS {
            let (kind, also, options) = (NakKind::Confirmation, also.to_vec(), Vec::new());
            let (source, group) = (nak.source, nak.group);
            self.confirmations.push_back(Body::Nak(Nak {
                kind,
                parity: nak.parity,
                sqn,
                source,
                group,
                also,
                list_octet: 0,
                options,
            }));
        }
        if self.config.gather.is_zero() {
            self.repair(now);
        } else if !self.timers.is_set(Timer::Gather) {
            self.timers.set(Timer::Gather, now + self.config.gather);
        }
    }

    /// Hands the gathered repairs over for sending.
    pub(super) fn repair(&mut self, now: Time) {
        let is_ready = |this: &Self| this.repairs.is_ready() || this.parities.is_ready();
        let idle = !is_ready(self) && self.window.next == self.window.end;
        self.answer_for_withdrawn(now);
        self.repairs.commit();
        self.parities.commit();
        if idle && is_ready(self) {
            self.core.begin_round(self.repairs.len() + self.parities.len());
        }
    }

    /// Answers a request for an SPM (RFC 3208 §13.4). A receiver that asks just after an SPM has left may have missed
    /// it. It gets the next one as soon as the heartbeat interval permits.
    fn hear_spmr(&mut self, now: Time) -> Result<(), Reject> {
        if self.spms > 0 {
            return Err(Reject::Duplicate);
        }
        match self.last_spm.map(|at| at + self.config.heartbeat).filter(|&next| next > now) {
            Some(next) if self.timers.due(Timer::Ambient) <= next => return Err(Reject::Duplicate),
            Some(next) => self.timers.set(Timer::Ambient, next),
            None => self.spms = 1,
        }
        Ok(())
    }

    /// Takes a receiver's report of congestion, if there is one and congestion control is on.
    fn hear_report(&mut self, now: Time, options: &[Opt], ack: Option<&Ack>) -> Result<(), Reject> {
        let said = options.iter().find_map(|option| match option {
            Opt::Feedback(said) => Some(*said),
            _ => None,
        });
        let (Some(said), Some(cc)) = (said, &mut self.cc) else { return Err(Reject::Unexpected) };
        if cc.report(now, &said, ack)? {
            self.timers.set(Timer::Acker, cc.due(now));
        }
        Ok(())
    }

    /// Notes that a receiver has everything.
    fn hear_has(&mut self, now: Time, ack: &Ack) -> Result<(), Reject> {
        let has = ack.options.iter().find_map(|option| match option {
            Opt::Has(has) => Some(*has),
            _ => None,
        });
        let Has { upto, node } = has.ok_or(Reject::Unexpected)?;
        if self.config.sending == Sending::Messages {
            return self.hear_progress(now, upto, node);
        }
        if self.core.phase != Phase::Waiting || upto != self.window.end.sqn().minus(1) {
            return Err(Reject::OutOfRange);
        }
        let Some(at) = self.lacking.iter().position(|&lacking| lacking == node) else {
            let known = self.config.named.contains(&node);
            return Err(if known { Reject::Duplicate } else { Reject::Stranger });
        };
        self.lacking.remove(at);
        self.has_all(now, node);
        Ok(())
    }

    /// Notes that `node` has everything; the source no longer asks it.
    pub(super) fn has_all(&mut self, now: Time, node: NodeId) {
        self.timers.set(Timer::Linger, now + self.linger());
        self.core.events.push_back(SenderEvent::Acknowledged(node));
        if self.lacking.is_empty() {
            if self.keeping.lost() == 0 && !self.core.has_dismissed() {
                self.core.events.push_back(SenderEvent::Delivered);
            }
            self.conclude();
        }
    }
}
