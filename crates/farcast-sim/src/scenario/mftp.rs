//! MFTP in a scenario: what `[protocol]` says of it, and the engines that it makes.

mod memory;
mod settings;
pub mod table;

use farcast_core::Span;
use farcast_mftp::{ClientId, Group, Population, Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{Document, DocumentError, Links, Reader};

use super::Scenario;
use crate::star::{self, StarError, receiver_address};

use settings::Configs;

pub use farcast_mftp::Mftp;

/// The id of receiver `n`: its address.
pub fn receiver_id(n: u32) -> ClientId {
    ClientId::from_address(receiver_address(n).ip())
}

/// The engine that sends in a world.
///
/// # Errors
/// A setting that cannot work.
pub fn sender(config: SenderConfig) -> Result<Sender, StarError> {
    Sender::new(config).map_err(in_words)
}

/// So many receivers, as one population or with `engines` one each; `id` is set for each.
pub fn receivers(receiver: ReceiverConfig, receivers: u32, engines: bool) -> star::Receivers<Mftp> {
    let of = move |n| ReceiverConfig { id: receiver_id(n), ..receiver.clone() };
    if engines {
        return star::Receivers::Engines(Box::new(move |n| Receiver::new(of(n)).map_err(in_words)));
    }
    let make = move |first| Population::new(of(first), receivers).map_err(in_words);
    star::Receivers::Population(Box::new(make))
}

fn in_words(error: impl std::error::Error) -> StarError {
    StarError::Engine(error.to_string())
}

impl Scenario {
    /// A transfer as `sender` makes it, to so many receivers over the link that `document` is alone. Addresses and
    /// identities are the simulator's own. Queues of which the link says nothing get a limit, as where it is emulated.
    ///
    /// # Errors
    /// The first thing that is wrong with the link.
    pub fn over(document: &Document, sender: SenderConfig, receivers: u32) -> Result<Self, DocumentError> {
        let (links, default_queues) = Links::read_alone(document)?;
        let settings = settings::of_sender(sender, receivers);
        Ok(Self {
            name: String::new(),
            engines: false,
            time_limit: settings.sender.transfer_limit + Span::from_secs(3600),
            groups: vec![Receivers { receivers, delay: Span::ZERO, losses: None }],
            transfer: Some(Transfer { configs: settings }),
            traffic: Vec::new(),
            links,
            default_queues,
        })
    }

    /// The sender's settings, if there is a transfer.
    pub fn sender(&self) -> Option<&SenderConfig> {
        self.transfer.as_ref().map(|transfer| &transfer.configs.sender)
    }
}

/// The multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    configs: Configs,
}

impl Transfer {
    /// Reads `[protocol]` for these groups.
    pub(super) fn read(
        top: &mut Reader<'_>,
        groups: &[Receivers],
        links: &Links,
    ) -> Result<Self, DocumentError> {
        let mut settings = settings::read(top, &links.forward)?;
        let total: u32 = groups.iter().map(|group| group.receivers).sum();
        if let Group::Closed(invited) = &mut settings.sender.group {
            *invited = (0..total).map(settings::invited).collect();
        }
        if settings.given && settings.sender.group != Group::OpenUnlimited {
            // They have joined before: data begins with all of them.
            (settings.sender.start.receivers, settings.sender.start.after) = (Some(total), None);
        }
        super::check_marks(top, groups, links)?;
        Ok(Self { configs: settings })
    }

    /// Octets of a datagram on the links besides its `wire_len`.
    pub(super) fn overhead(&self) -> u16 {
        self.configs.overhead
    }

    /// Whether receivers know of it when it opens.
    pub(super) fn given(&self) -> bool {
        self.configs.given
    }

    /// The engine that sends.
    pub(super) fn sender(&self) -> Result<Sender, StarError> {
        sender(self.configs.sender.clone())
    }

    /// So many receivers, whose random waits follow from `seed`.
    pub(super) fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Mftp> {
        let receiver = ReceiverConfig { seed, ..self.configs.receiver.clone() };
        receivers(receiver, count, engines)
    }
}

/// The id that settings carry before each receiver is given its own.
const NOBODY: ClientId = ClientId(1);
