//! The server half of MFTP (draft §11.1, §11.2).
//!
//! | file | contents |
//! |---|---|
//! | `registration.rs` | announcements, the start |
//! | `admission.rs` | registrations, tokens, claims to a name |
//! | `comparing.rs` | the list of files, for receivers that compare it with their files |
//! | `delivery.rs` | passes, blocks, status requests |
//! | `ahead.rs` | parity ahead of requests |
//! | `bottleneck.rs` | rate of the path, where receivers set the pace |
//! | `early.rs` | data behind the announcement |
//! | `answers.rs` | answers of receivers |
//! | `latecomers.rs` | receivers that register once data runs |
//! | `lists.rs` | clients that announcements list |
//! | `withdrawn.rs` | segments whose source is gone |
//! | `ending.rs` | completion, abort |
//! | `neighbourhood.rs` | other transmissions on the group |
//! | `laggards.rs` | limits on waiting for receivers |
//! | `survey.rs` | losses of the first pass, and their causes |
//! | `turns` | turns of receivers behind a thin return channel |
//! | `members.rs`, `schedule.rs`, `flight.rs`, `replies.rs` | shared state |

mod admission;
mod ahead;
mod answers;
mod bottleneck;
mod comparing;
mod delivery;
mod early;
mod ending;
mod flight;
mod laggards;
mod latecomers;
mod lists;
mod members;
mod neighbourhood;
mod registration;
mod replies;
mod schedule;
mod survey;
mod turns;
mod withdrawn;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};
use farcast_core::{Message as _, Run, Span, Time, Timers, timers};
use farcast_delivery::{Asked, Geometry, NakFate, Pacer, Phase, RoundProgress};

use crate::config::{Group, Pace, SenderConfig, StatusRetry};
use crate::error::ConfigError;
use crate::event::{SenderEvent, SenderOutcome};
use crate::message::{Body, ClientId, Echo, GroupModel, Join, Message, cancel};

use bottleneck::Bottleneck;
use delivery::{SendProgress, SendStep};
use flight::Flight;
use members::Members;
pub use members::{GivenUp, Member, MemberState};
pub use neighbourhood::Neighbourhood;
use replies::{LongestTrip, Replies};
use schedule::Schedule;
pub use survey::{Judgement, Survey, Surveyed};

/// Shortest time between requests that have gone unanswered more often than receivers are allowed.
const OUTAGE_RETRY: Span = Span::from_secs(1);

timers! {
    /// Timers of a sender.
    enum Timer {
        /// The next announcement.
        Announce = "announce",
        /// The announcement phase is over.
        AnnounceLimit = "announce limit",
        /// Enough time has passed to start with the registered receivers.
        StartAfter = "start after",
        /// Receivers that have not registered yet had the time to come.
        Latecomers = "latecomers",
        /// Receivers had time to join; data begins.
        Join = "join delay",
        /// The Status Retry Timer.
        StatusRetry = "status retry",
        /// The window is full and no acknowledgement comes.
        Stall = "stall",
        /// The next Completion, Abort or End.
        Closing = "closing",
        /// The transfer takes too long.
        TransferLimit = "transfer limit",
        /// A receiver that was asked for a sign of life has not answered.
        Probe = "probe",
        /// Receivers that were complete in an earlier run had the time to confirm it.
        Remembered = "remembered",
        /// The next receivers may be called.
        Turn = "turn",
    }
}

/// Counts of a sender, for reports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SenderStats {
    /// DTUs sent in each pass, parity symbols included.
    pub dtus_per_pass: Vec<u64>,
    /// Parity symbols among them.
    pub parity_sent: u64,
    /// Datagrams sent, control messages included.
    pub datagrams: u64,
    /// Bytes of their UDP payload.
    pub bytes: u64,
    /// NAK messages that were accepted.
    pub naks: u64,
    /// DTUs newly scheduled by NAKs.
    pub scheduled: u64,
    /// Status requests sent.
    pub status_requests: u64,
}

