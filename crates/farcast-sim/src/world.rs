//! Core of simulated worlds: virtual time, the multicast transfer with its receivers, and the flows beside it.
//!
//! A [`World`] runs the engines and flows; its [`Layout`] says what lies between them: one hub with a chain of stages
//! ([`Star`](crate::star::Star)), or nodes and edges ([`Tree`](crate::tree::Tree)). A world is generic over the protocol
//! and the layout, so nothing is dispatched dynamically while it runs.

mod config;
mod content;
mod flows;
mod group;
mod keys;
mod observer;
mod pulse;
mod run;
mod seal;
mod sealed;
mod session;

use farcast_core::engine::{Arrival, Message, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::stage::{Figure, Frame, Totals};
use farcast_core::{EventQueue, Losses, Span, Time};
use farcast_delivery::{Ending, Merged, Protocol, Routes};

use crate::traffic::{End, FlowMessage};

pub use crate::address::{Party, hub_address, receiver_address};
pub use config::{Cut, GroupConfig, Maker, Receivers, StarError};
pub use content::ReceivedContent;
pub use flows::{FlowConfig, FlowState, Passage};
pub use group::{Group, Kind, Station};
pub use observer::{Addresses, FlowPacket, Observer, SenderEvent};
pub use pulse::Pulse;
pub use seal::{SealConfig, SealCounts, SealMessage};

pub(crate) use crate::address::MOST_TERMINALS;
pub(crate) use config::{Settings, check_parts, receivers_of};
pub(crate) use flows::direction;
pub(crate) use group::Incoming;
pub(crate) use session::FinalState;

use seal::Seal;

/// Timer of the world itself, rather than of its links.
#[derive(Clone, Copy)]
pub enum Timer {
    /// Timer of the sender.
    Sender,
    /// Timer of a receiver of a group. A population has one timer, with station 0.
    Group {
        /// Number of the group.
        group: u32,
        /// Number of the receiver in its group.
        station: u32,
    },
    /// KEYS may be due.
    Keys,
    /// The turn of a receiver that is owed the content key may have come.
    Owed,
    /// A receiver asks for the content key.
    KeyRequest(u32),
}

/// Timer of a flow.
#[derive(Clone, Copy)]
pub enum FlowTimer {
    /// Start of a flow.
    Start(u32),
    /// Stop of a flow.
    Stop(u32),
    /// Timer of a flow, which may have moved since.
    Wake(u32),
}

/// Links between the sender, the receivers and the flows of a world.
pub trait Layout<P: Protocol>: Sized {
    /// Event of the simulation.
    type Event: From<Timer>;
    /// Packet as it reaches a group of receivers.
    type Packet: Message;

    /// Returns the event in which the merged NAKs of a population reach the sender.
    fn merged(naks: Merged<P>) -> Self::Event;

    /// Returns the time of the next event.
    fn next_at(world: &World<'_, P, Self>) -> Time;

    /// Handles the next event and returns its time.
    fn happen_next(world: &mut World<'_, P, Self>) -> Option<Time>;

    /// Starts what lies between the sender and the receivers.
    fn start(_world: &mut World<'_, P, Self>) {}

    /// Sends a message of the sender.
    fn send(world: &mut World<'_, P, Self>, transmit: Transmit<P::Message>);

    /// Schedules a message of a group's receiver for `at`.
    fn answer(
        world: &mut World<'_, P, Self>,
        at: Time,
        group: usize,
        receiver: u32,
        transmit: Transmit<P::Message>,
    );

    /// Returns the delay of merged NAKs of a group; `None` where NAKs are not merged.
    fn merged_delay(&self, group: usize) -> Option<Span>;

    /// Returns the loss process of merged NAKs of a group; `None` where NAKs may not be merged.
    fn merged_losses(&mut self, group: usize) -> Option<&mut (dyn Losses + 'static)>;

    /// Returns `true` if nothing but the sender needs a group's NAKs one by one.
    fn may_merge(&self, group: usize) -> bool;

    /// Returns a packet in the form in which receivers hear it, with its addresses; `None` if it is none of the
    /// transfer.
    fn incoming<'a>(
        world: &World<'_, P, Self>,
        frame: &'a Frame<Self::Packet>,
    ) -> Option<(Arrival, Incoming<'a, P::Message>)>;

    /// Returns `true` if a group is among the addressees of a packet.
    fn is_for(&self, group: &Group<P>, number: usize, packet: &Self::Packet) -> bool;

    /// Schedules the arrival of the rest of a run at a group.
    fn arrive_later(world: &mut World<'_, P, Self>, at: Time, group: usize, frame: Frame<Self::Packet>);

    /// Sends a datagram of the seal: from the sender, or from the receiver that asks.
    fn send_sealed(world: &mut World<'_, P, Self>, message: SealMessage);

    /// Schedules a timer of a flow. Flow events come last in their instant.
    fn schedule_flow(world: &mut World<'_, P, Self>, at: Time, timer: FlowTimer);

    /// Sends a packet of a flow into the links at `from`.
    fn send_flow(world: &mut World<'_, P, Self>, flow: u32, from: End, message: &FlowMessage);

    /// Returns the numbers of packets and of octets that entered the direction to `to`.
    fn entered(&self, to: End) -> (u64, u64);

    /// Returns the counters of the stages in the direction to `to`, in order.
    fn totals(&self, to: End) -> impl Iterator<Item = Totals> + '_;

    /// Returns the names and figures of stages that have figures to report.
    fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)>;

    /// Returns `true` if a stage holds a frame that the end of the transfer waits for.
    fn is_held(&self) -> bool;

    /// Counts packets of flows that are under way at the end of the replication: they were not dropped.
    fn count_under_way(world: &mut World<'_, P, Self>);
}

/// Counters of the sender's repair requests, and of events, in one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// NAKs that reached the sender after the round that follows the one they answer had begun.
    pub(crate) naks_late: u64,
    /// NAKs that the sender took in time for the round behind the one they answer.
    pub(crate) naks_used: u64,
    /// Events of the simulation.
    pub(crate) events: u64,
}

/// Simulated world. Make it from the configuration of its layout, and [`run`](Self::run) it.
pub struct World<'o, P: Protocol, L: Layout<P>> {
    pub(crate) now: Time,
    pub(crate) queue: EventQueue<L::Event>,
    pub(crate) layout: L,
    pub(crate) sender: Option<P::Sender>,
    /// Addresses of the transfer.
    pub(crate) routes: Routes,
    wake: Time,
    pub(crate) overhead: u16,
    /// Sender's side of the seal, if the transfer is sealed.
    seal: Option<Box<Seal>>,
    /// `true` if receivers learn of the transmission at once and without loss when the sender opens; no link carries
    /// this.
    pub(crate) given: bool,
    pub(crate) groups: Vec<Group<P>>,
    /// Number of receivers in all groups, which is also the number of the first flow's terminal.
    pub(crate) receivers: u32,
    pub(crate) flows: Vec<FlowState>,
    /// Flows with an end that have not reached it.
    unended: u32,
    /// `true` if something never ends, a flow or a stage's timers, while something else has an end.
    stops_early: bool,
    /// Frames that wait for an event and that have to arrive before the transfer is over.
    pub(crate) under_way: u32,
    /// Span within which no answer to a message that is sent now can reach its sender.
    pub(crate) lookahead: Span,
    pub(crate) limit: Time,
    /// End of the replication.
    end: Time,
    pub(crate) cut: Cut,
    pub(crate) cuts: RandomStream,
    began: Option<Time>,
    /// Time and kind of the sender's end, if it has ended.
    ending: Option<(Time, Ending)>,
    /// Receivers that the sender gave up.
    left: u64,
    /// Receivers that the sender knows to be complete, and the time at which it learnt of the last.
    confirmed: u64,
    confirmed_at: Time,
    pub(crate) counts: Counts,
    /// Receivers that lose a frame (a buffer that is reused).
    pub(crate) lost: Vec<u32>,
    pub(crate) observer: Option<&'o mut dyn Observer<P>>,
}
