//! Chains as their owners drive them: times that can be added up by hand, cuts that change nothing, and stages that
//! carry both ways.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{Arc, Mutex};

use farcast_core::engine::Deadline;
use farcast_core::random::RandomStream;
use farcast_core::stage::Totals;
use farcast_core::units::BitRate;
use farcast_core::{EventQueue, Stage};

use super::*;
use crate::pipe::{Pipe, PipeConfig};
use crate::tests::probe::{Probe, frame, ns};

const MS: u64 = 1_000_000;

fn pipe(bps: u64, delay_ms: u64, to: End) -> Box<Pipe<Probe>> {
    let delay = Span::from_millis(delay_ms);
    let config = PipeConfig { rate: BitRate::from_bps(bps), delay, ..PipeConfig::default() };
    Box::new(Pipe::new(config, to.port(), RandomStream::derive(1, &[])).unwrap())
}

enum Event {
    Enter(Entry<Probe>),
    Wake(u32),
}

/// A datagram that has left: the time, the end, and its number.
type Left = (Time, End, u32);

/// Lets frames enter, ascending by time, and handles all events. Returns the outputs, datagram by datagram.
fn drive(
    chains: Chains<Probe>,
    entering: Vec<(Time, End, Frame<Probe>)>,
    mut cut: impl FnMut(NonZeroU32) -> NonZeroU32,
) -> Vec<Left> {
    let mut world = World { driver: Driver::new(chains), queue: EventQueue::default(), left: Vec::new() };
    for (at, to, frame) in entering {
        world.queue.push(at, Event::Enter(Entry::new(to, frame)));
    }
    while let Some((now, event)) = world.queue.pop() {
        match event {
            Event::Enter(entry) => {
                let port = if entry.to() == End::Terminal { Port::Hub } else { Port::Terminal(0) };
                world.driver.enter(now, port, entry, world.queue.next_at(), &mut cut);
            }
            Event::Wake(stage) => world.driver.wake(now, stage),
        }
        follow(&mut world);
    }
    world.left.sort_unstable();
    world.left
}

/// The smallest owner of chains.
struct World {
    driver: Driver<Probe>,
    queue: EventQueue<Event>,
    left: Vec<Left>,
}

impl ChainOwner<Probe> for World {
    fn driver(&mut self) -> &mut Driver<Probe> {
        &mut self.driver
    }

    fn keep(&mut self, at: Time, entry: Entry<Probe>) {
        self.queue.push(at, Event::Enter(entry));
    }

    fn left(&mut self, at: Time, to: End, frame: Frame<Probe>) {
        let each = (0..).zip(frame.message.run.segments());
        self.left.extend(each.map(|(k, number)| (at + frame.spacing * k, to, number)));
    }

    fn drained(&mut self, stage: u32, wake: Option<Time>) {
        self.queue.push_unless_never(wake.unwrap_or(Time::NEVER), Event::Wake(stage));
    }
}

/// Two pipes to the terminals and one back.
fn pipes() -> Chains<Probe> {
    let mut chains = Chains::new();
    chains.push_forward("slow", pipe(1_000_000, 100, End::Terminal));
    chains.push_forward("fast", pipe(2_000_000, 10, End::Terminal));
    chains.push_return("back", pipe(8_000_000, 5, End::Hub));
    chains
}

#[test]
fn what_leaves_a_stage_enters_the_next() {
    // 1000 octets take 8 ms, 4 ms and 1 ms. Number 1 comes 2 ms after number 0 and waits for it.
    let entering = vec![
        (ns(0), End::Terminal, frame(0, 2, 1000, 1000, 2 * MS)),
        (ns(0), End::Hub, frame(7, 1, 1000, 1000, 0)),
    ];
    let left = drive(pipes(), entering, |most| most);
    let expected = [
        (ns(6 * MS), End::Hub, 7),
        (ns((8 + 100 + 4 + 10) * MS), End::Terminal, 0),
        (ns((16 + 100 + 4 + 10) * MS), End::Terminal, 1),
    ];
    assert_eq!(left, expected);
}

