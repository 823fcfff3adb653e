//! Population: many like receivers behind one fan-out, simulated as one entity. It makes a million receivers cheap.
//!
//! A [`Population`] does what N [`Receiver`](crate::Receiver)s would do together, whose owners accept everything, hold
//! nothing beforehand, and verify at once. It decides by the same functions: requests and their suppression
//! (`receiver::needs`), and waits (`timing`). For each block it keeps the number of symbols that each receiver lacks,
//! and for each symbol the receivers that missed it. State that follows from the sender's messages is common to all
//! receivers that have heard the last message, and kept one by one for the others. So a receiver costs its losses and
//! not its packets. Given the same losses, a population sends the same messages at the same nanoseconds as single
//! receivers (law 11).
//!
//! Left out are a second object or sender, receivers' bounds on the memory of parity and on the number of blocks of
//! others' requests that are remembered, requests of applications, and a sender that comes back after it was given up.
//!
//! | file | subject |
//! |---|---|
//! | `blocks.rs` | symbols of each block that receivers lack, and others' requests for them |
//! | `hearing.rs` | state of receivers that follows from the sender's messages |
//! | `asking.rs` | requests and their times |

mod asking;
mod blocks;
mod hearing;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _, Transmit};
use farcast_core::{Among, Bitmap, Time};
use farcast_delivery::{Channel, Content, Delivery as _, Feedback, FeedbackCounts, TimedFeedback};

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::message::{
    Answer, Body, Fec, Flags, FromReceiver, FromSender, Fti, Info, Message, NodeId, Point, Stamp, Terms,
};
use crate::timing::{Waits, silence};

use asking::Waiting;
use blocks::{Blocks, Lost};
use hearing::{Control, Hearing, grtt};

/// Object that all receivers receive.
#[derive(Clone, Debug)]
struct Object {
    number: (u16, Fec),
    blocks: Blocks,
    /// Receivers that have not heard the object's INFO, ascending.
    nameless: Vec<u32>,
}

impl Object {
    fn is_nameless(&self, receiver: u32) -> bool {
        self.nameless.binary_search(&receiver).is_ok()
    }
}

/// Many like receivers as one entity; see the [module](self).
#[derive(Clone, Debug)]
pub struct Population {
    config: ReceiverConfig,
    receivers: u32,
    waits: Waits,
    /// Sender: its address, its node id, its instance.
    sender: Option<(SocketAddr, NodeId, u16)>,
    object: Option<Object>,
    /// Number and code of the object, for receivers that have heard of the object but nothing of its content.
    unheard: (u16, Fec),
    hearing: Hearing,
    waiting: Waiting,
    /// Probes with their times of arrival, and for each receiver the number of probes up to the last one that it heard.
    probes: Vec<(Stamp, Time)>,
    probed: Vec<u32>,
    /// Number of messages that each receiver has sent.
    said: Vec<u16>,
    /// Receivers whose reception is over.
    over: Bitmap,
    completed: Vec<Time>,
    counts: FeedbackCounts,
    feedback: VecDeque<TimedFeedback<Message, Infallible>>,
    /// Receivers that do not hear the datagram at hand, ascending, and as bits.
    lost: Vec<u32>,
    deaf: Bitmap,
    /// Receivers that the channel lost the datagram at hand for; kept only when reception is over for any receiver.
    astray: Vec<u32>,
    /// Set of receivers (a buffer that is reused, empty between uses).
    apart: Bitmap,
    /// Buffers that are reused: receivers that have come to have a block, and receivers that hear everything.
    got: Vec<u32>,
    kept_up: Vec<u32>,
    /// Points that named receivers are to acknowledge as soon as they can.
    owed: BTreeMap<u32, Point>,
}

