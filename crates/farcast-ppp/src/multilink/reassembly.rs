//! Reassembly: fragments from several links to packets in order (RFC 1990 §4).
//!
//! M is the lowest of the last sequence numbers received, one for each member link. Since a link carries rising numbers
//! only, nothing below M is still to come. Three rules follow from §4.1:
//!
//! 1. A packet is complete when all numbers from its beginning to its end are there. Packets leave in the order of
//!    their numbers.
//! 2. Once M has passed the end of a packet that is not complete, the packet is lost, and all fragments up to that end
//!    are discarded. A missing end counts if it is known: a fragment that begins a packet shows that the number before
//!    it ended one. So when M reaches such a fragment, incomplete packets before it are discarded, and the fragment
//!    stays.
//! 3. M may come to lie within packets that can still be completed; these wait.
//!
//! M has *passed* an end once it is beyond it: an end that M has just reached waits for one number more on that link.
//! (Linux gives a packet up as soon as M has reached a missing number. That loses the same packets, a little sooner.)
//!
//! The RFC leaves two cases open. A link that has joined and carried nothing holds M where it was. When no link is
//! left, nothing is still to come: M has passed all numbers received.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::{Payload, Span, Time};

use super::header::{Format, Header};
use crate::error::ConfigError;

mod held;

use held::{Fragment, HeldFragments};

/// Limit of the links in a bundle.
pub const MOST_LINKS: usize = 64;

/// Octets of the protocol field that a packet may have beside its information.
const PROTOCOL_OCTETS: usize = 2;

/// The bounds of reassembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReassemblyConfig {
    /// The Maximum Reconstructed Receive Unit (RFC 1990 §5.1.1): octets of information that a packet may have, without
    /// its protocol field of up to 2 octets; at least 1. Default 1500.
    pub mrru: u16,
    /// Limit of the fragments held, at least 1. Default 1024; Linux holds 128.
    pub most_fragments: u32,
    /// Limit of their octets together, at least 1. RFC 1990 §4.2 asks for twice the sum, over the links, of rate times
    /// worst delay. Default 1 MiB.
    pub most_octets: u64,
    /// Time for which a link may be silent, while fragments are held and none is released, before it stops holding up
    /// the others (RFC 1990 §4.1: "some type of link idle timer"). It counts again for later fragments. Above zero.
    /// Default none: packets that are complete behind a loss wait until every link has been heard or has left.
    pub idle: Option<Span>,
}

impl Default for ReassemblyConfig {
    fn default() -> Self {
        Self { mrru: 1500, most_fragments: 1024, most_octets: 1 << 20, idle: None }
    }
}

impl ReassemblyConfig {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`ConfigError::Zero`] if a bound is zero.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (zero, key) in [
            (self.mrru == 0, "mrru"),
            (self.most_fragments == 0, "most_fragments"),
            (self.most_octets == 0, "most_octets"),
            (self.idle.is_some_and(Span::is_zero), "idle"),
        ] {
            if zero {
                return Err(ConfigError::Zero(key));
            }
        }
        Ok(())
    }
}

/// Reason to refuse a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The link is not in the bundle.
    #[error("a fragment came on a link that is not a member of the bundle")]
    NotMember,
    /// The sequence number does not rise on its link.
    #[error("the sequence number does not follow the one before it on its link; numbers must rise")]
    Backwards,
    /// The fate of its packet is already decided.
    #[error("the fragment came too late; its packet was already given up")]
    Late,
    /// A fragment with this number is already held.
    #[error("the sequence number came twice; each is used once")]
    Duplicate,
}

