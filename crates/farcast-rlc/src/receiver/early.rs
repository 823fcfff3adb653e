//! Out-of-sequence delivery: SDUs that are complete beyond a missing PDU.

use farcast_core::Payload;

use super::assembly::{deliver, without_last_octet};
use super::{ReceivedPdu, Receiver};
use crate::common::Common;
use crate::pdu::EndedBefore;

/// Place of a segment: its PDU, as an offset from VR(R), and its index in that PDU.
type SegmentPosition = (usize, usize);

impl<P: Payload> Receiver<P> {
    /// Delivers the SDUs that the PDU at `offset`, which has just arrived, completes.
    pub(super) fn deliver_early(&mut self, offset: usize, common: &mut Common<P>) {
        let mut pdu = self.first_that_matters(offset);
        // Start of the current SDU, if it is known.
        let mut begin: Option<SegmentPosition> = None;
        while let Some(received) = self.slots.get(pdu).and_then(Option::as_ref) {
            let before = received.ended_before;
            let count = received.segments.len();
            if before.is_some() {
                self.deliver_between(begin, (pdu, 0), before, common);
                begin = Some((pdu, 0));
            }
            let mut ended = before.is_some();
            for index in 0..count {
                if self.ends(pdu, index) {
                    self.deliver_between(begin, (pdu, index + 1), None, common);
                    begin = Some((pdu, index + 1));
                    ended = true;
                }
            }
            if ended && pdu > offset {
                break;
            }
            pdu += 1;
        }
    }

    /// Returns the PDU from which complete SDUs are looked for: the last one before `offset` in which an SDU ends, or
    /// the first behind a missing PDU.
    fn first_that_matters(&self, offset: usize) -> usize {
        let mut first = offset;
        while first > 0
            && let Some(received) = &self.slots[first - 1]
        {
            first -= 1;
            if received.has_end() {
                break;
            }
        }
        first
    }

    fn ends(&self, pdu: usize, index: usize) -> bool {
        let received = self.slots.get(pdu).and_then(Option::as_ref);
        received.and_then(|received| received.segments.get(index)).is_some_and(|segment| segment.ends)
    }

    /// Delivers the pieces from `begin` to before `end`, unless they have been delivered.
    fn deliver_between(
        &mut self,
        begin: Option<SegmentPosition>,
        end: SegmentPosition,
        before: Option<EndedBefore>,
        common: &mut Common<P>,
    ) {
        let Some((first, from)) = begin else { return };
        let padded = before == Some(EndedBefore::OneOctetShort)
            && end.0.checked_sub(1).and_then(|last| self.slots[last].as_ref()).is_some_and(|last| last.full);
        let mut sdu: Option<P> = None;
        for (pdu, slot) in self.slots.iter_mut().enumerate().take(end.0 + 1).skip(first) {
            let Some(received) = slot else { return };
            let skip = if pdu == first { from } else { 0 };
            let most = if pdu == end.0 { end.1 } else { usize::MAX };
            for segment in received.segments.iter_mut().take(most).skip(skip) {
                match (&mut sdu, segment.data.take()) {
                    (Some(sdu), Some(data)) => sdu.join(data),
                    (sdu @ None, data) => *sdu = data,
                    (Some(_), None) => (),
                }
            }
        }
        let sdu = if padded { sdu.and_then(without_last_octet) } else { sdu };
        match sdu {
            Some(sdu) if sdu.len() as u64 <= u64::from(common.config.max_sdu_octets.get()) => {
                deliver(sdu, common);
            }
            Some(_) => common.counters.sdus_too_long += 1,
            None => (),
        }
    }
}

impl<P> ReceivedPdu<P> {
    /// Returns `true` if the PDU indicates the end of an SDU.
    fn has_end(&self) -> bool {
        self.ended_before.is_some() || self.segments.iter().any(|segment| segment.ends)
    }
}