/// Sender of one product: the server of MFTP as a sans-I/O engine.
///
/// Create it with [`new`](Self::new), begin with [`open`](Self::open), then drive it as [`farcast_core::engine`]
/// describes until [`SenderEvent::Ended`].
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    geometry: Geometry,
    phase: Phase,
    members: Members,
    schedule: Schedule,
    progress: SendProgress,
    flight: Flight,
    pacer: Pacer,
    bottleneck: Bottleneck,
    timers: Timers<Timer>,
    outbox: VecDeque<Transmit<Message>>,
    events: VecDeque<SenderEvent>,
    rejects: RejectCounts,
    stats: SenderStats,
    /// Request in the message handled last.
    asked: Option<Asked>,
    closing: ending::Closing,
    withdrawn: withdrawn::Withdrawn,
    /// Recent losses.
    losses: ahead::Losses,
    /// Losses of the first pass.
    survey: survey::Surveying,
    turns: turns::Turns,
    /// Longest round trip measured lately.
    round_trip: LongestTrip,
    /// Limit on messages to strangers.
    replies: Replies,
    /// Receivers without proofs that have proved their address before they were admitted.
    vouched: VecDeque<(ClientId, SocketAddr)>,
    /// Receivers that have joined since the last request, and lack what was sent before.
    newcomers: Vec<ClientId>,
    /// Time for which data waits for other receivers after the first registration.
    starting: latecomers::Starting,
    /// Time at which the last receiver registered that has shown itself.
    joined_at: Time,
    /// Other transmissions on the sender's group.
    neighbourhood: Neighbourhood,
    /// Time of the first announcement.
    announced_at: Option<Time>,
    /// The same as long as no other has left that a registration may answer.
    only_announced_at: Option<Time>,
    announced: u32,
    /// Parts of the lists in announcements to many.
    lists: lists::Lists,
    /// Time until which a new address of the server is announced often.
    moved_until: Time,
}

