//! Who takes part, and how far each has come.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::net::SocketAddr;

use farcast_core::Time;

use crate::config::Group;
use crate::message::{ClientId, DeclineReason, Registration};

/// How a receiver stands with the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// Invited, has not answered.
    Invited,
    /// Takes part.
    Active,
    /// Does not want the product.
    Declined(DeclineReason),
    /// Has everything.
    Done,
    /// Has left: one of [`cancel`](crate::message::cancel), and its words.
    Quit(u32, Option<String>),
    /// No longer answers.
    Lost,
}

/// A receiver as the sender knows it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name as it gave it or as it was invited, or its id.
    pub label: String,
    /// Where it last answered from.
    pub address: Option<SocketAddr>,
    /// How it stands.
    pub state: MemberState,
    /// Segments that it held when it registered.
    pub held: u32,
    /// DTUs that it asked for again, in all, (a DTU lost twice counts twice).
    pub naked_dtus: u64,
    /// NAK messages that came from it.
    pub naks: u64,
    /// When its Done came.
    pub done_at: Option<Time>,
    pub(super) name: Option<String>,
    /// Bytes that it said it can buffer.
    pub(super) receive_buffer: Option<u32>,
    pub(super) missing: BTreeMap<u32, u32>,
    pub(super) silent_rounds: u32,
    pub(super) heard: bool,
    pub(super) last_heard: Time,
    /// Announcements or Completions that have carried its confirmation.
    pub(super) confirmations: u32,
    /// The last flight entry that it acknowledged (see [`flight`](super::flight)).
    pub(super) acked: u64,
    /// A registration under its id from another address, while it is asked whether it is still there.
    pub(super) contender: Option<(SocketAddr, Registration)>,
}

impl Member {
    pub(super) fn new(label: String, state: MemberState) -> Self {
        Self {
            label,
            address: None,
            state,
            held: 0,
            naked_dtus: 0,
            naks: 0,
            done_at: None,
            name: None,
            receive_buffer: None,
            missing: BTreeMap::new(),
            silent_rounds: 0,
            heard: true,
            last_heard: Time::ZERO,
            confirmations: 0,
            acked: 0,
            contender: None,
        }
    }

    /// Segments that its latest NAKs say are missing.
    pub fn missing(&self) -> u64 {
        self.missing.values().map(|&n| u64::from(n)).sum()
    }

    /// Whether it still takes part.
    pub fn is_active(&self) -> bool {
        self.state == MemberState::Active
    }
}

/// The receivers of a transmission, in the order of their ids.
pub(super) type Members = BTreeMap<ClientId, Member>;

/// The members that a group begins with.
pub(super) fn invited(group: &Group) -> Members {
    match group {
        Group::Closed(invited) => invited
            .iter()
            .map(|receiver| (receiver.id, Member::new(receiver.label.clone(), MemberState::Invited)))
            .collect(),
        Group::OpenLimited { .. } | Group::OpenUnlimited => Members::new(),
    }
}

/// What to call a receiver that registers uninvited.
pub(super) fn label(id: ClientId, name: Option<&String>, source: SocketAddr) -> String {
    match name {
        Some(name) => name.clone(),
        None if ClientId::from_address(source.ip()) == id => source.ip().to_string(),
        None => id.to_string(),
    }
}
