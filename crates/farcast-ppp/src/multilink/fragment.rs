//! Cutting of packets into fragments, and the links that carry them (RFC 1990 §3 leaves both to the sender).

use alloc::vec::Vec;

use farcast_core::BitRate;

/// Policy by which links share a packet.
///
/// | policy | a packet is cut | and waits until |
/// |---|---|---|
/// | [`Free`](Self::Free) | over the links with room, by rate | one, and half of those up (rounded down), have room |
/// | [`Equal`](Self::Equal) | over all links that are up, alike | all that it uses have room |
/// | [`Proportional`](Self::Proportional) | over all links that are up, by rate | all that it uses have room |
/// | [`Whole`](Self::Whole) | not at all | a link has room |
///
/// The default is `Free`, as in Linux. Its `ppp_generic` 2.6 makes a fragment for each channel without a backlog, even
/// if the fragment is small, once at least half of the channels have none. Sizes follow the rates of the channels. The
/// Iridium systems that are modelled ran Linux; their papers do not name a policy.
///
/// Parts that are to be alike differ by at most 1 octet. Links take turns: a packet begins on the link behind the one
/// that was used last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// The links that have room, by rate.
    #[default]
    Free,
    /// All links, in equal parts.
    Equal {
        /// Least mean size of a packet's parts in octets, at least 1. It limits the number of parts.
        smallest: u16,
    },
    /// All links, in proportion to their rates.
    Proportional {
        /// Least mean size of a packet's parts in octets, at least 1. It limits the number of parts.
        smallest: u16,
    },
    /// One link for each packet.
    Whole,
}

impl Policy {
    /// The usual least mean size of parts in octets, for `Equal` and `Proportional`.
    pub const SMALLEST: u16 = 64;

    /// Returns the least mean size of a part in octets.
    const fn smallest(self) -> u16 {
        match self {
            Self::Equal { smallest } | Self::Proportional { smallest } => smallest,
            Self::Free | Self::Whole => 1,
        }
    }
}

/// A link, as the policy needs to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// `true` if the link is in the bundle.
    pub up: bool,
    /// `true` if the link takes a fragment now.
    pub room: bool,
    /// Rate of the link.
    pub rate: BitRate,
}

/// A part of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketPart {
    /// The link that carries it.
    pub link: usize,
    /// Its octets, at least 1.
    pub octets: u32,
}

impl Policy {
    /// Cuts a packet of `octets`, at least 1, over `links`, from link `turn` on. `parts` is cleared and filled with the
    /// parts in order. It stays empty if the packet must wait.
    pub fn cut(self, octets: u32, links: &[Candidate], turn: usize, parts: &mut Vec<PacketPart>) {
        parts.clear();
        let most = (octets / u32::from(self.smallest().max(1))).max(1) as usize;
        let most = if self == Self::Whole { 1 } else { most };
        let from_turn = (0..links.len()).map(|k| (turn % links.len() + k) % links.len());
        let usable = from_turn.filter(|&link| self.uses(&links[link]));
        parts.extend(usable.take(most).map(|link| PacketPart { link, octets: 0 }));
        if octets == 0 || self.waits(links, parts) {
            parts.clear();
            return;
        }
        self.share(octets, links, parts);
        parts.retain(|part| part.octets > 0);
    }

    /// Returns `true` if the policy shares packets over a link.
    const fn uses(self, link: &Candidate) -> bool {
        match self {
            Self::Free | Self::Whole => link.up && link.room,
            Self::Equal { .. } | Self::Proportional { .. } => link.up,
        }
    }

    /// Returns `true` if a packet that would be shared like this waits instead.
    fn waits(self, links: &[Candidate], parts: &[PacketPart]) -> bool {
        if self == Self::Free {
            let up = links.iter().filter(|link| link.up).count();
            let free = links.iter().filter(|link| link.up && link.room).count();
            return free < up / 2;
        }
        parts.iter().any(|part| !links[part.link].room)
    }

    /// Divides all octets. Each part ends where the shares up to its own, rounded up, end.
    fn share(self, octets: u32, links: &[Candidate], parts: &mut [PacketPart]) {
        let by_rate = matches!(self, Self::Free | Self::Proportional { .. });
        let weight = |part: &PacketPart| if by_rate { u128::from(links[part.link].rate.as_bps()) } else { 1 };
        let whole: u128 = parts.iter().map(weight).sum();
        let (mut weights, mut end) = (0, 0);
        for part in parts {
            weights += weight(part);
            // Rounded up: of equal parts none is empty before the packet is used up.
            let next = (u128::from(octets) * weights).div_ceil(whole) as u32;
            part.octets = next - end;
            end = next;
        }
    }
}

#[cfg(test)]
mod tests;
