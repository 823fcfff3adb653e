//! The source: sends files or messages at a steady rate, and repairs what receivers ask for (RFC 3208 §5, §16).

mod advance;
mod ending;
mod hearing;
mod keeping;
mod parity;
mod repairs;
mod window;
mod withdrawing;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, RejectCounts, Transmit};
use farcast_core::{Span, Time, Timers, timers};
use farcast_delivery::nack::{SenderCore, SenderOutcome};
use farcast_delivery::{
    Cause, Ending, ErasureCode, Figure, Geometry, Gone, Milestone, ObjectId, Phase, Proved, RequestCounts,
    RoundProgress, Routes, SenderEngine,
};

use crate::cc::Controller;
use crate::config::{self, Advance, Grouping, SenderConfig, Sending, parity_of};
use crate::error::{ConfigError, SendError};
use crate::event::{Released, SenderEvent};
use crate::message::{Ask, Body, DataKind, Descriptor, MOST_ASKED, Message, NodeId, Opt, Spm, Sqn};
use crate::sqn::Place;
use crate::wire::FRAGMENT_OPTIONS;

use keeping::Keeping;
use parity::Parities;
use repairs::Repairs;
use window::Window;

timers! {
    /// The source's timers.
    enum Timer {
        /// The next ambient SPM.
        Ambient = "ambient SPM",
        /// The next heartbeat SPM.
        Heartbeat = "heartbeat SPM",
        /// The gathering of requests ends.
        Gather = "gather",
        /// The window may advance.
        Advance = "advance",
        /// An acknowledgement of the acker is overdue.
        Acker = "acker",
        /// The next segment comes into being.
        Live = "live",
        /// Named receivers are asked again for their progress.
        Ask = "ask",
        /// Nothing was asked for during [`SenderConfig::linger`].
        Linger = "linger",
    }
}

/// The most confirmations that wait to leave; further ones are dropped.
const MOST_CONFIRMATIONS: usize = 256;
/// Limit of repairs as a multiple of the TPDUs sent for the first time, and a constant added to it. Beyond it, requests are refused.
const REPAIRS: (u64, u64) = (64, 1024);
/// SPMs that announce the end. A receiver that misses all of them stays until its expiry.
const LAST_SPMS: u32 = 3;
/// Engine of a source, which sends files or messages.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    core: SenderCore<Released>,
    timers: Timers<Timer>,
    cc: Option<Controller>,
    window: Window,
    /// Place up to which live content has come into being, and the time at which it begins.
    made: Option<(Place, Time)>,
    repairs: Repairs,
    parities: Parities,
    /// Number of the next message.
    next_object: u32,
    /// The owner will hand over no more messages.
    is_closed: bool,
    spm: Sqn,
    /// Number of SPMs that are to leave.
    spms: u32,
    last_spm: Option<Time>,
    /// Time until the next heartbeat.
    beat: Span,
    /// Confirmations that wait to leave.
    confirmations: VecDeque<Body>,
    /// Times and the places that left then, for a window that advances with time.
    marks: VecDeque<(Time, Place)>,
    /// Time of the last request for the oldest part of the window.
    asked_at: Option<Time>,
    /// TPDUs sent for the first time, and TPDUs sent again, among these the parity that was asked for. `parity_sent`
    /// counts all parity.
    sent: (u64, u64),
    parity_sent: u64,
    /// Named receivers that have not said that they have everything, in the order in which they are asked next.
    lacking: VecDeque<NodeId>,
    /// Progress of the named receivers in messages.
    keeping: Keeping,
    /// Time since which requests have kept the window from advancing.
    blocked: Option<Time>,
    /// A file was withdrawn, and a withdrawn file had not been sent completely.
    is_bereft: bool,
    is_cut_short: bool,
}

