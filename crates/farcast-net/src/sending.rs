//! Transmission of files: the loop that drives a [`SenderEngine`], reads answers and sends datagrams.
//!
//! [`send`] runs the loop. `hearing` reads answers, and `changes` handles files that change meanwhile. `notice` has the
//! options, notices and reports for the owner.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::Engine;
use farcast_core::{Span, Time};
use farcast_delivery::{
    Cause, Codec, Delivery as _, Milestone, ObjectId, Phase, Protocol, Proved, RoundProgress, SenderEngine,
};
use farcast_files::{Outgoing, SourceError};

use crate::batch::{Batch, ObjectSource, Outlet};
use crate::changing::{Changing, FileWatch};
use crate::clock::{Clock, sharpen_timers};
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::path_watch::{PathChange, PathNotice, PathWatch, SendSockets};
use crate::refusals::Refusals;
use crate::seal::SendSeal;
use crate::socket::Endpoint;

mod changes;
mod hearing;
mod notice;

pub use notice::{SendNotice, SendOptions, SendReport, Traffic};

/// Interval at which the owner is told about progress.
const TICK: Span = Span::from_millis(100);

/// Transmission by the protocol `P`.
pub struct SendJob<'a, P: Protocol> {
    /// Objects to send. The protocol knows each by its index here, from 0.
    pub objects: Vec<Outgoing>,
    /// Codec of the protocol's messages.
    pub codec: &'a P::Codec,
    /// Seal of all datagrams. With a seal, only sealed answers are accepted.
    pub seal: Option<&'a mut SendSeal>,
    /// Options of the transmission.
    pub options: &'a SendOptions,
    /// Flag that begins the transmission without waiting longer for receivers.
    pub start: &'a AtomicBool,
    /// Flag that aborts the transmission.
    pub stop: &'a AtomicBool,
}

/// Carries out `job`. `make` makes the engine for our own address.
///
/// # Errors
/// If the transmission cannot begin. Later errors are in the report.
pub fn send<P: Protocol, E: Error + Send + Sync + 'static>(
    job: SendJob<'_, P>,
    make: impl FnOnce(SocketAddr) -> Result<P::Sender, E>,
    observer: Observer<'_, P>,
) -> Result<SendReport<P::Sender>, NetError> {
    let SendJob { objects, codec, seal, options, start, stop } = job;
    sharpen_timers();
    // The watch starts before the state of the path is read, so that no change is missed.
    let path = PathWatch::new(options.to, &options.socket, codec.transport());
    let endpoint = Endpoint::sender(options.to, &options.socket, codec.transport())?;
    let sender = make(endpoint.local()).map_err(NetError::config)?;
    let strict = options.changing == Changing::Fail;
    let objects: Vec<Outgoing> =
        objects.into_iter().map(|object| if strict { object } else { object.leniently() }).collect();
    let watch = FileWatch::start(objects.clone());
    let sources = (0..).map(ObjectId::new).zip(objects);
    let sources = sources.map(|(object, outgoing)| ObjectSource::new(&sender, object, outgoing));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    // While announcing, the sender listens to the group: another transmission may be using it. Later, answers may come
    // to the group.
    let group = options.to.ip().is_multicast().then(|| path.listen()).transpose()?;
    let mut driver = Driver::<P>::new(sender, SendPath { path, group }, codec, options, observer);
    let mut outlet = Outlet::new(endpoint, sources, options.to, seal)?;
    let end = driver.run(&mut outlet, start, stop)?;
    let over = driver.delivered.unwrap_or_else(|| driver.clock.now());
    let traffic = driver.traffic();
    drop(watch);
    if options.look_again {
        for source in &outlet.sources {
            source.outgoing.watch(&|| true);
        }
    }
    let changed = outlet.sources.iter().flat_map(|source| source.outgoing.changed()).collect();
    Ok(SendReport {
        changed,
        seal: outlet.seal.as_ref().map(|seal| seal.counts()),
        end,
        error: driver.error,
        duration: over.since(Time::ZERO),
        data_duration: driver
            .data_began
            .map_or(Span::ZERO, |began| driver.data_left.0.max(began).since(began)),
        malformed: driver.malformed,
        traffic,
        sender: driver.sender,
    })
}

/// Event of `P`'s sending engine.
type Event<P> = <<P as Protocol>::Sender as Engine>::Event;