impl Population {
    /// Makes a population of `receivers` with these settings, whose nodes are numbered from that of `config` on.
    ///
    /// # Errors
    /// A setting that cannot work; a number that no node may have.
    pub fn new(config: &ReceiverConfig, receivers: u32) -> Result<Self, ConfigError> {
        config.check()?;
        let last = config.node.0.checked_add(receivers.saturating_sub(1));
        if !last.is_some_and(|last| NodeId(last).is_somebody()) {
            return Err(ConfigError::Node(NodeId::ANY));
        }
        let n = receivers as usize;
        Ok(Self {
            config: config.clone(),
            receivers,
            waits: Waits { seed: config.seed },
            sender: None,
            object: None,
            unheard: (0, Fec::ReedSolomon8),
            hearing: Hearing::new(),
            waiting: Waiting::new(receivers),
            probes: Vec::new(),
            probed: alloc::vec![0; n],
            said: alloc::vec![0; n],
            over: Bitmap::new(receivers),
            completed: alloc::vec![Time::NEVER; n],
            counts: FeedbackCounts::default(),
            feedback: VecDeque::new(),
            lost: Vec::new(),
            deaf: Bitmap::new(receivers),
            apart: Bitmap::new(receivers),
            astray: Vec::new(),
            got: Vec::new(),
            kept_up: Vec::new(),
            owed: BTreeMap::new(),
        })
    }

    fn node(&self, receiver: u32) -> NodeId {
        NodeId(self.config.node.0 + receiver)
    }

    /// Returns the receiver with the id `node`, if it is one of the population's.
    fn receiver(&self, node: NodeId) -> Option<u32> {
        node.0.checked_sub(self.config.node.0).filter(|&receiver| receiver < self.receivers)
    }

    fn is_complete(&self, receiver: u32) -> bool {
        self.completed[receiver as usize] != Time::NEVER
    }

    /// Queues `answer` of one receiver, as far as the receiver's credit allows.
    fn say(&mut self, at: Time, receiver: u32, answer: Answer) {
        let Some((source, sender, instance)) = self.sender else { return };
        let probe = (self.probed[receiver as usize] as usize).checked_sub(1).map(|probe| self.probes[probe]);
        let response = probe.map(|(sent, came)| sent.later(at.since(came)));
        let body = Body::Receiver(FromReceiver { sender, instance, response, feedback: None, answer });
        let sequence = &mut self.said[receiver as usize];
        let message = Message { source: NodeId(self.config.node.0 + receiver), sequence: *sequence, body };
        let mut control = *self.hearing.of(receiver);
        let Some(credit) = control.credit.checked_sub(message.wire_len(0) as u64) else { return };
        control.credit = credit;
        self.hearing.spoke(receiver, control);
        *sequence = sequence.wrapping_add(1);
        let to = if self.config.unicast { source } else { self.config.group };
        let transmit = Transmit::new(message, to);
        self.feedback.push_back((at, Feedback::Each { receiver, transmit }));
    }

    /// Sorts feedback from index `first` on: at one instant, receivers speak in their order.
    fn order(&mut self, first: usize) {
        let speaker = |(at, one): &TimedFeedback<Message, Infallible>| match one {
            Feedback::Each { receiver, .. } => (*at, *receiver),
            Feedback::Merged(never) => match *never {},
        };
        self.feedback.make_contiguous()[first..].sort_by_key(speaker);
    }

    /// Returns `true` if the datagram at hand reaches `receiver`, even if that receiver's reception is over.
    fn reaches(&self, receiver: u32) -> bool {
        let over = self.over.contains(receiver);
        if over { self.astray.binary_search(&receiver).is_err() } else { !self.deaf.contains(receiver) }
    }

    /// Draws the receivers that do not hear a datagram of `octets`.
    fn draw(&mut self, now: Time, octets: u64, spared: bool, channel: &mut Channel<'_>) {
        for &receiver in &self.lost {
            self.deaf.remove(receiver);
        }
        self.lost.clear();
        let among = if spared { Among::These(&[]) } else { Among::All };
        channel.losses.draw(now, octets, among, &mut self.lost);
        if !self.over.is_empty() {
            self.astray.clone_from(&self.lost);
            self.lost.extend(self.over.iter());
            self.lost.sort_unstable();
            self.lost.dedup();
        }
        for &receiver in &self.lost {
            self.deaf.insert(receiver);
        }
    }
}

/// Terms and octets of a sender's message.
#[derive(Clone, Copy, Debug)]
struct Heard {
    terms: Terms,
    octets: u64,
}

