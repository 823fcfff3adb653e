//! What a connection tells its owner, and what it counts.

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Both sides have agreed on the connection.
    Connected,
    /// Octets `skip..skip + len` of the segment just handled are to be stored at `offset` of the peer's stream, before
    /// anything else is handled.
    Store {
        /// Where in the peer's stream, from 0.
        offset: u64,
        /// How many octets of the segment's payload come before.
        skip: u16,
        /// How many.
        len: u16,
    },
    /// There is more to consume.
    Readable,
    /// The send buffer was full and has room again.
    Writable,
    /// Everything that the peer has written has arrived, and it will write no more.
    PeerClosed,
    /// Both directions have ended.
    Closed,
    /// The connection is lost.
    Failed(Failure),
}

/// Why a connection is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The peer does not take connections here.
    #[error("the peer refused the connection")]
    Refused,
    /// The peer has ended it.
    #[error("the peer reset the connection")]
    Reset,
    /// The peer answers no more.
    #[error("the peer did not answer in time")]
    TimedOut,
    /// The owner has ended it.
    #[error("the connection was aborted")]
    Aborted,
}

/// What of a segment is to be stored, as in [`Event::Store`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub offset: u64,
    pub skip: u16,
    pub len: u16,
}

/// Events that wait to be polled: each kind at most once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    pub store: Option<Stored>,
    pub connected: bool,
    pub readable: bool,
    pub writable: bool,
    pub peer_closed: bool,
    pub closed: bool,
    pub failed: Option<Failure>,
}

impl Pending {
    /// Whether nothing waits: owners ask after each segment, mostly for nothing.
    fn is_empty(&self) -> bool {
        let told = self.connected | self.readable | self.writable | self.peer_closed | self.closed;
        !told && self.store.is_none() && self.failed.is_none()
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Event> {
        if self.is_empty() { None } else { self.take_first() }
    }

    fn take_first(&mut self) -> Option<Event> {
        if let Some(Stored { offset, skip, len }) = self.store.take() {
            return Some(Event::Store { offset, skip, len });
        }
        let flags = [
            (&mut self.connected, Event::Connected),
            (&mut self.readable, Event::Readable),
            (&mut self.writable, Event::Writable),
            (&mut self.peer_closed, Event::PeerClosed),
            (&mut self.closed, Event::Closed),
        ];
        for (flag, event) in flags {
            if core::mem::take(flag) {
                return Some(event);
            }
        }
        self.failed.take().map(Event::Failed)
    }
}

/// What a connection has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Segments sent, acknowledgments and repetitions included.
    pub segments_sent: u64,
    /// Of these, how many carried data.
    pub data_segments_sent: u64,
    /// Octets of data sent, repetitions included.
    pub octets_sent: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub fast_recoveries: u64,
    /// Timeouts and recoveries that turned out to be unnecessary and were undone.
    pub undone: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Segments taken.
    pub segments_received: u64,
    /// Data that arrived a second time, in octets.
    pub octets_duplicate: u64,
    /// Segments that the queue of this host had no room for. They count as sent above only where they had no data.
    pub local_drops: u64,
    /// Acknowledgments that answer what cannot be true (RFC 5961).
    pub challenges: u64,
}
