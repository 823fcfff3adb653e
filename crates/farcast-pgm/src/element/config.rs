//! Settings of an element. RFC 3208 names these times and gives none of them a value; where ns-2's PGM has one that is
//! the default.

use alloc::vec::Vec;
use core::net::IpAddr;

use farcast_core::Span;

use crate::error::ConfigError;
use crate::repairer::StoreConfig;

/// The most ports of an element.
pub const MOST_PORTS: usize = 64;

/// How an element works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementConfig {
    /// The address of each of its ports, of which the first is port 1.
    pub ports: Vec<IpAddr>,
    /// The most sessions that are known at once; ours.
    pub sessions: usize,
    /// The most numbers that are asked for at once, of all sessions; ours.
    pub states: usize,
    /// So far beyond the newest number that it was told of may be what is asked for: what a source sends between two
    /// SPMs, as an element hears no data that pass; ours.
    pub ahead: u32,
    /// From one forwarding of a NAK to the next, until it is confirmed (`1 / NAK_RPT_RTE`; ns-2 has 50 ms).
    pub repeat: Span,
    /// The same while it is not known how long confirmation takes; then a quarter more than it took lately, but no
    /// less than `repeat`. A NAK that is repeated before its NCF can be there is repaired twice: over a satellite ns-2's 50 ms
    /// make ten NAKs of each. `None`: always `repeat`. The default is Microsoft's `NAK_RPT_IVL`.
    pub unknown: Option<Span>,
    /// For how long (`NAK_RPT_IVL`; ns-2 has 1 s).
    pub confirm: Span,
    /// How long what was confirmed is waited for (`NAK_RDATA_IVL`; ns-2 has 10 s).
    pub repair: Span,
    /// For how long further NAKs for it are not forwarded (`NAK_ELIM_IVL`): by §7.4 a small fraction of the time
    /// before. ns-2 has 5 s, longer than most receivers wait for repair.
    pub eliminate: Span,
    /// For how long what was confirmed on a port is not confirmed there again (§7.3 asks for a limit; ours).
    pub holdoff: Span,
    /// A session counts as idle that has said nothing for so long: it makes room for another, and is believed to come by
    /// another port; ours.
    pub idle: Span,
    /// After how long a session is forgotten; ours, as a receiver's.
    pub expiry: Span,
    /// Whether what RFC 3208 §4 wants to bear IP's router alert does.
    pub router_alert: bool,
    /// From one search for repairers beside the tree to the next (POLL of sub-type 1, §14); `None`: none are sought.
    pub polls: Option<Span>,
    /// What makes it a repairer.
    pub store: Option<StoreConfig>,
}

impl ElementConfig {
    /// As usual, with these ports.
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
