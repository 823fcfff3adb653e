//! Laws 6 and 7 for any protocol behind the seam: messages of its own sessions, damaged on the way, leave no trace
//! where they are turned down, and make no engine grow.

use core::cell::Cell;
use core::fmt::Debug;
use core::num::NonZeroU32;
use core::ops::Range;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_core::random::RandomStream;
use farcast_delivery::SenderEngine as _;

use crate::laws;
use crate::session::{Fixture, MessageOf, ReceiverOf, SenderOf, Session, receiver_address};

/// Conversations that an engine hears one after the other.
const CONVERSATIONS: u64 = 4;

/// Returns all messages of a session, in the order of their departures, one segment of each. Before every other one come
/// up to three damaged copies.
pub fn conversation<F: Fixture>(session: Session<F>, seed: u64) -> Vec<(Time, Arrival, MessageOf<F>)> {
    let mut session = session.run();
    let mut random = RandomStream::derive(seed, &[1]);
    let mut said = Vec::new();
    for departure in session.net.take_log().departures {
        let source = match departure.from.checked_sub(1) {
            None => F::source(),
            Some(n) => receiver_address(n as u32, F::group()),
        };
        let from = Arrival::new(source, F::group());
        let (message, _) = departure.message.split(NonZeroU32::MIN);
        if random.chance(0.5) {
            let damaged = (0..3).filter_map(|_| F::damage(&message, &mut random));
            said.extend(damaged.map(|damaged| (departure.at, from, damaged)));
        }
        said.push((departure.at, from, message));
    }
    said
}

/// Returns a sender that has opened and sent what was due.
fn opened<F: Fixture>(config: F::SenderConfig) -> SenderOf<F> {
    let mut engine = F::sender(config);
    engine.open(Time::ZERO);
    while engine.poll_transmit(Time::ZERO, Time::ZERO).is_some() {}
    while engine.poll_event().is_some() {}
    engine
}

/// Tests law 6 on a sender that hears conversations. Returns the number of messages that were turned down. A receiver is
/// left out: content that it cannot use may prolong its patience with the sender.
///
/// # Panics
/// If a message that is turned down leaves a trace.
pub fn sender_rejects_without_trace<F: Fixture>(
    seeds: Range<u64>,
    session: impl Fn(u64) -> Session<F>,
    sender: impl Fn(u64) -> F::SenderConfig,
) -> u64 {
    let trace = |engine: &SenderOf<F>| format!("{:?} {:?}", engine.phase(), engine.progress());
    let mut rejected = 0;
    for seed in seeds {
        let said = conversation(session(seed), seed);
        let mut engine = opened::<F>(sender(seed));
        let context = format!("[sender, seed {seed}]");
        rejected += laws::rejects_without_trace(&context, &mut engine, said, trace, |_, _| false);
    }
    rejected
}

/// Tests law 7 on a sender and a receiver: several conversations take no more than twice what the first one takes.
///
/// # Panics
/// If an engine grows beyond that.
pub fn stay_small<F: Fixture>(
    seeds: Range<u64>,
    session: impl Fn(u64) -> Session<F>,
    sender: impl Fn(u64) -> F::SenderConfig,
    receiver: impl Fn() -> F::ReceiverConfig,
) where
    SenderOf<F>: Debug,
    ReceiverOf<F>: Debug,
{
    for seed in seeds {
        let said = |round| conversation(session(seed), seed + round);
        let context = format!("[sender, seed {seed}]");
        stays_small(&context, || opened::<F>(sender(seed)), said);
        let context = format!("[receiver, seed {seed}]");
        stays_small(&context, || F::receiver(receiver()), said);
    }
}

/// Tests law 7 on an engine. The text of an engine grows with everything that it holds.
fn stays_small<E: Engine<Message: Debug> + Debug>(
    context: &str,
    make: impl Fn() -> E,
    said: impl Fn(u64) -> Vec<(Time, Arrival, E::Message)>,
) {
    let size = |engine: &E| format!("{engine:?}").len();
    let most = Cell::new(0);
    let measure = |engine: &E| {
        most.set(most.get().max(size(engine)));
        0
    };
    laws::stays_small(context, &mut make(), said(0), measure, 0);
    let words = (0..CONVERSATIONS).flat_map(said);
    laws::stays_small(context, &mut make(), words, size, 2 * most.get() + 10_000);
}