impl Sender {
    /// Creates a source with the settings `config`.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        let geometries = config.check()?;
        let group = config.parity.map_or(1, |parity| parity.size);
        let mut window = Window::new(Place::first(config.first), group);
        if let Sending::Files(objects) = &config.sending {
            for ((number, object), geometry) in (0..).zip(objects).zip(geometries) {
                let descriptor = Descriptor {
                    number,
                    behind: group as u16,
                    segment_size: config.tsdu,
                    size: object.size,
                    vouched: object.vouched,
                    withdrawn: false,
                    name: object.name.clone(),
                };
                window.push(ObjectId::new(number), geometry, Some(descriptor));
            }
        }
        Ok(Self {
            core: SenderCore::new(config.pace),
            timers: Timers::default(),
            cc: config.cc.map(|cc| Controller::new(cc, window.next)),
            made: config.live.map(|_| (window.next, Time::NEVER)),
            window,
            repairs: Repairs::default(),
            parities: Parities::default(),
            next_object: 0,
            is_closed: matches!(config.sending, Sending::Files(_)),
            spm: Sqn(0),
            spms: 0,
            last_spm: None,
            beat: config.heartbeat,
            confirmations: VecDeque::new(),
            marks: VecDeque::new(),
            asked_at: None,
            sent: (0, 0),
            parity_sent: 0,
            lacking: config.named.iter().copied().collect(),
            keeping: Keeping::new(&config),
            blocked: None,
            is_bereft: false,
            is_cut_short: false,
            config,
        })
    }

    /// Returns the settings.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Returns the TPDUs sent in each round.
    pub fn sent_per_round(&self) -> &[u64] {
        self.core.sent_per_round()
    }

    /// Returns the TPDUs sent for the first time, and those sent again.
    pub fn sent(&self) -> (u64, u64) {
        self.sent
    }

    /// Returns the number of TPDUs that wait to be sent for the first time.
    pub fn waiting(&self) -> u32 {
        Window::between(self.window.next, self.window.end)
    }

    /// Returns the congestion control, if it is on.
    pub fn cc(&self) -> Option<&Controller> {
        self.cc.as_ref()
    }

    /// Returns the counts of rejected messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.core.rejects
    }

    /// Accepts a message of `len` octets for sending, and returns the object under which its octets are asked for. The
    /// octets are needed until the message is released.
    ///
    /// # Errors
    /// The reason for which the message is not accepted, or not now.
    pub fn send(&mut self, now: Time, len: u32) -> Result<ObjectId, SendError> {
        if self.is_closed || self.core.ending.is_some() {
            return Err(SendError::Closed);
        }
        if self.window.waiting() >= self.config.backlog {
            return Err(SendError::Full);
        }
        let tsdu = self.config.tsdu;
        let whole = len <= u32::from(tsdu);
        let cut = if whole { tsdu } else { tsdu - FRAGMENT_OPTIONS as u16 };
        let geometry = config::geometry(len.into(), cut, None).map_err(|_| SendError::Size(len))?;
        let room = (1u32 << 31) - 1 - Window::between(self.window.trail, self.window.end);
        if len == 0 || geometry.segments() > room {
            return Err(SendError::Size(len));
        }
        let (object, had) = (ObjectId::new(self.next_object), self.has_data());
        self.next_object = self.next_object.wrapping_add(1);
        self.window.push(object, geometry, None);
        self.wake(now, had);
        Ok(object)
    }
}

/// Messages that leave.
impl Sender {
    fn message(&self, body: Body) -> Message {
        Message { tsi: self.config.tsi, port: self.config.port, body }
    }

    fn say(&mut self, now: Time, body: Body) -> Transmit<Message> {
        let message = self.message(body);
        self.core.pacer.settle(now);
        self.core.pacer.charge(self.core.pacer.span(message.wire_len(0)));
        let router_alert = self.config.router_alert;
        Transmit { router_alert, ..Transmit::new(message, self.config.group) }
    }

