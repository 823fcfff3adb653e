//! What the engines tell their owners.

use alloc::string::String;
use core::net::{IpAddr, SocketAddr};

use farcast_core::{Run, Time};
use farcast_delivery::Offer;

use crate::message::{ClientId, DeclineReason};
use crate::sender::GivenUp;

/// What a [`Sender`](crate::Sender) tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// A receiver has registered, or registered anew from another address.
    Registered {
        /// Who.
        client: ClientId,
        /// Where it answers from.
        address: SocketAddr,
        /// Segments that it holds already.
        held: u32,
    },
    /// An invited receiver does not want the product.
    Declined {
        /// Who.
        client: ClientId,
        /// Why.
        reason: DeclineReason,
    },
    /// A registration was refused.
    Refused {
        /// The id that it used.
        client: ClientId,
        /// Where it came from.
        address: SocketAddr,
        /// Whether another receiver has that id; otherwise it was not invited.
        collision: bool,
    },
    /// Data begins.
    Started {
        /// How many receivers take part.
        receivers: u32,
        /// Whether all of them hold part of the product, so that they are asked first.
        restart: bool,
    },
    /// A pass begins.
    Pass {
        /// Its number, from 1.
        pass: u32,
        /// DTUs scheduled for it so far.
        dtus: u32,
    },
    /// A receiver has everything.
    Done {
        /// Who.
        client: ClientId,
    },
    /// A receiver has left.
    Quit {
        /// Who.
        client: ClientId,
        /// One of [`cancel`](crate::message::cancel).
        reason: u32,
        /// Its words.
        text: Option<String>,
    },
    /// A receiver was given up.
    Lost {
        /// Who.
        client: ClientId,
        /// Why.
        why: GivenUp,
    },
    /// Everyone has everything, has left or was given up; what follows only confirms.
    Delivered,
    /// It is over.
    Ended(SenderOutcome),
}

/// How a transmission ended for its sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// Every receiver that took part is accounted for; [`Sender::members`](crate::Sender::members) says how.
    Finished,
    /// Nobody registered.
    NoReceivers,
    /// The owner, the time limit or the silence of everyone stopped it.
    Aborted {
        /// One of [`cancel`](crate::message::cancel).
        reason: u32,
    },
    /// Another transmission uses the group.
    GroupInUse {
        /// Whose.
        by: SocketAddr,
        /// Its Transmission Identifier.
        transmission: u32,
    },
}

/// What a [`Receiver`](crate::Receiver) tells. `Store`, `StoreParity`, `Decode`, `Compare`, `Complete` and `Offered`
/// ask for an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverEvent {
    /// Answer with [`accept`](crate::Receiver::accept) or [`decline`](crate::Receiver::decline).
    Offered(Offer),
    /// The sender has accepted the registration.
    Accepted,
    /// Store these segments; their payload is `offset` segments into the message just handled.
    Store {
        /// Segments of the product.
        segments: Run,
        /// Where in the message's run they begin.
        offset: u32,
    },
    /// Keep these parity symbols; their payload is `offset` symbols into the message just handled.
    StoreParity {
        /// The block.
        block: u32,
        /// Its parity symbols.
        symbols: Run,
        /// Where in the message's run they begin.
        offset: u32,
    },
    /// Rebuild what is missing of a block from its parity, store it, and answer with
    /// [`decoded`](crate::Receiver::decoded).
    Decode {
        /// The block.
        block: u32,
    },
    /// The sender waits until what is there already is known: compare, and answer with
    /// [`compared`](crate::Receiver::compared).
    Compare,
    /// A sender's pass has begun, as far as can be seen here.
    Pass {
        /// Its number.
        pass: u32,
    },
    /// Every segment is stored: verify, give the files their names, and answer with
    /// [`verified`](crate::Receiver::verified) or [`fail`](crate::Receiver::fail).
    Complete,
    /// A server asks to listen to this group (JOIN GROUP).
    JoinGroup(IpAddr),
    /// A server asks to stop listening to this group (LEAVE GROUP).
    LeaveGroup(IpAddr),
    /// Another transmission was announced while this one runs, and is passed over.
    Busy {
        /// Whose.
        server: SocketAddr,
    },
    /// A transmission was announced for a list of receivers that does not have this one (or not in this piece of
    /// it), and is passed over. Told once for each server.
    NotInvited {
        /// Whose.
        server: SocketAddr,
    },
    /// The transmission is over; the receiver listens for the next one.
    Ended(ReceiverOutcome),
}

/// How a transmission ended for a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiverOutcome {
    /// The product is complete and verified.
    Complete {
        /// Whether the sender confirmed that it knows.
        confirmed: bool,
        /// When the last segment had come and the product was verified.
        at: Time,
    },
    /// The sender gave up, or refused this receiver.
    Aborted {
        /// One of [`cancel`](crate::message::cancel).
        reason: u32,
        /// Its words.
        text: Option<String>,
    },
    /// The owner declined or stopped it.
    Stopped,
    /// The registration was never confirmed.
    NotAccepted,
    /// The sender is no longer heard.
    SenderLost,
    /// The sender ended the transmission while segments were missing.
    Incomplete,
}
