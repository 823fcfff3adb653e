//! Protocols of a scenario's transfer: one line for each in the table here, and one module each.

use std::fmt::Debug;
use std::net::Ipv4Addr;

use farcast_delivery::{Forecast, Protocol};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

use super::{Scenario, mdp, mftp, norm, one_way, pgm};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarConfig, StarError};
use crate::tree::{OnTree, TreeConfig};

/// Settings of a transfer, as its protocol reads them from `[protocol]`.
pub(super) trait Transfer: Clone + Debug + Sized {
    /// Protocol of the transfer.
    type Protocol: OnTree<Message: Send + Sync>;

    /// `true` if the protocol has network elements.
    const HAS_ELEMENTS: bool = false;

    /// Keys of a scenario that help against each limit of a transfer.
    const REMEDIES: Remedies;

    /// Reads `table`, which is `[protocol]` of the scenario `top`, for these groups. The transfer may be `sealed`.
    fn read(
        table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
        sealed: bool,
    ) -> Result<Self, DocumentError>;

    /// Returns the codec of the protocol's messages.
    fn codec(&self) -> <Self::Protocol as Protocol>::Codec;

    /// Returns the octets that the links add to each datagram, besides its `wire_len` and the seal's octets.
    fn overhead(&self) -> u16;

    /// Returns the seal of the transfer, if it is sealed.
    fn seal(&self) -> Option<SealConfig>;

    /// Returns `true` if receivers know of the transmission when it opens.
    fn given(&self) -> bool;

    /// Returns what the receivers will say.
    fn forecast(&self) -> Forecast;

    /// Makes the sender's engine.
    fn sender(&self) -> Result<<Self::Protocol as Protocol>::Sender, StarError>;

    /// Makes `count` receivers, whose random waits follow from `seed`; with `engines`, as one engine each.
    fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Self::Protocol>;

    /// Makes an element, or with `repairs` a repairer, at a node whose ports have these addresses, in the order of
    /// their numbers. Its random numbers follow from `seed`.
    fn element(
        &self,
        _addresses: &[Ipv4Addr],
        _repairs: bool,
        _seed: u64,
    ) -> Result<<Self::Protocol as OnTree>::Element, StarError> {
        Err(StarError::Engine("this protocol has no elements".into()))
    }

    /// Estimates the peak memory of the transfer's two sides, in octets.
    fn memory(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64;
}

/// Task to do with a star, for any protocol.
pub trait Task {
    /// Result of the task.
    type Output;

    /// Does the task.
    fn on<P: Protocol>(self, world: StarConfig<P>, codec: P::Codec) -> Self::Output;
}

/// Task to do with a tree, for any protocol.
pub trait TreeTask {
    /// Result of the task.
    type Output;

    /// Does the task.
    fn on<P: OnTree>(self, world: TreeConfig<P>, codec: P::Codec) -> Self::Output;
}

/// Visitor of a transfer, for any protocol.
pub(super) trait Visit {
    /// Result of the visit.
    type Output;

    /// Visits the transfer; `None` where there is no transfer.
    fn visit<T: Transfer>(
        self,
        transfer: Option<&T>,
        codec: <T::Protocol as Protocol>::Codec,
    ) -> Self::Output;
}

macro_rules! protocols {
    ($($variant:ident: $module:ident = $name:literal),+ $(,)?) => {
        /// Values of `name` in `[protocol]`. The first is the default.
        pub const NAMES: &[&str] = &[$($name),+];

        /// Transfer of a scenario, by protocol.
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a scenario has one")]
        pub(super) enum TransferSpec {
            $($variant($module::Transfer)),+
        }

        /// Protocol of a transfer.
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum By {
            $($variant),+
        }

        impl TransferSpec {
            /// Passes the transfer to `visitor`, or `None` where there is no transfer.
            pub(super) fn visit<V: Visit>(transfer: Option<&Self>, visitor: V) -> V::Output {
                match transfer {
                    // Without a transfer there are no messages, so any protocol will do.
                    None => visitor.visit::<mftp::Transfer>(None, mftp::Codec),
                    $(Some(Self::$variant(transfer)) => visitor.visit(Some(transfer), transfer.codec())),+
                }
            }

            /// Returns `true` if the protocol has network elements, including repairers.
            pub(super) fn has_elements(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$module::Transfer as Transfer>::HAS_ELEMENTS),+
                }
            }

            /// Returns the keys of a scenario that help against each limit of a transfer.
            pub(super) fn remedies(&self) -> &'static Remedies {
                match self {
                    $(Self::$variant(_) => &<$module::Transfer as Transfer>::REMEDIES),+
                }
            }

            /// Returns what the receivers will say.
            pub(super) fn forecast(&self) -> Forecast {
                match self {
                    $(Self::$variant(transfer) => transfer.forecast()),+
                }
            }

            /// Returns `true` if the transfer is sealed.
            pub(super) fn is_sealed(&self) -> bool {
                match self {
                    $(Self::$variant(transfer) => transfer.seal().is_some()),+
                }
            }

            /// Reads `[protocol]` for these groups.
            pub(super) fn read(
                top: &mut Reader<'_>,
                groups: &[Receivers],
                links: &Links,
            ) -> Result<Self, DocumentError> {
                let mut table = top.table("protocol")?;
                let sealed = table.flag_or("sealed", false)?;
                let all = [$(($name, By::$variant)),+];
                match table.choice_or("name", &all, all[0].1)? {
                    $(By::$variant => {
                        Ok(Self::$variant(Transfer::read(table, top, groups, links, sealed)?))
                    })+
                }
            }

            /// Estimates the peak memory of the transfer's two sides, in octets.
            pub(super) fn memory(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64 {
                match self {
                    $(Self::$variant(transfer) => transfer.memory(groups, links, engines)),+
                }
            }
        }

        impl Scenario {
            /// Runs `task` on the configuration of replication number `replication`, whose random numbers follow from
            /// `seed`.
            ///
            /// # Errors
            /// A setting that cannot work.
            pub fn visit<T: Task>(&self, seed: u64, replication: u64, task: T) -> Result<T::Output, StarError> {
                match &self.transfer {
                    // Without a transfer there are no messages, so any protocol will do.
                    None => Ok(task.on(self.star(seed, replication)?, mftp::Codec)),
                    $(Some(TransferSpec::$variant(transfer)) => {
                        Ok(task.on(self.world(Some(transfer), seed, replication)?, transfer.codec()))
                    })+
                }
            }
        }
    };
}

protocols! {
    Mftp: mftp = "mftp",
    Norm: norm = "norm",
    Mdp: mdp = "mdp",
    OneWay: one_way = "one-way",
    Pgm: pgm = "pgm",
}

crate::tree::element::without_elements! {
    mftp::Mftp,
    norm::Norm,
    mdp::Mdp,
    one_way::OneWay,
}
