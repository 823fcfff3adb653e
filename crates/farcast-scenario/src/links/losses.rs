//! Losses, as a scenario describes them.

use std::num::NonZeroU32;
use std::sync::Arc;

use farcast_core::random::RandomStream;
use farcast_core::units::Bytes;
use farcast_core::{Bitmap, Losses, Probability, Span};
use farcast_link::bgan::{ForwardConfig, ForwardLosses, LossUnit};
use farcast_link::losses::{
    AtEnd, Bernoulli, BitErrors, ErrorVectors, GilbertElliott, GilbertElliottConfig, NoLoss, OutageLength,
    Outages, RandomOutages, Several, TimelineLoss, Transitions, parse_error_vector,
};
use farcast_link::outage::Schedule;
use farcast_link::trace::Timeline;

use super::bgan::BganForwardSpec;
use super::link::{self, LinkSpec};
use crate::document::{DocumentError, Reader};

/// One loss process.
#[derive(Clone, PartialEq, Debug)]
enum Process {
    Bernoulli(Probability),
    BitErrors(Probability, Option<NonZeroU32>),
    GilbertElliott(GilbertElliottConfig),
    /// Error vectors, which receivers take in turn.
    Vectors(Vec<Bitmap>, AtEnd),
    Scheduled(Schedule),
    Random(RandomOutages),
    Bgan(ForwardConfig),
    Timeline(Arc<Timeline>),
}

/// Loss processes; a frame is lost if any of them loses it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LossSpec(Vec<Process>);

impl LossSpec {
    /// Reads the losses of a link. `per` of a BGAN bearer, the loss probability of one of its units, comes from
    /// `link`. So do the losses of a timeline with such a column.
    pub fn read(table: &mut Reader<'_>, link: &LinkSpec) -> Result<Self, DocumentError> {
        let mut processes = Vec::new();
        if let LinkSpec::BganForward(BganForwardSpec { config, .. }) = link {
            if config.loss != Probability::ZERO {
                processes.push(Process::Bgan(config.clone()));
            }
        } else {
            processes.extend(bernoulli(table)?);
        }
        processes.extend(others(table)?);
        if let LinkSpec::Timeline(spec) = link
            && spec.timeline().has_loss()
        {
            processes.push(Process::Timeline(spec.timeline().clone()));
        }
        Ok(Self(processes))
    }

    /// Reads the losses that a group of receivers has in place of the link's; `None` if none are given.
    pub fn read_own(table: &mut Reader<'_>) -> Result<Option<Self>, DocumentError> {
        let named = table.optional_probability("per")?.is_some();
        let mut processes: Vec<Process> = bernoulli(table)?.into_iter().collect();
        processes.extend(others(table)?);
        Ok((named || !processes.is_empty()).then_some(Self(processes)))
    }

    /// Returns the probability of loss, if packets are lost independently of each other and of all else; 0 if nothing
    /// is lost.
    pub fn per(&self) -> Option<Probability> {
        match self.0.as_slice() {
            [] => Some(Probability::ZERO),
            [Process::Bernoulli(p)] => Some(*p),
            _ => None,
        }
    }

    /// Returns the approximate share of packets of `octets` octets that a receiver loses, without outages and
    /// timelines.
    pub fn share(&self, octets: u64) -> f64 {
        let survives = |process: &Process| 1.0 - process.share(octets).clamp(0.0, 1.0);
        1.0 - self.0.iter().map(survives).product::<f64>()
    }

    /// Returns `true` if one process may serve all receivers, although each has a link of its own.
    pub fn is_memoryless(&self) -> bool {
        self.0.iter().all(|process| matches!(process, Process::Bernoulli(_) | Process::BitErrors(..)))
    }

    /// Returns a measure of the memory that an error vector takes for each receiver: its losses, and one for every 32
    /// packets.
    pub fn marks(&self) -> u64 {
        let of = |process: &Process| match process {
            Process::Vectors(vectors, _) => {
                vectors.iter().map(|vector| u64::from(vector.count()) + u64::from(vector.len() / 32)).max()
            }
            _ => None,
        };
        self.0.iter().filter_map(of).max().unwrap_or(0)
    }

