//! The receiving side: puts PDUs in order, puts SDUs together, and asks for missing PDUs.
//!
//! Inside, PDUs are counted from 0 without end, as in the [sender](crate::sender): VR(R) is `next`, VR(H) is
//! [`highest`](Receiver::highest).

use alloc::collections::VecDeque;

use farcast_core::{Payload, Time};
use smallvec::SmallVec;

use crate::common::Common;
use crate::error::Reject;
use crate::pdu::{DataPdu, EndedBefore, MODULUS, Segment, SequenceNumber};

mod assembly;
mod early;
mod moving;
mod reporting;

use assembly::Assembly;
use reporting::Reporting;
pub(crate) use reporting::StatusPart;

/// The receiving side of an entity.
#[derive(Clone, Debug)]
pub(crate) struct Receiver<P> {
    /// VR(R).
    next: u64,
    /// The PDUs from VR(R) to VR(H). The first is always missing.
    slots: VecDeque<Option<ReceivedPdu<P>>>,
    assembly: Assembly<P>,
    /// Number of the end, in the PDU at VR(R), of an SDU that has been given up. Set when the window was moved to
    /// VR(R).
    given_up: Option<u8>,
    reporting: Reporting,
    /// The answer to a request to move the window, if one is due.
    move_ack: Option<(SequenceNumber, u8)>,
    /// The window that the peer is to be told, if any.
    peer_window: Option<u16>,
}

/// A data PDU that has arrived.
#[derive(Clone, Debug)]
struct ReceivedPdu<P> {
    ended_before: Option<EndedBefore>,
    /// Its segments; pieces of SDUs that have been delivered early are gone.
    segments: SmallVec<[Segment<Option<P>>; 2]>,
    /// `true` if its last octet is padding in case the next PDU says that an SDU ended one octet before the end.
    full: bool,
}

impl<P: Payload> ReceivedPdu<P> {
    fn new(pdu: DataPdu<P>, common: &Common<P>) -> Self {
        let full = pdu.is_full(common.config.peer_format);
        let taken = |Segment { data, ends }: Segment<P>| Segment {
            data: Some(data).filter(|data| !data.is_empty()),
            ends,
        };
        Self { ended_before: pdu.ended_before, segments: pdu.segments.into_iter().map(taken).collect(), full }
    }
}

impl<P: Payload> Receiver<P> {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            slots: VecDeque::new(),
            assembly: Assembly::default(),
            given_up: None,
            reporting: Reporting::default(),
            move_ack: None,
            peer_window: None,
        }
    }

    /// Returns VR(H): one past the highest PDU that has arrived.
    fn highest(&self) -> u64 {
        self.next + self.slots.len() as u64
    }

    /// Takes a data PDU (TS 25.322 sections 11.3.3 and 11.3.4).
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        pdu: DataPdu<P>,
        common: &mut Common<P>,
    ) -> Result<(), Reject> {
        self.reporting.on_data(now, pdu.poll, common);
        let offset = pdu.sn.since(number(self.next));
        if offset >= common.config.rx_window {
            return Err(Reject::OutsideWindow);
        }
        let offset = usize::from(offset);
        if self.slots.get(offset).is_some_and(Option::is_some) {
            return Err(Reject::Duplicate);
        }
        common.counters.data_pdus_received += 1;
        if offset > self.slots.len() {
            self.reporting.on_gap(common);
        }
        let received = ReceivedPdu::new(pdu, common);
        if offset == 0 {
            self.slots.pop_front();
            self.take_next(received, common);
            self.take_in_sequence(common);
        } else {
            self.store(offset, received);
            if !common.config.in_sequence {
                self.deliver_early(offset, common);
            }
        }
        Ok(())
    }

    fn store(&mut self, offset: usize, received: ReceivedPdu<P>) {
        while self.slots.len() <= offset {
            self.slots.push_back(None);
        }
        self.slots[offset] = Some(received);
    }

    /// Takes the PDU at VR(R).
    fn take_next(&mut self, received: ReceivedPdu<P>, common: &mut Common<P>) {
        let given_up = self.given_up.take();
        self.assembly.take(received, |end| Some(end) != given_up, common);
        self.next += 1;
    }

    /// Takes every PDU up to the next missing one.
    fn take_in_sequence(&mut self, common: &mut Common<P>) {
        while let Some(received) = self.slots.front_mut().and_then(Option::take) {
            self.slots.pop_front();
            self.take_next(received, common);
        }
        self.reporting.on_advance(self.next, common);
    }

    /// Starts anew and drops the PDUs that have arrived (section 11.4).
    pub(crate) fn reset(&mut self) {
        self.next = 0;
        self.slots.clear();
        self.assembly = Assembly::default();
        self.given_up = None;
        self.reporting.reset();
        self.move_ack = None;
        self.peer_window = None;
    }
}

/// Returns the sequence number of a PDU.
fn number(pdu: u64) -> SequenceNumber {
    SequenceNumber::new((pdu % u64::from(MODULUS)) as u16)
}
