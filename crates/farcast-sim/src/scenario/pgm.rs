//! PGM in a scenario: its keys in `[protocol]`, and its engines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_delivery::{Forecast, Forecasting as _};
use farcast_pgm::cc::CcConfig;
use farcast_pgm::message::{DataKind, NakKind};
use farcast_pgm::settings::{PathLimits, SendPlan, in_effect, receiver as receiver_settings};
use farcast_pgm::{
    Body, Codec, Element, ElementConfig, Gsi, Live, Message, NodeId, Object, Receiver, ReceiverConfig,
    Sender, SenderConfig, Sending, Settings, StoreConfig, Tsi,
};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

mod timers;

use super::norm::receiver_node;
use super::seal::{Manner, Sealed};
use super::transfer::{self, TransferSpec};
use super::{LinkAlone, Scenario, keys};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarError, hub_address, receiver_address};
use crate::tree::OnTree;

use timers::Timers;

pub use farcast_pgm::Pgm;

/// Octets of an engine and its state under way, without received data. They were measured as one of 10,000 receivers
/// with the one source that they know, at a loss of 1 %.
const ENGINE: u64 = 9728;
/// Seal of PGM. Content leaves before any receiver has to answer, so it has no key of its own. Members could forge
/// content, so it is signed.
const MANNER: Manner = Manner { signs_content: true, apart: false };

/// Settings of the multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    sender: SenderConfig,
    timers: Timers,
    overhead: u16,
    seal: Option<SealConfig>,
}

impl OnTree for Pgm {
    type Element = Element;

    const KINDS: &'static [&'static str] =
        &["spm", "odata", "rdata", "nak", "nnak", "ncf", "poll", "polr", "spmr", "ack"];

    fn kind(message: &Message) -> usize {
        match &message.body {
            Body::Spm(_) => 0,
            Body::Data(data) if data.kind == DataKind::Original => 1,
            Body::Data(_) => 2,
            Body::Nak(nak) => match nak.kind {
                NakKind::Nak => 3,
                NakKind::NullNak => 4,
                NakKind::Confirmation => 5,
            },
            Body::Poll(_) => 6,
            Body::Polr(_) => 7,
            Body::Spmr => 8,
            Body::Ack(_) => 9,
        }
    }
}

impl transfer::Transfer for Transfer {
    type Protocol = Pgm;

    const REMEDIES: Remedies = Remedies {
        time: "Raise time_limit.",
        transfer_time: "Raise protocol.transfer_limit.",
        silence: "Raise protocol.linger.",
        requests: "Name the receivers (protocol.named), so that each is waited for, or raise protocol.linger.",
        nobody: "Raise protocol.linger.",
    };

    const HAS_ELEMENTS: bool = true;

    fn read(
        mut table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
        sealed: bool,
    ) -> Result<Self, DocumentError> {
        let Bytes(size) = table.bytes("file")?;
        let overhead = keys::overhead(&mut table)?;
        let settings = Settings::read(&mut table)?;
        let total: u32 = groups.iter().map(|group| group.receivers).sum();
        let named = if table.flag_or("named", false)? { total } else { 0 };
        let object = Object { size, name: b"file".to_vec(), vouched: None };
        let sent = sent(Sending::Files(vec![object]), named);
        let grows = if sealed { MANNER.content() } else { 0 };
        let sender = settings
            .sender(sent, PathLimits { headers: overhead.saturating_add(grows), mtu: None, granule: 1 });
        let sender = SenderConfig { live: live(&mut table)?, ..timers::source(&mut table, sender)? };
        let sender = SenderConfig { cc: limited(&mut table, sender.cc)?, ..sender };
        if sender.live.is_some() && sender.parity.is_some() {
            let key = if table.holds("parity") { "parity" } else { "parity_ahead" };
            let problem = "what comes into being while it is sent (source_rate) has no parity: a transmission group \
                           would wait for its last packet";
            return Err(table.refuse(key, problem, "\"off\", with parity_ahead = 0, or no source_rate"));
        }
        keys::show(&mut table, in_effect(&sender))?;
        if let Err(error) = Sender::new(sender.clone()) {
            return Err(table.refuse("file", error.to_string(), "settings that a transfer can have"));
        }
        let timers = Timers::read(&mut table, sender.group, settings.round_trip)?;
        table.finish()?;
        super::check_marks(top, groups, links)?;
        let seal = sealed.then(|| Sealed::to(groups, None, overhead).config(MANNER, Some(sender.pace.rate)));
        Ok(Self { sender, timers, overhead, seal })
    }

