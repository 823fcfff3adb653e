//! Many like receivers behind one fan-out as one entity: what makes a million of them cheap to simulate.
//!
//! A [`Population`] is what N [`Receiver`](crate::Receiver)s would be together, whose owners take everything, hold
//! nothing beforehand, and verify at once. It decides by the same functions: what is asked for and what others ask for
//! (`receiver::needs`), how long each one waits (`timing`). Of a block it keeps how many symbols each receiver lacks,
//! and of each symbol who missed it; of what was heard of the sender, what those know who have not heard the last
//! message. So a receiver costs its losses and not its packets. Given the same losses it says the same things at the
//! same nanoseconds (law 11).
//!
//! What it leaves out: a second object or sender; receivers' bounds on the memory of parity, and on how many blocks of
//! others' requests are remembered; what applications ask for; and a sender that comes back after it was given up.
//!
//! | file | what |
//! |---|---|
//! | `blocks.rs` | who lacks how much of which blocks, and what of that others have asked for |
//! | `hearing.rs` | what receivers know of their sender |
//! | `asking.rs` | who asks, and when |

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
    Answer, Body, Data, Fec, Flags, FromReceiver, FromSender, Fti, Info, Message, NodeId, Point, Stamp, Terms,
};
use crate::timing::{Waits, silence};

use asking::Waiting;
use blocks::Blocks;
use hearing::{Control, Hearing, grtt};

/// The object that all receive.
#[derive(Clone, Debug)]
struct Object {
    number: (u16, Fec),
    blocks: Blocks,
    /// Those who do not know what is said of it, ascending.
    nameless: Vec<u32>,
}

impl Object {
    fn is_nameless(&self, receiver: u32) -> bool {
        self.nameless.binary_search(&receiver).is_ok()
    }
}

/// Many like receivers as one entity. The [module](self) says what it is.
#[derive(Clone, Debug)]
pub struct Population {
    config: ReceiverConfig,
    receivers: u32,
    waits: Waits,
    /// The sender: where it sends from, who it is, its instance.
    sender: Option<(SocketAddr, NodeId, u16)>,
    object: Option<Object>,
    /// What those who have heard of the object but nothing of it call it.
    unheard: (u16, Fec),
    hearing: Hearing,
    waiting: Waiting,
    /// Probes, and when they came; of each receiver, how many there were when it heard one last.
    probes: Vec<(Stamp, Time)>,
    probed: Vec<u32>,
    /// How often each receiver has said something.
    said: Vec<u16>,
    /// Those for whom it is over.
    over: Bitmap,
    completed: Vec<Time>,
    counts: FeedbackCounts,
    feedback: VecDeque<TimedFeedback<Message, Infallible>>,
    /// Who does not hear the datagram at hand, ascending, and as bits.
    lost: Vec<u32>,
    deaf: Bitmap,
    /// Of these, the ones to whom it does not come; where it is over for anybody.
    astray: Vec<u32>,
    /// Reused; empty.
    apart: Bitmap,
    /// Reused: those who have a block, and those who hear everything.
    got: Vec<u32>,
    kept_up: Vec<u32>,
    /// What named receivers are to acknowledge as soon as they can.
    owed: BTreeMap<u32, Point>,
}

impl Population {
    /// `receivers` of these settings, whose nodes are numbered from that of `config` on.
    ///
    /// # Errors
    /// What of the settings cannot be; a number that no node may have.
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

    /// The receiver that `node` is, if it is one of these.
    fn receiver(&self, node: NodeId) -> Option<u32> {
        node.0.checked_sub(self.config.node.0).filter(|&receiver| receiver < self.receivers)
    }

    fn is_complete(&self, receiver: u32) -> bool {
        self.completed[receiver as usize] != Time::NEVER
    }

    /// One receiver says `answer`.
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

    /// At one instant receivers speak in their order.
    fn order(&mut self, first: usize) {
        let speaker = |(at, one): &TimedFeedback<Message, Infallible>| match one {
            Feedback::Each { receiver, .. } => (*at, *receiver),
            Feedback::Merged(never) => match *never {},
        };
        self.feedback.make_contiguous()[first..].sort_by_key(speaker);
    }

    /// Whether the datagram at hand comes to `receiver`, for whom it may be over.
    fn reaches(&self, receiver: u32) -> bool {
        let over = self.over.contains(receiver);
        if over { self.astray.binary_search(&receiver).is_err() } else { !self.deaf.contains(receiver) }
    }

    /// Draws who does not hear a datagram of so many octets.
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

/// What the sender says.
impl Population {
    /// All but `self.lost` hear something that makes of what a receiver knows what `step` does. Whether those who
    /// were not behind, of whom `self.kept_up` are then the ones that lack anything, are to look for what they lack.
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

