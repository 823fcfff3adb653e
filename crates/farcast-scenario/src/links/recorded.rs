//! Links that follow a file: rate traces and timelines.

use std::sync::Arc;

use farcast_core::Span;
use farcast_core::units::BitRate;
use farcast_link::trace::{RateTrace, Timeline, TimelinePipeConfig, TracePipeConfig};

use super::link::overhead;
use super::queues::queue;
use crate::document::{DocumentError, Reader};

/// A rate trace as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceSpec {
    /// Settings of the stage.
    pub config: TracePipeConfig,
    /// True if the limit of the queue was given.
    pub limit_said: bool,
}

/// A timeline as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct TimelineSpec {
    /// Settings of the stage.
    pub config: TimelinePipeConfig,
    /// True if the limit of the queue was given.
    pub limit_said: bool,
}

impl TraceSpec {
    /// Reads the keys of `kind = "trace"`.
    pub(super) fn read(table: &mut Reader<'_>) -> Result<Self, DocumentError> {
        const ALLOWED: &str = "a file of mahimahi's, with a time in milliseconds on each line";
        let text = table.file("trace", ALLOWED)?;
        let trace =
            RateTrace::parse(&text).map_err(|error| table.refuse("trace", error.to_string(), ALLOWED))?;
        let limit = queue(table)?;
        let (queue, limit_said) = (limit.unwrap_or_default(), limit.is_some());
        let (delay, overhead) = (table.span_or("delay", Span::ZERO)?, overhead(table)?);
        Ok(Self { config: TracePipeConfig { trace: Arc::new(trace), queue, delay, overhead }, limit_said })
    }

    /// Returns the mean rate, from which the default limit of the queue follows.
    pub(super) fn rate(&self) -> Option<BitRate> {
        self.config.trace.mean_rate()
    }
}

impl TimelineSpec {
    /// Reads the keys of `kind = "timeline"`.
    pub(super) fn read(table: &mut Reader<'_>) -> Result<Self, DocumentError> {
        const ALLOWED: &str = "a CSV file with the columns time_s and rate_bit_per_s, delay_s or per";
        let text = table.file("timeline", ALLOWED)?;
        let period = table.optional_span("period")?;
        let timeline = Timeline::parse(&text, period)
            .map_err(|error| table.refuse("timeline", error.to_string(), ALLOWED))?;
        let limit = queue(table)?;
        let (queue, limit_said) = (limit.unwrap_or_default(), limit.is_some());
        let (timeline, overhead) = (Arc::new(timeline), overhead(table)?);
        Ok(Self { config: TimelinePipeConfig { timeline, queue, overhead }, limit_said })
    }

    /// Returns the timeline that the stage follows.
    pub(super) fn timeline(&self) -> &Arc<Timeline> {
        &self.config.timeline
    }
}

#[cfg(test)]
mod tests;
