//! Configuration of a scenario's transfer.

use std::net::SocketAddr;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_link::bgan::Packing;
use farcast_mftp::settings::{Addresses, Audience, LEAST_INTERVAL, Parity, PathLimits, in_effect};
use farcast_mftp::{
    ClientId, Group, Invited, Pace, Product, ReceiverConfig, Secret, Sender, SenderConfig, Settings,
};

use super::{NOBODY, receiver_id};
use crate::scenario::keys;
use crate::scenario::seal::{MTU, Manner, Sealed};
use crate::star::SealConfig;
use farcast_scenario::links::LinkSpec;
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Reader};
use farcast_seal::{CONTENT_OVERHEAD, CONTROL_OVERHEAD};

/// Configuration of a scenario's engines.
#[derive(Clone, Debug)]
pub(super) struct Configs {
    pub(super) sender: SenderConfig,
    pub(super) receiver: ReceiverConfig,
    pub(super) overhead: u16,
    pub(super) seal: Option<SealConfig>,
    pub(super) given: bool,
}

/// Secrets of the sender and of all receivers. Nothing in a simulation depends on their values: tokens differ by the
/// receivers' ids and addresses.
const SENDER: Secret = Secret([1; 32]);
const RECEIVERS: Secret = Secret([2; 32]);

/// Octets that the sockets of `farcast receive` can buffer by default.
const BUFFER: u32 = 16 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Model {
    OpenUnlimited,
    OpenLimited,
    Closed,
}

/// Reads `[protocol]`.
pub(super) fn read(
    mut table: Reader<'_>,
    forward: &LinkSpec,
    groups: &[Receivers],
    sealed: bool,
) -> Result<Configs, DocumentError> {
    let (server, group) = addresses();
    let Bytes(size) = table.bytes("file")?;
    let product = Product { id: [1; 32], size, name: "file".into() };
    let way = way(&mut table, forward)?;
    let receivers = groups.iter().map(|group| group.receivers).sum();
    let (audience, given) = audience(&mut table, receivers)?;
    let mut settings = Settings::read_for(&mut table, given)?;
    if given && audience != Audience::Anybody {
        // Members are there already, so data begins at once, and no other setting of the start applies.
        (settings.wait_for, settings.start_after) = (None, Some(Span::ZERO));
        settings.announce_time = Settings::new(settings.rate).announce_time;
    }
    let around = if sealed {
        // A sealed datagram has to fit a packet.
        let headers = way.headers.saturating_add(manner(true).content());
        PathLimits { headers, mtu: Some(MTU), ..way }
    } else {
        way
    };
    let mut config = {
        let addresses = Addresses { server, public: group, private: group };
        settings.sender(product, addresses, &audience, around)
    };
    if settings.parity == Parity::Auto && config.parity_symbols == 0 && table.holds("parity") {
        let problem = if audience == Audience::Anybody {
            "\"auto\" comes to none with group = \"open_unlimited\", where nothing shows that receivers know of parity"
        } else {
            "\"auto\" comes to none with blocks or DTUs of this size, for which no code has room"
        };
        return Err(table.refuse(
            "parity",
            problem,
            "a number of symbols, another group, or a smaller block_size",
        ));
    }
    let seal = sealed.then(|| {
        // A signed datagram grows by more octets than one with content.
        config.datagram = config.datagram.saturating_sub(CONTROL_OVERHEAD - CONTENT_OVERHEAD);
        let datagram = settings.dtu_size.map(|dtu| dtu as usize);
        seal(&config, Sealed::to(groups, datagram, way.headers))
    });
    keys::show(&mut table, in_effect(&config))?;
    config.secret = table.flag_or("proofs", false)?.then_some(SENDER);
    let mut receiver = receiver_of(&config);
    receiver.name = name_of(table.integer_or("name_length", 0..=64, 0)?);
    receiver.receive_buffer_bytes = receive_buffer(&mut table)?;
    receiver.keep_early_data = table.flag_or("keep_early_data", receiver.keep_early_data)?;
    receiver.naks_per_request =
        table.integer_or("naks_per_request", 1..=65_535, receiver.naks_per_request)?;
    receiver.register_retry = interval(&mut table, "register_retry", receiver.register_retry)?;
    receiver.done_retry = interval(&mut table, "done_retry", receiver.done_retry)?;
    receiver.patience = interval(&mut table, "patience", Span::from_secs(24 * 3600))?;
    if let Err(error) = Sender::new(config.clone()) {
        return Err(table.refuse("file", error.to_string(), "settings that a transfer can have"));
    }
    table.finish()?;
    Ok(Configs { sender: config, receiver, overhead: way.headers, seal, given })
}

/// Reads the buffer that receivers report.
fn receive_buffer(table: &mut Reader<'_>) -> Result<Option<u32>, DocumentError> {
    let Some(Bytes(octets)) = table.optional_bytes("receive_buffer")? else { return Ok(None) };
    let fits = u32::try_from(octets).ok().filter(|&octets| octets > 0);
    fits.map(Some).ok_or_else(|| {
        table.refuse("receive_buffer", "no receiver can report it", "1 B to 4294967295 B, or no such key")
    })
}