    fn say_spm(&mut self, now: Time) -> Transmit<Message> {
        self.spms -= 1;
        self.last_spm = Some(now);
        let sqn = self.spm;
        self.spm = sqn.next();
        let (trail, lead) = (self.window.trail.sqn(), self.window.lead.sqn().minus(1));
        let mut options = Vec::new();
        let is_all_there = self.window.trail == Place::first(self.config.first);
        if matches!(self.config.sending, Sending::Files(_)) || self.config.joins && is_all_there {
            options.push(Opt::Join(self.config.first));
        }
        if let Some(Grouping { size, ahead, on_demand }) = self.config.parity {
            options.push(Opt::ParityPrm { on_demand, proactive: ahead > 0, size, octet: 0 });
            let last = Place(self.window.lead.0 - 1);
            options.extend(self.window.short(last).map(Opt::GroupSize));
        }
        if let Some(backoff) = self.config.backoff {
            let interval_us = u32::try_from(backoff.as_nanos() / 1000).unwrap_or(u32::MAX);
            options.push(Opt::NakBackoff { interval_us, sqn: Sqn(0) });
        }
        match self.core.ending {
            Some(SenderOutcome::Aborted) => options.push(Opt::Rst { no_naks: true, code: 0 }),
            _ if self.is_closed && self.window.next == self.window.end => options.push(Opt::Fin),
            _ => {}
        }
        if (self.core.phase == Phase::Waiting || self.is_pressed()) && !self.lacking.is_empty() {
            let count = self.lacking.len().min(MOST_ASKED);
            options.push(Opt::Ask(Ask {
                upto: lead,
                nodes: self.lacking.iter().take(count).copied().collect(),
            }));
            self.lacking.rotate_left(count);
        }
        let path = self.config.source.ip();
        let said = self.say(now, Body::Spm(Spm { sqn, trail, lead, path, options }));
        if self.spms == 0 {
            self.core.finish();
        }
        said
    }

    /// Returns the next data to leave, at most what leaves before `until`.
    fn data(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        // Parity of the group just sent leaves with it. Segments asked for by number leave before parity asked for by
        // count.
        let due = self.config.parity.and_then(|grouping| match self.repairs.next() {
            Some(_) => self.parities.unasked(),
            None => self.parities.next(&grouping),
        });
        if let Some(due) = due {
            return self.parity(now, due);
        }
        let (kind, place, most) = match self.repairs.next() {
            Some((place, count)) => (DataKind::Repair, place, count),
            None => match self.room(now) {
                0 => return None,
                room => (DataKind::Original, self.window.next, room),
            },
        };
        self.core.pacer.settle(now);
        // The first number bears OPT_SYN (RFC 3208 §9.6).
        let is_first = place == Place::first(self.config.first);
        let most = if self.cc.is_some() || is_first { 1 } else { most };
        let Some(mut data) = self.window.data(kind, place, most) else {
            self.repairs.sent(now, place);
            return None;
        };
        let count = data.count.get();
        data.options.syn = is_first;
        if let Some(cc) = &mut self.cc {
            data.options.cc = Some(cc.sent(now, kind, place, self.config.group.is_ipv4()));
            if !self.timers.is_set(Timer::Acker) {
                self.timers.set(Timer::Acker, cc.due(now));
            }
        }
        let message = self.message(Body::Data(data));
        let spacing = self.core.pacer.span(message.wire_len(0));
        // A timer may change what is sent, so a run ends before it.
        let own = self.timers.next().map_or(Time::NEVER, |deadline| deadline.at);
        let leaves = if spacing < self.config.heartbeat {
            self.core.pacer.departures_before(until.min(own), spacing).min(count)
        } else {
            1
        };
        let message = if leaves == count {
            message
        } else {
            self.message(Body::Data(self.window.data(kind, place, leaves)?))
        };
        let last = message.wire_len(leaves - 1);
        self.core.pacer.charge(spacing * u64::from(leaves - 1));
        self.core.pacer.charge(self.core.pacer.span(last));
        for index in 0..leaves {
            self.left(now + spacing * u64::from(index), kind, place.plus(index));
        }
        let router_alert = self.config.router_alert && kind == DataKind::Repair;
        Some(Transmit { router_alert, ..Transmit::new(message, self.config.group).spaced(spacing) })
    }

