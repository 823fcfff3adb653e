//! Events and counters of a connection.

/// Event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Both sides have agreed on the connection.
    Connected,
    /// Octets `skip..skip + len` of the segment just handled are to be stored at `offset` of the peer's stream, before
    /// anything else is handled.
    Store {
        /// Offset in the peer's stream, from 0.
        offset: u64,
        /// Number of octets of the segment's payload before the range.
        skip: u16,
        /// Number of octets.
        len: u16,
    },
    /// The peer's stream has more octets to consume.
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

/// Reason for which a connection is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The peer does not take connections here.
    #[error("the peer refused the connection")]
    Refused,
    /// The peer has ended the connection.
    #[error("the peer reset the connection")]
    Reset,
    /// The peer answers no more.
    #[error("the peer did not answer in time")]
    TimedOut,
    /// The owner has ended the connection.
    #[error("the connection was aborted")]
    Aborted,
}

/// Range of a segment that is to be stored, as in [`Event::Store`].
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
    /// Returns `true` if no event waits. Owners poll after each segment, mostly in vain.
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

/// Counters of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Segments sent, acknowledgments and repetitions included.
    pub segments_sent: u64,
    /// Segments sent that carried data.
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
    /// Segments for which the queue of this host had no room. Of these, only segments without data count as sent above.
    pub local_drops: u64,
    /// Challenge acknowledgments, which answer segments that cannot be valid (RFC 5961).
    pub challenges: u64,
}