impl Sender {
    /// Creates a sender that does nothing before [`open`](Self::open).
    ///
    /// # Errors
    /// Returns the first setting that cannot work.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let geometry = Geometry::new(config.product.size, config.dtu_size, config.block_size)?;
        Ok(Self {
            geometry,
            phase: Phase::Idle,
            members: Members::of(&config.group),
            schedule: Schedule::new(false),
            progress: SendProgress::default(),
            flight: Flight::default(),
            pacer: Pacer::new(config.pace.steady()),
            bottleneck: Bottleneck::default(),
            timers: Timers::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            rejects: RejectCounts::default(),
            stats: SenderStats::default(),
            asked: None,
            closing: ending::Closing::default(),
            withdrawn: withdrawn::Withdrawn::default(),
            losses: ahead::Losses::default(),
            survey: survey::Surveying::default(),
            turns: turns::Turns::new(config.pace, config.return_rate, config.secret.is_some()),
            round_trip: LongestTrip::default(),
            replies: Replies::new(config.pace),
            vouched: VecDeque::new(),
            newcomers: Vec::new(),
            starting: latecomers::Starting::default(),
            joined_at: Time::ZERO,
            neighbourhood: Neighbourhood::default(),
            announced_at: None,
            only_announced_at: None,
            announced: 0,
            lists: lists::Lists::default(),
            moved_until: Time::ZERO,
            config,
        })
    }

    /// Returns the phase of the transmission.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the product's division into blocks and segments.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the settings.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Returns the time before which the sender sends only settled messages, whatever a receiver may answer. This holds
    /// only in a group without members, where there are no confirmations.
    pub fn quiet_until(&self) -> Time {
        if self.has_members() { Time::ZERO } else { self.settled_until() }
    }

    /// Returns `true` if it sends over IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.config.private.is_ipv6()
    }

    /// Returns the receivers, in the order of their ids.
    pub fn members(&self) -> impl Iterator<Item = (ClientId, &Member)> {
        self.members.iter().map(|(&id, member)| (id, member))
    }

    /// Returns a receiver.
    pub fn member(&self, client: ClientId) -> Option<&Member> {
        self.members.get(&client)
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Returns the request in the message handled last, if it was a NAK.
    pub fn asked(&self) -> Option<Asked> {
        self.asked
    }

    /// Returns the number of rejected messages, by reason.
    pub fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    /// Returns the progress of the current pass.
    pub fn pass(&self) -> RoundProgress {
        let sent = self.progress.sent_in_pass;
        RoundProgress { round: self.progress.pass, sent, segments: sent + self.left_in_pass() }
    }

    /// Returns the longest round trip measured, or the assumed one.
    pub fn round_trip(&self) -> Span {
        self.round_trip.longest().unwrap_or(self.config.round_trip)
    }

    /// Returns the longest round trip of members. If none is measured, it is less than the assumed one if all their
    /// registrations took less. Receivers that have not registered may be farther away.
    fn members_trip(&self) -> Span {
        let most = self.round_trip.at_most().unwrap_or(Span::MAX);
        self.round_trip.longest().unwrap_or(most.min(self.config.round_trip))
    }

    /// Returns the Status Retry Timer as it would be set now.
    pub fn status_retry(&self) -> Span {
        // Beyond the draft's number of repetitions the sender only waits for the end of an outage.
        let waits = self.progress.silent_rounds > self.config.status_retry_count;
        let least = if waits { OUTAGE_RETRY } else { Span::ZERO };
        self.first_status_retry().max(least)
    }

    fn first_status_retry(&self) -> Span {
        if self.by_turns() {
            return self.poll_wait();
        }
        match self.config.status_retry {
            StatusRetry::Fixed(span) => span,
            StatusRetry::BlockTime { round_trips } => {
                let bytes = u64::from(self.config.block_size) * u64::from(self.config.dtu_size);
                let block_time = match self.config.pace {
                    Pace::Rate { rate, .. } => rate.time_of_bytes(bytes),
                    Pace::Window { .. } => Span::ZERO,
                };
                block_time + self.round_trip() * u64::from(round_trips)
            }
            StatusRetry::Measured => {
                // Doubled while no answer comes, or only signs that a receiver still compares, up to a second or the
                // first value.
                let first = self.members_trip() * 3 / 2 + self.config.backoff_window + Span::from_millis(20);
                let rounds = self.progress.silent_rounds.max(self.comparing_rounds());
                first.max((first * (1 << rounds.min(10))).min(Span::from_secs(1)))
            }
        }
    }

    fn model(&self) -> GroupModel {
        match self.config.group {
            Group::Closed(_) => GroupModel::Closed,
            Group::OpenLimited { .. } => GroupModel::OpenLimited,
            Group::OpenUnlimited => GroupModel::OpenUnlimited,
        }
    }

    fn has_members(&self) -> bool {
        self.model() != GroupModel::OpenUnlimited
    }

    fn queue(&mut self, body: Body, destination: SocketAddr) {
        let managing = matches!(
            body,
            Body::Query(_) | Body::Join(_) | Body::Leave(_) | Body::Echo(_) | Body::EchoResponse(_)
        );
        let transmission = if managing { 0 } else { self.config.transmission };
        let is_end = match &body {
            Body::End(_) => true,
            Body::Abort(m) => m.hosts.is_none(),
            Body::Completion(m) => m.hosts.is_none(),
            _ => false,
        };
        let secret = self.config.secret.filter(|_| is_end);
        let proof = secret.map(|secret| secret.end_key(transmission));
        self.outbox.push_back(Transmit::new(Message { transmission, body, proof }, destination));
    }

    /// Sends an answer to a host that is no member, if the limit allows it; another limit holds for those that the sender
    /// has `called`. Returns `true` if it was sent.
    fn reply(&mut self, now: Time, message: Message, to: SocketAddr, called: bool) -> bool {
        let octets = message.wire_len(0) as u64;
        let allowed = self.config.secret.is_none() || self.replies.take(now, octets, called);
        if allowed {
            self.outbox.push_back(Transmit::new(message, to));
        }
        allowed
    }

    /// Counts a transmit that is about to leave.
    fn leave(&mut self, transmit: Transmit<Message>) -> Transmit<Message> {
        let count = transmit.message.segments().get();
        self.stats.datagrams += u64::from(count);
        let full = transmit.message.wire_len(0) as u64;
        let last = transmit.message.wire_len(count - 1) as u64;
        self.stats.bytes += full * u64::from(count - 1) + last;
        transmit
    }

    fn sample_round_trip(&mut self, since: Time, now: Time) {
        // Answers that were spread at random tell nothing about the path.
        // Turns have a measurement of their own.
        if self.config.measure_round_trip && self.config.backoff_window.is_zero() && !self.by_turns() {
            self.round_trip.sample(now, now.since(since).max(Span::from_micros(100)));
        }
    }

    /// Records that the longest round trip is not shorter than the time since `since`.
    fn prolong_round_trip(&mut self, since: Time, now: Time) {
        if self.round_trip() < now.since(since) {
            self.sample_round_trip(since, now);
        }
    }

    /// Takes the time of a registration for a round trip, or for the most that one can take.
    fn time_registration(&mut self, now: Time) {
        let Some(announced) = self.announced_at.filter(|_| !self.by_turns()) else { return };
        if self.only_announced_at.is_some() {
            self.sample_round_trip(announced, now);
        } else if self.config.measure_round_trip {
            self.round_trip.limit(now.since(announced));
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Announce => self.announce(now),
            Timer::AnnounceLimit => self.announce_limit(now),
            Timer::StartAfter => self.try_start(now),
            Timer::Join => self.begin_data(now),
            Timer::StatusRetry => self.status_retry_expired(now),
            Timer::Stall => self.stalled(now),
            Timer::Closing => self.closing_step(now),
            Timer::Probe => self.probe_expired(now),
            Timer::Remembered => {
                if self.members.remembered() > 0 {
                    self.one_less(now);
                }
            }
            Timer::Latecomers => self.latecomers_expired(now),
            Timer::Turn => self.next_turn(now),
            Timer::TransferLimit => self.abort_with(
                now,
                cancel::ABORT_TRANSFER_TIMEOUT,
                Some("the transfer took too long".into()),
            ),
        }
    }

    fn take(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match &message.body {
            Body::Query(query) => {
                if !query.all && query.application != self.config.application {
                    return Err(Reject::OtherSession);
                }
                let (application, public) = (self.config.application.clone(), self.config.public.ip());
                let join = Body::Join(Join { application, public, all: false, hosts: None });
                self.reply(now, Message::new(0, join), from.source, false);
                return Ok(());
            }
            Body::Echo(echo) => {
                let response = Body::EchoResponse(Echo { hosts: None, ..echo.clone() });
                self.reply(now, Message::new(0, response), from.source, false);
                return Ok(());
            }
            Body::EchoResponse(echo) => return self.echo_response(now, from.source, echo),
            _ => {}
        }
        if message.transmission != self.config.transmission {
            return self.foreign(now, from, message);
        }
        if self.phase == Phase::Idle || self.phase == Phase::Ended {
            return Err(Reject::Unexpected);
        }
        match &message.body {
            Body::Registration(m) => self.registration(now, from.source, m, message),
            Body::Nak(m) => self.nak(now, from.source, m, message),
            Body::Ack(m) => self.ack(now, from.source, m, message),
            Body::Done(m) => self.done(now, from.source, m, message),
            Body::Quit(m) => self.quit(now, from.source, m, message),
            // The sender's own multicasts may come back to it.
            _ if from.source == self.config.server => Err(Reject::Duplicate),
            _ => Err(Reject::Unexpected),
        }
    }
}

