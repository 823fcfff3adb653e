//! The receiver: takes files or messages from sources, and requests missing packets (RFC 3208 §6, §13).

mod congestion;
mod files;
mod groups;
mod hearing;
mod lacking;
mod messages;
mod neighbours;
mod owner;
mod parity;
mod remote;
mod streams;
mod window;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{AT_HAND, ObjectId, Outcome, Received};

use crate::config::{Delivering, ReceiverConfig};
use crate::error::ConfigError;
use crate::event::{MessageEvent, ReceiverEvent};
use crate::message::{Body, Message, Nak, NakKind, Opt, Sqn, Tsi};
use crate::sqn::Place;

pub(crate) use lacking::Lacking;

use files::{Object, State};
use remote::{Goods, Path, Reception, Remote, Timer};
pub(crate) use window::Intervals;
use window::Range;

/// The most sources that are known at once.
const MOST_REMOTES: usize = 32;
/// The most files that are under way at once, of all sources.
const MOST_UNDER_WAY: usize = AT_HAND;
/// Number of ended files whose counts are still remembered.
const REMEMBERED: usize = 64;
/// Octets that the receiver may send for each octet that a source has sent, and the most that may be saved up. An SPM
/// names the address to which the receiver sends, and anybody may send an SPM.
const CREDIT: u64 = 3;
const CREDIT_MOST: u64 = 64 << 10;

/// File that is being received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileIndex {
    /// Index of the source.
    at: usize,
    /// Place of the descriptor.
    place: Place,
}

/// Engine of a receiver of files or messages.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    remotes: Vec<Remote>,
    /// The only session whose messages are accepted; `None`: any.
    only: Option<Tsi>,
    /// The owner has stopped the receiver.
    is_stopped: bool,
    next_object: u32,
    over: VecDeque<(ObjectId, Received)>,
    random: RandomStream,
    /// Random value, drawn once, that decides which polls the receiver answers.
    lot: u32,
    outbox: VecDeque<Transmit<Message>>,
    naks: u64,
    rejects: RejectCounts,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// Creates a receiver with these settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: ReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            random: RandomStream::derive(config.seed, &[2, u64::from(config.node.0)]),
            lot: RandomStream::derive(config.seed, &[3, u64::from(config.node.0)]).bits() as u32,
            config,
            remotes: Vec::new(),
            only: None,
            is_stopped: false,
            next_object: 0,
            over: VecDeque::new(),
            outbox: VecDeque::new(),
            naks: 0,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
        })
    }

    fn objects(&self) -> impl Iterator<Item = &Object> {
        self.remotes.iter().flat_map(Remote::objects)
    }

    /// Returns the position of `object`: the index of its source, and its place.
    fn find(&self, object: ObjectId) -> Option<FileIndex> {
        self.remotes.iter().enumerate().find_map(|(at, remote)| {
            let Goods::Files(files) = &remote.reception.as_ref()?.goods else { return None };
            let (&place, _) = files.objects.iter().find(|(_, found)| found.id == object)?;
            Some(FileIndex { at, place })
        })
    }

    fn object_mut(&mut self, FileIndex { at, place }: FileIndex) -> Option<&mut Object> {
        self.remotes.get_mut(at)?.files()?.objects.get_mut(&place)
    }
}

/// Answers of the owner.
impl Receiver {
    /// Accepts `object`, of which the owner already has the segments `held`; a bitmap of another length counts as
    /// empty.
    pub fn accept(&mut self, now: Time, object: ObjectId, held: &Bitmap) {
        let Some(found) = self.find(object) else { return };
        if let Some(object) = self.object_mut(found).filter(|object| object.state == State::Opening) {
            object.state = State::Receiving;
        }
        self.held(now, object, held);
    }

    /// Notes that the owner has the segments `held` of `object` besides.
    pub fn held(&mut self, now: Time, object: ObjectId, held: &Bitmap) {
        let Some(FileIndex { at, place }) = self.find(object) else { return };
        let Some(reception) = &mut self.remotes[at].reception else { return };
        let Goods::Files(files) = &mut reception.goods else { return };
        let Some(object) = files.objects.get_mut(&place).filter(|object| object.state != State::Verifying)
        else {
            return;
        };
        object.have.union(held);
        if !held.is_empty() {
            self.remotes[at].fed = Some(now);
        }
        let Some(reception) = &mut self.remotes[at].reception else { return };
        let Goods::Files(files) = &mut reception.goods else { return };
        let Some(object) = files.objects.get_mut(&place) else { return };
        let known = object.first..reception.window.lead();
        for range in object.held_in(&known) {
            reception.window.settle_all(&range);
        }
        object.check_groups(&mut self.events);
        self.check_complete(FileIndex { at, place });
        self.fill(now, at);
    }