/// Counters of a [`Reassembler`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReassemblyCounters {
    /// Fragments that were taken.
    pub fragments: u64,
    /// Packets that were released.
    pub packets: u64,
    /// Packets without an octet, which null fragments make; they end here.
    pub nulls: u64,
    /// Number of times that M passed the end of an incomplete packet: at least one packet is lost each time.
    pub lost: u64,
    /// Fragments that were discarded, for any reason.
    pub discarded: u64,
    /// Packets longer than the MRRU allows.
    pub over_mrru: u64,
    /// Number of times that the first packet was given up because too much was held.
    pub over_buffer: u64,
    /// Number of times that a silent link was left out.
    pub idled: u64,
    /// Fragments on links that are not members.
    pub not_member: u64,
    /// Fragments whose number went back on their link.
    pub backwards: u64,
    /// Fragments of packets that were already given up.
    pub late: u64,
    /// Fragments whose number was already held.
    pub duplicates: u64,
}

/// A link as the receiver knows it. Positions count sequence numbers from the start of the bundle; a position is one
/// past the last number.
#[derive(Clone, Copy, Debug, Default)]
struct LinkState {
    member: bool,
    /// One past the last number received on the link.
    heard: u64,
    /// Least position that the link has for M.
    floor: u64,
    /// Time at which the link was last heard, joined, or began to be waited for again after it was left out.
    since: Time,
}

impl LinkState {
    fn position(&self) -> u64 {
        self.heard.max(self.floor)
    }
}

/// The receiving end of a bundle in one direction. The [module](self) states the rules.
///
/// After each call that takes the time, its owner takes packets from [`poll_packet`](Self::poll_packet) until there
/// is none. Memory is bounded by [`ReassemblyConfig`] and [`MOST_LINKS`]; once warm, a fragment allocates nothing.
#[derive(Clone, Debug)]
pub struct Reassembler<P> {
    config: ReassemblyConfig,
    format: Format,
    links: Vec<LinkState>,
    held: HeldFragments<P>,
    /// One past M. It never goes back.
    passed: u64,
    /// One past the highest number received.
    highest: u64,
    /// Time at which a packet was last decided, or fragments began to be held.
    progress: Time,
    packets: VecDeque<P>,
    counters: ReassemblyCounters,
}