    /// Notes that a TPDU leaves at `at`.
    fn left(&mut self, at: Time, kind: DataKind, place: Place) {
        match kind {
            DataKind::Original => {
                self.mark(at, place);
                self.window.sent(place);
                if let Some(grouping) = &self.config.parity
                    && let Some(base) = self.window.ended_by(place)
                {
                    self.parities.begin(base, grouping);
                }
                if self.config.heads_twice && self.window.is_head_of_many(place) {
                    self.repairs.repeat(place);
                }
                self.sent.0 += 1;
                self.press(at);
            }
            DataKind::Repair => {
                self.repairs.sent(at, place);
                self.sent.1 += 1;
            }
        }
        self.note_sent(at);
    }

    /// Notes that content or parity left at `at`.
    fn note_sent(&mut self, at: Time) {
        self.core.note_sent(1);
        self.beat = self.config.heartbeat;
        self.timers.set(Timer::Heartbeat, at + self.beat);
        if self.core.phase == Phase::Waiting {
            self.timers.set(Timer::Linger, at + self.linger());
        }
        self.look_whether_sent(at);
    }

    fn on(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Ambient => {
                self.spms += 1;
                self.timers.set(Timer::Ambient, now + self.config.ambient);
            }
            Timer::Heartbeat => {
                self.spms += 1;
                // While there are more receivers to ask than fit one SPM, the heartbeat does not slow down.
                let asks = self.core.phase == Phase::Waiting && self.lacking.len() > MOST_ASKED;
                if !asks {
                    self.beat = (self.beat * 2).min(self.config.heartbeat_most);
                }
                self.timers.set(Timer::Heartbeat, now + self.beat);
            }
            Timer::Gather => self.repair(now),
            // A window that advances with data checks for itself whether it may; this timer only wakes it.
            Timer::Advance => self.age(),
            Timer::Acker => {
                if let Some(cc) = &mut self.cc {
                    cc.timeout();
                }
            }
            Timer::Live => self.make(),
            Timer::Ask => self.press(now),
            Timer::Linger if self.repairs.is_any() || self.parities.is_any() => {
                self.timers.set(Timer::Linger, now + self.linger());
            }
            Timer::Linger if self.core.phase == Phase::Sending => self.give_up_who_lags(),
            Timer::Linger => self.conclude(),
        }
    }

    /// Restarts the pacer if there is something to send again, so that idle time is not made up for.
    fn wake(&mut self, now: Time, had: bool) {
        if !had && self.has_data() {
            self.core.pacer.begin(now);
        }
    }

    /// Returns `true` if data are ready and wait only for their time.
    fn has_data(&self) -> bool {
        let may_send = self.cc.as_ref().is_none_or(|cc| cc.window().may_send());
        if !self.core.is_at_work() || !may_send {
            return false;
        }
        let blocked = match self.config.advance {
            Advance::Data { sqns, .. } => {
                Window::between(self.window.trail, self.window.next) >= sqns
                    && (self.timers.is_set(Timer::Advance) || self.is_held())
            }
            _ => false,
        };
        let waits = self.repairs.is_ready() || self.parities.is_ready();
        waits || self.window.next < self.there() && !blocked
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = SenderEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        self.core.asked = None;
        let had = self.has_data();
        let result = self.hear(now, from, message);
        self.wake(now, had);
        self.core.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        let had = self.has_data();
        while let Some(timer) = self.timers.expire(now) {
            self.on(now, timer);
        }
        self.wake(now, had);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        if let Some(body) = self.confirmations.pop_front() {
            return Some(self.say(now, body));
        }
        if self.spms > 0 {
            return Some(self.say_spm(now));
        }
        if !self.has_data() || now < self.core.pacer.next() {
            return None;
        }
        self.data(now, until)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.core.deadline(self.timers.next(), self.has_data())
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.core.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        // A request may come at any time, and its confirmation leaves before anything else.
        Time::ZERO
    }
}

