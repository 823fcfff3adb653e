//! MFTP in a scenario: its keys in `[protocol]`, and its engines.

mod memory;
mod settings;

use farcast_core::Span;
use farcast_delivery::{Forecast, Forecasting as _};
use farcast_mftp::{
    ClientId, Group, NakTiming, Pace, PassWait, Population, Receiver, ReceiverConfig, Sender, SenderConfig,
};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{Document, DocumentError, Links, Reader};

use super::transfer::{self, TransferSpec};
use super::{LinkAlone, Scenario, Sealed, StarConfig, keys};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarError, receiver_address};

use settings::Configs;

pub use farcast_mftp::{Codec, Mftp, figures};

/// Returns the id of receiver `n`, which is its address.
pub fn receiver_id(n: u32) -> ClientId {
    ClientId::from_address(receiver_address(n).ip())
}

/// Makes the sender's engine.
///
/// # Errors
/// A setting that cannot work.
pub fn sender(config: SenderConfig) -> Result<Sender, StarError> {
    Sender::new(config).map_err(keys::in_words)
}

/// Makes `receivers` receivers, as one population or, with `engines`, as one engine each. Each gets an `id` of its own.
pub fn receivers(receiver: ReceiverConfig, receivers: u32, engines: bool) -> star::Receivers<Mftp> {
    let of = move |n| ReceiverConfig { id: receiver_id(n), ..receiver.clone() };
    if engines {
        return star::Receivers::Engines(Box::new(move |n| Receiver::new(of(n)).map_err(keys::in_words)));
    }
    let make = move |first| Population::new(of(first), receivers).map_err(keys::in_words);
    star::Receivers::Population(Box::new(make))
}

impl Scenario {
    /// Makes a scenario of the transfer that `sender` describes, `sealed` or not, to `receivers` over the link that
    /// `document` holds alone. Addresses, identities and secrets are the simulator's own; there are proofs if `sender`
    /// has a secret.
    ///
    /// # Errors
    /// The first mistake in the link.
    pub fn over(
        document: &Document,
        sender: SenderConfig,
        sealed: Option<Sealed>,
        receivers: u32,
    ) -> Result<Self, DocumentError> {
        let configs = settings::of_sender(sender, sealed, receivers);
        let time_limit = configs.sender.transfer_limit + Span::from_secs(3600);
        let link = LinkAlone { document, receivers, time_limit, sealed };
        Self::over_link(&link, TransferSpec::Mftp(Transfer { configs }))
    }

    /// Returns the sender's settings, if there is a transfer by MFTP.
    pub fn sender(&self) -> Option<&SenderConfig> {
        self.mftp().map(|transfer| &transfer.configs.sender)
    }

    fn mftp(&self) -> Option<&Transfer> {
        match &self.transfer {
            Some(TransferSpec::Mftp(transfer)) => Some(transfer),
            _ => None,
        }
    }

    /// Returns the configuration of replication number `replication`, whose random numbers follow from `seed`, with a
    /// transfer by MFTP or none.
    ///
    /// # Errors
    /// A setting that cannot work; a transfer by another protocol, for which there is [`Scenario::visit`].
    pub fn star(&self, seed: u64, replication: u64) -> Result<StarConfig<Mftp>, StarError> {
        if self.mftp().is_none() && self.has_transfer() {
            return Err(StarError::Engine("this transfer is not one by MFTP".into()));
        }
        self.world(self.mftp(), seed, replication)
    }
}

/// Settings of the multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    configs: Configs,
}

impl transfer::Transfer for Transfer {
    type Protocol = Mftp;

    const REMEDIES: Remedies = Remedies {
        time: "Raise time_limit.",
        transfer_time: "Raise protocol.transfer_limit.",
        silence: "Raise protocol.silence or protocol.srt.retries.",
        requests: "Have receivers registered (protocol.group), so that each is waited for, or raise protocol.srt.n, protocol.srt.time or protocol.srt.retries.",
        nobody: "Raise protocol.announce_limit.",
    };

    fn read(
        table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
        sealed: bool,
    ) -> Result<Self, DocumentError> {
        let mut settings = settings::read(table, &links.forward, groups, sealed)?;
        let total: u32 = groups.iter().map(|group| group.receivers).sum();
        if let Group::Closed(invited) = &mut settings.sender.group {
            *invited = (0..total).map(settings::invited).collect();
        }
        if settings.given && settings.sender.group != Group::OpenUnlimited {
            // The receivers have joined before, so data begins with all of them.
            (settings.sender.start.receivers, settings.sender.start.after) = (Some(total), None);
        }
        super::check_marks(top, groups, links)?;
        Ok(Self { configs: settings })
    }

    fn codec(&self) -> Codec {
        Codec
    }

    fn overhead(&self) -> u16 {
        self.configs.overhead
    }

    fn seal(&self) -> Option<SealConfig> {
        self.configs.seal
    }

    fn given(&self) -> bool {
        self.configs.given
    }

    fn forecast(&self) -> Forecast {
        let forecast = self.configs.sender.forecast();
        Forecast { registration: forecast.registration.filter(|_| !self.configs.given), ..forecast }
    }

    fn sender(&self) -> Result<Sender, StarError> {
        sender(self.configs.sender.clone())
    }

    fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Mftp> {
        let receiver = ReceiverConfig { seed, ..self.configs.receiver.clone() };
        receivers(receiver, count, engines)
    }

    fn memory(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64 {
        self.needs(groups, links, engines)
    }
}

/// Placeholder id in settings, before each receiver gets its own.
const NOBODY: ClientId = ClientId(1);