    /// Notes that these segments of `object` have to come again.
    pub fn lost(&mut self, now: Time, object: ObjectId, segments: Run) {
        let Some(FileIndex { at, place }) = self.find(object) else { return };
        let Some(reception) = &mut self.remotes[at].reception else { return };
        let Goods::Files(files) = &mut reception.goods else { return };
        let Some(object) = files.objects.get_mut(&place) else { return };
        object.have.remove_run(segments);
        if object.state == State::Verifying && !object.have.is_full() {
            object.state = State::Receiving;
        }
        let range = object.range_of(segments);
        let gone = range.start < reception.window.trail();
        let known = range.start..range.end.min(reception.window.lead());
        object.unsettle(segments);
        if gone {
            self.end(FileIndex { at, place }, Outcome::Missed);
        } else if known.start < known.end {
            reception.window.unsettle(&known);
        }
        self.fill(now, at);
    }

    /// Notes that all of `object` is verified and has its final name.
    pub fn verified(&mut self, now: Time, object: ObjectId) {
        let Some(found) = self.find(object) else { return };
        if self.object_mut(found).is_some_and(|object| object.state == State::Verifying) {
            self.end(found, Outcome::Complete(now));
            self.remotes[found.at].fed = Some(now);
            self.fill(now, found.at);
            self.pay(now, found.at, false);
            self.look_whether_finished(found.at);
        }
    }

    /// Declines `object`, which the owner does not want or cannot keep.
    pub fn decline(&mut self, now: Time, object: ObjectId) {
        if let Some(found) = self.find(object) {
            self.end(found, Outcome::Failed);
            self.fill(now, found.at);
            self.look_whether_finished(found.at);
        }
    }

    fn check_complete(&mut self, found: FileIndex) {
        if let Some(object) = self.object_mut(found)
            && object.state == State::Receiving
            && object.have.is_full()
        {
            object.state = State::Verifying;
            let id = object.id;
            self.events.push_back(ReceiverEvent::Complete(id));
        }
    }

    /// Ends a file. The receiver requests nothing of it any more.
    fn end(&mut self, FileIndex { at, place }: FileIndex, outcome: Outcome) {
        let passage = self.remotes[at].passage;
        let Some(reception) = &mut self.remotes[at].reception else { return };
        let Goods::Files(files) = &mut reception.goods else { return };
        let Some(object) = files.objects.remove(&place) else { return };
        if !matches!(outcome, Outcome::Complete(_)) {
            files.is_sound = false;
            reception.window.extend(object.end());
        }
        reception.window.settle_all(&(object.place..object.next()));
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((object.id, object.came(passage)));
        self.events.push_back(ReceiverEvent::Ended(object.id, outcome));
    }

    fn end_all(&mut self, at: usize, outcome: Outcome) {
        while let Some(place) =
            self.remotes[at].files().and_then(|files| files.objects.keys().next().copied())
        {
            self.end(FileIndex { at, place }, outcome);
        }
    }
}

/// Messages of the receiver, and their times.
impl Receiver {
    const fn intervals(&self) -> Intervals {
        let ReceiverConfig { confirm, confirm_adapts, repair, confirm_retries, repair_retries, .. } =
            self.config;
        Intervals { confirm, adapts: confirm_adapts, repair, confirm_retries, repair_retries }
    }

    /// Returns the end of a random back-off that begins now (`NAK_RB_IVL`).
    fn backoff(random: &mut RandomStream, now: Time, reorder: Span, interval: Span) -> Time {
        now + reorder + Span::from_nanos(1 + random.below(interval.as_nanos().max(1)))
    }

    /// Starts the back-offs of the missing numbers whose file is known.
    fn fill(&mut self, now: Time, at: usize) {
        let Self { remotes, random, config, .. } = self;
        let remote = &mut remotes[at];
        let Some(Reception { window, goods }) = &mut remote.reception else { return };
        let interval = remote.backoff;
        let mut due = || Self::backoff(random, now, config.reorder, interval);
        let files = match goods {
            Goods::Files(files) => files,
            Goods::Messages(_) => return window.fill(Place(u64::MAX), &[], due),
        };
        window.settle_all(&(files.unused.start..files.unused.end.min(window.lead())));
        window.fill(files.limit(), &files.grouped(), &mut due);
        let lead = window.lead();
        for object in files.objects.values_mut().filter(|object| object.state == State::Receiving) {
            object.look_at_groups(lead);
            if let Some(groups) = &mut object.groups {
                groups.window.fill(Place(u64::MAX), &[], &mut due);
            }
        }
    }

