//! Forecast of what the receivers of a transfer will say.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::setting::{SettingKind, SettingValue};
use farcast_core::{Setting, settings};
use farcast_delivery::{Change, Datagrams, Forecast, Forecasting, NewValue, Order, Requests};

use super::declared::{
    DTU_SIZE, LATE_ENTRY, PARITY, PASS_WAIT, PRESET, RATE, RETURN_RATE, START_AFTER, START_RECEIVERS,
};
use crate::config::{Group, Pace, PassWait, SenderConfig};
use crate::wire;

/// Octets of a registration and of a confirmation, IPv4 and UDP included, without a name and without proofs.
const REGISTRATION: u32 = 116;
const CONFIRMATION: u32 = 100;
/// Octets of IPv4 and UDP.
const HEADERS: u32 = 28;
/// Octets by which a NAK reports the parity at hand.
const PARITY_HELD: u32 = 8;

settings! {
    /// Group of receivers
    GROUP = Setting::new("group", SettingKind::Words(&["open_unlimited"])).flag("unlimited", "open_unlimited");
}

impl Forecasting for SenderConfig {
    fn forecast(&self) -> Forecast {
        let registers = self.group != Group::OpenUnlimited;
        let headers = |overhead: u16| wire::DATA_HEADER_LEN as u32 + u32::from(overhead);
        let datagrams = Datagrams { content: self.dtu_size, headers: headers(0), ..DATAGRAMS };
        let datagrams = match self.pace {
            Pace::Rate { rate, overhead, granule, .. } => {
                Datagrams { headers: headers(overhead), rate: Some((rate, &RATE)), granule, ..datagrams }
            }
            Pace::Window { .. } => datagrams,
        };
        let segments = self.product.size.div_ceil(self.dtu_size.max(1).into());
        let block = u64::from(self.block_size).min(segments) as u32;
        Forecast {
            segments,
            registration: registers.then_some(REGISTRATION),
            confirmation: registers.then_some(CONFIRMATION),
            order: self.order(),
            requests: Some(Requests {
                octets: wire::NAK_FIXED_LEN as u32 + block.div_ceil(32) * 4 + PARITY_HELD + HEADERS,
                block,
                ahead: 0,
                overheard: false,
                more_ahead: None,
                to_parity: if self.parity_symbols == 0 && registers { self.to_parity() } else { None },
            }),
            datagrams,
            round_trip: None,
        }
    }
}

/// Datagrams without their sizes.
const DATAGRAMS: Datagrams =
    Datagrams { content: 0, headers: 0, spare: 0, multiple: 4, setting: &DTU_SIZE, rate: None, granule: 1 };

impl SenderConfig {
    /// Returns `true` for the settings of the draft: only these send nothing twice.
    const fn is_draft(&self) -> bool {
        self.head_segments == 0 && !self.repeat_small_passes
    }

    /// Returns the change by which receivers get parity.
    fn to_parity(&self) -> Option<Change> {
        match (self.is_draft(), self.automatic_parity()) {
            (true, _) => Some(Change::to(&PRESET, SettingValue::Word("farcast"))),
            (false, 0) => None,
            (false, _) => Some(Change::to(&PARITY, SettingValue::Word("auto"))),
        }
    }

    /// Returns the order in which receivers speak, as the sender decides it when it opens.
    fn order(&self) -> Order {
        let has_parity = self.parity_ahead && self.parity_symbols > 0;
        let waits = self.start.receivers.is_none() && !self.turns;
        let is_draft = self.is_draft();
        let obstacles = [
            (
                matches!(self.pace, Pace::Window { .. }),
                Change { setting: &RATE, value: NewValue::ForwardRate },
            ),
            (self.pass_wait != PassWait::Draft, Change::to(&PASS_WAIT, SettingValue::Word("draft"))),
            (!self.late_entry, Change::without(&LATE_ENTRY)),
            (self.start.receivers.is_some(), Change::without(&START_RECEIVERS)),
            (waits && is_draft, Change::to(&PRESET, SettingValue::Word("farcast"))),
            (waits && !is_draft, Change::without(&START_AFTER)),
        ];
        let obstacles = obstacles.into_iter().filter_map(|(is_there, change)| is_there.then_some(change));
        let obstacles: Vec<Change> = obstacles.collect();
        if self.group == Group::OpenUnlimited {
            return Order::AtOnce(vec![Change::without(&GROUP)]);
        }
        match (&obstacles[..], has_parity || self.return_rate.is_some()) {
            ([], true) => Order::ByTurns(self.return_rate.is_none().then_some(&RETURN_RATE)),
            ([], false) => Order::AtOnce(
                self.to_parity().into_iter().chain([Change::to_return_rate(&RETURN_RATE)]).collect(),
            ),
            _ => Order::AtOnce(obstacles),
        }
    }
}