/// Handling of the sender's messages.
impl Population {
    /// Applies `step` to the state of all receivers but `self.lost`, who hear a message. Returns `true` if receivers
    /// that were not behind are to look for what they lack; `self.kept_up` then has those of them that lack anything.
    fn heard(&mut self, step: impl Fn(&mut Control) -> bool) -> bool {
        let Self { hearing, lost, kept_up, receivers, completed, .. } = self;
        let object = self.object.as_ref();
        let all = hearing.hear(lost, step);
        if all {
            let mut keeps_up = hearing.kept_up(lost);
            let lacks = |receiver: u32| match object {
                Some(object) => object.blocks.lacks_any(receiver) || object.is_nameless(receiver),
                None => completed[receiver as usize] == Time::NEVER,
            };
            kept_up.clear();
            kept_up.extend((0..*receivers).filter(|&receiver| lacks(receiver) && keeps_up(receiver)));
        }
        all
    }

    /// Returns the time at which the sender counts as silent, if its last message came at `now` with these terms.
    fn quiet_at(&self, now: Time, terms: Terms) -> Time {
        now + silence(grtt(terms, &self.config), self.config.robust)
    }

    /// Handles one datagram of a sender that reaches the fan-out.
    fn hear(&mut self, now: Time, from: &Arrival, source: NodeId, heard: Heard, said: &FromSender) {
        let Heard { terms, octets } = heard;
        let begins = matches!(said, FromSender::Info(_) | FromSender::Flush { .. } | FromSender::Probe(_));
        let sender = (from.source, source, terms.instance);
        if begins && self.sender.is_none() {
            self.sender = Some(sender);
        }
        if self.sender != Some(sender) {
            return;
        }
        match said {
            FromSender::Info(info) => self.info(now, heard, info),
            FromSender::Flush { point, ackers } => self.flush(now, heard, *point, ackers),
            FromSender::Probe(probe) => self.probe(now, heard, probe.sent),
            FromSender::Eot => {
                self.heard(|control| {
                    if control.terms.is_some() {
                        control.earn(terms, octets);
                    }
                    false
                });
                self.gone(now);
            }
            FromSender::Squelch { point, invalid } => {
                let number = self.object.as_ref().map_or(self.unheard.0, |object| object.number.0);
                let passed = number.wrapping_sub(point.object).cast_signed() < 0;
                if passed || invalid.contains(&number) {
                    self.gone(now);
                }
            }
            FromSender::RepairAdv { requests, .. } => {
                self.heard(|control| {
                    if control.terms.is_some() {
                        control.earn(terms, octets);
                    }
                    false
                });
                self.overhear(None, requests);
            }
            // Data is handled apart.
            FromSender::Data(_) | FromSender::AckReq { .. } | FromSender::Application(_) => {}
        }
    }

    /// Begins the object, if this is the first message with its transmission information. Returns `true` if the message
    /// belongs to that object.
    fn begin(&mut self, number: u16, flags: Flags, fec: Fec, fti: Option<Fti>) -> bool {
        if let Some(object) = &self.object {
            return object.number == (number, fec);
        }
        let fits = |fti: &Fti| fti.size <= self.config.largest && fti.group <= 1;
        let Some(fti) = fti.filter(|fti| fits(fti) && !flags.has(Flags::STREAM)) else { return false };
        let Some(geometry) = fti.geometry() else { return false };
        let parity = fti.parity_symbols(fec, self.config.fti);
        self.object = Some(Object {
            number: (number, fec),
            blocks: Blocks::new(self.receivers, geometry, parity.into()),
            nameless: if flags.has(Flags::INFO) { (0..self.receivers).collect() } else { Vec::new() },
        });
        true
    }

    /// Handles INFO of the object.
    fn info(&mut self, now: Time, Heard { terms, octets }: Heard, info: &Info) {
        if !self.begin(info.object, info.flags, info.fec, info.fti) {
            return;
        }
        let quiet_at = self.quiet_at(now, terms);
        self.heard(|control| {
            control.earn(terms, octets);
            control.note(terms, quiet_at);
            (control.begun, control.position) = (true, control.position.max(1));
            false
        });
        let Some(object) = &mut self.object else { return };
        let (named, nameless) = object.nameless.iter().partition(|&&receiver| !self.deaf.contains(receiver));
        object.nameless = nameless;
        self.got = named;
        self.note_info(now);
        self.complete(now);
    }

