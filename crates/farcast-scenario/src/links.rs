//! `[link]`: the stages that packets pass, and the losses on them.
//!
//! | table | what |
//! |---|---|
//! | `link` | `mtu`, and the tables below |
//! | `link.forward`, `link.return` | the last stage of each direction, of a `kind`, and the losses behind it |
//! | `link.stages` | further stages in a row before it, by `name` |

mod bearer;
mod bgan;
mod capacity;
mod channel;
mod link;
mod losses;
mod queues;
mod recorded;

use farcast_core::Span;
use farcast_core::engine::Message;
use farcast_core::stage::End;
use farcast_core::units::Bytes;
use farcast_link::Chains;

use crate::document::{Document, DocumentError, Reader};
use crate::streams::{Purpose, Streams};

pub use bearer::{BearerKind, BearerSpec, MultilinkSpec, PppSpec, UmtsSpec};
pub use bgan::{BganForwardSpec, BganReturnSpec};
pub use capacity::ReturnCapacity;
pub use channel::ChannelLosses;
pub use link::{LinkSpec, PipeSpec, StageSpec};
pub use losses::LossSpec;
use queues::Queue;
pub use queues::{DefaultQueue, LEAST_QUEUE};
pub use recorded::{TimelineSpec, TraceSpec};

/// The links and the losses on them.
#[derive(Clone, PartialEq, Debug)]
pub struct Links {
    /// The longest packet that hosts send, in octets.
    pub mtu: u16,
    /// `link.stages`, with their names.
    pub stages: Vec<(String, StageSpec)>,
    /// `link.forward`.
    pub forward: LinkSpec,
    /// Losses behind `forward`.
    pub losses: LossSpec,
    /// True if only data of the transfer is lost on the forward path.
    pub data_only: bool,
    /// `link.return`.
    pub back: LinkSpec,
    /// Losses behind `back`.
    pub back_losses: LossSpec,
}

impl Links {
    /// Reads `[link]` of a document.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(top: &mut Reader<'_>) -> Result<Self, DocumentError> {
        let mut link = top.table_or_empty("link")?;
        let Bytes(mtu) = link.bytes_or("mtu", Bytes(1500))?;
        let Some(mtu) = u16::try_from(mtu).ok().filter(|mtu| *mtu >= LEAST_MTU) else {
            return Err(link.refuse("mtu", "no packet has such a length", "68 B to 65535 B"));
        };
        let mut stages = Vec::new();
        for mut stage in link.optional_tables("stages")?.unwrap_or_default() {
            stages.push((stage.text("name")?, StageSpec::read(&mut stage)?));
            stage.finish()?;
        }
        let mut table = link.table_or_empty("forward")?;
        let forward = LinkSpec::read(&mut table, End::Terminal)?;
        let losses = LossSpec::read(&mut table, &forward)?;
        let data_only = table.choice_or("loses", &[("everything", false), ("data", true)], false)?;
        table.finish()?;
        let mut table = link.table_or_empty("return")?;
        let back = LinkSpec::read(&mut table, End::Hub)?;
        let back_losses = LossSpec::read(&mut table, &back)?;
        table.finish()?;
        link.finish()?;
        Ok(Self { mtu, stages, forward, losses, data_only, back, back_losses })
    }

    /// Returns `true` if a document is a link alone: it has `[link]` and does not say what is sent over it.
    pub fn are_all_of(document: &Document) -> bool {
        document.root().holds("link") && !Self::says_what_is_sent(document)
    }

    /// Returns `true` if a document says what is sent, and to which receivers: it is a scenario.
    pub fn says_what_is_sent(document: &Document) -> bool {
        let mut top = document.root();
        ["receivers", "groups", "protocol", "traffic", "programs", "node"].iter().any(|key| top.holds(key))
    }

    /// Reads a document that is a link alone, which may have a `name`. Queues without a given limit get one by
    /// [`default_queues`](Self::default_queues).
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read_alone(document: &Document) -> Result<(Self, Vec<DefaultQueue>), DocumentError> {
        let mut top = document.root();
        top.text_or("name", String::new())?;
        let mut links = Self::read(&mut top)?;
        top.finish()?;
        let given = links.default_queues(Span::ZERO);
        Ok((links, given))
    }

    /// Returns `true` if a packet takes time there and back, on at least one link.
    pub fn take_time(&self) -> bool {
        let ends = [&self.forward, &self.back].into_iter().any(LinkSpec::takes_time);
        ends || self.stages.iter().any(|(_, stage)| stage.takes_time())
    }

    /// Returns the time that a packet of no length takes on the links there and back, without load and jitter.
    pub fn round_trip(&self) -> Span {
        let ends = self.forward.nominal_delay() + self.back.nominal_delay();
        self.stages.iter().fold(ends, |sum, (_, stage)| sum + stage.round_trip())
    }

    /// Limits every queue that has a rate and no given limit to one bandwidth-delay product, and returns these
    /// queues.
    ///
    /// The product is the rate at which the stage carries packets, times the sum of [`round_trip`](Self::round_trip)
    /// and `more`, the time behind the links. The limit is at least [`LEAST_QUEUE`].
    pub fn default_queues(&mut self, more: Span) -> Vec<DefaultQueue> {
        let round_trip = self.round_trip() + more;
        let mut given = Vec::new();
        let mut one = |stage: String, key: String, queue: Option<Queue<'_>>| {
            if let Some(octets) = queue.and_then(|queue| queue.limit_by_default(round_trip)) {
                given.push(DefaultQueue { stage, key, octets });
            }
        };
        for (name, stage) in &mut self.stages {
            match stage {
                StageSpec::One(_, link) => {
                    one(name.clone(), format!("link.stages.{name}.queue"), link.queue());
                }
                StageSpec::Both(bearer) => {
                    for (way, (key, queue)) in ["forward", "return"].into_iter().zip(bearer.queues()) {
                        one(format!("{name}.{way}"), format!("link.stages.{name}.{key}"), Some(queue));
                    }
                }
            }
        }
        for (name, link) in [("forward", &mut self.forward), ("return", &mut self.back)] {
            one(name.into(), format!("link.{name}.queue"), link.queue());
        }
        given
    }

    /// Builds the stages of both directions for `terminals` terminals.
    ///
    /// In the names of streams, stage `link.forward` has number 0 and `link.return` number 1; those of `link.stages`
    /// follow. Stages that pass everything at once are left out. So is the stage `link.return` if its delay is
    /// constant and no other stage returns: no packet waits for another there. A `whole` link keeps `link.forward`
    /// and `link.return`, because their settings may change.
    pub fn chains<M: Message + Send + 'static>(
        &self,
        terminals: u32,
        whole: bool,
        streams: Streams,
    ) -> Chains<M> {
        let stream = |number| streams.of(number, Purpose::Stage);
        let mut chains = Chains::new();
        for (number, (name, spec)) in (2..).zip(&self.stages) {
            spec.push(&mut chains, name, terminals, stream(number));
        }
        if whole || !self.forward.is_nothing() {
            chains.push_forward("forward", self.forward.stage(End::Terminal, terminals, stream(0)));
        }
        let meets = chains.returning() > 0 || self.back.constant_delay().is_none();
        if whole || meets && !self.back.is_nothing() {
            chains.push_return("return", self.back.stage(End::Hub, terminals, stream(1)));
        }
        chains
    }
}

/// Smallest MTU, in octets, that IPv4 works with (RFC 791 section 3.2).
const LEAST_MTU: u16 = 68;
