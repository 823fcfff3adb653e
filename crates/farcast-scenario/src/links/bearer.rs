//! Bearers, that is stages that carry both ways: `kind = "ppp"`, `"multilink"` and `"umts"` in `link.stages`.
//!
//! A key that both directions share stands in the table of the stage. A key that may differ between them stands in
//! the tables `forward` and `return` of the stage.

mod multilink;
mod ppp;
mod umts;

use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span};
use farcast_link::umts::ChannelConfig;
use farcast_ppp::{Fcs, Framing};

use super::queues::Queue;
use crate::document::{DocumentError, Reader};
use farcast_link::BoxedStage;
pub use multilink::MultilinkSpec;
pub use ppp::PppSpec;
pub use umts::UmtsSpec;

/// Settings of a bearer.
#[derive(Clone, PartialEq, Debug)]
pub enum BearerSpec {
    /// Two serial lines with PPP.
    Ppp(Box<PppSpec>),
    /// A bundle of lines.
    Multilink(Box<MultilinkSpec>),
    /// A UMTS bearer with RLC.
    Umts(Box<UmtsSpec>),
}

/// Kinds of bearers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BearerKind {
    /// `ppp`.
    Ppp,
    /// `multilink`.
    Multilink,
    /// `umts`.
    Umts,
}

impl BearerKind {
    /// Words for `kind`.
    pub const CHOICES: [(&'static str, Self); 3] =
        [("ppp", Self::Ppp), ("multilink", Self::Multilink), ("umts", Self::Umts)];
}

impl BearerSpec {
    /// Reads the keys that go with `kind`.
    pub fn read(table: &mut Reader<'_>, kind: BearerKind) -> Result<Self, DocumentError> {
        match kind {
            BearerKind::Ppp => ppp::read(table).map(Box::new).map(Self::Ppp),
            BearerKind::Multilink => multilink::read(table).map(Box::new).map(Self::Multilink),
            BearerKind::Umts => umts::read(table).map(Box::new).map(Self::Umts),
        }
    }

    /// Returns the shortest time that a frame of no length takes there and back.
    pub fn least_round_trip(&self) -> Span {
        match self {
            Self::Ppp(spec) => spec.least_round_trip(),
            Self::Multilink(spec) => {
                spec.config.links.iter().map(|link| link.delay).min().unwrap_or_default() * 2
            }
            Self::Umts(spec) => {
                let of = |channel: &ChannelConfig| channel.tti + channel.processing;
                of(&spec.config.downlink) + of(&spec.config.uplink)
            }
        }
    }

    /// Returns the rates at which packets are carried, that from the hub first.
    pub(super) fn rates(&self) -> [Option<BitRate>; 2] {
        match self {
            Self::Ppp(spec) => [spec.config.forward.capacity(), spec.config.back.capacity()],
            Self::Multilink(spec) => spec.config.capacity(),
            Self::Umts(spec) => spec.config.capacity(),
        }
    }

    /// Returns the queues, that from the hub first, each with the key that limits it.
    pub(super) fn queues(&mut self) -> [(&'static str, Queue<'_>); 2] {
        const BY_WAY: [&str; 2] = ["forward.queue", "return.queue"];
        let (keys, [forward, back]) = match self {
            Self::Ppp(spec) => (BY_WAY, spec.queues()),
            Self::Multilink(spec) => (["queue", "return_queue"], spec.queues()),
            Self::Umts(spec) => (BY_WAY, spec.queues()),
        };
        [(keys[0], forward), (keys[1], back)]
    }

    /// Builds the stage, which draws from `stream`.
    pub(super) fn stage<M: Message + Send + 'static>(&self, stream: RandomStream) -> BoxedStage<M> {
        // The settings were checked when they were read.
        const CHECKED: &str = "checked when read";
        match self {
            Self::Ppp(spec) => spec.stage(stream),
            Self::Multilink(spec) => {
                let stage = farcast_link::multilink::Multilink::new(&spec.config, stream);
                Box::new(stage.expect(CHECKED))
            }
            Self::Umts(spec) => {
                Box::new(farcast_link::umts::Bearer::new(&spec.config, stream).expect(CHECKED))
            }
        }
    }
}

/// Reads the framing of PPP. The default is that of Linux's pppd after negotiation.
fn framing(table: &mut Reader<'_>) -> Result<Framing, DocumentError> {
    let default = Framing::default();
    let fcs = match table.integer_or("fcs", 16..=32_u8, 16)? {
        16 => Fcs::Fcs16,
        32 => Fcs::Fcs32,
        _ => return Err(table.refuse("fcs", "PPP has no check sequence of this length", "16 or 32 bits")),
    };
    Ok(Framing {
        fcs,
        accm: table.integer_or("accm", 0..=u32::MAX, default.accm)?,
        acfc: table.flag_or("acfc", default.acfc)?,
        pfc: table.flag_or("pfc", default.pfc)?,
    })
}

/// Shortest interval between two events that a simulation repeats without end: with less it would do nothing else.
const SHORTEST: Span = Span::from_millis(1);

/// Reads a timer that is off if the key is absent.
fn positive(table: &mut Reader<'_>, key: &'static str) -> Result<Option<Span>, DocumentError> {
    match table.optional_span(key)? {
        Some(span) if span < SHORTEST => {
            Err(table.refuse(key, "it would expire without end", "1 ms or more, or no such key"))
        }
        span => Ok(span),
    }
}
