//! PPP against witnesses of its own kind: published check values, hand-made frames, tshark, and a second deframer.

mod deframe;
mod echo;
mod fcs;
mod framing;
mod lcp;
mod naive;
mod tshark;
mod vectors;
mod vj;

use farcast_core::{Span, Time};

use super::*;

fn ns(nanoseconds: u64) -> Time {
    Time::from_nanos(nanoseconds)
}

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}
