//! Many receivers for simulations: an engine each.

use alloc::vec::Vec;

use farcast_delivery::Each;

use crate::config::ReceiverConfig;
use crate::error::ConfigError;
use crate::message::NodeId;
use crate::receiver::Receiver;

/// Like receivers, whose owners take everything and verify it at once.
pub type Population = Each<Receiver>;

/// `receivers` of these settings, whose nodes are numbered from that of `config` on.
///
/// # Errors
/// What of the settings cannot be; a number that no node may have.
pub fn population(config: &ReceiverConfig, receivers: u32) -> Result<Population, ConfigError> {
    let make = |n: u32| {
        let node = config.node.0.checked_add(n).ok_or(ConfigError::Node(u32::MAX))?;
        Receiver::new(ReceiverConfig { node: NodeId(node), ..config.clone() })
    };
    Ok(Each::new((0..receivers).map(make).collect::<Result<Vec<_>, _>>()?))
}