    /// Handles the expired timers of missing numbers.
    fn expire(&mut self, now: Time, at: usize) {
        let intervals = self.intervals();
        self.look_at_repairer(now, at);
        let Self { remotes, random, config, .. } = self;
        let remote = &mut remotes[at];
        let interval = remote.backoff;
        let Some(Reception { window, .. }) = &mut remote.reception else { return };
        let mut again = || Self::backoff(random, now, config.reorder, interval);
        let due = window.expire(now, &intervals, &mut again);
        self.ask(now, at, &due.ask);
        self.expire_groups(now, at);
        for place in due.lost {
            self.lose(at, &(place..place.next()));
        }
        self.fill(now, at);
        self.look_whether_finished(at);
    }

    /// Asks for `places`, oldest first; those that cannot be asked for now are postponed.
    fn ask(&mut self, now: Time, at: usize, places: &[Place]) {
        let said = self.say_naks(now, at, places, false);
        if let Some(Reception { window, .. }) = &mut self.remotes[at].reception {
            for &place in places.get(said..).unwrap_or_default() {
                window.postpone(place, now + self.config.confirm);
            }
        }
    }

    /// Asks for these places, or with `parity` for the parity that they encode. Returns the number of places asked for.
    fn say_naks(&mut self, now: Time, at: usize, places: &[Place], parity: bool) -> usize {
        let remote = &mut self.remotes[at];
        let ReceiverConfig { address, silent, multicast_naks, listed, .. } = self.config;
        // A receiver that may not ask, or knows no address to ask, still waits for data.
        let cannot = silent || remote.is_deaf;
        let mut left = places;
        while !left.is_empty() && !cannot {
            let room = remote.credit.saturating_sub(96) / 4 + 1;
            let count = left.len().min(listed + 1).min(usize::try_from(room).unwrap_or(usize::MAX));
            let options = remote.report(address).into_iter().chain(remote.feedback(now, address)).collect();
            let sqns: Vec<Sqn> = left[..count].iter().map(|place| place.sqn()).collect();
            let Some((message, to)) = Self::nak(remote, &sqns, parity, options) else { break };
            remote.unheard += u32::from(parity);
            if let Some(redirection) = &mut remote.redirection {
                redirection.asked.get_or_insert(now);
            }
            self.naks += 1;
            note_asked(remote, &left[..count]);
            if multicast_naks {
                let near = Transmit::new(message.clone(), remote.group);
                self.outbox.push_back(Transmit { ttl: Some(1), ..near });
            }
            self.outbox.push_back(Transmit::new(message, to));
            left = &left[count..];
        }
        places.len() - left.len()
    }

    /// Returns a request for numbers, or for parity by count, and its destination. `None` if the address for requests
    /// is unknown, or if the credit does not suffice.
    fn nak(
        remote: &mut Remote,
        sqns: &[Sqn],
        parity: bool,
        options: Vec<Opt>,
    ) -> Option<(Message, SocketAddr)> {
        let Path { upstream, source, group, .. } = remote.path?;
        let to = remote.redirection.map_or(upstream, |redirection| redirection.to);
        let (&sqn, also) = sqns.split_first()?;
        let nak = Nak {
            kind: NakKind::Nak,
            parity,
            sqn,
            source,
            group,
            also: also.to_vec(),
            list_octet: 0,
            options,
        };
        let message = Message { tsi: remote.tsi, port: remote.port, body: Body::Nak(nak) };
        remote.credit = remote.credit.checked_sub(message.wire_len(0) as u64)?;
        Some((message, to))
    }

    /// Notes that `range` of a source can no longer be obtained.
    fn lose(&mut self, at: usize, range: &Range) {
        let remote = &mut self.remotes[at];
        let tsi = remote.tsi;
        let Some(reception) = &mut remote.reception else { return };
        let files = match &mut reception.goods {
            Goods::Messages(messages) => return messages.lose(tsi, range, &mut self.events),
            Goods::Files(files) => files,
        };
        files.is_sound = false;
        let count = (range.end.0 - range.start.0) as u32;
        let first = range.start;
        self.events.push_back(ReceiverEvent::Own(MessageEvent::Lost {
            tsi,
            sqn: first.sqn(),
            at: first.0,
            count,
        }));
        if files.next.is_some_and(|next| range.contains(&next)) {
            // The boundaries of later files are unknown until a descriptor comes.
            files.next = None;
            let all = reception.window.trail()..reception.window.lead();
            let under_way: Vec<Range> = files.objects.values().map(Object::places).collect();
            let mut from = all.start;
            for places in under_way {
                reception.window.settle_all(&(from..places.start.max(from)));
                from = places.end.max(from);
            }
            reception.window.settle_all(&(from..all.end.max(from)));
        }
        let hit = |object: &Object| object.first < range.end && range.start < object.end();
        let objects: Vec<Place> =
            files.objects.iter().filter(|(_, object)| hit(object)).map(|(&place, _)| place).collect();
        for place in objects {
            self.end(FileIndex { at, place }, Outcome::Missed);
        }
    }

