//! Groups of receivers.

use farcast_core::engine::{Arrival, Engine, Message as _, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Among, Bitmap, Losses, Span, Time};
use farcast_delivery::{Channel, Feedback};
use farcast_mftp::message::Naks;
use farcast_mftp::{Body, Message, Population, Receiver, ReceiverEvent};

/// A receiver with an engine of its own.
pub struct Station {
    /// The engine.
    pub engine: Receiver,
    pub(super) wake: Time,
    /// When it had everything.
    pub completed: Time,
}

/// How a group is simulated.
pub enum Kind {
    /// All together.
    Population {
        /// The population.
        population: Box<Population>,
        /// When it wants to be woken.
        wake: Time,
    },
    /// Each alone, packet by packet.
    Engines(Vec<Station>),
}

/// Receivers that are alike.
pub struct Group {
    pub(super) first: u32,
    pub(super) receivers: u32,
    /// How they are simulated.
    pub kind: Kind,
    pub(super) losses: Box<dyn Losses>,
    pub(super) delay: Span,
    pub(super) data_only: bool,
    pub(super) lost: Vec<u32>,
}

/// What a group says: when, and which receiver of the group, or merged.
pub(super) type Said = (Time, Feedback<Message, Naks>);

impl Group {
    /// The number of the group's first receiver.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// How many receivers.
    pub fn receivers(&self) -> u32 {
        self.receivers
    }

    /// When receiver `n` of the group had everything; [`Time::NEVER`] if it never had.
    pub fn completed(&self, n: u32) -> Time {
        match &self.kind {
            Kind::Population { population, .. } => population.completed()[n as usize],
            Kind::Engines(stations) => stations[n as usize].completed,
        }
    }

    /// How many of its members lack something.
    pub fn incomplete(&self) -> u32 {
        (0..self.receivers).filter(|&n| self.completed(n) == Time::NEVER).count() as u32
    }

    /// NAKs that its receivers have sent.
    pub fn naks(&self) -> u64 {
        match &self.kind {
            Kind::Population { population, .. } => population.stats().naks,
            Kind::Engines(stations) => stations.iter().map(|station| station.engine.stats().naks).sum(),
        }
    }

    /// A frame's first datagram reaches the group at `now`; how many of its datagrams were taken.
    pub(super) fn take(
        &mut self,
        now: Time,
        from: &Arrival,
        frame: &Frame<Message>,
        merged: Option<&mut (dyn Losses + 'static)>,
        said: &mut Vec<Said>,
    ) -> u32 {
        let Self { kind, losses, lost, data_only, .. } = self;
        match kind {
            Kind::Population { population, .. } => {
                if population.poll_timeout() <= now {
                    population.handle_timeout(now);
                }
                let (overhead, data_only) = (frame.overhead, *data_only);
                let mut channel = Channel { losses: losses.as_mut(), overhead, data_only, merged };
                let taken = population.handle(now, from, &frame.message, Time::NEVER, &mut channel);
                said.extend(std::iter::from_fn(|| population.poll_feedback()));
                taken
            }
            Kind::Engines(stations) => {
                lost.clear();
                let spared = *data_only && !matches!(frame.message.body, Body::Data(_));
                let among = if spared { Among::These(&[]) } else { Among::All };
                losses.draw(now, frame.octets(0), among, lost);
                let (head, _) = frame.message.clone().split(std::num::NonZeroU32::MIN);
                let mut losers = lost.iter().copied().peekable();
                for (n, station) in (0..).zip(stations.iter_mut()) {
                    if losers.next_if_eq(&n).is_some() {
                        continue;
                    }
                    station.catch_up(now, n, said);
                    // What an engine turns down is counted there.
                    let _ = station.engine.handle(now, from, &head);
                    station.drain(now, n, said);
                }
                1
            }
        }
    }

    /// The first datagram reaches everyone without loss.
    pub(super) fn tell(&mut self, now: Time, from: &Arrival, frame: &Frame<Message>, said: &mut Vec<Said>) {
        let mut losses: Box<dyn Losses> = Box::new(farcast_link::losses::NoLoss);
        std::mem::swap(&mut self.losses, &mut losses);
        self.take(now, from, frame, None, said);
        self.losses = losses;
    }

    /// A timer of `station` is due, or of the population.
    pub(super) fn wake(&mut self, now: Time, station: usize, said: &mut Vec<Said>) {
        match &mut self.kind {
            Kind::Population { population, .. } => {
                population.handle_timeout(now);
                said.extend(std::iter::from_fn(|| population.poll_feedback()));
            }
            Kind::Engines(stations) => stations[station].wake_up(now, station as u32, said),
        }
    }
}

impl Station {
    /// Timers that are due go before what arrives at the same instant.
    fn catch_up(&mut self, now: Time, n: u32, said: &mut Vec<Said>) {
        if self.engine.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.wake_up(now, n, said);
        }
    }

    fn wake_up(&mut self, now: Time, n: u32, said: &mut Vec<Said>) {
        self.engine.handle_timeout(now);
        self.drain(now, n, said);
    }

    /// The owner of a simulated receiver takes part in everything, holds nothing beforehand, and verifies at once.
    fn drain(&mut self, now: Time, n: u32, said: &mut Vec<Said>) {
        loop {
            if let Some(event) = self.engine.poll_event() {
                match event {
                    ReceiverEvent::Offered(offer) => {
                        self.engine.accept(now, Bitmap::new(offer.geometry.segments()));
                    }
                    ReceiverEvent::Decode { block } => self.engine.decoded(block, true),
                    ReceiverEvent::Complete => {
                        self.completed = now;
                        self.engine.verified(now);
                    }
                    _ => {}
                }
            } else if let Some(transmit) = self.engine.poll_transmit(now, Time::NEVER) {
                let transmit: Transmit<Message> = transmit;
                said.push((now, Feedback::Each { receiver: n, transmit }));
            } else {
                return;
            }
        }
    }
}
