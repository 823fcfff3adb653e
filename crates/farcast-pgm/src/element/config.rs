//! Settings of an element. RFC 3208 names these times without values; the defaults are those of ns-2's PGM where it has
//! one.

use alloc::vec::Vec;
use core::net::IpAddr;

use farcast_core::Span;

use crate::error::ConfigError;
use crate::repairer::StoreConfig;

/// The most ports of an element.
pub const MOST_PORTS: usize = 64;

/// Settings of a network element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementConfig {
    /// Addresses of the ports, in order; the first is port 1.
    pub ports: Vec<IpAddr>,
    /// The most sessions that are known at once; not in RFC 3208.
    pub sessions: usize,
    /// The most numbers that are asked for at once, of all sessions; not in RFC 3208.
    pub states: usize,
    /// The most numbers beyond the newest known one that a NAK may name. An element hears no passing data, so this
    /// covers what a source sends between two SPMs; not in RFC 3208.
    pub ahead: u32,
    /// Interval at which a NAK is forwarded again until it is confirmed (`1 / NAK_RPT_RTE`; ns-2 has 50 ms).
    pub repeat: Span,
    /// Interval of repetition while the delay of confirmations is unknown. Once that is known, the interval is 5/4 of
    /// the recent delay, and at least `repeat`. The source repairs twice if a NAK is repeated before its NCF can
    /// arrive: over a satellite ns-2's 50 ms make ten NAKs of each. `None`: always `repeat`. The default is Microsoft's
    /// `NAK_RPT_IVL`.
    pub unknown: Option<Span>,
    /// Time for which a NAK is repeated (`NAK_RPT_IVL`; ns-2 has 1 s).
    pub confirm: Span,
    /// Time for which the element waits for confirmed repair (`NAK_RDATA_IVL`; ns-2 has 10 s).
    pub repair: Span,
    /// Time for which further NAKs for a confirmed number are not forwarded (`NAK_ELIM_IVL`); by §7.4 a small fraction
    /// of `repair`. ns-2 has 5 s, longer than most receivers wait for repair.
    pub eliminate: Span,
    /// Time for which a number confirmed on a port is not confirmed there again (§7.3 asks for a limit without a
    /// value).
    pub holdoff: Span,
    /// Silence after which a session counts as idle. An idle session makes room for another, and its source may move to
    /// another port; not in RFC 3208.
    pub idle: Span,
    /// Silence after which a session is forgotten; not in RFC 3208, the same as a receiver's.
    pub expiry: Span,
    /// Messages that need IP's router alert by RFC 3208 §4 bear it.
    pub router_alert: bool,
    /// Interval between searches for repairers beside the tree (POLL of sub-type 1, §14); `None`: none are sought.
    pub polls: Option<Span>,
    /// Settings of the store that makes the element a repairer; `None`: a plain network element.
    pub store: Option<StoreConfig>,
}

impl ElementConfig {
    /// Returns the default settings with these ports.
    pub const fn new(ports: Vec<IpAddr>) -> Self {
        Self {
            ports,
            sessions: 64,
            states: 1 << 16,
            ahead: 1 << 16,
            repeat: Span::from_millis(50),
            unknown: Some(Span::from_millis(750)),
            confirm: Span::from_secs(1),
            repair: Span::from_secs(10),
            eliminate: Span::from_secs(1),
            holdoff: Span::from_millis(20),
            idle: Span::from_secs(10),
            expiry: Span::from_secs(60),
            router_alert: true,
            polls: None,
            store: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("the number of ports", (1..=MOST_PORTS).contains(&self.ports.len())),
            ("the number of sessions", (1..=1 << 16).contains(&self.sessions)),
            ("the number of repair states", (1..=1 << 24).contains(&self.states)),
            ("what may be asked for ahead", self.ahead < 1 << 30),
            ("the time between repeated NAKs", !self.repeat.is_zero()),
            (
                "the time between repeated NAKs at first",
                self.unknown.is_none_or(|unknown| !unknown.is_zero()),
            ),
            ("the time until a NAK is confirmed", !self.confirm.is_zero()),
            ("the time until repair", !self.repair.is_zero()),
            ("the time for which NAKs are eliminated", self.eliminate <= self.repair),
            (
                "the time after which a session is forgotten",
                !self.expiry.is_zero() && self.idle <= self.expiry,
            ),
            ("the time between polls", self.polls.is_none_or(|polls| !polls.is_zero())),
        ];
        if let Some((what, _)) = ranges.into_iter().find(|(_, right)| !right) {
            return Err(ConfigError::Range(what));
        }
        self.store.as_ref().map_or(Ok(()), StoreConfig::check)
    }
}
