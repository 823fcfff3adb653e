//! Large groups, and returns that carry little.

use core::ops::Range;

use farcast_core::{BitRate, Span};
use farcast_mftp::{NakTiming, Pace, PassWait, SenderConfig, StatusRetry};
use farcast_testkit::Transmitter;

use crate::plan::Draw;
use crate::settings::{Crowd, OVERHEAD};

/// Purposes of the draws.
mod purpose {
    pub(super) const SIZE: u64 = 40;
    pub(super) const RETURN: u64 = 41;
}

/// Most receivers of a session that is not on request.
pub(crate) const MOST: usize = 200;
/// Receivers of which the story tells, if there are more.
pub(crate) const TOLD: usize = 5;
/// Most receivers that are too few for the return to matter to the settings.
const FEW: usize = 8;
/// Octets that a receiver sends in a session with few losses, with headers: registrations, answers, Dones.
const OCTETS_BACK: u64 = 500;
/// Rate of the return in bit/s for each receiver, at least.
const EACH: u64 = 40;
/// Octets that fit the queue before the return. In one with room for two datagrams, of receivers that answer at the same
/// instant and at a constant distance, the same ones would be dropped for ever.
const QUEUE: Range<f64> = 1_000.0..16_000.0;
/// Longest time that a datagram waits in the queue. It is counted as a part of the way, which must not take long enough for
/// its measure to be another fault.
pub(crate) const LONGEST_WAIT: Span = Span::from_secs(8);

/// Returns the number of receivers, if the session of `seed` is one of a larger group.
pub(crate) fn larger(seed: u64) -> Option<usize> {
    let mut draw = Draw::new(seed, &[purpose::SIZE]);
    draw.chance(0.008).then(|| draw.log((FEW + 1) as f64, (MOST + 1) as f64) as usize)
}

/// Draws a return that all receivers share. The sender may know its rate.
pub(crate) fn thin_return(
    seed: u64,
    sites: usize,
    config: &mut SenderConfig,
    crowd: Crowd,
) -> Option<Transmitter> {
    let mut draw = Draw::new(seed, &[purpose::RETURN]);
    let thin = draw.chance(if sites > FEW { 0.5 } else { 0.1 }).then(|| {
        let bps = (draw.log(2_000.0, 64_000.0) as u64).max(sites as u64 * EACH);
        let rate = BitRate::from_bps(bps).expect("positive");
        let queue = rate.time_of_bytes(draw.log(QUEUE.start, QUEUE.end) as u64).min(LONGEST_WAIT);
        Transmitter { rate, overhead: OVERHEAD, queue, shared: true }
    });
    let known = draw.chance(0.5);
    // A window's acknowledgements know nothing of a thin return.
    let thin = thin.filter(|_| !matches!(config.pace, Pace::Window { .. }));
    if (sites > FEW || thin.is_some()) && crowd != Crowd::Unlimited {
        by_default(config);
    }
    if let Some(thin) = thin {
        config.return_rate = (known && config.turns).then_some(thin.rate);
    }
    thin
}

/// Sets what `send` does by default, without which all receivers speak at once.
pub(crate) fn by_default(config: &mut SenderConfig) {
    if matches!(config.pace, Pace::Window { .. }) {
        return;
    }
    (config.pass_wait, config.nak_timing) = (PassWait::Draft, NakTiming::EachBlock);
    (config.turns, config.return_rate, config.start.with_first) = (true, None, true);
    (config.parity_symbols, config.parity_ahead) = (config.automatic_parity(), true);
    config.status_retry = StatusRetry::Measured;
}

/// Returns the time that the return needs for what receivers say, which is added to the length of the session.
pub(crate) fn time_back(sites: usize, thin: Option<&Transmitter>) -> Span {
    thin.map_or(Span::ZERO, |thin| thin.rate.time_of_bytes(sites as u64 * OCTETS_BACK))
}