    fn codec(&self) -> Codec {
        Codec { raw: false }
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
        // Network elements, where there are any, must examine the packets that concern them.
        Sender::new(SenderConfig { router_alert: true, ..self.sender.clone() }).map_err(keys::in_words)
    }

    fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Pgm> {
        let base = self.timers.receiver.clone();
        let of = move |n| ReceiverConfig {
            node: NodeId(receiver_node(n).0),
            address: Some(receiver_address(n).ip()),
            seed,
            ..base.clone()
        };
        // The sender tells acknowledging receivers apart by their addresses, which single engines have.
        if engines || self.sender.cc.is_some() {
            return star::Receivers::Engines(Box::new(move |n| Receiver::new(of(n)).map_err(keys::in_words)));
        }
        star::Receivers::Population(Box::new(move |first| {
            let config = ReceiverConfig { address: None, ..of(first) };
            farcast_pgm::population(&config, count).map_err(keys::in_words)
        }))
    }

    fn element(&self, addresses: &[Ipv4Addr], repairs: bool, seed: u64) -> Result<Element, StarError> {
        let ports = addresses.iter().copied().map(IpAddr::V4).collect();
        let store = repairs.then(|| StoreConfig { seed, ..self.timers.store.clone() });
        Element::new(ElementConfig { ports, store, ..self.timers.element.clone() }).map_err(keys::in_words)
    }

    fn memory(&self, groups: &[Receivers], _links: &Links, _engines: bool) -> u64 {
        let segments = size(&self.sender).div_ceil(u64::from(self.sender.tsdu).max(1));
        let receivers: u64 = groups.iter().map(|group| u64::from(group.receivers)).sum();
        receivers.saturating_mul(ENGINE + segments / 4)
    }
}

/// Reads the rate of a live source, whose content comes into being while it is sent, as from a source of constant bit
/// rate. `None` without `source_rate`.
fn live(table: &mut Reader<'_>) -> Result<Option<Live>, DocumentError> {
    let Some(rate) = table.optional_rate("source_rate")? else { return Ok(None) };
    let start = table.span_or("source_start", Span::ZERO)?;
    Ok(Some(Live { rate, start }))
}

/// Reads the largest window of PGMCC, in packets.
fn limited(table: &mut Reader<'_>, cc: Option<CcConfig>) -> Result<Option<CcConfig>, DocumentError> {
    let Some(cc) = cc else { return Ok(None) };
    Ok(Some(CcConfig { most: table.integer_or("window", 1..=1 << 15, cc.most)?, ..cc }))
}

/// Returns the octets of all files.
fn size(sender: &SenderConfig) -> u64 {
    match &sender.sending {
        Sending::Files(objects) => objects.iter().map(|object| object.size).sum(),
        Sending::Messages => 0,
    }
}

/// Returns the content to send with the simulator's addresses, which the first `named` receivers are to acknowledge.
fn sent(sending: Sending, named: u32) -> SendPlan {
    let port = receiver_address(0).port();
    SendPlan {
        tsi: Tsi { gsi: Gsi([0, 0, 10, 0, 0, 1]), port: 1 },
        sending,
        source: SocketAddr::new(hub_address(), port),
        group: SocketAddr::from(([224, 1, 2, 3], port)),
        named: (0..named).map(|n| NodeId(receiver_node(n).0)).collect(),
    }
}

/// Makes a scenario of the transfer that `sender` describes over a link alone. The receivers expect `round_trip`.
/// Addresses and identities are the simulator's own.
///
/// # Errors
/// The first mistake in the link.
pub fn over(
    link: &LinkAlone<'_>,
    sender: &SenderConfig,
    round_trip: Span,
) -> Result<Scenario, DocumentError> {
    let named = if sender.named.is_empty() { 0 } else { link.receivers };
    let SendPlan { tsi, sending, source, group, named } = sent(sender.sending.clone(), named);
    let seal = link.sealed.map(|sealed| sealed.config(MANNER, Some(sender.pace.rate)));
    // The overhead of the rate includes the octets that the seal adds.
    let overhead = sender.pace.overhead - seal.map_or(0, |seal| seal.content);
    let sender = SenderConfig { tsi, sending, source, group, named, ..sender.clone() };
    let transfer = Transfer { timers: Timers::of(sender.group, round_trip), sender, overhead, seal };
    Scenario::over_link(link, TransferSpec::Pgm(transfer))
}

/// Returns the source's settings, if there is a transfer by PGM.
pub fn sender(scenario: &Scenario) -> Option<&SenderConfig> {
    match &scenario.transfer {
        Some(TransferSpec::Pgm(transfer)) => Some(&transfer.sender),
        _ => None,
    }
}