/// Callback that tells the owner of the sender what happens.
type Observer<'a, P> = &'a mut dyn FnMut(Time, &<P as Protocol>::Sender, &SendNotice<'_, Event<P>>);

/// Last event of a sender.
struct SenderEnd<E> {
    event: E,
    /// No receiver was there.
    alone: bool,
}

/// State of a transmission's loop.
struct Driver<'a, P: Protocol> {
    clock: Clock,
    sender: P::Sender,
    path: PathWatch<'a>,
    group: Option<Endpoint>,
    codec: &'a P::Codec,
    batch: Batch<'a, P::Codec>,
    buffer: Vec<u8>,
    malformed: u64,
    heard: u64,
    requests: u64,
    asked: u64,
    /// Number of files that are known to have changed, and the changed files that the owner was told of.
    changes: usize,
    told: BTreeSet<(ObjectId, usize)>,
    ended: Option<SenderEnd<Event<P>>>,
    error: Option<NetError>,
    /// The sender has begun.
    opened: bool,
    /// There may be news of the interfaces.
    news: bool,
    /// Reason for which nothing left the last time, before data.
    unsent: Option<NetError>,
    /// The owner was told that datagrams leave in fragments.
    fragments: bool,
    refusals: Refusals,
    delivered: Option<Time>,
    data_began: Option<Time>,
    /// Time at which content left last, and the progress of its round then.
    data_left: (Time, RoundProgress),
    options: &'a SendOptions,
    observer: Observer<'a, P>,
}

/// Sockets and watch of the path to the group.
struct SendPath<'a> {
    path: PathWatch<'a>,
    group: Option<Endpoint>,
}

impl<'a, P: Protocol> Driver<'a, P> {
    fn new(
        sender: P::Sender,
        SendPath { path, group }: SendPath<'a>,
        codec: &'a P::Codec,
        options: &'a SendOptions,
        observer: Observer<'a, P>,
    ) -> Self {
        Self {
            clock: Clock::start(),
            sender,
            path,
            group,
            codec,
            batch: Batch::new(codec),
            buffer: vec![0; hearing::BUFFER],
            malformed: 0,
            heard: 0,
            requests: 0,
            asked: 0,
            changes: 0,
            told: BTreeSet::new(),
            error: None,
            opened: false,
            news: true,
            unsent: None,
            ended: None,
            fragments: false,
            refusals: Refusals::default(),
            delivered: None,
            data_began: None,
            data_left: (Time::ZERO, RoundProgress::default()),
            options,
            observer,
        }
    }
}

