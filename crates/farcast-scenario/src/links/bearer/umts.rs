//! The keys of a UMTS bearer.

use std::num::NonZeroU32;

use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};
use farcast_link::umts::{BearerConfig, BearerError, ChannelConfig, ErasureUnit, Erasures};
use farcast_rlc::config::{Discard, MaxTransmissions, Polling, StatusReporting};
use farcast_rlc::format::Format;
use farcast_rlc::report::ReportForm;
use farcast_rlc::{Config, ConfigError};

use super::positive;
use crate::document::{DocumentError, Reader};
use crate::links::queues::{Queue, queue};

/// A UMTS bearer as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct UmtsSpec {
    /// Settings of the bearer.
    pub config: BearerConfig,
    /// True for each queue, forward and back, whose limit was given.
    limits_said: [bool; 2],
}

impl UmtsSpec {
    /// Returns the queues, forward and back.
    pub(super) fn queues(&mut self) -> [Queue<'_>; 2] {
        let [rate, back_rate] = self.config.capacity();
        let [said, back_said] = &mut self.limits_said;
        let BearerConfig { downlink, uplink, .. } = &mut self.config;
        [
            Queue { rate, limit: &mut downlink.queue, said },
            Queue { rate: back_rate, limit: &mut uplink.queue, said: back_said },
        ]
    }
}

pub(super) fn read(table: &mut Reader<'_>) -> Result<UmtsSpec, DocumentError> {
    let mut one = |key| {
        let mut inner = table.table(key)?;
        let read = channel(&mut inner)?;
        inner.finish()?;
        Ok(read)
    };
    let ((downlink, said), (uplink, back_said)) = (one("forward")?, one("return")?);
    let config = BearerConfig { downlink, uplink, rlc: rlc(table)? };
    config.check().map_err(|error| {
        let key = match &error {
            BearerError::Channel(misfit) => {
                let wrong = format!("its tti does not fit: {}", misfit.kind);
                return table.refuse(misfit.channel, wrong, "a tti and a rate that carry at least one PDU");
            }
            BearerError::Rlc(ConfigError::Format(_) | ConfigError::PeerFormat(_)) => "pdu",
            _ => "kind",
        };
        table.refuse(key, error.to_string(), "settings that a bearer can have")
    })?;
    Ok(UmtsSpec { config, limits_said: [said, back_said] })
}

/// Reads a dedicated channel, and whether its queue is limited.
fn channel(table: &mut Reader<'_>) -> Result<(ChannelConfig, bool), DocumentError> {
    let units = [("tti", ErasureUnit::Tti), ("pdu", ErasureUnit::Pdu)];
    let limit = queue(table)?;
    let config = ChannelConfig {
        rate: table.rate("rate")?,
        tti: table.span_or("tti", Span::from_millis(10))?,
        erasures: Erasures {
            unit: table.choice_or("erasure_unit", &units, ErasureUnit::Tti)?,
            rate: table.probability_or("erasures", Probability::ZERO)?,
        },
        processing: table.span_or("processing", Span::ZERO)?,
        queue: limit.unwrap_or_default(),
    };
    Ok((config, limit.is_some()))
}

/// Reads the settings of Radio Link Control, which both ends share.
fn rlc(table: &mut Reader<'_>) -> Result<Config, DocumentError> {
    let default = Config::default();
    let Bytes(pdu) = table.bytes_or("pdu", Bytes(default.format.pdu_octets.into()))?;
    let Ok(pdu_octets) = u16::try_from(pdu) else {
        return Err(table.refuse("pdu", "no PDU is so large", "6 B to 1505 B"));
    };
    let format = Format { pdu_octets, header_extension: table.flag_or("header_extension", false)? };
    let window = table.integer_or("window", 1..=4095, default.tx_window)?;
    let (max_transmissions, discard) = (transmissions(table)?, discard(table)?);
    let mut rlc = Config {
        format,
        peer_format: format,
        tx_window: window,
        rx_window: window,
        polling: polling(table, default.polling)?,
        status: status(table, default.status)?,
        max_transmissions,
        discard,
        in_sequence: table.flag_or("in_sequence", default.in_sequence)?,
        piggyback: table.flag_or("piggyback", default.piggyback)?,
        ..default
    };
    rlc.mrw.timer = above_zero(table, "mrw_timer", rlc.mrw.timer)?;
    rlc.mrw.max_mrw = table.integer_or("max_mrw", 1..=1000, rlc.mrw.max_mrw)?;
    rlc.reset.timer = above_zero(table, "reset_timer", rlc.reset.timer)?;
    rlc.reset.max_rst = table.integer_or("max_rst", 1..=1000, rlc.reset.max_rst)?;
    Ok(rlc)
}

