//! NORM in a scenario: its keys in `[protocol]`, and its engines.

use std::net::{IpAddr, SocketAddr};

use farcast_core::units::Bytes;
use farcast_delivery::{Forecast, Forecasting as _};
use farcast_norm::settings::{PathLimits, SendPlan, in_effect};
use farcast_norm::{
    Codec, Kind, NodeId, Object, Pacing, Population, Receiver, ReceiverConfig, Sender, SenderConfig, Settings,
};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

use super::seal::{Manner, Sealed};
use super::transfer::{self, TransferSpec};
use super::{LinkAlone, Scenario, keys};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarError, hub_address, receiver_address};

pub use farcast_norm::Norm;

/// Octets of an engine, without received data.
const ENGINE: u64 = 2048;
/// Octets of a receiver of a population: its times, its messages sent and heard, and its place among the waiting
/// receivers.
const POPULATION: u64 = 80;
/// Octets of a receiver of a population for each block that it lacks something of.
const NEED: u64 = 12;
/// NORM's port (RFC 5740 §8).
const PORT: u16 = 6003;
/// Seal of NORM. Content leaves before any receiver has to answer, so it has no key of its own. Members could forge
/// content, so it is signed.
const MANNER: Manner = Manner { signs_content: true, apart: false };

/// Settings of the multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    sender: SenderConfig,
    overhead: u16,
    seal: Option<SealConfig>,
}

impl transfer::Transfer for Transfer {
    type Protocol = Norm;

    const REMEDIES: Remedies = Remedies {
        time: "Raise time_limit.",
        transfer_time: "Raise protocol.transfer_limit.",
        silence: "Raise protocol.robust.",
        requests: "Name the receivers (protocol.named), so that each is waited for, or raise protocol.robust.",
        nobody: "Raise protocol.robust.",
    };

    fn read(
        mut table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
        sealed: bool,
    ) -> Result<Self, DocumentError> {
        let Bytes(size) = table.bytes("file")?;
        let overhead = keys::overhead(&mut table)?;
        let mut settings = Settings::read(&mut table)?;
        // Only the sender can open a sealed answer.
        settings.unicast |= sealed;
        let total: u32 = groups.iter().map(|group| group.receivers).sum();
        let named = table.flag_or("named", false)?;
        let sent = sent(size, b"file".to_vec(), if named { total } else { 0 });
        let grows = if sealed { MANNER.content() } else { 0 };
        let sender = settings
            .sender(sent, PathLimits { headers: overhead.saturating_add(grows), mtu: None, granule: 1 });
        keys::show(&mut table, in_effect(&sender))?;
        if let Err(error) = Sender::new(sender.clone()) {
            return Err(table.refuse("file", error.to_string(), "settings that a transfer can have"));
        }
        table.finish()?;
        super::check_marks(top, groups, links)?;
        let seal = sealed.then(|| Sealed::to(groups, None, overhead).config(MANNER, Some(sender.pace.rate)));
        Ok(Self { sender, overhead, seal })
    }

    fn codec(&self) -> Codec {
        Codec { fec: self.sender.fec }
    }

    fn overhead(&self) -> u16 {
        self.overhead
    }

    fn seal(&self) -> Option<SealConfig> {
        self.seal
    }

    fn given(&self) -> bool {
        false
    }

    fn forecast(&self) -> Forecast {
        self.sender.forecast()
    }

    fn sender(&self) -> Result<Sender, StarError> {
        Sender::new(self.sender.clone()).map_err(keys::in_words)
    }

    fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Norm> {
        let group = self.sender.group;
        let unicast = self.sender.unicast;
        let of = move |n| ReceiverConfig { seed, unicast, ..ReceiverConfig::new(receiver_node(n), group) };
        // Only single engines can report congestion.
        if engines || self.sender.pacing != Pacing::Fixed {
            return star::Receivers::Engines(Box::new(move |n| Receiver::new(of(n)).map_err(keys::in_words)));
        }
        star::Receivers::Population(Box::new(move |first| {
            Population::new(&of(first), count).map_err(keys::in_words)
        }))
    }

    fn memory(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64 {
        let SenderConfig { segment_size, block_len, parity, .. } = self.sender;
        let segments = size(&self.sender).div_ceil(u64::from(segment_size).max(1)).max(1) as f64;
        let block = f64::from(block_len).clamp(1.0, segments);
        let blocks = (segments / block).ceil();
        let mut octets = 0.0;
        for group in groups {
            let loss = group.losses.as_ref().unwrap_or(&links.losses).share(segment_size.into());
            let each = if engines {
                ENGINE as f64 + segments / 8.0
            } else {
                // For each symbol, a list or a bit set of the receivers that miss it; for each block, the receivers
                // that lack something of it.
                let symbols = segments + blocks * f64::from(parity).min(loss * 2.0 * block + 8.0);
                let lacks = 1.0 - (1.0 - loss).powf(block);
                POPULATION as f64 + symbols * (loss * 4.0).min(0.125) + blocks * NEED as f64 * lacks
            };
            octets += f64::from(group.receivers) * each;
        }
        // A cast from a float saturates.
        octets as u64
    }
}

/// Returns the octets of all objects.
fn size(sender: &SenderConfig) -> u64 {
    sender.objects.iter().map(|object| object.size).sum()
}

/// Returns the node id of receiver `n`, which is its address.
pub fn receiver_node(n: u32) -> NodeId {
    node(receiver_address(n).ip())
}

fn node(address: IpAddr) -> NodeId {
    match address {
        IpAddr::V4(address) => NodeId(address.to_bits()),
        // No node of a simulation has such an address.
        IpAddr::V6(_) => NodeId::NONE,
    }
}

/// Returns an object of `size` octets with the simulator's addresses, which the first `named` receivers are to
/// acknowledge.
fn sent(size: u64, info: Vec<u8>, named: u32) -> SendPlan {
    SendPlan {
        node: node(hub_address()),
        instance: 1,
        objects: vec![Object { kind: Kind::File, size, info, vouched: None }],
        source: SocketAddr::new(hub_address(), PORT),
        group: SocketAddr::from(([224, 1, 2, 3], PORT)),
        ackers: (0..named).map(receiver_node).collect(),
    }
}

/// Makes a scenario of the transfer that `sender` describes over a link alone. Addresses and identities are the
/// simulator's own.
///
/// # Errors
/// The first mistake in the link.
pub fn over(link: &LinkAlone<'_>, sender: &SenderConfig) -> Result<Scenario, DocumentError> {
    let named = if sender.ackers.is_empty() { 0 } else { link.receivers };
    let SendPlan { node, source, group, ackers, .. } = sent(0, Vec::new(), named);
    let seal = link.sealed.map(|sealed| sealed.config(MANNER, Some(sender.pace.rate)));
    // The overhead of the rate includes the octets that the seal adds.
    let overhead = sender.pace.overhead - seal.map_or(0, |seal| seal.content);
    let sender = SenderConfig { node, source, group, ackers, ..sender.clone() };
    Scenario::over_link(link, TransferSpec::Norm(Transfer { sender, overhead, seal }))
}

/// Returns the sender's settings, if there is a transfer by NORM.
pub fn sender(scenario: &Scenario) -> Option<&SenderConfig> {
    match &scenario.transfer {
        Some(TransferSpec::Norm(transfer)) => Some(&transfer.sender),
        _ => None,
    }
}
