//! Hosts in one state, in a short form for announcements to many (farcast's own).
//!
//! An id takes as many octets as its distance from the one before needs: 10,000 Global IDs take about 2.5 each, where
//! the draft's list takes 8.

use alloc::vec::Vec;
use core::iter::Peekable;

use crate::message::{Announce, ClientId, HostState};

/// Largest number of octets of an id.
pub(crate) const LONGEST: usize = 5;
/// Mark of an octet that another octet of the same number follows.
const MORE: u8 = 0x80;

/// Hosts in one state, in the order of their ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSet {
    standing: HostState,
    /// Numbers to the base of 128, the first octet the most significant, each of no more octets than it needs: how many
    /// ids lie between an id and the one before. Checked when it is made, and never empty.
    octets: Vec<u8>,
}

impl HostSet {
    /// Takes `hosts` in ascending order, as many as `room` octets hold. Returns `None` if that is none.
    pub fn take(
        standing: HostState,
        hosts: &mut Peekable<impl Iterator<Item = ClientId>>,
        room: usize,
    ) -> Option<Self> {
        let (mut octets, mut least) = (Vec::new(), 0);
        while let Some(&ClientId(id)) = hosts.peek() {
            let Some(between) = u64::from(id).checked_sub(least) else { break };
            let groups = (64 - (between | 1).leading_zeros()).div_ceil(7);
            if octets.len() + groups as usize > room {
                break;
            }
            for group in (0..groups).rev() {
                let more = if group > 0 { MORE } else { 0 };
                octets.push((between >> (7 * group)) as u8 & !MORE | more);
            }
            least = u64::from(id) + 1;
            hosts.next();
        }
        (!octets.is_empty()).then_some(Self { standing, octets })
    }

    /// Reads a set. Returns `None` if an octet is missing or needless, or an id is no number of 32 bits.
    pub(crate) fn read(standing: HostState, octets: &[u8]) -> Option<Self> {
        let mut hosts = Hosts { octets, least: 0 };
        while !hosts.octets.is_empty() {
            hosts.read()?;
        }
        (!octets.is_empty()).then(|| Self { standing, octets: octets.to_vec() })
    }

    /// Returns the state of all hosts.
    pub fn standing(&self) -> HostState {
        self.standing
    }

    /// Returns the ids in ascending order.
    pub fn hosts(&self) -> impl Iterator<Item = ClientId> {
        Hosts { octets: &self.octets, least: 0 }
    }

    /// Returns the octets of the ids.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    fn has(&self, client: ClientId) -> bool {
        self.hosts().take_while(|&host| host <= client).last() == Some(client)
    }

    /// Returns the number of hosts.
    fn count(&self) -> usize {
        self.octets.iter().filter(|&octet| octet & MORE == 0).count()
    }
}

/// Reader of ids.
struct Hosts<'a> {
    octets: &'a [u8],
    /// Least id that may follow.
    least: u64,
}

impl Hosts<'_> {
    fn read(&mut self) -> Option<ClientId> {
        let mut between = 0;
        loop {
            let (&octet, rest) = self.octets.split_first()?;
            let needless = between == 0 && octet == MORE;
            between = between << 7 | u64::from(octet & !MORE);
            if needless || between > u64::from(u32::MAX) {
                return None;
            }
            self.octets = rest;
            if octet & MORE == 0 {
                break;
            }
        }
        let id = u32::try_from(self.least + between).ok()?;
        self.least = u64::from(id) + 1;
        Some(ClientId(id))
    }
}

impl Iterator for Hosts<'_> {
    type Item = ClientId;

    fn next(&mut self) -> Option<ClientId> {
        self.read()
    }
}

impl Announce {
    /// Returns the clients that the announcement lists, in either form.
    pub fn listed(&self) -> impl Iterator<Item = (ClientId, HostState)> {
        let set = self.host_set.iter().flat_map(|set| set.hosts().map(|host| (host, set.standing)));
        self.hosts.iter().flatten().copied().chain(set)
    }

    /// Returns the state in which the announcement lists `client`.
    pub fn standing(&self, client: ClientId) -> Option<HostState> {
        let named = self.hosts.iter().flatten().find(|(host, _)| *host == client);
        let set = || self.host_set.as_ref().filter(|set| set.has(client));
        named.map(|&(_, standing)| standing).or_else(|| set().map(HostSet::standing))
    }

    /// Returns the number of clients that the announcement lists.
    pub(crate) fn entries(&self) -> usize {
        self.hosts.as_ref().map_or(0, Vec::len) + self.host_set.as_ref().map_or(0, HostSet::count)
    }

    /// Drops all entries but those of `client`.
    pub(crate) fn keep_only(&mut self, client: ClientId) {
        if let Some(hosts) = &mut self.hosts {
            hosts.retain(|(host, _)| *host == client);
        }
        if let Some(set) = self.host_set.take().filter(|set| set.has(client)) {
            self.host_set = HostSet::take(set.standing, &mut [client].into_iter().peekable(), LONGEST);
        }
    }
}
