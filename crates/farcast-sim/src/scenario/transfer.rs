//! The protocols by which a scenario's transfer may go: a line of the table here, and a module each.

use std::fmt::Debug;
use std::net::Ipv4Addr;

use farcast_delivery::Protocol;
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

use super::{Scenario, mdp, mftp, norm, one_way, pgm};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarConfig, StarError};
use crate::tree::{OnTree, TreeConfig};

/// A transfer, as its protocol reads it from `[protocol]`.
pub(super) trait Transfer: Clone + Debug + Sized {
    /// By what it goes.
    type Protocol: OnTree<Message: Send + Sync>;

    /// Whether there are elements of it.
    const HAS_ELEMENTS: bool = false;

    /// Keys of a scenario that help against each limit that a transfer may meet.
    const REMEDIES: Remedies;

    /// Reads `table`, which is `[protocol]` of the scenario `top`, for these groups; whether it is sealed.
    fn read(
        table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
        sealed: bool,
    ) -> Result<Self, DocumentError>;

    /// Its messages as bytes.
    fn codec(&self) -> <Self::Protocol as Protocol>::Codec;

    /// Octets of a datagram on the links besides its `wire_len`, and besides what a seal adds.
    fn overhead(&self) -> u16;

    /// How it is sealed, if it is.
    fn seal(&self) -> Option<SealConfig>;

    /// Whether receivers know of it when it opens.
    fn given(&self) -> bool;

    /// The engine that sends.
    fn sender(&self) -> Result<<Self::Protocol as Protocol>::Sender, StarError>;

    /// So many receivers, whose random waits follow from `seed`; with `engines`, one engine each.
    fn receivers(&self, count: u32, seed: u64, engines: bool) -> star::Receivers<Self::Protocol>;

    /// An element, or with `repairs` a repairer, at a node whose ports have these addresses, in the order of their
    /// numbers; what it draws follows from `seed`.
    fn element(
        &self,
        _addresses: &[Ipv4Addr],
        _repairs: bool,
        _seed: u64,
    ) -> Result<<Self::Protocol as OnTree>::Element, StarError> {
        Err(StarError::Engine("this protocol has no elements".into()))
    }

    /// About how much memory its two sides take at their peak, in octets.
    fn memory(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64;
}

/// Something to be done with a world, whatever protocol its transfer goes by.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    fn on<P: Protocol>(self, world: StarConfig<P>, codec: P::Codec) -> Self::Output;
}

/// The same with a tree.
pub trait TreeTask {
    /// What comes of it.
    type Output;

    /// Does it.
    fn on<P: OnTree>(self, world: TreeConfig<P>, codec: P::Codec) -> Self::Output;
}

/// Who asks for a transfer, whatever protocol it goes by.
pub(super) trait Visit {
    /// What comes of it.
    type Output;

    /// Does what is to be done.
    fn visit<T: Transfer>(
        self,
        transfer: Option<&T>,
        codec: <T::Protocol as Protocol>::Codec,
    ) -> Self::Output;
}

macro_rules! protocols {
    ($($variant:ident: $module:ident = $name:literal),+ $(,)?) => {
        /// What `name` in `[protocol]` may be; the first where it says nothing.
        pub const NAMES: &[&str] = &[$($name),+];

        /// The transfer of a scenario.
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a scenario has one")]
        pub(super) enum TransferSpec {
            $($variant($module::Transfer)),+
        }

        /// By what a transfer goes.
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum By {
            $($variant),+
        }

        impl TransferSpec {
            /// Shows `visitor` a transfer by whatever protocol; where there is none, that there is none.
            pub(super) fn visit<V: Visit>(transfer: Option<&Self>, visitor: V) -> V::Output {
                match transfer {
                    // Without a transfer there is no message that a protocol would have to speak.
                    None => visitor.visit::<mftp::Transfer>(None, farcast_mftp::Codec),
                    $(Some(Self::$variant(transfer)) => visitor.visit(Some(transfer), transfer.codec())),+
                }
            }

            /// Whether the protocol has elements, and repairers among them.
            pub(super) fn has_elements(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$module::Transfer as Transfer>::HAS_ELEMENTS),+
                }
            }

            /// Keys of a scenario that help against each limit that a transfer may meet.
            pub(super) fn remedies(&self) -> &'static Remedies {
                match self {
                    $(Self::$variant(_) => &<$module::Transfer as Transfer>::REMEDIES),+
                }
            }

            /// Whether it is sealed.
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

            /// About how much memory its two sides take at their peak, in octets.
            pub(super) fn memory(&self, groups: &[Receivers], links: &Links, engines: bool) -> u64 {
                match self {
                    $(Self::$variant(transfer) => transfer.memory(groups, links, engines)),+
                }
            }
        }

        impl Scenario {
            /// Does `task` with the world of replication number `replication`, whose random numbers follow from `seed`.
            ///
            /// # Errors
            /// A setting that cannot work.
            pub fn visit<T: Task>(&self, seed: u64, replication: u64, task: T) -> Result<T::Output, StarError> {
                match &self.transfer {
                    // Without a transfer there is no message that a protocol would have to speak.
                    None => Ok(task.on(self.star(seed, replication)?, farcast_mftp::Codec)),
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
    farcast_norm::Norm,
    farcast_mdp::Mdp,
    farcast_oneway::OneWay,
}
