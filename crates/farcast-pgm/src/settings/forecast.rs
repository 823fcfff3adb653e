//! Forecast of what the receivers of a transfer will say.

use alloc::vec::Vec;

use farcast_delivery::settings::SEGMENT_SIZE;
use farcast_delivery::{Datagrams, Forecast, Forecasting, MoreAhead, Order, Requests};

use super::declared::{PARITY_AHEAD, RATE, ROUND_TRIP};
use super::{CC_OPTIONS, GROUP, HEADER, PARITY_OPTIONS};
use crate::config::{SenderConfig, Sending};

/// Octets of a request for one number and of an acknowledgement, IPv4 and UDP included.
const REQUEST: u32 = 64;
const ACKNOWLEDGEMENT: u32 = 72;

impl Forecasting for SenderConfig {
    fn forecast(&self) -> Forecast {
        let octets: u64 = match &self.sending {
            Sending::Files(objects) => objects.iter().map(|object| object.size).sum(),
            Sending::Messages => 0,
        };
        let cc = if self.cc.is_some() { CC_OPTIONS } else { 0 };
        let options = cc + self.parity.map_or(0, |_| PARITY_OPTIONS);
        let can_add = self.cc.is_none() && self.live.is_none();
        let block = self.parity.map_or(GROUP, |parity| parity.size);
        Forecast {
            segments: octets.div_ceil(u64::from(self.tsdu).max(1)),
            registration: None,
            confirmation: (!self.named.is_empty()).then_some(ACKNOWLEDGEMENT),
            order: Order::AtOnce(Vec::new()),
            requests: Some(Requests {
                octets: REQUEST,
                block,
                ahead: self.parity.map_or(0, |parity| parity.ahead),
                overheard: true,
                more_ahead: can_add.then_some(MoreAhead::Symbols(&PARITY_AHEAD, block)),
                to_parity: None,
            }),
            datagrams: Datagrams {
                content: self.tsdu.into(),
                headers: HEADER + options + u32::from(self.pace.overhead),
                spare: if can_add && self.parity.is_none() { PARITY_OPTIONS } else { 0 },
                multiple: 1,
                setting: &SEGMENT_SIZE,
                rate: self.cc.is_none().then_some((self.pace.rate, &RATE)),
                granule: self.pace.granule,
            },
            // The source ignores repeated requests for as long.
            round_trip: Some((self.holdoff, &ROUND_TRIP)),
        }
    }
}
