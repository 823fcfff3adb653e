//! The transmitting side: cuts SDUs into PDUs, and keeps PDUs until they are acknowledged.
//!
//! Inside, PDUs are counted from 0 without end; their sequence numbers are these counts modulo 4096. VT(A) is
//! `acknowledged`, VT(S) is [`next`](Sender::next).

use alloc::collections::VecDeque;

use farcast_core::{Payload, Time};
use smallvec::SmallVec;

use crate::common::{Common, Timer};
use crate::config::BufferLimit;
use crate::pdu::{DataPdu, EndedBefore, LastEnd, MODULUS, Segment, SequenceNumber};

mod acknowledgment;
mod discard;
mod polling;
mod segmentation;

use discard::Move;
use polling::Polls;

/// Limit of the PDUs from VT(A) to VT(S), even with a window of 4095: one number is kept for [breaking
/// off](Sender::break_off) an SDU.
const MOST_OUTSTANDING: usize = MODULUS as usize - 2;

/// The transmitting side of an entity.
#[derive(Clone, Debug)]
pub(crate) struct Sender<P> {
    /// SDUs with a part that waits for its first transmission.
    waiting: VecDeque<WaitingSdu<P>>,
    waiting_octets: u64,
    /// End of an SDU that its PDU had no room to indicate.
    pending_end: Option<EndedBefore>,
    /// The PDUs from VT(A) to VT(S).
    sent: VecDeque<SentPdu<P>>,
    /// VT(A).
    acknowledged: u64,
    /// VT(WS).
    window: u16,
    /// Number below which all PDUs have been given up; they are kept until the peer has moved its window.
    floor: u64,
    /// Number of PDUs that are neither acknowledged nor given up.
    outstanding: usize,
    /// PDUs to send again, in order. A PDU that has been settled meanwhile is skipped.
    again: VecDeque<u64>,
    /// Number of PDUs that wait in `again`.
    queued: usize,
    /// SDUs that have been begun and are not acknowledged.
    begun: VecDeque<BegunSdu>,
    /// The number of the first of these SDUs, or else of the first that waits.
    oldest: u64,
    polls: Polls,
    /// The last PDU that may not be sent again, while its discard waits for another to end.
    exhausted: Option<u64>,
    mrw: Option<Move>,
}

/// An SDU with a part that waits for its first transmission.
#[derive(Clone, Debug)]
struct WaitingSdu<P> {
    rest: P,
    submitted: Time,
    /// `true` once a part of it has been sent.
    begun: bool,
    /// `true` if its last octets carry a poll.
    polls: bool,
}

/// An SDU of which a part has been sent.
#[derive(Clone, Copy, Debug)]
struct BegunSdu {
    submitted: Time,
    /// The PDU with its first octet.
    first: u64,
    /// The PDU that indicates the end of the SDU, and the number, from 1, of this end in that PDU. `None` while that
    /// PDU has not been sent.
    end: Option<(u64, u8)>,
}

/// A PDU that has been sent.
#[derive(Clone, Debug)]
struct SentPdu<P> {
    ended_before: Option<EndedBefore>,
    segments: SmallVec<[Segment<P>; 2]>,
    last_end: LastEnd,
    /// Octets left behind the last SDU.
    left: u16,
    /// VT(DAT).
    transmissions: u32,
    state: State,
    /// `true` if the report that is being handled names the PDU as missing.
    missing: bool,
}

/// State of a PDU that has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The PDU has been sent, and no report has settled or queued it since.
    Outstanding,
    /// The PDU waits to be sent again.
    Queued,
    /// The PDU is acknowledged or given up.
    Settled,
}

/// Next PDU to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// A PDU again, because the peer lacks it.
    Again(u64),
    /// A new PDU.
    New,
    /// A PDU again, only to carry a poll.
    ForPoll(u64),
}

