//! Many receivers for simulations: an engine each.

use farcast_delivery::Each;
use farcast_norm::NodeId;

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::receiver::Receiver;

/// Like receivers, whose owners take everything and verify it at once.
pub type Population = Each<Receiver>;

/// `receivers` of these settings, whose nodes are numbered from that of `config` on.
///
/// # Errors
/// What of the settings cannot be; a number that no node may have.
pub fn population(config: &ReceiverConfig, receivers: u32) -> Result<Population, ConfigError> {
    let make = |n: u32| {
        let node = NodeId(config.node.0.checked_add(n).ok_or(ConfigError::Node(NodeId::ANY))?);
        Receiver::new(ReceiverConfig { node, ..config.clone() })
    };
    Ok(Each::new((0..receivers).map(make).collect::<Result<_, _>>()?))
}
