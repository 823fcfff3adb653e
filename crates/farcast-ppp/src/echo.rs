//! Detection of dead links by LCP echoes (RFC 1661 §5.8), sent as Linux's pppd sends them.

use farcast_core::engine::Deadline;
use farcast_core::{Span, Time};

use crate::error::ConfigError;
use crate::framing::{Framing, PROTOCOL_LCP};
use crate::lcp::ECHO_OCTETS;

/// Settings of the probes of a link. A silent link is found dead `interval` × `failures` after the first request that
/// is not answered. So this product must exceed the round trip, queues included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoConfig {
    /// The time from one Echo-Request to the next; above zero.
    pub interval: Span,
    /// Number of requests in a row that may go unanswered, at least 1.
    pub failures: u32,
}

impl EchoConfig {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`ConfigError::EchoInterval`] and [`ConfigError::EchoFailures`] for a zero.
    pub const fn check(&self) -> Result<(), ConfigError> {
        if self.interval.is_zero() {
            return Err(ConfigError::EchoInterval);
        }
        if self.failures == 0 {
            return Err(ConfigError::EchoFailures);
        }
        Ok(())
    }
}

/// Meaning of an Echo-Reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// The link is alive.
    Answer,
    /// No request with this identifier is open.
    Unexpected,
    /// The magic number is our own: the line leads back to us.
    Loopback,
}

/// Monitor that probes one link and finds out when it is dead.
///
/// The first request goes out at once, and then one every interval, even while the link is dead: the first reply to any
/// open request revives it. A reply also answers all requests before its own.
#[derive(Clone, Debug)]
pub struct EchoMonitor {
    config: EchoConfig,
    /// Our magic number; 0 if there is none.
    magic: u32,
    /// Time at which the next request is due.
    due: Time,
    /// The identifier of the next request.
    identifier: u8,
    /// Number of requests, up to the last, that may still be answered.
    open: u8,
    /// Number of intervals that have passed without an answer.
    unanswered: u32,
    dead: bool,
    looped_back: bool,
    request: Option<u8>,
}

impl EchoMonitor {
    /// Creates a monitor whose first request is due at `now`. Settings that [`EchoConfig::check`] refuses are raised to
    /// the least that it allows.
    pub fn new(config: EchoConfig, now: Time) -> Self {
        let interval = config.interval.max(Span::from_nanos(1));
        let config = EchoConfig { interval, failures: config.failures.max(1) };
        Self {
            config,
            magic: 0,
            due: now,
            identifier: 0,
            open: 0,
            unanswered: 0,
            dead: false,
            looped_back: false,
            request: None,
        }
    }

    /// Sets our magic number, by which the monitor knows its own echo; 0 is none.
    #[must_use]
    pub const fn with_magic_number(self, magic: u32) -> Self {
        Self { magic, ..self }
    }

    /// Returns our magic number, for requests and for replies to the peer's; 0 if there is none.
    pub const fn magic_number(&self) -> u32 {
        self.magic
    }

    /// Makes the request that is due. Finds the link dead if too many requests before it went unanswered.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        self.due = now + self.config.interval;
        self.dead |= self.unanswered >= self.config.failures;
        self.unanswered = self.unanswered.saturating_add(1);
        self.request = Some(self.identifier);
        self.identifier = self.identifier.wrapping_add(1);
        self.open = self.open.saturating_add(1);
    }

    /// Returns the identifier of an Echo-Request that is to be sent now.
    pub const fn poll_request(&mut self) -> Option<u8> {
        self.request.take()
    }

    /// Takes an Echo-Reply without a magic number. Returns `true` if it answers an open request.
    pub fn reply(&mut self, _now: Time, identifier: u8) -> bool {
        // Number of requests made since the one that is answered.
        let since = self.identifier.wrapping_sub(identifier).wrapping_sub(1);
        let answers = since < self.open;
        if answers {
            self.open = since;
            self.unanswered = 0;
            self.dead = false;
        }
        answers
    }

    /// Takes an Echo-Reply with its magic number. A reply with our own number is our echo and answers nothing.
    pub fn reply_with(&mut self, now: Time, identifier: u8, magic: u32) -> Reply {
        if self.magic != 0 && magic == self.magic {
            self.looped_back = true;
            return Reply::Loopback;
        }
        if self.reply(now, identifier) { Reply::Answer } else { Reply::Unexpected }
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        (self.due != Time::NEVER).then_some(Deadline { at: self.due, timer: "lcp echo" })
    }

    /// Returns `true` if the link is dead: `failures` requests have gone an interval without an answer, and none has
    /// come since.
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// Returns `true` if our own magic number has come back.
    pub const fn is_looped_back(&self) -> bool {
        self.looped_back
    }

    /// Begins anew, as for a link that was just opened: it is alive and a request is due at `now`. Replies to former
    /// requests answer nothing.
    pub const fn restart(&mut self, now: Time) {
        self.due = now;
        self.open = 0;
        self.unanswered = 0;
        self.dead = false;
        self.looped_back = false;
        self.request = None;
    }
}

/// Returns the most octets of an Echo-Request and an Echo-Reply on a line: every octet escaped, and a flag at both
/// ends.
pub fn exchange_octets(framing: &Framing) -> u64 {
    2 * (2 * framing.frame_octets(PROTOCOL_LCP, ECHO_OCTETS as u64) + 2)
}