impl Engine for Sender {
    type Message = Message;
    type Event = SenderEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let (pass, scheduled) = (self.progress.pass, self.stats.scheduled);
        self.count_arrival(now, message);
        let result = self.take(now, from, message);
        self.asked = match &message.body {
            Body::Nak(nak) => Some(self.judge_nak(nak.pass, 1, pass, scheduled)),
            _ => None,
        };
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            self.on_timer(now, timer);
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        if let Some(transmit) = self.outbox.pop_front() {
            if self.phase == Phase::Sending || self.is_early() {
                self.pacer.owe(self.pacer.span(transmit.message.wire_len(0)));
            }
            return Some(self.leave(transmit));
        }
        if self.phase != Phase::Sending && !self.is_early() {
            return None;
        }
        // The sender's own timers may change what leaves, so a run ends where the next one is due.
        let own = self.timers.next().map_or(Time::NEVER, |deadline| deadline.at);
        let transmit = self.poll_sending(now, until.min(own))?;
        Some(self.leave(transmit))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let timer = self.timers.next();
        let sends = self.phase == Phase::Sending || self.is_early();
        if !sends || matches!(self.progress.step, SendStep::Stalled | SendStep::Train) {
            return timer;
        }
        let pace = Deadline { at: self.pacer.next(), timer: "pace" };
        Some(timer.filter(|deadline| deadline.at <= pace.at).unwrap_or(pace))
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        // Feedback is handled between blocks: the rest of the current block is settled.
        if self.phase != Phase::Sending || self.progress.step == SendStep::Train {
            return Time::ZERO;
        }
        let full = self.pacer.span(crate::wire::data_len(usize::from(self.geometry.segment_size())));
        self.pacer.next() + full * u64::from(self.progress.left_in_block().saturating_sub(1))
    }
}

/// Returns the run of all blocks.
fn all_blocks(geometry: &Geometry) -> Run {
    Run::new(0, geometry.blocks()).unwrap_or(Run::one(0))
}

impl Sender {
    /// Returns the effect of `count` requests of `round` that came during `pass`; `scheduled` is the number of
    /// scheduled DTUs before them.
    fn judge_nak(&self, round: u32, count: u64, pass: u32, scheduled: u64) -> Asked {
        // The pass is the one before the request, because a request may begin the next.
        let fate = if pass > round {
            NakFate::Late
        } else if self.stats.scheduled > scheduled {
            NakFate::Used
        } else {
            NakFate::Known
        };
        Asked { round, count, fate }
    }

    fn end(&mut self, outcome: SenderOutcome) {
        self.phase = Phase::Ended;
        self.timers = Timers::default();
        self.events.push_back(SenderEvent::Ended(outcome));
    }
}
