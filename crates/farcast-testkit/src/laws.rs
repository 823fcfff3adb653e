//! The laws of [`farcast_core::engine`] as tests that any protocol crate runs on scenarios of its own.
//!
//! A scenario is a closure that builds a [`Network`] from a [`Setup`]; all its random draws use the setup's seed. Laws
//! 4 (a deadline makes progress) and 8 (nothing leaves before its time) are asserted by the network itself on every
//! run, so each function here tests them too.
//!
//! Law 1 (no clock, thread, environment, global or hash-map iteration) cannot be seen from outside: `#![no_std]`
//! and clippy's disallowed methods check it. Law 2 binds the driver.

use core::fmt::Debug;
use core::ops::Range;

use farcast_core::engine::{Arrival, Engine, Message, Reject};
use farcast_core::{BitRate, Span, Time};

use crate::log::{Departure, Log};
use crate::network::{Cut, Network, Setup, Wake};

/// Tests law 5: the same seed gives the same departures and events.
///
/// # Panics
/// If it does not.
pub fn repeats<M>(seeds: Range<u64>, build: impl Fn(Setup) -> Network<M>)
where
    M: Message + Debug + PartialEq + 'static,
{
    for seed in seeds {
        for cut in [Cut::Whole, Cut::One] {
            let setup = Setup { cut, ..Setup::plain(seed) };
            expect_same("the same seed twice", &build, setup, setup);
        }
    }
}

/// Tests law 9: cutting runs anywhere changes neither the departures, nor their times, nor the events.
///
/// # Panics
/// If it does.
pub fn ignores_cuts<M>(seeds: Range<u64>, build: impl Fn(Setup) -> Network<M>)
where
    M: Message + Debug + PartialEq + 'static,
{
    for seed in seeds {
        let plain = Setup::plain(seed);
        for cut in [Cut::One, Cut::Random(seed), Cut::Random(!seed)] {
            expect_same("runs cut otherwise", &build, plain, Setup { cut, ..plain });
        }
    }
}

/// Tests law 3: waking an engine before its deadline changes nothing.
///
/// # Panics
/// If it does.
pub fn ignores_early_wakes<M>(seeds: Range<u64>, build: impl Fn(Setup) -> Network<M>)
where
    M: Message + Debug + PartialEq + 'static,
{
    for seed in seeds {
        // Run segment by segment, an engine has the most deadlines.
        for cut in [Cut::Whole, Cut::One] {
            let prompt = Setup { cut, ..Setup::plain(seed) };
            expect_same("early wake-ups", &build, prompt, Setup { wake: Wake::Early, ..prompt });
        }
    }
}

/// Tests law 3: waking an engine late, by up to `most`, is legal: `finished` still returns `true`.
///
/// # Panics
/// If it does not.
pub fn survives_late_wakes<M>(
    seeds: Range<u64>,
    most: Span,
    build: impl Fn(Setup) -> Network<M>,
    finished: impl Fn(&Network<M>) -> bool,
) where
    M: Message + Debug + PartialEq + 'static,
{
    for seed in seeds {
        for cut in [Cut::Whole, Cut::One, Cut::Random(seed)] {
            let mut network = build(Setup { seed, cut, wake: Wake::Late(most) });
            network.run();
            assert!(finished(&network), "{} not finished", network.context());
        }
    }
}

/// Tests laws 3, 4, 5, 8 and 9 on one scenario, which must end with `finished`.
///
/// # Panics
/// If one of them is broken.
pub fn all<M>(
    seeds: Range<u64>,
    late: Span,
    build: impl Fn(Setup) -> Network<M>,
    finished: impl Fn(&Network<M>) -> bool,
) where
    M: Message + Debug + PartialEq + 'static,
{
    for seed in seeds.clone() {
        let mut network = build(Setup::plain(seed));
        network.run();
        assert!(finished(&network), "{} not finished", network.context());
    }
    repeats(seeds.clone(), &build);
    ignores_cuts(seeds.clone(), &build);
    ignores_early_wakes(seeds.clone(), &build);
    survives_late_wakes(seeds, late, &build, &finished);
}

fn expect_same<M>(what: &str, build: &impl Fn(Setup) -> Network<M>, one: Setup, other: Setup)
where
    M: Message + Debug + PartialEq + 'static,
{
    let (first, _) = outcome(build, one);
    let (second, context) = outcome(build, other);
    if let Some(difference) = first.difference(&second) {
        panic!("{context} {what} changed the outcome: {difference}");
    }
}

