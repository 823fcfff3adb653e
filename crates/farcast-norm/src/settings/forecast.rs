//! Forecast of what the receivers of a transfer will say.

use farcast_core::setting::SettingValue;
use farcast_delivery::settings::SEGMENT_SIZE;
use farcast_delivery::{Change, Datagrams, Forecast, Forecasting, MoreAhead, Order, Requests};

use super::declared::{EXPECTED_LOSS, GROUP_SIZE, PARITY, RATE};
use super::{HEADERS, WIDE_HEADERS};
use crate::config::{Pacing, SenderConfig};
use crate::message::Fec;

/// Octets of an acknowledgement and of a usual request for repair, IPv4 and UDP included.
const ACKNOWLEDGEMENT: u32 = 60;
const REQUEST: u32 = 72;

impl Forecasting for SenderConfig {
    fn forecast(&self) -> Forecast {
        let headers = if self.fec == Fec::ReedSolomon8 { HEADERS } else { WIDE_HEADERS };
        let octets: u64 = self.objects.iter().map(|object| object.size).sum();
        Forecast {
            segments: octets.div_ceil(u64::from(self.segment_size).max(1)),
            registration: None,
            confirmation: (!self.ackers.is_empty()).then_some(ACKNOWLEDGEMENT),
            // A rate of the return that is given changes little where receivers contend for it.
            order: Order::ByTurns(None),
            requests: Some(Requests {
                octets: REQUEST,
                block: self.block_len.into(),
                ahead: self.auto_parity.into(),
                overheard: true,
                more_ahead: (self.parity > 0).then_some(MoreAhead::Loss {
                    loss: &EXPECTED_LOSS,
                    receivers: (&GROUP_SIZE, self.receivers.receivers()),
                }),
                to_parity: (self.parity == 0).then(|| Change::to(&PARITY, SettingValue::Word("auto"))),
            }),
            datagrams: Datagrams {
                content: self.segment_size.into(),
                headers: headers + u32::from(self.pace.overhead),
                spare: 0,
                multiple: 2,
                setting: &SEGMENT_SIZE,
                rate: (self.pacing == Pacing::Fixed).then_some((self.pace.rate, &RATE)),
                granule: self.pace.granule,
            },
            round_trip: None,
        }
    }
}