    /// When nothing will have been heard for long, if the last was at `now` and under these terms.
    fn quiet_at(&self, now: Time, terms: Terms) -> Time {
        now + silence(grtt(terms, &self.config), self.config.robust)
    }

    /// One datagram of so many octets of a sender reaches the fan-out.
    fn hear(
        &mut self,
        now: Time,
        from: &Arrival,
        (source, terms): (NodeId, Terms),
        octets: u64,
        said: &FromSender,
    ) {
        let begins = matches!(said, FromSender::Info(_) | FromSender::Flush { .. } | FromSender::Probe(_));
        let sender = (from.source, source, terms.instance);
        if begins && self.sender.is_none() {
            self.sender = Some(sender);
        }
        if self.sender != Some(sender) {
            return;
        }
        match said {
            FromSender::Info(info) => self.info(now, (terms, octets), info),
            FromSender::Flush { point, ackers } => self.flush(now, (terms, octets), *point, ackers),
            FromSender::Probe(probe) => self.probe(now, (terms, octets), probe.sent),
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
            // Data goes its own way.
            FromSender::Data(_) | FromSender::AckReq { .. } | FromSender::Application(_) => {}
        }
    }

    /// The object is heard of for the first time, if it is: whether it is that object.
    fn begin(&mut self, number: u16, (flags, fec, fti): (Flags, Fec, Option<Fti>)) -> bool {
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

    /// What is said of the object is known to those who hear it.
    fn info(&mut self, now: Time, (terms, octets): (Terms, u64), info: &Info) {
        if !self.begin(info.object, (info.flags, info.fec, info.fti)) {
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

    fn flush(&mut self, now: Time, (terms, octets): (Terms, u64), point: Point, ackers: &[NodeId]) {
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

    fn probe(&mut self, now: Time, (terms, octets): (Terms, u64), sent: Stamp) {
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

    /// The sender has gone, as far as that is heard.
    fn gone(&mut self, now: Time) {
        self.got.clear();
        for receiver in 0..self.receivers {
            if !self.deaf.contains(receiver) && self.hearing.of(receiver).position > 0 {
                self.got.push(receiver);
            }
        }
        self.leave(now);
    }

    /// It is over for those in `self.got`. Who has everything but what is said of it needs that no more.
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

    /// Those who have heard nothing for long look again for what they lack, until they have done so too often.
    fn quiet(&mut self, now: Time) {
        let Self { hearing, over, completed, config, receivers, got, .. } = self;
        hearing.settle();
        let mut stirred = core::mem::take(&mut hearing.stirred);
        stirred.clear();
        got.clear();
        // Whether the receiver goes on waiting.
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

/// What the sender sends.
impl Population {
    /// A run of symbols, as much of it as comes before anything else happens here; how many that are.
    fn data(
        &mut self,
        now: Time,
        from: &Arrival,
        (message, terms, data): (&Message, Terms, &Data),
        channel: &mut Channel<'_>,
    ) -> u32 {
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
            if self.sender == Some(sender) && self.begin(data.object, (data.flags, data.fec, data.fti)) {
                self.symbol(at, (terms, said), data.block, data.symbols.first() + index);
            }
        }
        count
    }

    /// One symbol, with so many octets, reaches the fan-out.
    fn symbol(&mut self, at: Time, (terms, octets): (Terms, u64), block: u32, symbol: u32) {
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

    /// Those who hear the symbol at hand store it.
    fn store(&mut self, at: Time, block: u32, symbol: u32) {
        let Self { object: Some(object), lost, deaf, got, receivers, .. } = self else { return };
        got.clear();
        let sent = object.blocks.is_sent();
        object.blocks.sent(block, symbol, (lost, deaf), got);
        if object.blocks.is_sent() {
            if !sent {
                got.clear();
                got.extend(0..*receivers);
            }
            self.complete(at);
        }
    }

    /// Of those in `self.got`, the ones who have everything have it since `at`.
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

    /// When it wants to be woken.
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
            Body::Sender(terms, FromSender::Data(data)) if message.source.is_somebody() => {
                self.data(now, from, (message, *terms, data), channel)
            }
            body => {
                let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
                let spared = channel.data_only && message.content() == Content::None;
                self.draw(now, octets, spared, channel);
                match body {
                    Body::Sender(terms, said) if message.source.is_somebody() => {
                        let octets = message.wire_len(0) as u64;
                        self.hear(now, from, (message.source, *terms), octets, said);
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
            // Who does not wait asks at once.
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
