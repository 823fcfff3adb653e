//! The bearer as a stage: its settings, its counters, and the choice between entities with and without octets.

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::engine::{Deadline, Message};
use farcast_core::random::RandomStream;
use farcast_core::stage::{Figure, Frame, NotSettable, Output, Port, Setting, Settings, Stage, Totals};
use farcast_core::{BitRate, Piece, Span, Time};
use farcast_rlc::config::BufferLimit;
use farcast_rlc::format::HEADER_LEN;

use super::channel::{ChannelConfig, ChannelCounters, ChannelError};
use super::sdu::Octets;
use crate::pipe::QueueLimit;

mod pair;

use pair::Pair;

/// The settings of a [`Bearer`].
#[derive(Clone, PartialEq, Debug)]
pub struct BearerConfig {
    /// The channel from the network to the terminal.
    pub downlink: ChannelConfig,
    /// The channel from the terminal to the network.
    pub uplink: ChannelConfig,
    /// The network's entity. The terminal's has the same settings with the roles exchanged: `format` and `tx_window` of
    /// the one are `peer_format` and `rx_window` of the other. The limit of `transmission_buffer` is not taken from
    /// here but from the channel into which the entity sends.
    pub rlc: farcast_rlc::Config,
}

impl BearerConfig {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), BearerError> {
        for (key, channel, config) in self.ends() {
            config.check()?;
            channel
                .pdus(payload(&config))
                .map_err(|kind| ChannelError { channel: key, kind })
                .map_err(BearerError::Channel)?;
        }
        Ok(())
    }

    /// Returns the bit rates of RLC payload, down and up, in whole PDUs at the channels' rates. `None` if the settings
    /// do not fit each other.
    pub fn capacity(&self) -> [Option<BitRate>; 2] {
        self.ends().map(|(_, channel, config)| channel.capacity(payload(&config)))
    }

    /// Returns the two directions: the name, the channel, and the settings of the entity that sends there.
    fn ends(&self) -> [(&'static str, ChannelConfig, farcast_rlc::Config); 2] {
        let buffer = |channel: &ChannelConfig| match channel.queue {
            QueueLimit::Unbounded => None,
            QueueLimit::Packets(limit) => Some(BufferLimit::Sdus(limit.into())),
            QueueLimit::Octets(limit) => Some(BufferLimit::Octets(limit)),
        };
        let rlc = farcast_rlc::Config { transmission_buffer: buffer(&self.downlink), ..self.rlc.clone() };
        let mirrored = farcast_rlc::Config {
            transmission_buffer: buffer(&self.uplink),
            format: rlc.peer_format,
            peer_format: rlc.format,
            tx_window: rlc.rx_window,
            rx_window: rlc.tx_window,
            ..rlc.clone()
        };
        [("forward", self.downlink, rlc), ("return", self.uplink, mirrored)]
    }
}

/// Returns the octets of data in a PDU.
const fn payload(config: &farcast_rlc::Config) -> u16 {
    config.format.pdu_octets.saturating_sub(HEADER_LEN)
}

/// Errors in the settings of a bearer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BearerError {
    /// A channel's settings.
    #[error(transparent)]
    Channel(ChannelError),
    /// RLC's settings.
    #[error(transparent)]
    Rlc(#[from] farcast_rlc::ConfigError),
}

/// Counters of the SDUs of one direction of a bearer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// SDUs that entered.
    pub submitted: u64,
    /// SDUs that left.
    pub delivered: u64,
    /// Sum of the times from entering to leaving, over the SDUs that left.
    pub delay: Span,
    /// `true` once the entity that sends them has given up for good.
    pub failed: bool,
    /// The channel that carries them.
    pub channel: ChannelCounters,
}