impl<P: Protocol> Driver<'_, P> {
    fn run(
        &mut self,
        outlet: &mut Outlet<'_>,
        start: &AtomicBool,
        stop: &AtomicBool,
    ) -> Result<Event<P>, NetError> {
        let mut tick = Time::ZERO;
        loop {
            let now = self.clock.now();
            if self.opened && start.swap(false, Ordering::Relaxed) {
                self.sender.start(now);
            }
            if stop.swap(false, Ordering::Relaxed) {
                self.open(now);
                self.sender.abort(now, Cause::Application, Some("stopped at the sender".into()));
            }
            // The query costs a system call, so it is made only after news, and now and then.
            if std::mem::take(&mut self.news) || now >= tick.min(self.path.due()) {
                self.follow(now, outlet);
            }
            self.hear(outlet)?;
            self.sender.handle_timeout(self.clock.now());
            self.drain();
            if !self.is_held() {
                self.transmit_or_give_up(outlet)?;
            }
            self.drain();
            if now >= tick {
                tick = now + TICK;
                self.revoke(now, outlet)?;
                self.tell_of_path(outlet);
                self.note_changes(now, &outlet.sources);
                let traffic = self.traffic();
                (self.observer)(now, &self.sender, &SendNotice::Tick(traffic));
            }
            if self.sender.phase() == Phase::Ended
                && let Some(ended) = self.ended.take()
            {
                self.finish(outlet, ended.alone);
                self.tell_of_path(outlet);
                return Ok(ended.event);
            }
            self.wait(outlet, tick)?;
        }
    }

    /// Starts the sender if it has not begun.
    fn open(&mut self, now: Time) {
        if !std::mem::replace(&mut self.opened, true) {
            self.sender.open(now);
        }
    }

    /// Removes receivers from the seal that are no longer trusted.
    fn revoke(&mut self, now: Time, outlet: &mut Outlet<'_>) -> Result<(), NetError> {
        let Some(seal) = &mut outlet.seal else { return Ok(()) };
        for (name, number) in seal.revoke(now)? {
            self.sender.dismiss(now, &Proved { name: &name, number });
            (self.observer)(now, &self.sender, &SendNotice::Revoked { name: &name });
        }
        Ok(())
    }

    /// Returns the traffic so far.
    fn traffic(&self) -> Traffic {
        let Self { heard, requests, asked, .. } = *self;
        Traffic { sent: self.batch.sent(), heard, requests, asked }
    }

    /// Returns `true` if data waits because there is no path for it.
    fn is_held(&self) -> bool {
        self.path.is_lost() && self.sender.phase() == Phase::Sending
    }

    fn finish(&mut self, outlet: &mut Outlet<'_>, alone: bool) {
        // The messages that end a transmission may still be queued.
        if let Err(error) = self.transmit(outlet) {
            self.error.get_or_insert(error);
        }
        if alone && let Some(error) = self.unsent.take() {
            // No receiver was there because no announcement left.
            self.error.get_or_insert(error);
        }
        // If no receiver has ever answered, a refusal of this host is the reason.
        if (alone || self.heard == 0)
            && let Some(error) = outlet.endpoint.refused()
        {
            self.error.get_or_insert(error);
        }
    }

    fn wait(&mut self, outlet: &Outlet<'_>, tick: Time) -> Result<(), NetError> {
        let timer = || {
            let timeout = self.sender.poll_timeout().filter(|_| self.opened);
            timeout.map_or(Time::NEVER, |deadline| deadline.at)
        };
        // Held data is always due, so only the tick decides the time to wake.
        let due = if self.is_held() { tick } else { timer().min(tick) }.min(self.path.due());
        let keys = outlet.seal.as_ref().filter(|_| !self.is_held()).map_or(Time::NEVER, |seal| seal.due());
        let due = due.min(keys);
        if due <= self.clock.now() {
            return Ok(());
        }
        let mut sources = vec![outlet.endpoint.as_fd()];
        sources.extend(self.group.as_ref().map(AsFd::as_fd));
        let news = sources.len();
        sources.extend(self.path.source());
        let readable = self.clock.wait(&sources, due).map_err(NetError::socket("wait for the network"))?;
        self.news = readable.has(news);
        Ok(())
    }

    /// Handles changes of the interfaces.
    fn follow(&mut self, now: Time, outlet: &mut Outlet<'_>) {
        let sockets = SendSockets { endpoint: &mut outlet.endpoint, group: &mut self.group };
        let Some(change) = self.path.follow(now, sockets) else { return };
        if let PathChange::Moved(address) = change {
            self.sender.moved(now, address);
        }
        self.path_notice(now, change.notice());
    }

    fn path_notice(&mut self, now: Time, notice: PathNotice<'_>) {
        (self.observer)(now, &self.sender, &SendNotice::Path(notice));
    }

    fn transmit_or_give_up(&mut self, outlet: &mut Outlet<'_>) -> Result<(), NetError> {
        match self.transmit(outlet) {
            Ok(true) => self.unsent = None,
            Ok(false) => {}
            Err(error) => self.give_up(error)?,
        }
        let progress = self.sender.progress();
        if progress != self.data_left.1 {
            let now = self.clock.now();
            if progress.sent > 0 {
                // Data may leave before it formally begins.
                self.data_began.get_or_insert(now);
            }
            self.data_left = (now, progress);
        }
        self.tell_refusals(&outlet.endpoint)?;
        let beside = outlet.endpoint.beside();
        if beside.octets > 0 {
            self.sender.spend_at_once(beside.datagrams as u64, beside.octets as u64);
            self.batch.count_control(outlet.group, beside.octets, beside.datagrams);
        }
        Ok(())
    }

    /// Reports narrow paths and fragments that were found.
    fn tell_of_path(&mut self, outlet: &Outlet<'_>) {
        let Outlet { endpoint, group, sources, .. } = outlet;
        let segment = sources.first().map_or(0, |source| usize::from(source.geometry.segment_size()));
        if let Some(narrow) = endpoint.asked_to_cut() {
            let excess = endpoint.longest().saturating_sub(narrow.limit);
            let segment = segment.saturating_sub(excess);
            let (receiver, datagram, limit) = (narrow.receiver, narrow.length, narrow.limit);
            let notice = PathNotice::Narrow { receiver, datagram, limit, segment: Some(segment) };
            self.path_notice(self.clock.now(), notice);
        }
        if let Some(packet) = endpoint.fragments_to(*group, &self.options.socket)
            && !self.fragments
        {
            self.fragments = true;
            let excess = (endpoint.longest() + endpoint.headers(*group)).saturating_sub(packet);
            let notice = PathNotice::Fragmenting { packet, segment: segment.saturating_sub(excess) };
            self.path_notice(self.clock.now(), notice);
        }
    }

    /// Reports refusals of this host to send.
    ///
    /// # Errors
    /// The refusal, if this host has let nothing out for some seconds.
    fn tell_refusals(&mut self, endpoint: &Endpoint) -> Result<(), NetError> {
        let now = self.clock.now();
        if let Some(why) = self.refusals.news(endpoint) {
            self.path_notice(now, PathNotice::Refused { why: &why });
        }
        self.refusals.left = self.batch.sent().datagrams > 0;
        self.refusals.check(now, endpoint)
    }

    /// Sends what may leave now. Returns `true` if anything was sent.
    fn transmit(&mut self, outlet: &mut Outlet<'_>) -> Result<bool, NetError> {
        let now = self.clock.now();
        let mut any = false;
        outlet.announcements = self.sender.routes().announcements;
        if let Some(seal) = &mut outlet.seal
            && now >= seal.due()
            && self.sender.phase() != Phase::Ended
        {
            let to = outlet.announcements;
            self.batch.flush(&outlet.endpoint)?;
            let (datagrams, octets) = seal.send_keys(now, &Envelope::to(to), &outlet.endpoint);
            self.batch.count_control(to, octets, datagrams);
            self.sender.spend(datagrams as u64, octets as u64);
        }
        // A receiver without keys cannot open any message, so the sender begins once the keys for all have left.
        if outlet.seal.as_ref().is_none_or(|seal| !seal.begins()) {
            self.open(now);
        }
        if !self.opened {
            self.send_owed(outlet);
            return Ok(any);
        }
        // Parity is prepared before the new answers are handled, and again whenever a block is taken.
        outlet.prepare_parity(&self.sender);
        while let Some(transmit) = self.sender.poll_transmit(now, now + self.options.burst) {
            outlet.early = self.sender.phase() == Phase::Announcing;
            if transmit.message.content().is_some() {
                // A receiver without the content key cannot open content, so keys leave first.
                self.send_owed(outlet);
            }
            self.batch.push(outlet, &transmit)?;
            outlet.prepare_parity(&self.sender);
            any = true;
        }
        self.batch.flush(&outlet.endpoint)?;
        self.send_owed(outlet);
        Ok(any)
    }

    /// Sends the content key to receivers that lack it and for which nothing else has left.
    fn send_owed(&mut self, outlet: &mut Outlet<'_>) {
        let Some(seal) = &mut outlet.seal else { return };
        // A key counts from the time at which a receiver lacks it, so that content waits for keys that have yet to
        // leave.
        let (owed, of_owed) = seal.newly_owed();
        self.sender.spend(owed, of_owed);
        let (datagrams, octets) = seal.send_owed(self.clock.now(), &outlet.endpoint);
        if datagrams > 0 {
            self.batch.count_control(outlet.group, octets, datagrams);
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            let now = self.clock.now();
            let milestone = P::Sender::milestone(&event);
            match milestone {
                Some(Milestone::Began { .. }) => drop(self.data_began.get_or_insert(now)),
                Some(Milestone::Delivered) => self.delivered = Some(now),
                _ => {}
            }
            (self.observer)(now, &self.sender, &SendNotice::Event(&event));
            if let Some(Milestone::Ended { alone }) = milestone {
                self.ended = Some(SenderEnd { event, alone });
            }
        }
    }

    /// Aborts if a message about the end can still reach receivers. A path that has gone may come back, and receivers
    /// ask again for lost messages.
    ///
    /// # Errors
    /// The error, if nothing leaves at all.
    fn give_up(&mut self, error: NetError) -> Result<(), NetError> {
        self.batch.forget();
        if self.data_began.is_none() && error.may_pass() {
            self.unsent = Some(error);
            return Ok(());
        }
        // Some datagrams may have left behind the announcement.
        let begun = self.data_began.is_some() || self.sender.progress().round > 0;
        if begun && (error.may_pass() || matches!(error, NetError::Socket { .. } | NetError::Refused(_))) {
            return Ok(());
        }
        // The rules of a firewall may change soon.
        if !begun && matches!(error, NetError::Refused(_)) {
            return Ok(());
        }
        // Receivers are told of a first error. If that fails too, nothing leaves any more.
        if self.error.is_some() || !begun {
            return Err(error);
        }
        self.sender.abort(self.clock.now(), reason(&error), Some(error.to_string()));
        self.error = Some(error);
        Ok(())
    }
}

/// Returns the cause that receivers are told when the sender stops with `error`.
fn reason(error: &NetError) -> Cause {
    match error {
        NetError::Source(
            SourceError::Changed { .. }
            | SourceError::Removed { .. }
            | SourceError::Replaced { .. }
            | SourceError::Unreadable { .. },
        ) => Cause::SourceChanged,
        _ => Cause::System,
    }
}