impl SenderEngine for Sender {
    type Merged = Infallible;

    fn open(&mut self, now: Time) {
        if !self.core.begin(now, self.config.named.len()) {
            return;
        }
        self.core.begin_round(self.window.tpdus());
        self.spms = self.config.opening;
        self.timers.set(Timer::Ambient, now + self.config.ambient);
        self.timers.set(Timer::Heartbeat, now + self.beat);
        if let (Some(live), Some((made, begins))) = (self.config.live, &mut self.made) {
            // The descriptor of the first file exists at once.
            (*made, *begins) = (made.next(), now + live.start);
            self.timers.set(Timer::Live, *begins);
        }
    }

    fn spend(&mut self, datagrams: u64, octets: u64) {
        self.core.spend(datagrams, octets);
    }

    fn abort(&mut self, _now: Time, _cause: Cause, _text: Option<String>) {
        if self.core.may_abort() {
            self.end(SenderOutcome::Aborted);
        }
    }

    fn dismiss(&mut self, _now: Time, who: &Proved<'_>) {
        let node = NodeId(who.number.receiver());
        let Some(at) = self.lacking.iter().position(|lacking| *lacking == node) else { return };
        if self.core.ending.is_some() || self.core.phase == Phase::Ended {
            return;
        }
        self.lacking.remove(at);
        self.config.named.retain(|named| *named != node);
        self.core.dismiss(node);
        self.conclude_if_settled();
    }

    fn withdraw(&mut self, now: Time, object: ObjectId, _gone: &Gone, _why: &str) {
        self.withdraw_file(now, object);
    }

    fn moved(&mut self, _now: Time, source: SocketAddr) {
        self.config.source = source;
    }

    fn routes(&self) -> Routes {
        let SenderConfig { source, group, .. } = self.config;
        Routes::new(source, group, source)
    }

    fn geometry(&self, object: ObjectId) -> Option<&Geometry> {
        self.window.get(object).map(|entry| &entry.geometry)
    }

    fn parity_symbols(&self, object: ObjectId) -> u32 {
        let parity = self.config.parity.filter(|_| self.geometry(object).is_some());
        parity.map_or(0, |parity| parity_of(parity.size))
    }

    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::ReedSolomon8
    }

    fn phase(&self) -> Phase {
        self.core.phase
    }

    fn progress(&self) -> RoundProgress {
        self.core.progress()
    }

    fn figures(&self, naks: &RequestCounts) -> Vec<Figure> {
        let (odata, rdata) = self.sent;
        let parity = Figure::count("parity", self.parity_sent).labelled("parity packets sent");
        let mut figures = alloc::vec![
            Figure::count("odata", odata).labelled("ODATA sent"),
            Figure::count("rdata", rdata).labelled("RDATA sent"),
            Figure::counts("tpdus_per_round", self.sent_per_round().to_vec()),
            Figure::count("naks.sent", naks.sent).labelled("NAKs sent"),
            Figure::count("naks.collided", naks.collided),
            Figure::count("naks.late", naks.late),
            Figure::count("naks.used", naks.used),
        ];
        figures.extend(self.config.parity.map(|_| parity));
        figures
    }

    fn milestone(event: &SenderEvent) -> Option<Milestone> {
        event.milestone()
    }

    fn ending(event: &SenderEvent) -> Option<Ending> {
        event.ending()
    }

    fn asked(&self) -> Option<farcast_delivery::Asked> {
        self.core.asked
    }
}
