//! The bearer as a stage: its settings, what it has done, and whether its entities carry octets.

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::engine::{Deadline, Message};
use farcast_core::random::RandomStream;
use farcast_core::stage::{Figure, Frame, Output, Port, Stage, Totals};
use farcast_core::{Piece, Span, Time};
use farcast_rlc::format::HEADER_LEN;

use super::channel::{ChannelConfig, ChannelCounters, ChannelError};
use super::sdu::Octets;

mod pair;

use pair::Pair;

/// The settings of a [`Bearer`].
#[derive(Clone, PartialEq, Debug)]
pub struct BearerConfig {
    /// From the network to the terminal.
    pub downlink: ChannelConfig,
    /// From the terminal to the network.
    pub uplink: ChannelConfig,
    /// The network's entity. The terminal's has the same settings, as seen from there: what the one calls `format` and
    /// `tx_window` is the other's `peer_format` and `rx_window`.
    pub rlc: farcast_rlc::Config,
}

impl BearerConfig {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// What cannot work.
    pub fn check(&self) -> Result<(), BearerError> {
        self.rlc.check()?;
        for (key, channel, config) in self.ends() {
            channel
                .pdus(payload(&config))
                .map_err(|kind| ChannelError { channel: key, kind })
                .map_err(BearerError::Channel)?;
        }
        Ok(())
    }

    /// The two directions: the name, the channel, and the settings of the entity that sends there.
    fn ends(&self) -> [(&'static str, ChannelConfig, farcast_rlc::Config); 2] {
        let rlc = self.rlc.clone();
        let mirrored = farcast_rlc::Config {
            format: rlc.peer_format,
            peer_format: rlc.format,
            tx_window: rlc.rx_window,
            rx_window: rlc.tx_window,
            ..rlc.clone()
        };
        [("forward", self.downlink, rlc), ("return", self.uplink, mirrored)]
    }
}

/// Octets of data in a PDU.
const fn payload(config: &farcast_rlc::Config) -> u16 {
    config.format.pdu_octets - HEADER_LEN
}

/// Why a bearer cannot be made.
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

/// What a bearer has done for the SDUs of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// SDUs that entered.
    pub submitted: u64,
    /// SDUs that left.
    pub delivered: u64,
    /// The sum over those that left of the time from entering to leaving.
    pub delay: Span,
    /// Whether the entity that sends them has given up for good.
    pub failed: bool,
    /// The channel that carries them.
    pub channel: ChannelCounters,
}

/// A duplex stage: what enters at the hub crosses the downlink and leaves at the terminals, what enters at any terminal
/// crosses the uplink and leaves at the hub.
///
/// If the first message that enters has its octets at hand, entities carry octets: every PDU crosses the channel as its
/// octets (TS 25.322 section 9.2), and a message leaves with those that the peer's entity has put together. Else they
/// carry references, and messages leave as they came. What happens, and when, is the same.
#[derive(Clone, Debug)]
pub struct Bearer<M> {
    ends: Ends<M>,
    /// What it is made of, until something enters.
    fresh: Option<Box<(BearerConfig, RandomStream)>>,
}

#[derive(Clone, Debug)]
enum Ends<M> {
    Pieces(Pair<M, Piece>),
    Octets(Pair<M, Octets>),
}

impl<M: Message> Bearer<M> {
    /// A bearer whose erasures are drawn from `stream`.
    ///
    /// # Errors
    /// What cannot work.
    pub fn new(config: &BearerConfig, stream: RandomStream) -> Result<Self, BearerError> {
        let fresh = Some(Box::new((config.clone(), stream.clone())));
        Ok(Self { ends: Ends::Pieces(Pair::new(config, stream)?), fresh })
    }

    /// What it has done: downlink, uplink.
    pub fn counters(&self) -> [Counters; 2] {
        match &self.ends {
            Ends::Pieces(pair) => pair.counters(),
            Ends::Octets(pair) => pair.counters(),
        }
    }

    /// What the entities have done: the network's, the terminal's.
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

    /// The first message enters: has it octets, they are carried.
    fn begin(&mut self, message: &M) {
        if let Some(fresh) = self.fresh.take().filter(|_| message.octets(0).is_some()) {
            let (config, stream) = *fresh;
            // The settings have made a pair before.
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

    fn figures(&self) -> Vec<Figure> {
        self.stage().figures()
    }
}

#[cfg(test)]
mod tests;