impl<P: Payload> Reassembler<P> {
    /// Creates a bundle without links, whose first sequence number is 0 (RFC 1990 §4.1).
    ///
    /// # Errors
    /// The error of [`ReassemblyConfig::check`].
    pub fn new(config: ReassemblyConfig, format: Format) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            format,
            links: Vec::new(),
            held: HeldFragments::new(),
            passed: 0,
            highest: 0,
            progress: Time::ZERO,
            packets: VecDeque::new(),
            counters: ReassemblyCounters::default(),
        })
    }

    /// Takes `link`, below [`MOST_LINKS`], into the bundle. A link that is already in it, or beyond, changes nothing.
    pub fn join(&mut self, now: Time, link: usize) {
        if link >= MOST_LINKS {
            return;
        }
        if self.links.len() <= link {
            self.links.resize(link + 1, LinkState::default());
        }
        if !self.links[link].member {
            self.links[link] = LinkState { member: true, heard: 0, floor: self.passed, since: now };
        }
    }

    /// Takes `link` out of the bundle. Packets that waited for it alone are decided at once.
    pub fn leave(&mut self, now: Time, link: usize) {
        if let Some(link) = self.links.get_mut(link) {
            link.member = false;
            self.advance(now);
        }
    }

    /// Takes a fragment that came on `link`.
    ///
    /// # Errors
    /// [`Refusal`] if the fragment makes no sense; it is counted, and nothing else changes.
    pub fn receive(&mut self, now: Time, link: usize, header: Header, fragment: P) -> Result<(), Refusal> {
        let refusal = match self.place(link, header) {
            Ok(sequence) => {
                let Header { begins, ends, .. } = header;
                self.take(now, link, Fragment { sequence, begins, ends, payload: fragment });
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        *match refusal {
            Refusal::NotMember => &mut self.counters.not_member,
            Refusal::Backwards => &mut self.counters.backwards,
            Refusal::Late => &mut self.counters.late,
            Refusal::Duplicate => &mut self.counters.duplicates,
        } += 1;
        Err(refusal)
    }

    /// Returns the next packet, in the order of sequence numbers.
    pub fn poll_packet(&mut self) -> Option<P> {
        self.packets.pop_front()
    }

    /// Returns the time at which a silent link is left out, if no other event comes before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let idle = self.config.idle.filter(|_| !self.held.is_empty())?;
        let waited_for = self.links.iter().filter(|link| link.member && link.position() <= self.highest);
        waited_for.map(|link| link.since.max(self.progress) + idle).min()
    }

    /// Leaves out the links that have been silent for too long by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        while let (Some(idle), Some(due)) = (self.config.idle, self.poll_timeout()) {
            if due > now {
                return;
            }
            let (highest, progress) = (self.highest, self.progress);
            let waited_for = self.links.iter_mut().filter(|link| link.member && link.position() <= highest);
            for link in waited_for.filter(|link| link.since.max(progress) + idle <= now) {
                link.floor = highest + 1;
                self.counters.idled += 1;
            }
            self.advance(now);
        }
    }

    /// Returns the number of sequence numbers that are decided: every lower one has been released or given up.
    pub const fn decided(&self) -> u64 {
        self.held.first()
    }

    /// Returns the number of fragments that are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the octets of the fragments that are held.
    pub const fn held_octets(&self) -> u64 {
        self.held.octets()
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &ReassemblyCounters {
        &self.counters
    }

    /// Returns the number of the fragment, counted from the start of the bundle, if it may be taken.
    fn place(&self, link: usize, header: Header) -> Result<u64, Refusal> {
        let link = self.links.get(link).filter(|link| link.member).ok_or(Refusal::NotMember)?;
        // Links differ in delay, so a number may lie on either side of the highest.
        let sequence = self.format.unwrap(header.sequence, self.highest).ok_or(Refusal::Backwards)?;
        if sequence < link.heard {
            return Err(Refusal::Backwards);
        }
        if sequence < self.held.first() {
            return Err(Refusal::Late);
        }
        if self.held.contains(sequence) {
            return Err(Refusal::Duplicate);
        }
        Ok(sequence)
    }

    fn take(&mut self, now: Time, link: usize, fragment: Fragment<P>) {
        let position = fragment.sequence + 1;
        if position > self.highest {
            // A link that was left out has been silent for long, but it is waited for only from now on.
            let highest = core::mem::replace(&mut self.highest, position);
            self.links.iter_mut().filter(|link| link.position() > highest).for_each(|link| link.since = now);
        }
        let link = &mut self.links[link];
        (link.heard, link.since) = (position, now);
        if self.held.is_empty() {
            self.progress = now;
        }
        self.held.insert(fragment);
        self.counters.fragments += 1;
        self.advance(now);
        while self.held.len() > self.config.most_fragments as usize
            || self.held.octets() > self.config.most_octets
        {
            self.counters.over_buffer += 1;
            self.counters.discarded += self.held.give_up();
            self.decide(now);
        }
    }

    /// Moves M, and decides the packets that this allows.
    fn advance(&mut self, now: Time) {
        let members = self.links.iter().filter(|link| link.member);
        let lowest = members.map(LinkState::position).min().unwrap_or(self.highest + 1);
        self.passed = self.passed.max(lowest);
        self.decide(now);
    }

    /// Releases complete packets and discards lost ones, from the front.
    fn decide(&mut self, now: Time) {
        let before = self.held.first();
        loop {
            if let Some((packet, count)) = self.held.take_complete() {
                self.release(packet, count);
            } else if self.held.end().is_some_and(|end| self.passed > end) {
                self.counters.lost += 1;
                self.counters.discarded += self.held.give_up();
            } else {
                break;
            }
        }
        if self.held.first() != before {
            self.progress = now;
        }
    }

    fn release(&mut self, packet: P, fragments: u64) {
        if packet.is_empty() {
            self.counters.nulls += 1;
        } else if packet.len() > usize::from(self.config.mrru) + PROTOCOL_OCTETS {
            self.counters.over_mrru += 1;
            self.counters.discarded += fragments;
        } else {
            self.counters.packets += 1;
            self.packets.push_back(packet);
        }
    }
}

#[cfg(test)]
mod tests;