    /// Returns all processes but outages, and the outages. Together they equal this specification, with the same
    /// draws.
    #[must_use]
    pub fn apart(&self) -> (Self, Self) {
        let is_outage = |process: &Process| matches!(process, Process::Scheduled(_) | Process::Random(_));
        let (outages, others) = self.0.iter().cloned().partition(is_outage);
        (Self(others), Self(outages))
    }

    /// Builds the processes for `receivers` receivers of one channel, the first of which has number `first`.
    pub fn make(&self, first: u32, receivers: u32, stream: RandomStream) -> Box<dyn Losses> {
        match self.0.as_slice() {
            [] => Box::new(NoLoss),
            [one] => one.make(first, receivers, stream),
            several => {
                let own = |process: &Process| process.make(first, receivers, stream.clone());
                Box::new(Several::new(several.iter().map(own).collect()))
            }
        }
    }
}

impl Process {
    /// Returns the approximate share of packets of `octets` octets that is lost.
    fn share(&self, octets: u64) -> f64 {
        let any = |p: f64, units: f64| 1.0 - (1.0 - p).powf(units);
        match self {
            Self::Bernoulli(p) => p.get(),
            Self::BitErrors(ber, frame) => {
                any(ber.get(), 8.0 * frame.map_or(octets, |frame| frame.get().into()) as f64)
            }
            Self::GilbertElliott(config) => config.loss(),
            Self::Vectors(vectors, _) => {
                let (lost, len) = vectors.iter().fold((0, 0), |(lost, len), vector| {
                    (lost + u64::from(vector.count()), len + u64::from(vector.len()))
                });
                lost as f64 / len.max(1) as f64
            }
            Self::Scheduled(_) | Self::Random(_) | Self::Timeline(_) => 0.0,
            Self::Bgan(config) => {
                let units = match config.loss_unit {
                    LossUnit::Pdu => config.pdus(octets),
                    LossUnit::Packet => 1,
                    LossUnit::FecBlock => config.fec_blocks(octets),
                };
                any(config.loss.get(), units as f64)
            }
        }
    }

    fn make(&self, first: u32, receivers: u32, stream: RandomStream) -> Box<dyn Losses> {
        // The settings were checked when they were read.
        const CHECKED: &str = "checked when read";
        // Each kind has draws of its own, so that a further process does not change those of another.
        let stream = match self {
            Self::Bernoulli(_) | Self::Bgan(_) => stream,
            Self::BitErrors(..) => RandomStream::derive(stream.clone().bits(), &[1]),
            Self::GilbertElliott(_) => RandomStream::derive(stream.clone().bits(), &[2]),
            Self::Vectors(..) | Self::Scheduled(_) | Self::Random(_) => {
                RandomStream::derive(stream.clone().bits(), &[3])
            }
            Self::Timeline(_) => RandomStream::derive(stream.clone().bits(), &[4]),
        };
        match self {
            Self::Bernoulli(p) => Box::new(Bernoulli::new(*p, receivers, stream)),
            Self::BitErrors(ber, frame) => Box::new(BitErrors::new(*ber, *frame, receivers, stream)),
            Self::GilbertElliott(config) => {
                Box::new(GilbertElliott::new(*config, receivers, stream).expect(CHECKED))
            }
            Self::Vectors(vectors, at_end) => {
                let of = |n: u32| vectors[n as usize % vectors.len()].clone();
                let all: Vec<Bitmap> = (first..first + receivers).map(of).collect();
                Box::new(ErrorVectors::new(&all, *at_end).expect(CHECKED))
            }
            Self::Scheduled(schedule) => Box::new(Outages::scheduled(schedule.clone(), receivers)),
            Self::Random(config) => Box::new(Outages::random(*config, receivers, stream).expect(CHECKED)),
            Self::Bgan(config) => {
                Box::new(ForwardLosses::new(config.clone(), receivers, stream).expect(CHECKED))
            }
            Self::Timeline(timeline) => Box::new(TimelineLoss::new(timeline.clone(), receivers, stream)),
        }
    }
}

fn bernoulli(table: &mut Reader<'_>) -> Result<Option<Process>, DocumentError> {
    let p = table.optional_probability("per")?.filter(|p| *p != Probability::ZERO);
    Ok(p.map(Process::Bernoulli))
}

