//! Capacity of the links, for advice on a transfer over them.

use farcast_core::stage::End;
use farcast_core::{BitRate, Span};
use farcast_link::bgan::{Access, ForwardConfig, Packing};

use super::{BganForwardSpec, BganReturnSpec, LinkSpec, Links, StageSpec};

/// Narrowest part of the return, which all receivers share.
#[derive(Clone, PartialEq, Debug)]
pub struct ReturnCapacity {
    /// Place in the document, as in `link.return`.
    pub place: String,
    /// Rate of packets.
    pub rate: BitRate,
    /// Mean number of messages a second, at most, where receivers contend.
    pub messages_per_s: Option<f64>,
}

impl ReturnCapacity {
    /// Returns the time that `count` messages of `octets` octets take at least.
    pub fn time_of(&self, count: f64, octets: f64) -> Span {
        let by_rate = count * octets * 8.0 / self.rate.as_bps() as f64;
        let by_count = self.messages_per_s.map_or(0.0, |messages| count / messages);
        Span::from_secs_f64(by_rate.max(by_count))
    }
}

impl Links {
    /// Returns the capacity of the return; `None` if it has no limit.
    pub fn return_capacity(&self) -> Option<ReturnCapacity> {
        let stage = |(name, stage): &(String, StageSpec)| {
            let rate = match stage {
                StageSpec::One(End::Hub, link) => link.rate(),
                StageSpec::One(End::Terminal, _) => None,
                StageSpec::Both(bearer) => bearer.rates()[1],
            };
            rate.map(|rate| ReturnCapacity {
                place: format!("link.stages.{name}"),
                rate,
                messages_per_s: contention(match stage {
                    StageSpec::One(_, link) => Some(link),
                    StageSpec::Both(_) => None,
                }),
            })
        };
        let last = self.back.rate().map(|rate| ReturnCapacity {
            place: "link.return".into(),
            rate,
            messages_per_s: contention(Some(&self.back)),
        });
        self.stages.iter().filter_map(stage).chain(last).min_by_key(|one| one.rate)
    }

    /// Returns the lowest rate of packets on the forward path; `None` if it has no limit.
    pub fn forward_rate(&self) -> Option<BitRate> {
        let of = |(_, stage): &(String, StageSpec)| match stage {
            StageSpec::One(End::Terminal, link) => link.rate(),
            StageSpec::One(End::Hub, _) => None,
            StageSpec::Both(bearer) => bearer.rates()[0],
        };
        self.stages.iter().filter_map(of).chain(self.forward.rate()).min()
    }

    /// Returns the forward bearer, if each packet takes whole blocks of it.
    pub fn whole_blocks(&self) -> Option<&ForwardConfig> {
        match &self.forward {
            LinkSpec::BganForward(BganForwardSpec { config, .. })
                if config.packing == Packing::PacketAligned =>
            {
                Some(config)
            }
            _ => None,
        }
    }

    /// Returns the time from a packet of the hub to the end of an answer to it, without load: the round trip, and the
    /// time in which a terminal gets leave to speak.
    pub fn answer_time(&self) -> Span {
        let access = match &self.back {
            LinkSpec::BganReturn(BganReturnSpec { config, .. }) => config.round_trip() + config.frame,
            _ => Span::ZERO,
        };
        self.round_trip() + access
    }
}

/// Returns the mean number of messages that terminals get through slots for which they contend in a second, at most.
fn contention(link: Option<&LinkSpec>) -> Option<f64> {
    match link {
        Some(LinkSpec::BganReturn(BganReturnSpec { config, .. })) if config.access == Access::Contention => {
            let slots = f64::from(config.contention_slots) / config.frame.as_secs_f64();
            // Slotted ALOHA.
            Some(slots * (-1.0_f64).exp())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn links(text: &str) -> Links {
        let document = Document::parse("links.toml", text).expect("a document");
        Links::read(&mut document.root()).expect("links")
    }

    #[test]
    fn the_narrowest_part_of_the_return_counts() {
        let two = links(
            "[[link.stages]]\nname = \"serial\"\nkind = \"ppp\"\nforward.rate = \"1 Mbit/s\"\nreturn.rate = \"80 kbit/s\"\n\
             [link.return]\nrate = \"2 Mbit/s\"\n",
        );
        let capacity = two.return_capacity().expect("a rate");
        // Of ten bits on the line eight are an octet.
        assert_eq!((capacity.place.as_str(), capacity.rate.as_bps()), ("link.stages.serial", 64_000));
        assert_eq!(capacity.time_of(1000.0, 100.0), Span::from_millis(12_500));
        assert_eq!(two.forward_rate().map(BitRate::as_bps), Some(800_000));
        assert_eq!(links("[link.return]\ndelay = \"1 s\"\n").return_capacity(), None);
    }

    #[test]
    fn where_terminals_contend_their_number_counts() {
        let bgan = links("[link.forward]\nkind = \"bgan\"\n[link.return]\nkind = \"bgan\"\n");
        let capacity = bgan.return_capacity().expect("a rate");
        // Four slots in 80 ms, of which slotted ALOHA fills 1/e.
        let messages = capacity.messages_per_s.expect("contention");
        assert!((messages - 18.394).abs() < 0.001, "{messages}");
        assert_eq!(capacity.time_of(messages * 10.0, 1.0), Span::from_secs(10));
        // A request up, its processing, a schedule down, and the answer: four flights in all, as each is 450 ms.
        assert_eq!(bgan.answer_time(), Span::from_millis(1980));
        assert!(bgan.whole_blocks().is_some());
        let ideal = links("[link.return]\nkind = \"bgan\"\naccess = \"ideal\"\n");
        assert_eq!(ideal.return_capacity().expect("a rate").messages_per_s, None);
        assert!(links("[link.forward]\nkind = \"bgan\"\npacking = \"shared\"\n").whole_blocks().is_none());
    }
}
