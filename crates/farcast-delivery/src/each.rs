//! Many receivers for simulations: an engine each, behind one channel.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::convert::Infallible;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Message as _};
use farcast_core::{Among, Bitmap, Time};

use crate::content::{Content, Delivery, Purpose};
use crate::object::ObjectId;
use crate::population::{Channel, Feedback, FeedbackCounts, Population, TimedFeedback};
use crate::receiver::{Answer, ReceiverEngine, Request};

/// Population of like receivers with one engine each. Their owners accept everything, rebuild every block that they
/// can, and verify it at once. For protocols whose receivers are few and do not hear each other.
#[derive(Debug)]
pub struct Each<R: ReceiverEngine> {
    receivers: Vec<R>,
    /// Latest time at which each receiver's timers must be checked. A timer that moved to a later time is found at that
    /// check.
    wake: Vec<Time>,
    queue: BinaryHeap<Reverse<(Time, u32)>>,
    /// Objects that each receiver has opened and not completed.
    open: Vec<Vec<ObjectId>>,
    completed: Vec<Time>,
    counts: FeedbackCounts,
    said: VecDeque<TimedFeedback<R::Message, Infallible>>,
    /// Receivers that lose the current datagram.
    lost: Vec<u32>,
}

/// Action that an event asks of its owner.
enum Wanted {
    Open(ObjectId, u32),
    Decode(ObjectId, u32),
    Verify(ObjectId),
}

impl<R: ReceiverEngine> Each<R>
where
    R::Message: Delivery,
{
    /// Creates a population of these receivers.
    pub fn new(receivers: Vec<R>) -> Self {
        let count = receivers.len();
        Self {
            receivers,
            wake: vec![Time::NEVER; count],
            queue: BinaryHeap::new(),
            open: vec![Vec::new(); count],
            completed: vec![Time::NEVER; count],
            counts: FeedbackCounts::default(),
            said: VecDeque::new(),
            lost: Vec::new(),
        }
    }

    /// Answers the requests of receiver `n`, and collects its messages.
    fn settle(&mut self, now: Time, n: u32) {
        let Some(receiver) = self.receivers.get_mut(n as usize) else { return };
        while let Some(event) = receiver.poll_event() {
            let wanted = match R::request(&event) {
                Some(Request::Open(offer)) => Wanted::Open(offer.object, offer.geometry.segments()),
                Some(Request::Decode { object, block }) => Wanted::Decode(object, block),
                Some(Request::Verify(object)) => Wanted::Verify(object),
                _ => continue,
            };
            match wanted {
                Wanted::Open(object, segments) => {
                    self.open[n as usize].push(object);
                    self.completed[n as usize] = Time::NEVER;
                    receiver.answer(now, object, Answer::Open(Bitmap::new(segments)));
                }
                Wanted::Decode(object, block) => {
                    receiver.answer(now, object, Answer::Decoded { block, rebuilt: true });
                }
                Wanted::Verify(object) => {
                    let open = &mut self.open[n as usize];
                    if let Some(place) = open.iter().position(|&one| one == object) {
                        open.swap_remove(place);
                    }
                    if open.is_empty() {
                        self.completed[n as usize] = now;
                    }
                    receiver.answer(now, object, Answer::Verified);
                }
            }
        }
        while let Some(transmit) = receiver.poll_transmit(now, now) {
            self.counts.naks += u64::from(matches!(transmit.message.purpose(), Purpose::Nak { .. }));
            self.said.push_back((now, Feedback::Each { receiver: n, transmit }));
        }
        let due = receiver.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        let wake = &mut self.wake[n as usize];
        if due < *wake {
            *wake = due;
            self.queue.push(Reverse((due, n)));
        }
    }
}

impl<R: ReceiverEngine> Population for Each<R>
where
    R::Message: Delivery,
{
    type Message = R::Message;
    type Merged = Infallible;

    fn handle(&mut self, now: Time, from: &Arrival, message: &R::Message, channel: &mut Channel<'_>) -> u32 {
        let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
        let spared = channel.data_only && message.content() == Content::None;
        let mut lost = core::mem::take(&mut self.lost);
        lost.clear();
        channel.losses.draw(now, octets, if spared { Among::These(&[]) } else { Among::All }, &mut lost);
        let (head, _) = message.clone().split(NonZeroU32::MIN);
        let mut losers = lost.iter().copied().peekable();
        for n in 0..self.receivers.len() as u32 {
            if losers.next_if_eq(&n).is_none() {
                // The effect of the message, or its rejection, shows in the receiver's own messages.
                let _ = self.receivers[n as usize].handle(now, from, &head);
                self.settle(now, n);
            }
        }
        self.lost = lost;
        1
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(&Reverse((at, n))) = self.queue.peek()
            && at <= now
        {
            self.queue.pop();
            // Skip an obsolete entry: the receiver was checked earlier.
            if self.wake[n as usize] == at {
                self.wake[n as usize] = Time::NEVER;
                self.receivers[n as usize].handle_timeout(now);
                self.settle(now, n);
            }
        }
    }

    fn poll_timeout(&self) -> Time {
        self.queue.peek().map_or(Time::NEVER, |&Reverse((at, _))| at)
    }

    fn poll_feedback(&mut self) -> Option<TimedFeedback<R::Message, Infallible>> {
        self.said.pop_front()
    }

    fn completed(&self) -> &[Time] {
        &self.completed
    }

    fn lacks(&self, receiver: u32) -> Option<u32> {
        lacks(&self.receivers[receiver as usize], &self.open[receiver as usize])
    }

    fn counts(&self) -> &FeedbackCounts {
        &self.counts
    }
}

/// Returns the number of segments that a receiver lacks of its open objects; `None` if it has no object open.
pub fn lacks<R: ReceiverEngine>(receiver: &R, open: &[ObjectId]) -> Option<u32> {
    let of = |have: &Bitmap| have.len() - have.count();
    open.iter().filter_map(|&object| receiver.have(object).map(of)).reduce(u32::saturating_add)
}
