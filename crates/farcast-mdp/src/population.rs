//! Many receivers for simulations: an engine each, behind one channel.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::convert::Infallible;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Message as _};
use farcast_core::{Among, Bitmap, Time};
use farcast_delivery::{Channel, Content, Delivery as _, Feedback, FeedbackCounts, TimedFeedback};
use farcast_norm::NodeId;

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::event::ReceiverEvent;
use crate::message::{Answer, Body, Message};
use crate::receiver::Receiver;

/// Like receivers, whose owners take everything and verify it at once.
#[derive(Debug)]
pub struct Population {
    receivers: Vec<Receiver>,
    /// When each is to be looked at for what is due, at the latest, and who is next: a timer that moves back is found then.
    wake: Vec<Time>,
    queue: BinaryHeap<Reverse<(Time, u32)>>,
    /// Objects that each has taken up and not completed.
    open: Vec<u32>,
    completed: Vec<Time>,
    counts: FeedbackCounts,
    said: VecDeque<TimedFeedback<Message, Infallible>>,
    /// Who loses the datagram at hand.
    lost: Vec<u32>,
}

impl Population {
    /// `receivers` of these settings, whose nodes are numbered from that of `config` on.
    ///
    /// # Errors
    /// What of the settings cannot be; a number that no node may have.
    pub fn new(config: &ReceiverConfig, receivers: u32) -> Result<Self, ConfigError> {
        let make = |n: u32| {
            let node = NodeId(config.node.0.checked_add(n).ok_or(ConfigError::Node(NodeId::ANY))?);
            Receiver::new(ReceiverConfig { node, ..config.clone() })
        };
        Ok(Self {
            receivers: (0..receivers).map(make).collect::<Result<_, _>>()?,
            wake: vec![Time::NEVER; receivers as usize],
            queue: BinaryHeap::new(),
            open: vec![0; receivers as usize],
            completed: vec![Time::NEVER; receivers as usize],
            counts: FeedbackCounts::default(),
            said: VecDeque::new(),
            lost: Vec::new(),
        })
    }

    /// Answers what receiver `n` tells, and takes what it says.
    fn settle(&mut self, now: Time, n: u32) {
        let Some(receiver) = self.receivers.get_mut(n as usize) else { return };
        while let Some(event) = receiver.poll_event() {
            match event {
                ReceiverEvent::Offered(offer) => {
                    self.open[n as usize] += 1;
                    self.completed[n as usize] = Time::NEVER;
                    receiver.accept(offer.object, &Bitmap::new(offer.geometry.segments()));
                }
                ReceiverEvent::Decode { object, block } => receiver.decoded(object, block, true),
                ReceiverEvent::Complete(object) => {
                    self.open[n as usize] -= 1;
                    if self.open[n as usize] == 0 {
                        self.completed[n as usize] = now;
                    }
                    receiver.verified(now, object);
                }
                _ => {}
            }
        }
        while let Some(transmit) = receiver.poll_transmit(now, now) {
            if let Body::Receiver(said) = &transmit.message.body
                && matches!(said.answer, Answer::Nack(_))
            {
                self.counts.naks += 1;
            }
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

impl farcast_delivery::Population for Population {
    type Message = Message;
    type Merged = Infallible;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
        let spared = channel.data_only && message.content() == Content::None;
        let mut lost = core::mem::take(&mut self.lost);
        lost.clear();
        channel.losses.draw(now, octets, if spared { Among::These(&[]) } else { Among::All }, &mut lost);
        let (head, _) = message.clone().split(NonZeroU32::MIN);
        let mut losers = lost.iter().copied().peekable();
        for n in 0..self.receivers.len() as u32 {
            if losers.next_if_eq(&n).is_none() {
                // What it makes of it shows in what it says.
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
            // Unless it has been looked at sooner than that was for.
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

    fn poll_feedback(&mut self) -> Option<TimedFeedback<Message, Infallible>> {
        self.said.pop_front()
    }

    fn completed(&self) -> &[Time] {
        &self.completed
    }

    fn counts(&self) -> &FeedbackCounts {
        &self.counts
    }
}
