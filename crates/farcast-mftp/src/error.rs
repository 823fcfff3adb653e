//! Errors of a configuration.

use alloc::string::String;

use crate::message::ClientId;

/// Setting with which the engines cannot work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The product cannot be divided like this.
    #[error(transparent)]
    Geometry(#[from] farcast_delivery::GeometryError),
    /// A text that goes on the wire is empty or too long.
    #[error("the {what} must have 1 to {most} bytes")]
    Text {
        /// Name of the text.
        what: &'static str,
        /// Maximum number of bytes.
        most: usize,
    },
    /// A closed group has no members.
    #[error("a closed group needs at least one receiver")]
    NobodyInvited,
    /// Two invited receivers have the same id.
    #[error("receivers {first} and {second} have the same id ({id}); rename one of them")]
    SameId {
        /// Name of one receiver.
        first: String,
        /// Name of the other receiver.
        second: String,
        /// Identifier of both.
        id: ClientId,
    },
    /// The announcement does not fit a datagram.
    #[error("datagrams of {0} bytes are too small for an announcement; 512 or more are needed")]
    Datagram(usize),
    /// A window needs receivers that answer.
    #[error(
        "sending without a rate needs receivers that register: use a closed or open-limited group, or set a rate"
    )]
    WindowWithoutMembers,
    /// A population has no receiver, or has ids past the last.
    #[error("a population needs at least one receiver, and ids that go up to it")]
    Population,
    /// A limit must not be zero.
    #[error("{0} must be above zero")]
    Zero(&'static str),
}
