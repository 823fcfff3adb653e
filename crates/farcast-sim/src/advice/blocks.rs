//! Datagrams that fit the blocks of a forward bearer on which each takes whole ones.

use farcast_core::setting::SettingValue;
use farcast_core::{BitRate, Setting};
use farcast_delivery::Datagrams;
use farcast_link::bgan::ForwardConfig;

use super::words::{self, Naming};

/// Share of the bearer from which its queue fills.
const FULL: f64 = 1.02;

/// Datagrams that suit a bearer better than those of the settings.
pub(super) struct Better {
    /// Datagrams that fit one block.
    pub(super) datagrams: Datagrams,
    /// Rate and its setting, if the rate has to change too.
    rate: Option<(BitRate, &'static Setting)>,
    /// Blocks of a datagram with the settings, and octets of a block.
    blocks: u64,
    block: u32,
    /// Rate that the datagrams of the settings need, and that of the bearer.
    needed: BitRate,
    carried: BitRate,
}

/// Returns datagrams that fit one block of `config`; `None` if the bearer carries those of the settings at their rate.
pub(super) fn better(datagrams: &Datagrams, config: &ForwardConfig) -> Option<Better> {
    let ((rate, setting), carried) = (datagrams.rate?, config.capacity()?);
    let needed = needed(datagrams, rate, config);
    if needed <= carried.as_bps() as f64 * FULL {
        return None;
    }
    let longest =
        (1..=config.fec_block_octets).rev().find(|&octets| config.fec_blocks(octets.into()) == 1)?;
    let content =
        longest.checked_sub(datagrams.headers + datagrams.spare)? / datagrams.multiple * datagrams.multiple;
    if content == 0 || content >= datagrams.content {
        return None;
    }
    let fits = Datagrams { content, ..*datagrams };
    let then = self::needed(&fits, rate, config);
    let over = then > carried.as_bps() as f64;
    let lower = || words::rounded_down(rate.as_bps() as f64 * carried.as_bps() as f64 / then);
    let rate = if over { Some((lower()?, setting)) } else { None };
    Some(Better {
        datagrams: fits,
        rate,
        blocks: config.fec_blocks(datagrams.octets().into()),
        block: config.fec_block_octets,
        needed: BitRate::from_bps(needed as u64)?,
        carried,
    })
}

/// Returns the rate in bit/s that datagrams at `rate` take of the bearer.
fn needed(datagrams: &Datagrams, rate: BitRate, config: &ForwardConfig) -> f64 {
    let octets = u64::from(datagrams.octets());
    let paced = octets.next_multiple_of(u64::from(datagrams.granule.max(1)));
    rate.as_bps() as f64 * config.octets_on_air(octets) as f64 / paced as f64
}

impl Better {
    /// Returns the advice in place of `datagrams`.
    pub(super) fn sentence(&self, datagrams: &Datagrams, naming: Naming) -> String {
        let Self { blocks, block, needed, carried, .. } = self;
        let size = SettingValue::Integer(self.datagrams.content.into());
        let rate = self.rate.map(|(rate, setting)| (setting, Some(SettingValue::Rate(rate))));
        let changes: Vec<_> = [(datagrams.setting, Some(size))].into_iter().chain(rate).collect();
        let change = naming.set(&changes);
        format!(
            "a datagram of {} B takes {blocks} blocks of {block} B of link.forward, and is lost with any part of them; at this \
             rate they take {needed}, and link.forward carries {carried}; {change}, so that each fits one block",
            datagrams.octets(),
        )
    }
}