#[test]
fn a_chain_without_stages_is_left_at_once() {
    let entering =
        vec![(ns(3), End::Terminal, frame(0, 3, 10, 10, 5)), (ns(4), End::Hub, frame(9, 1, 10, 10, 0))];
    let expected = [(3, End::Terminal, 0), (4, End::Hub, 9), (8, End::Terminal, 1), (13, End::Terminal, 2)];
    assert_eq!(drive(Chains::new(), entering, |most| most), expected.map(|(at, to, n)| (ns(at), to, n)));
}

#[test]
fn cuts_change_nothing() {
    let mut random = RandomStream::derive(5, &[]);
    for round in 0..200 {
        let mut number = 0;
        let mut entering = Vec::new();
        let mut at = 0;
        for _ in 0..6 {
            at += random.below(40 * MS);
            let count = 1 + random.below(12) as u32;
            let spacing = random.below(9 * MS);
            entering.push((ns(at), End::Terminal, frame(number, count, 1000, 300, spacing)));
            number += count;
        }
        let whole = drive(pipes(), entering.clone(), |most| most);
        assert_eq!(whole.len() as u32, number, "round {round}");
        assert_eq!(drive(pipes(), entering.clone(), |_| NonZeroU32::MIN), whole, "round {round}, one by one");
        let mut cuts = RandomStream::derive(round, &[]);
        let any = |most: NonZeroU32| NonZeroU32::MIN.saturating_add(cuts.below(most.get().into()) as u32);
        assert_eq!(drive(pipes(), entering, any), whole, "round {round}, anywhere");
    }
}

/// Calls of a stage: the time, and the port and number of the datagrams that entered; `None` for a wake-up.
type Calls = Arc<Mutex<Vec<(Time, Option<(Port, u32)>)>>>;

/// Both ways; it passes everything at once, notes each call, and wants to be woken 10 ns after the last that entered.
struct Noting {
    calls: Calls,
    out: VecDeque<Output<Probe>>,
    due: Option<Time>,
}

impl Stage<Probe> for Noting {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<Probe>) {
        self.calls.lock().unwrap().push((now, Some((port, frame.segments()))));
        let port = if port == Port::Hub { Port::Terminals } else { Port::Hub };
        self.out.push_back(Output { at: now, port, frame });
        self.due = Some(now + Span::from_nanos(10));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.calls.lock().unwrap().push((now, None));
        self.due = None;
    }

    fn poll_output(&mut self) -> Option<Output<Probe>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.due.map(|at| Deadline { at, timer: "noting" })
    }

    fn totals(&self) -> Totals {
        Totals::default()
    }
}

#[test]
fn a_stage_both_ways_hears_each_datagram_at_its_time_and_is_woken_once() {
    let calls = Calls::default();
    let mut chains = Chains::new();
    let noting = Noting { calls: Arc::clone(&calls), out: VecDeque::new(), due: None };
    chains.push_both("noting", Box::new(noting));
    let entering =
        vec![(ns(0), End::Terminal, frame(0, 3, 10, 10, 4)), (ns(6), End::Hub, frame(9, 1, 10, 10, 0))];
    let left = drive(chains, entering, |most| most);
    let expected = [(0, End::Terminal, 0), (4, End::Terminal, 1), (6, End::Hub, 9), (8, End::Terminal, 2)];
    assert_eq!(left, expected.map(|(at, to, n)| (ns(at), to, n)));
    let one = |port| Some((port, 1));
    let (hub, terminal) = (one(Port::Hub), one(Port::Terminal(0)));
    let heard = [(0, hub), (4, hub), (6, terminal), (8, hub), (18, None)];
    assert_eq!(*calls.lock().unwrap(), heard.map(|(at, what)| (ns(at), what)));
}