/// Reads `max_transmissions`, or `max_dat`, which in the counting of the standard is one more.
fn transmissions(table: &mut Reader<'_>) -> Result<MaxTransmissions, DocumentError> {
    let (count, max_dat) = (
        table.optional_integer("max_transmissions", 0..=1_000_000_u32)?,
        table.optional_integer("max_dat", 0..=1_000_000_u32)?,
    );
    let (key, read, allowed) = match (count, max_dat) {
        (Some(_), Some(_)) => {
            return Err(table.refuse("max_dat", "max_transmissions says it already", "one of the two"));
        }
        (None, None) => return Ok(Config::default().max_transmissions),
        (Some(count), None) => ("max_transmissions", MaxTransmissions::new(count), "at least 1"),
        (None, Some(max_dat)) => ("max_dat", MaxTransmissions::from_max_dat(max_dat), "at least 2"),
    };
    read.map_err(|error| table.refuse(key, error.to_string(), allowed))
}

/// Reads the handling of SDUs that cannot be delivered.
fn discard(table: &mut Reader<'_>) -> Result<Discard, DocumentError> {
    let timer = Discard::Timer { after: Span::ZERO };
    let modes = [("none", Discard::None), ("max_transmissions", Discard::MaxTransmissions), ("timer", timer)];
    let mode = table.choice_or("discard", &modes, Discard::default())?;
    if mode != timer {
        return Ok(mode);
    }
    let after = table.span("discard_timer")?;
    if after.is_zero() {
        return Err(table.refuse("discard_timer", "everything would be given up at once", "above 0 s"));
    }
    Ok(Discard::Timer { after })
}

/// Reads `poll`: the triggers at which the transmitter asks for a report.
fn polling(table: &mut Reader<'_>, default: Polling) -> Result<Polling, DocumentError> {
    let mut inner = table.table_or_empty("poll")?;
    let every = |inner: &mut Reader<'_>, key| {
        Ok::<_, DocumentError>(inner.optional_integer(key, 1..=u32::MAX)?.and_then(NonZeroU32::new))
    };
    let polling = Polling {
        last_pdu: inner.flag_or("last_pdu", default.last_pdu)?,
        last_retransmitted_pdu: inner.flag_or("last_retransmitted_pdu", default.last_retransmitted_pdu)?,
        poll_pdu: every(&mut inner, "every_pdus")?,
        poll_sdu: every(&mut inner, "every_sdus")?,
        window_percent: inner.optional_integer("window_percent", 1..=99)?,
        periodic: positive(&mut inner, "periodic")?,
        timer: positive(&mut inner, "timer")?,
        prohibit: positive(&mut inner, "prohibit")?,
    };
    inner.finish()?;
    Ok(polling)
}

/// Reads `status`: the triggers at which the receiver reports without being asked.
fn status(table: &mut Reader<'_>, default: StatusReporting) -> Result<StatusReporting, DocumentError> {
    let mut inner = table.table_or_empty("status")?;
    let forms =
        [("list", ReportForm::List), ("bitmap", ReportForm::Bitmap), ("rlist", ReportForm::RelativeList)];
    let status = StatusReporting {
        missing_pdu: inner.flag_or("missing_pdu", default.missing_pdu)?,
        periodic: positive(&mut inner, "periodic")?,
        epc: positive(&mut inner, "epc")?,
        prohibit: positive(&mut inner, "prohibit")?,
        form: inner.choice_or("form", &forms, default.form)?,
    };
    inner.finish()?;
    Ok(status)
}

fn above_zero(table: &mut Reader<'_>, key: &'static str, default: Span) -> Result<Span, DocumentError> {
    Ok(positive(table, key)?.unwrap_or(default))
}
