//! MDP in a scenario: its keys in `[protocol]`, and its engines.

use std::net::SocketAddr;

use farcast_core::units::Bytes;
use farcast_delivery::{Forecast, Forecasting as _};
use farcast_mdp::settings::{PathLimits, SendPlan, in_effect};
use farcast_mdp::{Codec, Object, Receiver, ReceiverConfig, Sender, SenderConfig, Settings};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

use super::norm::receiver_node;
use super::seal::{Manner, Sealed};
use super::transfer::{self, TransferSpec};
use super::{LinkAlone, Scenario, keys};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarConfig, StarError, hub_address, receiver_address};

pub use farcast_mdp::{Mdp, SenderEvent};

/// Octets of an engine and its state under way, without received data. They were measured at a loss of 1 %; most of
/// them are the list of objects at hand.
const ENGINE: u64 = 7168;
/// Seal of MDP. Content leaves before any receiver has to answer, so it has no key of its own. Members could forge
/// content, so it is signed.
const MANNER: Manner = Manner { signs_content: true, apart: false };

/// Settings of the multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    sender: SenderConfig,
    settings: Settings,
    overhead: u16,
    seal: Option<SealConfig>,
}

impl transfer::Transfer for Transfer {
    type Protocol = Mdp;

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
        let sizes = sizes(&mut table)?;
        let overhead = keys::overhead(&mut table)?;
        let mut settings = Settings::read(&mut table)?;
        // Only the sender can open a sealed answer.
        settings.unicast |= sealed;
        let total: u32 = groups.iter().map(|group| group.receivers).sum();
        let named = if table.flag_or("named", false)? { total } else { 0 };
        // Between two hosts there is no group.
        let alone = table.choice_or("to", &[("group", false), ("receiver", true)], false)?;
        if alone && total != 1 {
            return Err(table.refuse("to", "which of them?", "one receiver, or to = \"group\""));
        }
        let object = |size| Object { size, info: b"file".to_vec(), vouched: None };
        let objects = sizes.into_iter().map(object).collect();
        let grows = if sealed { MANNER.content() } else { 0 };
        let way = PathLimits { headers: overhead.saturating_add(grows), mtu: None, granule: 1 };
        let sender = settings.sender(sent(objects, alone, named), way);
        keys::show(&mut table, in_effect(&sender))?;
        if let Err(error) = Sender::new(sender.clone()) {
            return Err(table.refuse("files", error.to_string(), "settings that a transfer can have"));
        }
        table.finish()?;
        super::check_marks(top, groups, links)?;
        let seal = sealed.then(|| Sealed::to(groups, None, overhead).config(MANNER, Some(sender.rate)));
        Ok(Self { sender, settings, overhead, seal })
    }

    fn codec(&self) -> Codec {
        Codec
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

    fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Mdp> {
        let (settings, group) = (self.settings.clone(), self.sender.group);
        let of = move |n| settings.receiver(receiver_node(n), group, seed);
        // Only single engines can overhear each other.
        if engines || !self.sender.unicast {
            return star::Receivers::Engines(Box::new(move |n| Receiver::new(of(n)).map_err(keys::in_words)));
        }
        star::Receivers::Population(Box::new(move |first| {
            let config: ReceiverConfig = of(first);
            farcast_mdp::population(&config, count).map_err(keys::in_words)
        }))
    }

    fn memory(&self, groups: &[Receivers], _links: &Links, _engines: bool) -> u64 {
        let sizes = self.sender.objects.iter().map(|object| object.size);
        // Receivers forget completed objects.
        let segments = sizes.max().unwrap_or(0).div_ceil(u64::from(self.sender.segment_size).max(1));
        let receivers: u64 = groups.iter().map(|group| u64::from(group.receivers)).sum();
        receivers.saturating_mul(ENGINE + segments / 4)
    }
}

/// Returns the objects with the simulator's addresses. They go to a group, or to the one receiver if it is `alone`, and
/// the first `named` receivers are to acknowledge them.
fn sent(objects: Vec<Object>, alone: bool, named: u32) -> SendPlan {
    let port = receiver_address(0).port();
    let group = SocketAddr::from(([224, 1, 2, 3], port));
    SendPlan {
        node: farcast_mdp::NodeId(0x0A00_0001),
        source: SocketAddr::new(hub_address(), port),
        group: if alone { receiver_address(0) } else { group },
        objects,
        ackers: (0..named).map(receiver_node).collect(),
    }
}

/// Makes a scenario of the transfer that `sender` describes, with `settings`, over a link alone. Addresses and identities
/// are the simulator's own.
///
/// # Errors
/// The first mistake in the link.
pub fn over(
    link: &LinkAlone<'_>,
    settings: &Settings,
    sender: &SenderConfig,
) -> Result<Scenario, DocumentError> {
    let named = if sender.ackers.is_empty() { 0 } else { link.receivers };
    let seal = link.sealed.map(|sealed| sealed.config(MANNER, Some(sender.rate)));
    let alone = !sender.group.ip().is_multicast();
    let overhead = if sender.group.is_ipv4() { 28 } else { 48 };
    let SendPlan { node, source, group, ackers, .. } = sent(Vec::new(), alone, named);
    let sender = SenderConfig { node, source, group, ackers, ..sender.clone() };
    let transfer = Transfer { sender, settings: settings.clone(), overhead, seal };
    Scenario::over_link(link, TransferSpec::Mdp(transfer))
}

/// Returns the sender's settings, if there is a transfer by MDP.
pub fn sender(scenario: &Scenario) -> Option<&SenderConfig> {
    match &scenario.transfer {
        Some(TransferSpec::Mdp(transfer)) => Some(&transfer.sender),
        _ => None,
    }
}

impl Scenario {
    /// Returns the configuration of replication number `replication`, whose random numbers follow from `seed`; `None`
    /// if its transfer does not use MDP. It serves studies that look at objects, because no other protocol has several
    /// in a scenario.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn mdp(&self, seed: u64, replication: u64) -> Option<Result<StarConfig<Mdp>, StarError>> {
        match &self.transfer {
            Some(TransferSpec::Mdp(transfer)) => Some(self.world(Some(transfer), seed, replication)),
            _ => None,
        }
    }
}

/// Reads the objects' lengths: `file`, or several in `files`.
fn sizes(table: &mut Reader<'_>) -> Result<Vec<u64>, DocumentError> {
    match table.optional_list_of_bytes("files")? {
        None => Ok(vec![table.bytes("file")?.0]),
        Some(_) if table.holds("file") => Err(table.refuse("file", "files says all sizes", "one of the two")),
        Some(files) => Ok(files.into_iter().map(|Bytes(size)| size).collect()),
    }
}
