//! Random schedules of a sender that keeps to the rules, over links that lose, lag, leave and join, against the model.

use super::model::{Model, Sent};
use super::*;
use farcast_core::random::RandomStream;
use std::collections::VecDeque;

/// Something that happens at the receiver.
enum Step {
    Join(usize),
    Leave(usize),
    Arrive(usize, Sent),
}

/// A sender and its links.
struct World {
    random: RandomStream,
    /// Links: `true` if the sender uses the link, and the fragments under way on it.
    links: Vec<(bool, VecDeque<Sent>)>,
    loss: f64,
    sequence: u64,
    packets: Vec<Vec<u8>>,
    /// Fragments of a packet that has begun.
    pending: VecDeque<Sent>,
    steps: Vec<Step>,
}

impl World {
    fn new(seed: u64, from: u64) -> Self {
        let mut random = RandomStream::derive(seed, &[1990]);
        let links = 1 + random.below(6) as usize;
        let loss = [0.0, 0.01, 0.1, 0.4][random.below(4) as usize];
        let links = vec![(true, VecDeque::new()); links];
        let (packets, pending, steps) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { random, links, loss, sequence: from, packets, pending, steps }
    }

    /// A packet of up to 6 fragments of up to 9 octets, at least one of them not empty.
    fn packet(&mut self) {
        let count = 1 + self.random.below(6);
        let number = self.packets.len() as u32;
        let mut whole = Vec::new();
        for k in 0..count {
            let mut octets = if k == 0 { number.to_be_bytes().to_vec() } else { Vec::new() };
            octets.extend((0..self.random.below(6)).map(|octet| octet as u8));
            whole.extend(&octets);
            let (begins, ends) = (k == 0, k + 1 == count);
            self.pending.push_back(Sent { sequence: self.sequence, begins, ends, octets });
            self.sequence += 1;
        }
        self.packets.push(whole);
    }

    /// Puts the next fragment on a link. Without a link the fragment is lost.
    fn send(&mut self) {
        if self.pending.is_empty() {
            self.packet();
        }
        let up: Vec<usize> = (0..self.links.len()).filter(|&link| self.links[link].0).collect();
        let lost = self.random.chance(self.loss);
        let link = self.random.below(up.len() as u64) as usize;
        if let (Some(fragment), false) = (self.pending.pop_front(), lost || up.is_empty()) {
            self.links[up[link]].1.push_back(fragment);
        }
    }

    fn arrive(&mut self, link: usize) {
        if let Some(fragment) = self.links[link].1.pop_front() {
            self.steps.push(Step::Arrive(link, fragment));
        }
    }

    /// Lets a link drop or come back. Fragments under way are gone, or arrive before or after the receiver knows.
    fn toggle(&mut self, link: usize) {
        let up = !self.links[link].0;
        self.links[link].0 = up;
        if up {
            self.steps.push(Step::Join(link));
            return;
        }
        match self.random.below(3) {
            0 => self.links[link].1.clear(),
            1 => (0..self.links[link].1.len()).for_each(|_| self.arrive(link)),
            _ => {}
        }
        self.steps.push(Step::Leave(link));
        (0..self.links[link].1.len()).for_each(|_| self.arrive(link));
    }

    /// Runs `events` draws. Returns the steps and the packets sent.
    fn run(mut self, events: u32) -> (Vec<Step>, Vec<Vec<u8>>) {
        self.steps.extend((0..self.links.len()).map(Step::Join));
        let lag = 1 + self.random.below(20);
        for _ in 0..events {
            let link = self.random.below(self.links.len() as u64) as usize;
            match self.random.below(100) {
                0 => self.toggle(link),
                1..50 => self.send(),
                // A link with much under way delivers more often, so the lag between links stays about `lag`.
                _ if self.links[link].1.len() as u64 > self.random.below(lag) => {
                    self.arrive(link);
                    self.arrive(link);
                }
                _ => {}
            }
        }
        for link in 0..self.links.len() {
            (0..self.links[link].1.len()).for_each(|_| self.arrive(link));
        }
        (self.steps, self.packets)
    }
}

/// A reassembler and a model that have come to number `from` by way of whole packets on a link of their own.
fn begun(format: Format, from: u64) -> (Reassembler<Vec<u8>>, Model) {
    let bounds = ReassemblyConfig { most_fragments: u32::MAX, ..config() };
    let mut reassembler = Reassembler::new(bounds, format).expect("valid");
    let mut model = Model::default();
    let link = MOST_LINKS - 1;
    reassembler.join(START, link);
    model.join(link);
    let stride = u64::from(format.largest()) / 2;
    for sequence in (0..from).rev().step_by(stride as usize).collect::<Vec<_>>().into_iter().rev() {
        let sent = Sent { sequence, begins: true, ends: true, octets: vec![0] };
        let header = header(format.wrap(sequence), "BE");
        reassembler.receive(START, link, header, sent.octets.clone()).expect("taken");
        model.receive(link, &sent);
    }
    reassembler.leave(START, link);
    model.leave(link);
    assert_eq!(packets(&mut reassembler), model.released);
    model.released.clear();
    (reassembler, model)
}

/// Runs one schedule through both, and compares them. Returns the numbers of packets that were sent and released.
fn compare(seed: u64, format: Format, from: u64, events: u32) -> (usize, usize) {
    let (steps, sent) = World::new(seed, from).run(events);
    let (mut reassembler, mut model) = begun(format, from);
    let mut released = Vec::new();
    for step in steps {
        match step {
            Step::Join(link) => {
                reassembler.join(START, link);
                model.join(link);
            }
            Step::Leave(link) => {
                reassembler.leave(START, link);
                model.leave(link);
            }
            Step::Arrive(link, fragment) => {
                model.receive(link, &fragment);
                let Sent { sequence, begins, ends, octets } = fragment;
                let header = Header { begins, ends, sequence: format.wrap(sequence) };
                let _refused = reassembler.receive(START, link, header, octets);
            }
        }
        released.extend(packets(&mut reassembler));
        assert_eq!(released, model.released, "seed {seed}, {format:?} from {from}");
    }
    // Each packet is one that was sent, once and in order: its first octets are its number.
    let numbers: Vec<usize> = released
        .iter()
        .map(|packet| u32::from_be_bytes(packet[..4].try_into().expect("a number")) as usize)
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "seed {seed}");
    assert!(numbers.iter().zip(&released).all(|(&number, packet)| sent[number] == *packet), "seed {seed}");
    let counters = reassembler.counters();
    assert_eq!(counters.backwards + counters.duplicates + counters.over_buffer, 0, "seed {seed}");
    (sent.len(), released.len())
}

#[test]
fn reassembly_agrees_with_the_letter_of_the_rules() {
    let (mut sent, mut released) = (0, 0);
    for seed in 0..3000 {
        let format = if seed % 2 == 0 { Format::Long } else { Format::Short };
        // A third of the schedules begin shortly before the numbers wrap.
        let numbers = u64::from(format.largest()) + 1;
        let from = if seed % 3 == 0 { numbers - 1 - seed % 50 } else { 0 };
        let (s, r) = compare(seed, format, from, 300);
        (sent, released) = (sent + s, released + r);
    }
    // The schedules are neither all loss nor none.
    assert!(sent > 90_000 && released > sent / 4 && released < sent * 9 / 10, "{released} of {sent}");
}

#[test]
fn short_numbers_may_wrap_many_times() {
    for seed in 0..3 {
        let (sent, released) = compare(seed, Format::Short, 0, 30_000);
        assert!(sent > 3000 && released > 100, "{released} of {sent}");
    }
}