    fn flush(&mut self, now: Time, Heard { terms, octets }: Heard, point: Point, ackers: &[NodeId]) {
        let block = point.symbol.block;
        match &self.object {
            Some(object) if point.object != object.number.0 || block >= object.blocks.geometry().blocks() => {
                return;
            }
            Some(_) => {}
            None => self.unheard = (point.object, point.fec),
        }
        let quiet_at = self.quiet_at(now, terms);
        let all = self.heard(|control| {
            control.earn(terms, octets);
            control.note(terms, quiet_at);
            control.position = block.saturating_add(2);
            true
        });
        self.consider(now, all);
        for &node in ackers {
            if let Some(receiver) = self.receiver(node).filter(|&receiver| self.reaches(receiver)) {
                self.owed.insert(receiver, point);
                self.pay(now, receiver);
            }
        }
    }

    fn probe(&mut self, now: Time, Heard { terms, octets }: Heard, sent: Stamp) {
        let quiet_at = self.quiet_at(now, terms);
        self.heard(|control| {
            control.earn(terms, octets);
            if control.position > 0 {
                control.note(terms, quiet_at);
            }
            false
        });
        self.probes.push((sent, now));
        let latest = self.probes.len() as u32;
        for receiver in 0..self.receivers {
            if self.reaches(receiver) {
                self.probed[receiver as usize] = latest;
            }
        }
    }

    /// Ends reception for the receivers that hear of the sender's end.
    fn gone(&mut self, now: Time) {
        self.got.clear();
        for receiver in 0..self.receivers {
            if !self.deaf.contains(receiver) && self.hearing.of(receiver).position > 0 {
                self.got.push(receiver);
            }
        }
        self.leave(now);
    }

    /// Ends reception for the receivers in `self.got`. A receiver that lacks only INFO counts as complete.
    fn leave(&mut self, now: Time) {
        for &receiver in &self.got {
            self.over.insert(receiver);
        }
        if let Some(object) = &mut self.object {
            let over = &self.over;
            object.nameless.retain(|&receiver| !over.contains(receiver));
        }
        self.complete(now);
    }

    /// Handles silence of the sender: receivers look again for what they lack, until there were too many silences.
    fn quiet(&mut self, now: Time) {
        let Self { hearing, over, completed, config, receivers, got, .. } = self;
        hearing.settle();
        let mut stirred = core::mem::take(&mut hearing.stirred);
        stirred.clear();
        got.clear();
        // Returns `true` if the receiver goes on waiting.
        let mut stirs = |receiver: u32, silences: u32| {
            if over.contains(receiver) {
                return false;
            }
            if silences > config.robust || completed[receiver as usize] != Time::NEVER {
                got.push(receiver);
                return false;
            }
            stirred.push(receiver);
            true
        };
        let again = |control: &Control| {
            control.terms.map_or(Time::NEVER, |terms| now + silence(grtt(terms, config), config.robust))
        };
        if hearing.common.quiet_at <= now {
            hearing.common.silences += 1;
            let mut behind = hearing.behind.iter().map(|&(receiver, _)| receiver).peekable();
            let mut some = false;
            for receiver in 0..*receivers {
                if behind.next_if_eq(&receiver).is_none() {
                    some |= stirs(receiver, hearing.common.silences);
                }
            }
            hearing.common.quiet_at = if some { again(&hearing.common) } else { Time::NEVER };
        }
        hearing.each_behind(|receiver, control| {
            if control.quiet_at <= now {
                control.silences += 1;
                let stirs = stirs(receiver, control.silences);
                control.quiet_at = if stirs { again(control) } else { Time::NEVER };
            }
        });
        hearing.stirred = stirred;
        self.leave(now);
        self.consider(now, false);
    }
}

/// Handling of the sender's data.
impl Population {
    /// Handles a run of symbols until something else happens in the population. Returns the number of symbols that were
    /// handled.
    fn data(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        let Body::Sender(terms, FromSender::Data(data)) = &message.body else { return 1 };
        let terms = *terms;
        let count = data.symbols.count();
        let octets = |index| message.wire_len(index) as u64 + u64::from(channel.overhead);
        let (full, last) = (octets(0), octets(count - 1));
        for index in 0..count {
            let at = now + from.spacing * u64::from(index);
            if index > 0 && self.due() <= at {
                return index;
            }
            let octets = if index + 1 == count { last } else { full };
            self.draw(at, octets, false, channel);
            let said = octets - u64::from(channel.overhead);
            let sender = (from.source, message.source, terms.instance);
            if self.sender.is_none() {
                self.sender = Some(sender);
            }
            if self.sender == Some(sender) && self.begin(data.object, data.flags, data.fec, data.fti) {
                self.symbol(at, Heard { terms, octets: said }, data.block, data.symbols.first() + index);
            }
        }
        count
    }

