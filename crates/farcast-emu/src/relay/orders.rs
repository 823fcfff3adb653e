//! Orders of other threads to the relay.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use farcast_link::End;

use super::{Relay, RelayState};
use crate::EmuError;
use crate::control::Change;
use crate::link::{ChangeError, Counts, Link, Sum, TerminalCounts, WaySettings};

/// An order, with the channel for its answer.
pub(super) enum Order {
    Change(Change, Sender<Result<(), ChangeError>>),
    Look(Sender<RelayView>),
    End,
}

/// State of one direction of a link at one instant.
#[derive(Clone, Debug)]
pub struct WayView {
    /// Counts of packets.
    pub counts: Counts,
    /// Known settings of the direction.
    pub settings: WaySettings,
    /// Packets inside.
    pub inside: Sum,
    /// Octets in queues, if stages report them.
    pub queued: Option<u64>,
    /// Remaining time of an outage.
    pub outage: Option<farcast_core::Span>,
}

/// State of a link and its relay at one instant.
#[derive(Clone, Debug)]
pub struct RelayView {
    /// State of the relay.
    pub state: RelayState,
    /// Direction to the terminals.
    pub forward: WayView,
    /// Direction to the hub.
    pub back: WayView,
    /// Counts of the terminals, by number.
    pub terminals: Vec<TerminalCounts>,
}

impl RelayView {
    /// Returns the current state of the link.
    pub(crate) fn of(link: &Link, state: RelayState) -> Self {
        let way = |to: End, counts: &Counts| WayView {
            counts: *counts,
            settings: link.settings(to),
            inside: link.inside(to),
            queued: link.queued(to),
            outage: link.outage(to),
        };
        Self {
            state,
            forward: way(End::Terminal, link.forward()),
            back: way(End::Hub, link.back()),
            terminals: link.terminals().copied().collect(),
        }
    }
}

/// Handle to the relay for other threads. Copies refer to the same relay.
#[derive(Clone, Debug)]
pub struct RelayHandle {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
}

impl RelayHandle {
    pub(super) fn new(orders: Sender<Order>, bell: Arc<OwnedFd>) -> Self {
        Self { orders, bell }
    }

    /// Changes the link from now on.
    ///
    /// # Errors
    /// The reason for which the change is impossible, in one sentence.
    pub fn change(&self, change: Change) -> Result<(), String> {
        let (sender, answer) = mpsc::channel();
        self.order(Order::Change(change, sender));
        match answer.recv() {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("the emulation has ended".into()),
        }
    }

    /// Returns the state of the link; `None` once it has ended.
    pub fn look(&self) -> Option<RelayView> {
        let (sender, answer) = mpsc::channel();
        self.order(Order::Look(sender));
        answer.recv().ok()
    }

    /// Ends the relay.
    pub(crate) fn end(&self) {
        self.order(Order::End);
    }

    fn order(&self, order: Order) {
        // A relay that has ended takes no orders: the caller then gets no answer.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Relay {
    /// Carries out all orders that wait.
    pub(super) fn obey(&mut self) -> Result<(), EmuError> {
        while let Ok(order) = self.orders.try_recv() {
            // The thread that asked may have gone.
            match order {
                Order::Change(change, answer) => {
                    let now = self.clock.now();
                    if self.link.next_at() <= now {
                        self.advance()?;
                    }
                    let _ = answer.send(self.link.change(now, &change));
                }
                Order::Look(answer) => {
                    self.state.now = self.clock.now();
                    let _ = answer.send(RelayView::of(&self.link, self.state.clone()));
                }
                Order::End => self.ending = true,
            }
        }
        Ok(())
    }
}
