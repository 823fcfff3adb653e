//! Assembly of pieces into SDUs, in the order of the PDUs.

use farcast_core::Payload;

use super::ReceivedPdu;
use crate::common::Common;
use crate::event::Event;
use crate::pdu::EndedBefore;

/// The SDU that is being put together.
#[derive(Clone, Debug)]
pub(super) struct Assembly<P> {
    partial: Option<P>,
    state: State,
    /// `true` if the last PDU was [full](ReceivedPdu::full).
    full: bool,
}

/// Fate of the pieces up to the next end of an SDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The pieces are put together.
    Collecting,
    /// The pieces are dropped: pieces before them are missing.
    Lost,
    /// The pieces are dropped: the SDU is too long.
    TooLong,
}

impl<P> Default for Assembly<P> {
    fn default() -> Self {
        Self { partial: None, state: State::Collecting, full: false }
    }
}

impl<P: Payload> Assembly<P> {
    /// Takes the next PDU. `keeps` returns `true` for each end in it, numbered from 1, whose SDU is to be delivered.
    pub(super) fn take(
        &mut self,
        received: ReceivedPdu<P>,
        keeps: impl Fn(u8) -> bool,
        common: &mut Common<P>,
    ) {
        let mut ends = 0u8;
        if let Some(before) = received.ended_before {
            ends = 1;
            if before == EndedBefore::OneOctetShort && self.full {
                self.partial = self.partial.take().and_then(without_last_octet);
            }
            self.end(keeps(ends), common);
        }
        for segment in received.segments {
            if let Some(data) = segment.data {
                self.push(data, common);
            }
            if segment.ends {
                ends = ends.saturating_add(1);
                self.end(keeps(ends), common);
            }
        }
        self.full = received.full;
    }

    /// Notes that the next PDU is lost.
    pub(super) fn lose(&mut self) {
        *self = Self { state: State::Lost, ..Self::default() };
    }

    /// Begins anew with the next PDU.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn push(&mut self, data: P, common: &Common<P>) {
        if self.state != State::Collecting {
            return;
        }
        // One octet more may turn out to be padding.
        let most = common.config.max_sdu_octets.get() as usize + 1;
        if self.partial.as_ref().map_or(0, Payload::len) + data.len() > most {
            (self.partial, self.state) = (None, State::TooLong);
            return;
        }
        match &mut self.partial {
            Some(partial) => partial.join(data),
            None => self.partial = Some(data),
        }
    }

    /// Ends an SDU; delivers it if `keep` and it is not too long.
    fn end(&mut self, keep: bool, common: &mut Common<P>) {
        let state = core::mem::replace(&mut self.state, State::Collecting);
        let sdu = self.partial.take();
        let most = common.config.max_sdu_octets.get() as usize;
        let too_long = state == State::TooLong || sdu.as_ref().is_some_and(|sdu| sdu.len() > most);
        common.counters.sdus_too_long += u64::from(too_long);
        if let Some(sdu) = sdu.filter(|_| keep && !too_long) {
            deliver(sdu, common);
        }
    }
}

/// Delivers `sdu`, if its pieces belong together.
pub(super) fn deliver<P: Payload>(sdu: P, common: &mut Common<P>) {
    if sdu.is_whole() {
        common.counters.sdus_delivered += 1;
        common.events.push_back(Event::Delivered(sdu));
    } else {
        common.counters.sdus_broken += 1;
    }
}

/// Returns `sdu` without the octet of padding at its end; `None` if nothing is left.
pub(super) fn without_last_octet<P: Payload>(mut sdu: P) -> Option<P> {
    let len = sdu.len().saturating_sub(1);
    Some(sdu.split_to(len)).filter(|sdu| !sdu.is_empty())
}
