//! The keys of a multilink bundle.

use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};
use farcast_link::multilink::{Calls, Detection, LinkConfig, MultilinkConfig, MultilinkError};
use farcast_ppp::EchoConfig;
use farcast_ppp::multilink::{Format, MOST_LINKS, Policy, ReassemblyConfig};

use super::framing;
use crate::document::{DocumentError, Reader};
use crate::links::queues::{Queue, queue, queue_of};

/// Means by which the end of a call is detected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HangUpDetection {
    Carrier,
    Echo,
}

/// A multilink bundle as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct MultilinkSpec {
    /// Settings of the bundle.
    pub config: MultilinkConfig,
    /// True for each queue, forward and back, whose limit was given.
    limits_said: [bool; 2],
}

impl MultilinkSpec {
    /// Returns the queues, forward and back.
    pub(super) fn queues(&mut self) -> [Queue<'_>; 2] {
        let [rate, back_rate] = self.config.capacity();
        let [said, back_said] = &mut self.limits_said;
        let MultilinkConfig { queue, back_queue, .. } = &mut self.config;
        [Queue { rate, limit: queue, said }, Queue { rate: back_rate, limit: back_queue, said: back_said }]
    }
}

pub(super) fn read(table: &mut Reader<'_>) -> Result<MultilinkSpec, DocumentError> {
    let count = table.integer("links", 0..=u32::MAX)?;
    let wrong = match count {
        0 => Some("a bundle of no links carries nothing"),
        count if count as usize > MOST_LINKS => Some("a bundle cannot have so many links"),
        _ => None,
    };
    if let Some(wrong) = wrong {
        return Err(table.refuse("links", wrong, format!("1 to {MOST_LINKS} links")));
    }
    let link = link(table)?;
    let limit = queue(table)?;
    let back_limit = queue_of(table, "return_queue", "return_queue_packets")?.or(limit);
    let config = MultilinkConfig {
        header: table.choice_or(
            "header",
            &[("long", Format::Long), ("short", Format::Short)],
            Format::Long,
        )?,
        policy: policy(table)?,
        framing: framing(table)?,
        queue: limit.unwrap_or_default(),
        back_queue: back_limit.unwrap_or_default(),
        link_buffer: table.integer_or("link_buffer", 0..=u16::MAX, 1)?,
        frame_loss: table.probability_or("per", Probability::ZERO)?,
        reassembly: reassembly(table)?,
        ..MultilinkConfig::new(vec![link; count as usize])
    };
    config.check().map_err(|error| {
        let key = match error {
            MultilinkError::OctetBits(_) => "octet_bits",
            MultilinkError::EchoTooSoon { .. } | MultilinkError::EchoLoad { .. } => "echo_interval",
            MultilinkError::Zero("time_between_drops") => "time_between_drops",
            _ => "links",
        };
        table.refuse(key, error.to_string(), "settings that a bundle can have")
    })?;
    Ok(MultilinkSpec { config, limits_said: [limit.is_some(), back_limit.is_some()] })
}

/// Reads the settings that all links share.
fn link(table: &mut Reader<'_>) -> Result<LinkConfig, DocumentError> {
    let rate = table.rate("rate")?;
    let default = LinkConfig::new(rate);
    Ok(LinkConfig {
        back: table.rate_or("return_rate", rate)?,
        octet_bits: table.integer_or("octet_bits", 8..=12, default.octet_bits)?,
        delay: table.span_or("delay", Span::ZERO)?,
        calls: calls(table)?,
        ..default
    })
}

/// Reads `time_between_drops` and the redialling of calls; without it, calls never drop.
fn calls(table: &mut Reader<'_>) -> Result<Option<Calls>, DocumentError> {
    let Some(time_between_drops) = table.optional_span("time_between_drops")? else {
        return Ok(None);
    };
    if time_between_drops < super::SHORTEST {
        let wrong = "calls would do nothing but drop";
        return Err(table.refuse("time_between_drops", wrong, "1 ms or more"));
    }
    let redial = table.span_or("redial", Span::from_secs(30))?;
    let detections = [("carrier", HangUpDetection::Carrier), ("echo", HangUpDetection::Echo)];
    // The keys of both means are accepted in any case, so that one can be tried in place of the other.
    let after = table.span_or("carrier_delay", Span::ZERO)?;
    let echo = EchoConfig {
        interval: table.span_or("echo_interval", Span::from_secs(10))?,
        failures: table.integer_or("echo_failures", 1..=1000, 3)?,
    };
    let detection = match table.choice_or("detection", &detections, HangUpDetection::Carrier)? {
        HangUpDetection::Carrier => Detection::Carrier { after },
        HangUpDetection::Echo => Detection::Echo(echo),
    };
    Ok(Some(Calls { time_between_drops, redial, detection }))
}

fn policy(table: &mut Reader<'_>) -> Result<Policy, DocumentError> {
    let smallest = Policy::SMALLEST;
    let choices = [
        ("free", Policy::Free),
        ("equal", Policy::Equal { smallest }),
        ("proportional", Policy::Proportional { smallest }),
        ("whole", Policy::Whole),
    ];
    let policy = table.choice_or("fragments", &choices, Policy::Free)?;
    let smallest = smallest_of(table)?;
    Ok(match policy {
        Policy::Free | Policy::Whole => policy,
        Policy::Equal { .. } => Policy::Equal { smallest },
        Policy::Proportional { .. } => Policy::Proportional { smallest },
    })
}

/// Reads the mean size of fragments, in octets, below which packets are cut into fewer.
fn smallest_of(table: &mut Reader<'_>) -> Result<u16, DocumentError> {
    let Bytes(smallest) = table.bytes_or("smallest_fragment", Bytes(Policy::SMALLEST.into()))?;
    let smallest = u16::try_from(smallest).ok().filter(|&smallest| smallest > 0);
    smallest.ok_or_else(|| table.refuse("smallest_fragment", "no fragment has it", "1 B to 65535 B"))
}

fn reassembly(table: &mut Reader<'_>) -> Result<ReassemblyConfig, DocumentError> {
    let default = ReassemblyConfig::default();
    let Bytes(mrru) = table.bytes_or("mrru", Bytes(default.mrru.into()))?;
    let Some(mrru) = u16::try_from(mrru).ok().filter(|&mrru| mrru > 0) else {
        return Err(table.refuse("mrru", "no packet has such a length", "1 B to 65535 B"));
    };
    Ok(ReassemblyConfig {
        mrru,
        most_fragments: table.integer_or("most_fragments", 1..=u32::MAX, default.most_fragments)?,
        idle: super::positive(table, "link_idle")?,
        ..default
    })
}