    /// Handles one symbol that reaches the fan-out.
    fn symbol(&mut self, at: Time, Heard { terms, octets }: Heard, block: u32, symbol: u32) {
        let quiet_at = self.quiet_at(at, terms);
        let exists = self.object.as_ref().is_some_and(|object| symbol < object.blocks.symbols_of(block));
        let all = self.heard(|control| {
            control.earn(terms, octets);
            control.note(terms, quiet_at);
            let fresh = !core::mem::replace(&mut control.begun, true);
            let before = control.position;
            control.position = if exists { block + 1 } else { before };
            fresh || control.position > before
        });
        if exists {
            self.note_return(at, block);
            self.store(at, block, symbol);
            self.consider(at, all);
        }
    }

    /// Stores the symbol at hand for the receivers that hear it.
    fn store(&mut self, at: Time, block: u32, symbol: u32) {
        let Self { object: Some(object), lost, deaf, got, receivers, .. } = self else { return };
        got.clear();
        let sent = object.blocks.is_sent();
        object.blocks.sent(block, symbol, &Lost { list: lost, set: deaf }, got);
        if object.blocks.is_sent() {
            if !sent {
                got.clear();
                got.extend(0..*receivers);
            }
            self.complete(at);
        }
    }

    /// Marks the receivers in `self.got` that have everything as complete since `at`.
    fn complete(&mut self, at: Time) {
        let got = core::mem::take(&mut self.got);
        for &receiver in &got {
            let has_all = |object: &Object| object.blocks.has_all(receiver) && !object.is_nameless(receiver);
            if !self.is_complete(receiver) && self.object.as_ref().is_some_and(has_all) {
                self.completed[receiver as usize] = at;
                self.waiting.stop(at, receiver);
                if !self.owed.is_empty() {
                    self.pay(at, receiver);
                }
            }
        }
        self.got = got;
    }

    /// Returns the time at which the population wants to be woken.
    fn due(&self) -> Time {
        self.waiting.due().min(self.hearing.quiet_at())
    }
}

impl farcast_delivery::Population for Population {
    type Message = Message;
    type Merged = Infallible;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        let first = self.feedback.len();
        let taken = match &message.body {
            Body::Sender(_, FromSender::Data(_)) if message.source.is_somebody() => {
                self.data(now, from, message, channel)
            }
            body => {
                let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
                let spared = channel.data_only && message.content() == Content::None;
                self.draw(now, octets, spared, channel);
                match body {
                    Body::Sender(terms, said) if message.source.is_somebody() => {
                        let octets = message.wire_len(0) as u64;
                        self.hear(now, from, message.source, Heard { terms: *terms, octets }, said);
                    }
                    Body::Receiver(FromReceiver {
                        sender, instance, answer: Answer::Nack(requests), ..
                    }) => {
                        let ours = |(_, node, at)| (*sender, *instance) == (node, at);
                        if self.sender.is_some_and(ours) {
                            self.overhear(self.receiver(message.source), requests);
                        }
                    }
                    _ => {}
                }
                1
            }
        };
        self.waiting.forget();
        self.order(first);
        taken
    }

    fn handle_timeout(&mut self, now: Time) {
        let first = self.feedback.len();
        self.speak(now);
        if self.hearing.quiet_at() <= now {
            self.quiet(now);
            // A receiver without a back-off asks at once.
            self.speak(now);
        }
        self.waiting.forget();
        self.order(first);
    }

    fn poll_timeout(&self) -> Time {
        self.due()
    }

    fn poll_feedback(&mut self) -> Option<TimedFeedback<Message, Infallible>> {
        self.feedback.pop_front()
    }

    fn completed(&self) -> &[Time] {
        &self.completed
    }

    fn lacks(&self, receiver: u32) -> Option<u32> {
        self.object.as_ref().map(|object| object.blocks.lacks_in_all(receiver))
    }

    fn counts(&self) -> &FeedbackCounts {
        &self.counts
    }
}
