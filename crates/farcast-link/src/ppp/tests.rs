//! PPP over lines, against a line that is simulated bit by bit.

mod line;
// The same second deframer as the protocol's own tests have: it shares no code with what it checks.
#[path = "../../../farcast-ppp/src/tests/naive.rs"]
mod naive;
mod octets;
mod stage;
mod vj;

use farcast_core::{BitRate, Span, Time};
use farcast_ppp::{ConfigError, DeframerCounters, EchoConfig, Fcs, Framing};

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
