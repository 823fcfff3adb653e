//! Whether a link is alive: LCP echoes (RFC 1661 §5.8), asked for as Linux's pppd does.

use farcast_core::engine::Deadline;
use farcast_core::{Span, Time};

use crate::error::ConfigError;
use crate::framing::{Framing, PROTOCOL_LCP};
use crate::lcp::ECHO_OCTETS;

/// How often a link is probed. A silent link is found dead `interval` × `failures` after the first request that is not
/// answered, so that product must exceed the round trip, its queues included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoConfig {
    /// The time from one Echo-Request to the next; above zero.
    pub interval: Span,
    /// How many requests in a row may go unanswered, at least 1.
    pub failures: u32,
}

impl EchoConfig {
    /// Checks what the types do not.
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

/// What an Echo-Reply says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// The link is alive.
    Answer,
    /// No request with this identifier is open.
    Unexpected,
    /// Its magic number is our own: the line leads back to us.
    Loopback,
}

/// Probes one link and says when it is dead.
///
/// The first request goes out at once and then one every interval, whether the link is dead or not: the first reply to
/// any open request revives it. A reply also answers all requests before its own.
#[derive(Clone, Debug)]
pub struct EchoMonitor {
    config: EchoConfig,
    /// Our magic number; 0 if there is none.
    magic: u32,
    /// When the next request is due.
    due: Time,
    /// The identifier of the next request.
    identifier: u8,
    /// How many requests, up to the last, may still be answered.
    open: u8,
    /// How many intervals have passed without an answer.
    unanswered: u32,
    dead: bool,
    looped_back: bool,
    request: Option<u8>,
}

impl EchoMonitor {
    /// A monitor whose first request is due at `now`. Settings that [`EchoConfig::check`] refuses are raised to the
    /// least.
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

    /// The same with a magic number of its own, by which it knows its echo; 0 is none.
    #[must_use]
    pub const fn with_magic_number(self, magic: u32) -> Self {
        Self { magic, ..self }
    }

    /// Our magic number, for requests and for replies to the peer's; 0 if there is none.
    pub const fn magic_number(&self) -> u32 {
        self.magic
    }

    /// Makes the request that is due, and finds the link dead if too many before it went unanswered.
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

    /// The identifier of an Echo-Request that is to be sent now.
    pub const fn poll_request(&mut self) -> Option<u8> {
        self.request.take()
    }

    /// Takes an Echo-Reply without a magic number; says whether it answers an open request.
    pub fn reply(&mut self, _now: Time, identifier: u8) -> bool {
        // How many requests have been made since the one that is answered.
        let since = self.identifier.wrapping_sub(identifier).wrapping_sub(1);
        let answers = since < self.open;
        if answers {
            self.open = since;
            self.unanswered = 0;
            self.dead = false;
        }
        answers
    }

    /// Takes an Echo-Reply with its magic number; one with our own is our echo and answers nothing.
    pub fn reply_with(&mut self, now: Time, identifier: u8, magic: u32) -> Reply {
        if self.magic != 0 && magic == self.magic {
            self.looped_back = true;
            return Reply::Loopback;
        }
        if self.reply(now, identifier) { Reply::Answer } else { Reply::Unexpected }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        (self.due != Time::NEVER).then_some(Deadline { at: self.due, timer: "lcp echo" })
    }

    /// Whether the link is dead: `failures` requests have gone an interval without an answer, and none has come since.
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// Whether our own magic number has come back.
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

/// The most octets of an Echo-Request and an Echo-Reply on a line: every octet escaped, and a flag at both ends.
pub fn exchange_octets(framing: &Framing) -> u64 {
    2 * (2 * framing.frame_octets(PROTOCOL_LCP, ECHO_OCTETS as u64) + 2)
}
