//! The request to move the window, and its answer (TS 25.322 section 11.6.3).

use farcast_core::Payload;

use super::{ReceivedPdu, Receiver, number};
use crate::common::Common;
use crate::pdu::{MoveWindow, SuperField};

impl<P: Payload> Receiver<P> {
    /// Stops waiting for PDUs before the last number of `field`, and delivers the SDUs that are complete there.
    ///
    /// An SDU that the field names as given up is not delivered even if it is complete. If other SDUs end in the PDU
    /// that lists it, it cannot be told from them, and none of them is dropped.
    pub(crate) fn move_window(&mut self, field: &MoveWindow, common: &mut Common<P>) {
        let Some((&to, listed)) = field.sns.split_last() else { return };
        let steps = to.since(number(self.next));
        if steps > common.config.rx_window + u16::from(field.beyond_window) {
            // The window is already beyond that number.
            self.move_ack = Some((number(self.next), 0));
            return;
        }
        for left in (0..steps).rev() {
            let this = number(self.next);
            self.next += 1;
            let Some(received) = self.slots.pop_front().flatten() else {
                self.assembly.lose();
                self.given_up = None;
                continue;
            };
            let ends = received.ends();
            let all_listed = listed.iter().filter(|&&sn| sn == this).count() >= usize::from(ends);
            let last = (left == 0 && field.n_length == 0 && received.ends_with_end()).then_some(ends);
            self.assembly.take(received, |end| !all_listed && Some(end) != last, common);
        }
        if field.n_length == 0 {
            self.assembly.clear();
        }
        self.given_up = Some(field.n_length).filter(|&end| end > 0);
        self.take_in_sequence(common);
        let there = number(self.next);
        self.move_ack = Some((there, if there == to { field.n_length } else { 0 }));
    }

    /// Returns the answer to a request to move the window, if it is to be sent.
    pub(crate) fn move_ack(&self) -> Option<SuperField> {
        self.move_ack.map(|(sn, n)| SuperField::MoveWindowAck { sn, n })
    }

    /// Returns `true` if a super field besides a report is to be sent.
    pub(crate) fn has_control(&self) -> bool {
        self.move_ack.is_some() || self.peer_window.is_some()
    }

    /// Notes that the answer has been sent.
    pub(crate) fn on_move_ack_sent(&mut self) {
        self.move_ack = None;
    }
}

impl<P> ReceivedPdu<P> {
    /// Returns the number of SDU ends that the PDU indicates.
    fn ends(&self) -> u8 {
        let ends = self.segments.iter().filter(|segment| segment.ends).count();
        u8::try_from(ends + usize::from(self.ended_before.is_some())).unwrap_or(u8::MAX)
    }

    /// Returns `true` if no data stands behind the last of these ends.
    fn ends_with_end(&self) -> bool {
        self.segments.last().map_or(self.ended_before.is_some(), |last| last.ends)
    }
}