impl<P: Payload> Sender<P> {
    pub(crate) fn new(window: u16) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_octets: 0,
            pending_end: None,
            sent: VecDeque::new(),
            acknowledged: 0,
            window,
            floor: 0,
            outstanding: 0,
            again: VecDeque::new(),
            queued: 0,
            begun: VecDeque::new(),
            oldest: 0,
            polls: Polls::default(),
            exhausted: None,
            mrw: None,
        }
    }

    /// Takes an SDU, if its length is allowed and there is room for it. Returns `true` if it was taken.
    pub(crate) fn submit(&mut self, now: Time, sdu: P, common: &mut Common<P>) -> bool {
        let octets = sdu.len();
        if octets == 0 || octets as u64 > u64::from(common.config.max_sdu_octets.get()) {
            return false;
        }
        let fits = match common.config.transmission_buffer {
            None => true,
            Some(BufferLimit::Octets(most)) => self.waiting_octets + octets as u64 <= most,
            Some(BufferLimit::Sdus(most)) => (self.waiting.len() as u64) < most,
        };
        if fits {
            self.waiting.push_back(WaitingSdu { rest: sdu, submitted: now, begun: false, polls: false });
            self.waiting_octets += octets as u64;
            self.polls.wake(now, common);
            self.arm_discard(common);
        }
        fits
    }

    /// Returns VT(S): the next PDU that is sent for the first time.
    fn next(&self) -> u64 {
        self.acknowledged + self.sent.len() as u64
    }

    /// Returns `true` if data, or the end of an SDU, waits for its first transmission.
    fn has_new(&self) -> bool {
        !self.waiting.is_empty() || self.pending_end.is_some()
    }

    /// Returns `true` if VT(S) is below VT(MS).
    fn may_send_new(&self) -> bool {
        self.sent.len() < usize::from(self.window).min(MOST_OUTSTANDING)
    }

    /// Returns `true` if [`choose`](Self::choose) would find a PDU.
    pub(crate) fn has_output(&self) -> bool {
        self.queued > 0
            || self.has_new() && self.may_send_new()
            || self.polls.is_requested() && self.outstanding > 0
    }

    /// Chooses the PDU to send next. A PDU that must not be sent again is given up on the way.
    pub(crate) fn choose(&mut self, common: &mut Common<P>) -> Option<Choice> {
        while let Some(&pdu) = self.again.front() {
            if self.get(pdu).is_some_and(|sent| sent.state == State::Queued) {
                return Some(Choice::Again(pdu));
            }
            self.again.pop_front();
        }
        if self.has_new() && self.may_send_new() {
            return Some(Choice::New);
        }
        if !self.polls.is_requested() {
            return None;
        }
        let pdu = self.last_outstanding()?;
        if self.get(pdu)?.transmissions < common.config.transmission_limit() {
            return Some(Choice::ForPoll(pdu));
        }
        self.polls.forget();
        self.exhaust(pdu, common);
        self.give_up_exhausted(common);
        None
    }

    /// Returns the octets that the chosen PDU leaves behind its last SDU.
    pub(crate) fn left(&self, choice: Choice, common: &Common<P>) -> u16 {
        match choice {
            Choice::Again(pdu) | Choice::ForPoll(pdu) => self.get(pdu).map_or(0, |sent| sent.left),
            Choice::New => self.left_by_new(common),
        }
    }

    /// Sends the chosen PDU.
    pub(crate) fn send(&mut self, now: Time, choice: Choice, common: &mut Common<P>) -> DataPdu<P> {
        let (pdu, triggered) = match choice {
            Choice::New => {
                let polls = self.cut(common);
                let last = !self.has_new() || !self.may_send_new();
                common.counters.data_pdus += 1;
                (self.next() - 1, polls || last && common.config.polling.last_pdu)
            }
            Choice::Again(pdu) => {
                self.again.pop_front();
                self.queued -= 1;
                common.counters.retransmissions += 1;
                (pdu, self.queued == 0 && common.config.polling.last_retransmitted_pdu)
            }
            Choice::ForPoll(pdu) => {
                common.counters.retransmissions += 1;
                common.counters.retransmissions_for_polls += 1;
                (pdu, false)
            }
        };
        // The window is measured with VT(S) before the PDU is sent (section 9.7.1).
        let occupied = self.sent.len() + usize::from(choice != Choice::New);
        let triggered = triggered || self.is_window_share_reached(occupied, common);
        let poll = self.polls.on_send(now, triggered, self.next(), common);
        self.transmit(pdu, poll)
    }

    fn transmit(&mut self, pdu: u64, poll: bool) -> DataPdu<P> {
        let sent = &mut self.sent[(pdu - self.acknowledged) as usize];
        sent.transmissions = sent.transmissions.saturating_add(1);
        sent.state = State::Outstanding;
        DataPdu {
            sn: number(pdu),
            poll,
            ended_before: sent.ended_before,
            segments: sent.segments.clone(),
            last_end: sent.last_end,
            piggybacked: None,
        }
    }

    /// Returns a PDU from VT(A) to VT(S).
    fn get(&self, pdu: u64) -> Option<&SentPdu<P>> {
        self.sent.get(pdu.checked_sub(self.acknowledged)? as usize)
    }

    /// Marks a PDU as acknowledged or given up, and drops its data.
    fn settle(&mut self, pdu: u64) {
        let Some(offset) = pdu.checked_sub(self.acknowledged) else { return };
        let Some(sent) = self.sent.get_mut(offset as usize) else { return };
        self.outstanding -= usize::from(sent.state != State::Settled);
        self.queued -= usize::from(sent.state == State::Queued);
        sent.state = State::Settled;
        sent.segments.clear();
    }

    /// Acts on a timer of the transmitting side, which was due at `due`.
    pub(crate) fn on_timer(&mut self, timer: Timer, due: Time, now: Time, common: &mut Common<P>) {
        let waits = self.outstanding > 0 || self.has_new();
        match timer {
            Timer::Mrw => self.repeat_move(common),
            Timer::Discard => self.discard_expired(now, common),
            timer => self.polls.on_timer(timer, due, now, waits, common),
        }
    }

    /// Starts anew; SDUs that have been begun are lost (section 11.4).
    pub(crate) fn reset(&mut self, common: &mut Common<P>) {
        if self.waiting.front().is_some_and(|sdu| sdu.begun) {
            self.drop_waiting();
        }
        let lost = self.begun.len() as u64;
        self.report_discarded(lost, common);
        self.begun.clear();
        self.sent.clear();
        self.again.clear();
        self.pending_end = None;
        (self.acknowledged, self.floor) = (0, 0);
        (self.outstanding, self.queued) = (0, 0);
        self.window = common.config.tx_window;
        self.polls.reset();
        self.exhausted = None;
        self.mrw = None;
        self.arm_discard(common);
    }

    /// Gives up every SDU.
    pub(crate) fn give_up(&mut self, common: &mut Common<P>) {
        self.reset(common);
        let lost = self.waiting.len() as u64;
        self.report_discarded(lost, common);
        self.waiting.clear();
        self.waiting_octets = 0;
    }
}

/// Returns the sequence number of a PDU.
fn number(pdu: u64) -> SequenceNumber {
    SequenceNumber::new((pdu % u64::from(MODULUS)) as u16)
}