fn outcome<M>(build: &impl Fn(Setup) -> Network<M>, setup: Setup) -> (Log<M>, String)
where
    M: Message + Debug + PartialEq + 'static,
{
    let mut network = build(setup);
    network.run();
    (network.take_log(), network.context())
}

/// Tests law 8: in no interval of length `within` do more bits leave than `rate` allows, plus one datagram. Every
/// datagram counts `overhead` bytes besides its own.
///
/// # Panics
/// If more leave; `context` begins the message.
pub fn keeps_rate<M: Message>(
    context: &str,
    departures: &[Departure<M>],
    rate: BitRate,
    overhead: usize,
    within: Span,
) {
    let bytes: Vec<usize> = departures.iter().map(|d| d.message.wire_len(0) + overhead).collect();
    let most = rate.as_bps() as f64 * within.as_secs_f64() / 8.0;
    let (mut first, mut sum) = (0, 0);
    for (last, departure) in departures.iter().enumerate() {
        sum += bytes[last];
        while departure.at.since(departures[first].at) >= within {
            sum -= bytes[first];
            first += 1;
        }
        let largest = bytes[first..=last].iter().max().copied().unwrap_or(0);
        assert!(
            sum as f64 <= most + largest as f64,
            "{context} {sum} bytes left in the {within} up to {:?}, of at most {most}",
            departure.at
        );
    }
}

/// Tests law 6: a message that is turned down changes only counters, and causes no message or event. `trace` shows all
/// other state of the engine; `excused` returns `true` for rejections that the protocol answers.
///
/// Returns the number of rejections that were checked.
///
/// # Panics
/// If a rejected message leaves a trace; a panic of the engine counts as one.
pub fn rejects_without_trace<E>(
    context: &str,
    engine: &mut E,
    messages: impl IntoIterator<Item = (Time, Arrival, E::Message)>,
    trace: impl Fn(&E) -> String,
    excused: impl Fn(&E::Message, Reject) -> bool,
) -> u64
where
    E: Engine,
    E::Message: Debug,
    E::Event: Debug,
{
    let mut rejected = 0;
    for (now, from, message) in messages {
        let (state, deadline) = (trace(engine), engine.poll_timeout());
        let result = engine.handle(now, &from, &message);
        let reason = result.err().filter(|&reason| !excused(&message, reason));
        if let Some(reason) = reason {
            rejected += 1;
            let what = format!("{context} {message:?} from {from:?} was turned down ({reason})");
            // The poll for output may do work that was due anyway, so the state is compared before.
            assert_eq!(trace(engine), state, "{what}, but left a trace");
            assert_eq!(engine.poll_timeout(), deadline, "{what}, but moved a timer");
            let event = engine.poll_event();
            assert!(event.is_none(), "{what}, but told {event:?}");
            let quiet = deadline.is_none_or(|deadline| deadline.at > now);
            let sent = engine.poll_transmit(now, now + Span::from_nanos(1)).filter(|_| quiet);
            assert!(sent.is_none(), "{what}, but sent {:?}", sent.map(|t| t.message));
        }
        settle(engine, now);
    }
    rejected
}

/// Drains an engine, and discards the output.
fn settle<E: Engine>(engine: &mut E, now: Time) {
    loop {
        let sent = engine.poll_transmit(now, now + Span::from_nanos(1)).is_some();
        // The poll for a message may have caused an event.
        let mut told = false;
        while engine.poll_event().is_some() {
            told = true;
        }
        if !sent && !told {
            return;
        }
    }
}

/// Tests law 7: the engine's `size` stays within `bound` under all `messages`. The engine is drained after each
/// message.
///
/// # Panics
/// If the engine grows beyond `bound`.
pub fn stays_small<E>(
    context: &str,
    engine: &mut E,
    messages: impl IntoIterator<Item = (Time, Arrival, E::Message)>,
    size: impl Fn(&E) -> usize,
    bound: usize,
) where
    E: Engine,
    E::Message: Debug,
{
    for (now, from, message) in messages {
        // Law 6 is tested elsewhere.
        let _ = engine.handle(now, &from, &message);
        settle(engine, now);
        let size = size(engine);
        assert!(size <= bound, "{context} size {size} of at most {bound} after {message:?}");
    }
}
