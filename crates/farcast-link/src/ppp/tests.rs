//! PPP against witnesses of its own kind: published check values, hand-made frames, tshark, a second deframer, and a line
//! that is simulated bit by bit.

mod deframe;
mod echo;
mod framing;
mod lcp;
mod line;
mod naive;
mod octets;
mod stage;
mod tshark;
mod vectors;

use farcast_core::{BitRate, Span, Time};

use super::*;

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps).expect("positive")
}

fn ns(nanoseconds: u64) -> Time {
    Time::from_nanos(nanoseconds)
}

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}
