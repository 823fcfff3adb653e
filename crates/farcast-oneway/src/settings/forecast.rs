//! Forecast of a transmission whose receivers say nothing.

use alloc::vec::Vec;

use farcast_delivery::settings::RATE;
use farcast_delivery::{Datagrams, Forecast, Forecasting, Order};

use super::declared::SYMBOL_SIZE;
use crate::config::SenderConfig;
use crate::wire::HEADER_LEN;

impl Forecasting for SenderConfig {
    fn forecast(&self) -> Forecast {
        let geometry = self.shape.geometry();
        Forecast {
            segments: geometry.segments().into(),
            registration: None,
            confirmation: None,
            order: Order::AtOnce(Vec::new()),
            requests: None,
            datagrams: Datagrams {
                content: geometry.segment_size().into(),
                headers: HEADER_LEN as u32 + u32::from(self.pace.overhead),
                spare: 0,
                multiple: 2,
                setting: &SYMBOL_SIZE,
                rate: Some((self.pace.rate, &RATE)),
                granule: self.pace.granule,
            },
            round_trip: None,
        }
    }
}
