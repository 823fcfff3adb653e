//! Segmentation of SDUs into PDUs.

use farcast_core::Payload;
use smallvec::SmallVec;

use super::{BegunSdu, Sender, SentPdu, State, WaitingSdu};
use crate::common::Common;
use crate::config::Discard;
use crate::format::{Format, MAX_ENDS, Placement};
use crate::pdu::{EndedBefore, LastEnd, Segment};

/// A PDU that is being filled.
struct New {
    pdu: u64,
    /// Octets left in the PDU.
    room: u16,
    /// Number of ends that the PDU indicates.
    ends: u8,
    /// `true` if an SDU whose end carries a poll ends in the PDU.
    polls: bool,
    last_end: LastEnd,
}

impl<P: Payload> Sender<P> {
    /// Makes the next new PDU and puts it behind those that were sent. Returns `true` if it ends an SDU whose end
    /// carries a poll.
    pub(super) fn cut(&mut self, common: &Common<P>) -> bool {
        let format = common.config.format;
        let pdu = self.next();
        let ended_before = self.pending_end.take();
        let mut new =
            New { pdu, room: format.room(ended_before), ends: 0, polls: false, last_end: LastEnd::Indicator };
        if ended_before.is_some() {
            self.note_end(&mut new);
        }
        let mut segments = SmallVec::new();
        while new.room > 0
            && new.ends < most_ends(common)
            && let Some(sdu) = self.waiting.pop_front()
        {
            segments.push(self.place(sdu, &mut new, common));
        }
        self.sent.push_back(SentPdu {
            ended_before,
            segments,
            last_end: new.last_end,
            left: new.room,
            transmissions: 0,
            state: State::Outstanding,
            missing: false,
        });
        self.outstanding += 1;
        new.polls
    }

    /// Puts as much of `sdu` as fits into the PDU, and the rest back.
    fn place(&mut self, mut sdu: WaitingSdu<P>, new: &mut New, common: &Common<P>) -> Segment<P> {
        let format = common.config.format;
        if !sdu.begun {
            sdu.begun = true;
            sdu.polls = self.polls.on_sdu(common);
            self.begun.push_back(BegunSdu { submitted: sdu.submitted, first: new.pdu, end: None });
        }
        let placement = format.place(new.room, sdu.rest.len());
        new.room = 0;
        if let Placement::Part { octets } = placement {
            let data = sdu.rest.split_to(usize::from(octets));
            self.waiting_octets -= u64::from(octets);
            self.waiting.push_front(sdu);
            return Segment { data, ends: false };
        }
        self.waiting_octets -= sdu.rest.len() as u64;
        new.polls |= sdu.polls;
        let ends = self.end(placement, new, format);
        Segment { data: sdu.rest, ends }
    }

    /// Ends an SDU in the PDU. Returns `true` if the PDU itself indicates the end.
    fn end(&mut self, placement: Placement, new: &mut New, format: Format) -> bool {
        match placement {
            Placement::Ends { left } => new.room = left,
            Placement::OneOctetShort => {
                self.pending_end = Some(EndedBefore::OneOctetShort);
                return false;
            }
            // The header extension indicates the end only in a PDU without indicators.
            _ if format.header_extension && new.ends == 0 => new.last_end = LastEnd::HeaderExtension,
            _ => {
                self.pending_end = Some(EndedBefore::Exactly);
                return false;
            }
        }
        self.note_end(new);
        true
    }

    /// Notes that the PDU indicates the end of the last SDU that was begun.
    fn note_end(&mut self, new: &mut New) {
        new.ends += 1;
        if let Some(begun) = self.begun.back_mut() {
            begun.end = Some((new.pdu, new.ends));
        }
    }

    /// Returns the octets that a new PDU would leave behind its last SDU.
    pub(super) fn left_by_new(&self, common: &Common<P>) -> u16 {
        let format = common.config.format;
        let mut room = format.room(self.pending_end);
        let mut ends = u8::from(self.pending_end.is_some());
        for sdu in &self.waiting {
            if ends == most_ends(common) {
                break;
            }
            let Placement::Ends { left } = format.place(room, sdu.rest.len()) else { return 0 };
            if left == 0 {
                return 0;
            }
            (room, ends) = (left, ends + 1);
        }
        room
    }

    /// Drops the rest of the first SDU that waits.
    pub(super) fn drop_waiting(&mut self) {
        if let Some(sdu) = self.waiting.pop_front() {
            self.waiting_octets -= sdu.rest.len() as u64;
        }
    }
}

/// Returns the limit of the ends that a PDU may indicate: if discards are signalled, `N_LENGTH` must be able to count
/// them.
fn most_ends<P>(common: &Common<P>) -> u8 {
    if common.config.discard == Discard::None { u8::MAX } else { MAX_ENDS as u8 }
}
