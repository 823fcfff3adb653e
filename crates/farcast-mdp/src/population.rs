//! Many receivers for simulations, one engine each.

use farcast_delivery::Each;
use farcast_delivery::nack::NodeId;

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::receiver::Receiver;

/// Receivers with equal settings, whose owners accept everything and verify it at once.
pub type Population = Each<Receiver>;

/// Creates `receivers` engines with these settings. Their nodes are numbered upwards from that of `config`.
///
/// # Errors
/// The first setting that is invalid; a node id that is invalid or beyond 32 bits.
pub fn population(config: &ReceiverConfig, receivers: u32) -> Result<Population, ConfigError> {
    let make = |n: u32| {
        let node = NodeId(config.node.0.checked_add(n).ok_or(ConfigError::Node(NodeId::ANY))?);
        Receiver::new(ReceiverConfig { node, ..config.clone() })
    };
    Ok(Each::new((0..receivers).map(make).collect::<Result<_, _>>()?))
}
