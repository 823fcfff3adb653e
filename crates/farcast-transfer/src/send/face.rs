//! Face of a sender: what its user sees of a transfer, and the switches that control it.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use farcast_core::Time;
use farcast_files::{Compressed, Skipped};
use farcast_net::NetError;
use serde_json::Value;

use super::{NoticeOf, ReportOf, Scanned, SendProtocol, SenderOf};
use crate::{Error, ErrorKind};

/// Step of a transfer before data leaves.
#[derive(Debug)]
#[non_exhaustive]
pub enum Preparation<'a> {
    /// Files are read and hashed.
    Hashing {
        /// Octets that were hashed.
        hashed: u64,
        /// Octets in all.
        total: u64,
    },
    /// All files are hashed.
    Hashed,
    /// A file was found and is not sent.
    Skipped(&'a Skipped),
    /// Files were compressed.
    Compressed(&'a Compressed),
    /// The network has no path to the destination, and is waited for.
    NoNetwork(&'a NetError),
    /// Another sender has the group, and is waited for.
    GroupInUse {
        /// The group.
        to: SocketAddr,
        /// The other sender, in words.
        whom: &'a str,
        /// The other sender, if it runs on this host and its process is known.
        process: Option<u32>,
        /// Address of the other sender, if it was heard.
        address: Option<SocketAddr>,
    },
    /// Time has passed while the other sender is waited for.
    Waiting {
        /// The other sender, in words.
        whom: &'a str,
        /// Time since the transfer was begun.
        now: Time,
    },
    /// The wait is over.
    Waited,
}

/// Event of a protocol that its user is told of.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SendEvent {
    /// Data begins, for receivers that are named or have registered.
    Started {
        /// Number of these receivers.
        receivers: u64,
    },
    /// A round of sending begins: a pass in MFTP.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Segments scheduled for it.
        segments: u32,
    },
    /// A file begins.
    Object(u64),
    /// A receiver was heard to lack nothing of an object so far.
    Reached {
        /// Name of the receiver.
        receiver: String,
        /// Number of the object.
        object: u64,
    },
    /// A receiver has everything.
    Has(String),
    /// A receiver does not answer, and is waited for no longer.
    Lost(String),
    /// Every receiver that is waited for has everything.
    Delivered,
    /// The transfer has ended, with this outcome in one word.
    Ended(&'static str),
    /// Any other event of the protocol: a line for people, if it needs one, its kind, and its fields.
    Other {
        /// Line for people.
        line: Option<String>,
        /// Kind, in one word.
        kind: &'static str,
        /// Fields, for programs.
        fields: Value,
    },
}

/// Receiver that a sender knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiverState {
    /// Name of the receiver.
    pub name: String,
    /// State in words.
    pub state: String,
    /// Time since the beginning at which it had everything.
    pub complete: Option<Time>,
}

/// Numbers of the receivers that a sender knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Receivers that are known.
    pub known: u64,
    /// Receivers that have confirmed everything.
    pub confirmed: u64,
    /// Receivers that have left, or are waited for no longer.
    pub gone: u64,
}

/// Receiver that is not known to have everything, as far as its sender knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unconfirmed {
    /// Name of the receiver.
    pub name: String,
    /// Address of its last answer, if it is known.
    pub address: Option<SocketAddr>,
    /// Standing of the receiver.
    pub standing: Standing,
    /// Data that it lacks, if it is known.
    pub lacks: Option<Lack>,
    /// Time since the beginning at which it was heard last.
    pub heard: Option<Time>,
}

/// Data that a receiver lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lack {
    /// Number of segments.
    pub segments: u64,
    /// Number of octets in these segments.
    pub octets: u64,
}

/// Standing of a receiver that is not known to have everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing was heard of it.
    Absent,
    /// It takes part, or did until it fell silent.
    Lacks,
    /// It refused the product, or the sender refuses it.
    Refused,
    /// It has left.
    Left,
}

impl Standing {
    /// Returns the standing in one word, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Lacks => "lacks",
            Self::Refused => "refused",
            Self::Left => "left",
        }
    }
}

/// Result of a transfer, by what is known of its receivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOutcome {
    /// Every receiver that was to have it has it, or nobody was named.
    Done,
    /// Everything was sent, and no receiver can tell whether it has it.
    Unknown,
    /// Some receivers are incomplete.
    Incomplete,
    /// The transfer failed or was stopped.
    Failed,
}

/// Result of a transfer, with its sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Result in one word, for programs.
    pub word: &'static str,
    /// Result.
    pub outcome: SendOutcome,
    /// Sentence for people. That of a failure is its error.
    pub sentence: Option<String>,
}

impl Verdict {
    /// Returns the outcome, or the error of a transfer that did not do what was asked of it.
    ///
    /// # Errors
    /// Some receivers are incomplete, or the transfer failed.
    pub fn result(&self) -> Result<SendOutcome, Error> {
        let kind = match self.outcome {
            SendOutcome::Done | SendOutcome::Unknown => return Ok(self.outcome),
            SendOutcome::Incomplete => ErrorKind::Incomplete,
            SendOutcome::Failed => ErrorKind::Failed,
        };
        Err(Error { kind, sentence: self.sentence.clone().unwrap_or_else(|| self.word.into()) })
    }
}

/// Observer of a transfer, who shows it to a user.
pub trait SendFace<P: SendProtocol> {
    /// Takes note of a step before data leaves.
    fn prepare(&mut self, note: &Preparation<'_>);

    /// Takes note of a transmission that begins.
    fn begin(&mut self, protocol: &P, files: &Scanned);

    /// Takes note of what the network driver and the engine report. `told` is the message about an event of the engine.
    fn observe(
        &mut self,
        now: Time,
        transfer: (&P, &SenderOf<P>),
        notice: &NoticeOf<'_, P>,
        told: Option<SendEvent>,
    );

    /// Takes note of a transmission that could not go on.
    fn failed(&mut self, _error: &Error) {}

    /// Takes note of a transmission that has ended so that changed files are sent again.
    fn again(&mut self, report: &ReportOf<P>);
}

/// Switches by which a user controls a transfer, from any thread.
#[derive(Clone, Copy, Debug)]
pub struct Controls<'a> {
    /// Set to begin with the receivers known so far.
    pub start: &'a AtomicBool,
    /// Set to end in good order.
    pub stop: &'a AtomicBool,
}
