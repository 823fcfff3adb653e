//! Forecast of what the receivers of a transfer will say.

use alloc::vec::Vec;

use farcast_core::setting::SettingValue;
use farcast_delivery::settings::{RATE, SEGMENT_SIZE};
use farcast_delivery::{Change, Datagrams, Forecast, Forecasting, MoreAhead, Order, Requests};

use super::HEADER;
use super::declared::{PARITY, PARITY_AHEAD};
use crate::config::{Counted, SenderConfig};

/// Octets of a message without its requests or acknowledgement, with the common header, IPv4 and UDP.
const COMMON: u32 = 8 + 21 + 28;
/// Octets of an acknowledgement, and of the requests in a usual message that asks for repair.
const ACKNOWLEDGEMENT: u32 = 5;
const REQUESTS: u32 = 24;

impl Forecasting for SenderConfig {
    fn forecast(&self) -> Forecast {
        let octets: u64 = self.objects.iter().map(|object| object.size).sum();
        let overhead = match self.counted {
            Counted::Packet(overhead) => overhead,
            Counted::Payload | Counted::Message if self.group.is_ipv4() => 28,
            Counted::Payload | Counted::Message => 48,
        };
        let said = |more| COMMON + more;
        Forecast {
            segments: octets.div_ceil(u64::from(self.segment_size).max(1)),
            registration: None,
            confirmation: (!self.ackers.is_empty()).then_some(said(ACKNOWLEDGEMENT)),
            order: Order::AtOnce(Vec::new()),
            requests: Some(Requests {
                octets: said(REQUESTS),
                block: self.block_len.into(),
                ahead: self.auto_parity.into(),
                overheard: true,
                more_ahead: (self.parity > 0).then(|| MoreAhead::Symbols(&PARITY_AHEAD, self.parity.into())),
                to_parity: (self.parity == 0).then(|| Change::to(&PARITY, SettingValue::Word("auto"))),
            }),
            datagrams: Datagrams {
                content: self.segment_size.into(),
                headers: u32::from(HEADER) + u32::from(overhead),
                spare: 0,
                multiple: 1,
                setting: &SEGMENT_SIZE,
                rate: matches!(self.counted, Counted::Packet(_)).then_some((self.rate, &RATE)),
                granule: 1,
            },
            round_trip: None,
        }
    }
}
