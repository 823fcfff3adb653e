//! Links whose rate follows a file: rate traces of mahimahi, and timelines of rate, delay and loss.
//!
//! | stage | file |
//! |---|---|
//! | [`TracePipe`] | a [`RateTrace`]: moments at which up to 1504 octets can be delivered, as mahimahi records them |
//! | [`TimelinePipe`] | a [`Timeline`]: a table of rate and delay by time |
//!
//! Both are drop-tail queues in one direction whose departures are known at entry, so there are no timers. The losses
//! of a timeline are a process of their own, [`TimelineLoss`](crate::losses::TimelineLoss).

mod error;
mod fifo;
mod opportunities;
mod replay;
mod timeline;
mod varying;

pub use error::{TimelineError, TraceError};
pub use opportunities::{OPPORTUNITY_OCTETS, RateTrace};
pub use replay::{TracePipe, TracePipeConfig};
pub use timeline::{Conditions, Timeline};
pub use varying::{TimelinePipe, TimelinePipeConfig};

pub(crate) use timeline::TimelineCursor;

/// Returns the content of a file, without a byte order mark before it and blank lines behind it.
fn content(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text).trim_end()
}
