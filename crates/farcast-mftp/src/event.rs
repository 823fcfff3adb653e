//! Events that the engines report to their owners.

use alloc::string::String;
use core::net::{IpAddr, SocketAddr};

use farcast_core::{Run, Time};
use farcast_delivery::Offer;

use crate::message::{ClientId, DeclineReason};
use crate::sender::GivenUp;

/// Event of a [`Sender`](crate::Sender).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// A receiver has registered, or registered anew from another address.
    Registered {
        /// Identifier of the receiver.
        client: ClientId,
        /// Address from which it answers.
        address: SocketAddr,
        /// Segments that it holds already.
        held: u32,
    },
    /// An invited receiver does not want the product.
    Declined {
        /// Identifier of the receiver.
        client: ClientId,
        /// Reason that it gave.
        reason: DeclineReason,
    },
    /// A registration was refused.
    Refused {
        /// Identifier that the registration used.
        client: ClientId,
        /// Source address of the registration.
        address: SocketAddr,
        /// `true` if another receiver has that id; otherwise the receiver was not invited.
        collision: bool,
    },
    /// Data begins.
    Started {
        /// Number of receivers that take part.
        receivers: u32,
        /// `true` if all of them hold part of the product, so that the sender asks first what is missing.
        restart: bool,
    },
    /// A pass begins.
    Pass {
        /// Number of the pass, from 1.
        pass: u32,
        /// DTUs scheduled for it so far.
        dtus: u32,
    },
    /// A receiver has the whole product.
    Done {
        /// Identifier of the receiver.
        client: ClientId,
    },
    /// A receiver has left.
    Quit {
        /// Identifier of the receiver.
        client: ClientId,
        /// Reason, one of [`cancel`](crate::message::cancel).
        reason: u32,
        /// Receiver's text.
        text: Option<String>,
    },
    /// A receiver was given up.
    Lost {
        /// Identifier of the receiver.
        client: ClientId,
        /// Reason for which it was given up.
        why: GivenUp,
    },
    /// Every receiver has the whole product, has left, or was given up. The messages that follow only confirm.
    Delivered,
    /// The transmission has ended.
    Ended(SenderOutcome),
}

/// Outcome of a transmission for its sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// Every receiver that took part is accounted for; see [`Sender::members`](crate::Sender::members).
    Finished,
    /// No receiver registered.
    NoReceivers,
    /// The owner, the time limit, or the silence of all receivers stopped the transmission.
    Aborted {
        /// Reason, one of [`cancel`](crate::message::cancel).
        reason: u32,
    },
    /// Another transmission uses the group.
    GroupInUse {
        /// Address of its sender.
        by: SocketAddr,
        /// Transmission Identifier of the other transmission.
        transmission: u32,
    },
}

/// Event of a [`Receiver`](crate::Receiver). `Store`, `StoreParity`, `Decode`, `Compare`, `Complete` and `Offered`
/// expect an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// A product is offered: answer with [`accept`](crate::Receiver::accept) or [`decline`](crate::Receiver::decline).
    Offered(Offer),
    /// The sender has accepted the registration.
    Accepted,
    /// Store these segments; their payload is `offset` segments into the message just handled.
    Store {
        /// Segments of the product.
        segments: Run,
        /// Number of the message's datagram that carries the first segment.
        offset: u32,
    },
    /// Keep these parity symbols; their payload is `offset` symbols into the message just handled.
    StoreParity {
        /// Block that the symbols belong to.
        block: u32,
        /// Parity symbols to be kept.
        symbols: Run,
        /// Number of the message's datagram that carries the first symbol.
        offset: u32,
    },
    /// Rebuild the missing segments of a block from its parity, store them, and answer with
    /// [`decoded`](crate::Receiver::decoded).
    Decode {
        /// Block to be rebuilt.
        block: u32,
    },
    /// Compare stored files with the list of files, for which the sender waits, and answer with
    /// [`compared`](crate::Receiver::compared).
    Compare,
    /// A sender's pass has begun, as far as can be seen here.
    Pass {
        /// Number of the pass.
        pass: u32,
    },
    /// Verify the product, every segment of which is stored, give the files their names, and answer with
    /// [`verified`](crate::Receiver::verified) or [`fail`](crate::Receiver::fail).
    Complete,
    /// A server asks to listen to this group (JOIN GROUP).
    JoinGroup(IpAddr),
    /// A server asks to stop listening to this group (LEAVE GROUP).
    LeaveGroup(IpAddr),
    /// Another transmission was announced while this one runs, and is ignored.
    Busy {
        /// Address of its sender.
        server: SocketAddr,
    },
    /// A transmission was announced for a list of receivers without this one (or with it in another piece of the list),
    /// and is ignored. Reported once for each server.
    NotInvited {
        /// Address of its sender.
        server: SocketAddr,
    },
    /// The transmission is over; the receiver listens for the next one.
    Ended(ReceiverOutcome),
}

/// Outcome of a transmission for a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverOutcome {
    /// The product is complete and verified.
    Complete {
        /// `true` if the sender confirmed the receiver's report.
        confirmed: bool,
        /// Time at which the product was verified, after the last segment had come.
        at: Time,
    },
    /// The sender gave up, or refused this receiver.
    Aborted {
        /// Reason, one of [`cancel`](crate::message::cancel).
        reason: u32,
        /// Sender's text.
        text: Option<String>,
    },
    /// The owner declined or stopped the transmission.
    Stopped,
    /// The registration was never confirmed.
    NotAccepted,
    /// The sender is no longer heard.
    SenderLost,
    /// The sender ended the transmission while segments were missing.
    Incomplete,
}