    /// Schedules the acknowledgement that a source has asked for, if the receiver can give it.
    fn pay(&mut self, now: Time, at: usize, is_asked: bool) {
        let interval = self.config.backoff;
        let Self { remotes, random, config, .. } = self;
        let remote = &mut remotes[at];
        let Some((_, place)) = remote.owed else { return };
        let can = match remote.reception.as_ref().map(|reception| &reception.goods) {
            Some(Goods::Files(files)) => files.has_up_to(place),
            // Progress in messages is reported when the source asks, and when everything up to the number asked for has
            // come.
            Some(Goods::Messages(messages)) => messages.settled.is_some_and(|has| is_asked || has > place),
            None => false,
        };
        if can && !config.silent && !remote.timers.is_set(Timer::Ack) {
            remote.timers.set(Timer::Ack, Self::backoff(random, now, Span::ZERO, interval));
        }
    }

    /// Reports the end of a session once none of its files is being received.
    fn look_whether_finished(&mut self, at: usize) {
        let remote = &mut self.remotes[at];
        let Some(finished) = remote.finished.filter(|_| !remote.is_through) else { return };
        let Some(Reception { window, goods }) = &remote.reception else { return };
        let under_way = matches!(goods, Goods::Files(files) if !files.objects.is_empty());
        let unknown = matches!(goods, Goods::Files(files) if files.next.is_some_and(|next| next < finished));
        if window.lead() >= finished && window.is_whole() && !under_way && !unknown {
            remote.is_through = true;
            self.events.push_back(ReceiverEvent::Own(MessageEvent::Finished(remote.tsi)));
        }
    }

    /// Removes a source that has left or fallen silent.
    fn gone(&mut self, at: usize) {
        let is_over = self.remotes[at].finished.is_some();
        self.end_all(at, if is_over { Outcome::Missed } else { Outcome::Lost });
        if self.config.delivering == Delivering::Stream {
            self.give_up(at);
        }
        let remote = self.remotes.remove(at);
        self.events.push_back(ReceiverEvent::Own(MessageEvent::Gone(remote.tsi)));
    }

    fn on(&mut self, now: Time, at: usize, timer: Timer) {
        let spmr = self.config.spmr;
        let remote = &mut self.remotes[at];
        let message = |body| Message { tsi: remote.tsi, port: remote.port, body };
        match timer {
            Timer::Spmr => {
                let unicast = SocketAddr::new(
                    remote.source.ip(),
                    self.config.unicast_port.unwrap_or(remote.source.port()),
                );
                let near = Transmit::new(message(Body::Spmr), remote.group);
                self.outbox.push_back(Transmit { ttl: Some(1), ..near });
                self.outbox.push_back(Transmit::new(message(Body::Spmr), unicast));
                remote.timers.set(Timer::Spmr, now + spmr);
            }
            Timer::Elect => self.acknowledge(now, at),
            Timer::Poll => self.answer_poll(at),
            Timer::Ack => self.say_has(at),
            Timer::Expiry => self.gone(at),
        }
    }
}

/// Counts requests for the files whose segments they name.
fn note_asked(remote: &mut Remote, places: &[Place]) {
    let Some(files) = remote.files() else { return };
    let mut last = None;
    for &place in places {
        if let Some(object) = files.at(place) {
            object.received.naks += u64::from(last != Some(object.id));
            last = Some(object.id);
        }
    }
}

impl Engine for Receiver {
    type Message = Message;
    type Event = ReceiverEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = self.hear(now, from, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        // An expired source is removed, and those behind it move up.
        for at in (0..self.remotes.len()).rev() {
            while self.remotes[at].reception.as_ref().and_then(Reception::next).is_some_and(|due| due <= now)
            {
                self.expire(now, at);
            }
            let tsi = self.remotes[at].tsi;
            while let Some(remote) = self.remotes.get_mut(at).filter(|remote| remote.tsi == tsi)
                && let Some(timer) = remote.timers.expire(now)
            {
                self.on(now, at, timer);
            }
        }
    }

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let of = |remote: &Remote| {
            let nak = remote.reception.as_ref().and_then(Reception::next);
            let nak = nak.map(|at| Deadline { at, timer: "NAK" });
            nak.into_iter().chain(remote.timers.next()).min_by_key(|deadline| deadline.at)
        };
        self.remotes.iter().filter_map(of).min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, message: &Message) -> NonZeroU32 {
        let Some(data) = message.data() else { return NonZeroU32::MIN };
        let remote = self.remotes.iter().find(|remote| remote.tsi == message.tsi);
        remote.map_or(NonZeroU32::MIN, |remote| remote.prefix(data))
    }
}