fn others(table: &mut Reader<'_>) -> Result<Vec<Process>, DocumentError> {
    let mut processes = Vec::new();
    if let Some(ber) = table.optional_probability("ber")? {
        let frame = table.optional_bytes("ber_frame")?.map(|Bytes(octets)| octets);
        let fits = |octets: u64| u32::try_from(octets).ok().and_then(NonZeroU32::new);
        if frame.is_some_and(|octets| fits(octets).is_none()) {
            return Err(table.refuse("ber_frame", "a frame has at least one octet", "1 B to 4 GB"));
        }
        processes.push(Process::BitErrors(ber, frame.and_then(fits)));
    }
    if let Some(mut inner) = table.optional_table("gilbert_elliott")? {
        processes.push(gilbert_elliott(&mut inner)?);
        inner.finish()?;
    }
    processes.extend(vectors(table)?);
    if let Some(mut inner) = table.optional_table("outages")? {
        processes.push(outages(&mut inner)?);
        inner.finish()?;
    }
    Ok(processes)
}

/// Reads `error_vector`, one for all receivers, or `error_vector_file`, a line for each receiver, in turn.
fn vectors(table: &mut Reader<'_>) -> Result<Option<Process>, DocumentError> {
    const FILE: &str = "error_vector_file";
    let text = table.optional_text("error_vector")?;
    if text.is_some() && table.holds(FILE) {
        return Err(table.refuse(FILE, "error_vector says what is lost already", "one of the two"));
    }
    let (key, text) = match text {
        Some(text) => ("error_vector", text),
        None => match table.optional_file(FILE, "a file with a line of 0 and 1 for each receiver")? {
            Some(text) => (FILE, text),
            None => return Ok(None),
        },
    };
    let at_end = if table.flag_or("error_vector_repeats", true)? { AtEnd::Repeat } else { AtEnd::Keep };
    let lines = text.lines().filter(|line| !line.trim().is_empty()).map(parse_error_vector);
    let refuse =
        |wrong: String| table.refuse(key, wrong, "vectors such as \"00010\", of equal length if they repeat");
    let vectors = lines.collect::<Result<Vec<_>, _>>().map_err(|error| refuse(error.to_string()))?;
    if vectors.iter().all(|vector| *vector == Bitmap::new(0)) {
        return Err(refuse("there is nothing in it".into()));
    }
    ErrorVectors::new(&vectors, at_end).map_err(|error| refuse(error.to_string()))?;
    Ok(Some(Process::Vectors(vectors, at_end)))
}

fn gilbert_elliott(table: &mut Reader<'_>) -> Result<Process, DocumentError> {
    let sojourns = (table.optional_span("good")?, table.optional_span("bad")?);
    let transitions = match sojourns {
        (Some(good), Some(bad)) => Transitions::Timed { good, bad },
        (None, None) => {
            let (p, r) = (table.probability("p")?, table.probability("r")?);
            Transitions::PerFrame { p, r }
        }
        _ => {
            return Err(table.refuse(
                "good",
                "the mean times in both states are needed",
                "good and bad, or p and r",
            ));
        }
    };
    let certain = Probability::new(1.0).unwrap_or(Probability::ZERO);
    let config = GilbertElliottConfig {
        transitions,
        loss_good: table.probability_or("loss_good", Probability::ZERO)?,
        loss_bad: table.probability_or("loss_bad", certain)?,
    };
    let key = if matches!(config.transitions, Transitions::Timed { .. }) { "good" } else { "p" };
    let allowed = "p or r above 0, or times above 0 s in both states";
    config.check().map_err(|error| table.refuse(key, error.to_string(), allowed))?;
    Ok(Process::GilbertElliott(config))
}

/// Reads outages: scheduled ones have a `start`, random ones a mean time `between` them.
fn outages(table: &mut Reader<'_>) -> Result<Process, DocumentError> {
    if let Some(schedule) = link::schedule(table)? {
        return Ok(Process::Scheduled(schedule));
    }
    let between: Span = table.span("between")?;
    let length = table.span("length")?;
    let length = if table.flag_or("fixed_length", false)? {
        OutageLength::Fixed(length)
    } else {
        OutageLength::Exponential(length)
    };
    let config = RandomOutages { between, length, common: table.flag_or("common", false)? };
    config.check().map_err(|error| table.refuse("between", error.to_string(), "times above zero"))?;
    Ok(Process::Random(config))
}

#[cfg(test)]
mod tests;