/// A duplex stage: frames that enter at the hub cross the downlink and leave at the terminals, frames that enter at any
/// terminal cross the uplink and leave at the hub.
///
/// If the first message that enters has its octets at hand, entities carry octets: every PDU crosses the channel as its
/// octets (TS 25.322 section 9.2), and a message leaves with the octets that the peer's entity has put together.
/// Otherwise entities carry references, and messages leave as they entered. Events and their times are the same.
///
/// Rate, processing and the limit of the queue, if there is one, of each channel can be [set](Stage::set) while it
/// runs. A rate is that of a whole number of PDUs in an interval. Rate and processing hold for intervals that begin
/// later. SDUs that wait or have been sent in part go on at the new rate. An interval that is under way arrives at its
/// old time, and no later one arrives before it.
#[derive(Clone, Debug)]
pub struct Bearer<M> {
    ends: Ends<M>,
    /// Settings and random stream of the bearer, until a frame enters.
    fresh: Option<Box<(BearerConfig, RandomStream)>>,
}

#[derive(Clone, Debug)]
enum Ends<M> {
    Pieces(Pair<M, Piece>),
    Octets(Pair<M, Octets>),
}

impl<M: Message> Bearer<M> {
    /// Creates a bearer whose erasures are drawn from `stream`.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(config: &BearerConfig, stream: RandomStream) -> Result<Self, BearerError> {
        let fresh = Some(Box::new((config.clone(), stream.clone())));
        Ok(Self { ends: Ends::Pieces(Pair::new(config, stream)?), fresh })
    }

    /// Returns the counters: downlink, uplink.
    pub fn counters(&self) -> [Counters; 2] {
        match &self.ends {
            Ends::Pieces(pair) => pair.counters(),
            Ends::Octets(pair) => pair.counters(),
        }
    }

    /// Returns the counters of the entities: the network's, the terminal's.
    pub fn rlc(&self) -> [&farcast_rlc::Counters; 2] {
        match &self.ends {
            Ends::Pieces(pair) => pair.rlc(),
            Ends::Octets(pair) => pair.rlc(),
        }
    }

    fn stage(&self) -> &dyn Stage<M> {
        match &self.ends {
            Ends::Pieces(pair) => pair,
            Ends::Octets(pair) => pair,
        }
    }

    fn stage_mut(&mut self) -> &mut dyn Stage<M> {
        match &mut self.ends {
            Ends::Pieces(pair) => pair,
            Ends::Octets(pair) => pair,
        }
    }

    /// Switches to entities with octets if the first message that enters has octets.
    fn begin(&mut self, message: &M) {
        if let Some(fresh) = self.fresh.take().filter(|_| message.octets(0).is_some()) {
            let (config, stream) = *fresh;
            // The same settings have made a pair before.
            if let Ok(pair) = Pair::new(&config, stream) {
                self.ends = Ends::Octets(pair);
            }
        }
    }
}

impl<M: Message> Stage<M> for Bearer<M> {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>) {
        self.begin(&frame.message);
        self.stage_mut().handle(now, port, frame);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.stage_mut().handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<Output<M>> {
        self.stage_mut().poll_output()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.stage().poll_timeout()
    }

    fn totals(&self) -> Totals {
        self.stage().totals()
    }

    fn return_totals(&self) -> Totals {
        self.stage().return_totals()
    }

    fn each_held(&self, each: &mut dyn FnMut(Port, &Frame<M>)) {
        self.stage().each_held(each);
    }

    fn never_rests(&self) -> bool {
        self.stage().never_rests()
    }

    fn settings(&self, port: Port) -> Settings {
        self.stage().settings(port)
    }

    fn may_set(&self, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.stage().may_set(port, setting)
    }

    fn set(&mut self, now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.stage_mut().set(now, port, setting)?;
        // Entities that carry octets are made when the first message enters.
        if let Some(fresh) = &mut self.fresh {
            let BearerConfig { downlink, uplink, .. } = &mut fresh.0;
            (if port == Port::Hub { downlink } else { uplink }).set(setting);
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figure> {
        self.stage().figures()
    }
}

#[cfg(test)]
mod tests;
