//! What other threads want of the relay.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use farcast_link::End;

use super::{Relay, RelayState};
use crate::EmuError;
use crate::control::Change;
use crate::link::{ChangeError, Counts, Link, Sum, TerminalCounts, WaySettings};

/// An order, and where the answer goes.
pub(super) enum Order {
    Change(Change, Sender<Result<(), ChangeError>>),
    Look(Sender<View>),
    End,
}

/// One way of a link at one instant.
#[derive(Clone, Debug)]
pub struct WayView {
    /// What has passed.
    pub counts: Counts,
    /// Its settings, as far as they are known.
    pub settings: WaySettings,
    /// What is inside.
    pub inside: Sum,
    /// Octets in queues, where stages can tell.
    pub queued: Option<u64>,
    /// For how long an outage will yet last.
    pub outage: Option<farcast_core::Span>,
}

/// A link and its relay at one instant.
#[derive(Clone, Debug)]
pub struct View {
    /// The relay.
    pub state: RelayState,
    /// To the terminals.
    pub forward: WayView,
    /// To the hub.
    pub back: WayView,
    /// The terminals, by number.
    pub terminals: Vec<TerminalCounts>,
}

impl View {
    /// The link as it is.
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

/// The relay, for other threads. Copies speak to the same.
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
    /// Why it cannot be, in one sentence.
    pub fn change(&self, change: Change) -> Result<(), String> {
        let (sender, answer) = mpsc::channel();
        self.order(Order::Change(change, sender));
        match answer.recv() {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("the emulation has ended".into()),
        }
    }

    /// The link as it is now; `None` once it has ended.
    pub fn look(&self) -> Option<View> {
        let (sender, answer) = mpsc::channel();
        self.order(Order::Look(sender));
        answer.recv().ok()
    }

    /// Ends the relay.
    pub(crate) fn end(&self) {
        self.order(Order::End);
    }

    fn order(&self, order: Order) {
        // A relay that has ended hears nothing, and an answer that never comes says so.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Relay {
    /// Does what it was told to do.
    pub(super) fn obey(&mut self) -> Result<(), EmuError> {
        while let Ok(order) = self.orders.try_recv() {
            // Whoever asked may have gone.
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
                    let _ = answer.send(View::of(&self.link, self.state.clone()));
                }
                Order::End => self.ending = true,
            }
        }
        Ok(())
    }
}