/// Reads a time between repetitions.
fn interval(table: &mut Reader<'_>, key: &'static str, default: Span) -> Result<Span, DocumentError> {
    let span = table.span_or(key, default)?;
    if span < LEAST_INTERVAL {
        return Err(table.refuse(key, "it is too short to be simulated", "1 ms or more"));
    }
    Ok(span)
}

/// Returns the addresses of the sender and the group.
fn addresses() -> (SocketAddr, SocketAddr) {
    (SocketAddr::from(([10, 0, 0, 1], 5402)), SocketAddr::from(([239, 255, 54, 2], 5402)))
}

/// Returns the configuration of a transfer by `sender` to `receivers`, with the simulator's addresses and identities.
/// There are proofs if `sender` has a secret. Each receiver has a name as long as the listed names are on average, and
/// reports the buffer that `farcast receive` has by default.
pub(super) fn of_sender(mut sender: SenderConfig, sealed: Option<Sealed>, receivers: u32) -> Configs {
    let (server, group) = addresses();
    let seal = sealed.map(|sealed| seal(&sender, sealed));
    // The overhead of the rate includes the octets that the seal adds. IPv6 has longer headers.
    let overhead = match sender.pace {
        Pace::Rate { overhead, .. } => overhead - seal.map_or(0, |seal| seal.content),
        Pace::Window { .. } if sender.private.is_ipv6() => 48,
        Pace::Window { .. } => 28,
    };
    (sender.server, sender.response) = (server, server);
    (sender.public, sender.private) = (group, group);
    sender.secret = sender.secret.map(|_| SENDER);
    let mut receiver = ReceiverConfig { receive_buffer_bytes: Some(BUFFER), ..receiver_of(&sender) };
    if let Group::Closed(listed) = &mut sender.group {
        receiver.name = name_of(name_length(listed));
        *listed = (0..receivers).map(invited).collect();
    }
    Configs { sender, receiver, overhead, seal, given: false }
}

/// Returns the configuration of the receivers of `sender`, which have proofs if it has.
fn receiver_of(sender: &SenderConfig) -> ReceiverConfig {
    let secret = sender.secret.map(|_| RECEIVERS);
    ReceiverConfig { secret, ..ReceiverConfig::new(NOBODY, sender.private.port()) }
}

/// Returns a name of `octets` octets; `None` for no octets.
fn name_of(octets: u32) -> Option<String> {
    (octets > 0).then(|| "r".repeat(octets as usize))
}

/// Returns the average length of the names in a list; an address is no name.
fn name_length(listed: &[Invited]) -> u32 {
    let is_name = |one: &&Invited| ClientId::from_name(&one.label) == one.id;
    let octets: usize = listed.iter().filter(is_name).map(|one| one.label.len()).sum();
    octets.div_ceil(listed.len().max(1)) as u32
}

/// Returns the seal of MFTP. Content has a key of its own if receivers register before it leaves.
const fn manner(registers: bool) -> Manner {
    Manner { signs_content: false, apart: registers }
}

/// Returns the seal of a sender with these settings.
fn seal(sender: &SenderConfig, sealed: Sealed) -> SealConfig {
    let rate = match sender.pace {
        Pace::Rate { rate, .. } => Some(rate),
        Pace::Window { .. } => None,
    };
    sealed.config(manner(sender.group != Group::OpenUnlimited), rate)
}

/// Reads the octets that packets take on the links besides the message.
fn way(table: &mut Reader<'_>, forward: &LinkSpec) -> Result<PathLimits, DocumentError> {
    let Bytes(overhead) = table.bytes_or("packet_overhead", Bytes(28))?;
    let Ok(headers) = u16::try_from(overhead) else {
        return Err(table.refuse("packet_overhead", "it is larger than any packet", "at most 65535 B"));
    };
    // A bearer on which a packet takes whole FEC blocks is paced in whole blocks.
    let block = match forward {
        LinkSpec::BganForward(link) if link.config.packing == Packing::PacketAligned => {
            u64::from(link.config.fec_block_octets)
        }
        _ => 1,
    };
    let Bytes(granule) = table.bytes_or("granule", Bytes(block))?;
    let Some(granule) = u16::try_from(granule).ok().filter(|&granule| granule > 0) else {
        return Err(table.refuse("granule", "it must hold something and fit a packet", "1 B to 65535 B"));
    };
    Ok(PathLimits { headers, mtu: None, granule })
}

/// Reads the receivers that are admitted. The flag is `true` if they have joined already.
fn audience(table: &mut Reader<'_>, receivers: u32) -> Result<(Audience, bool), DocumentError> {
    let models = [
        ("open_unlimited", Model::OpenUnlimited),
        ("open_limited", Model::OpenLimited),
        ("closed", Model::Closed),
    ];
    let model = table.choice_or("group", &models, Model::OpenLimited)?;
    let given = table.choice_or("setup", &[("simulated", false), ("done", true)], false)?;
    let limit = table.optional_integer("group_limit", 1..=1 << 22)?;
    let audience = match model {
        Model::OpenUnlimited => Audience::Anybody,
        Model::OpenLimited => Audience::Open(limit.unwrap_or(1 << 22)),
        Model::Closed => Audience::Listed((0..receivers).map(invited).collect()),
    };
    Ok((audience, given))
}

/// Returns the invitation of receiver `n`.
pub(super) fn invited(n: u32) -> Invited {
    let id = receiver_id(n);
    Invited { label: id.to_string(), id }
}
