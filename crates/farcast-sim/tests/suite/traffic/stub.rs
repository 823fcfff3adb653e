//! Star with a flow made by hand: a sliding window whose times can be added up.

use std::collections::BTreeSet;

use farcast_core::{Span, Time};
use farcast_link::losses::{AtEnd, ErrorVectors, NoLoss, parse_error_vector};
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{FlowConfig, Star};
use farcast_sim::traffic::{CbrReport, Counts, Datagram, End, Flow, FlowMessage, FlowReport};

use super::{CBR, MS};
use crate::worlds::scenario;

/// Flow in which the hub sends datagrams of 97 octets, at most `size` ahead of the answers. Every answer has 0 octets
/// and moves the timer, which repeats everything that is not answered.
struct Window {
    size: u64,
    count: u64,
    timeout: Span,
    next: u64,
    /// First datagram that is not answered.
    first: u64,
    answered: BTreeSet<u64>,
    answers: Vec<u64>,
    deadline: Time,
    completed: Option<Time>,
    /// Timeouts that came too early, and those that were due.
    early: u64,
    due: u64,
    received: u64,
}

impl Window {
    fn new(size: u64, count: u64, timeout: Span) -> Self {
        Self {
            size,
            count,
            timeout,
            next: 0,
            first: 0,
            answered: BTreeSet::new(),
            answers: Vec::new(),
            deadline: Time::NEVER,
            completed: None,
            early: 0,
            due: 0,
            received: 0,
        }
    }
}

impl Flow for Window {
    fn start(&mut self, now: Time) {
        self.deadline = now + self.timeout;
    }

    fn stop(&mut self, _now: Time) {
        self.deadline = Time::NEVER;
        self.next = self.count;
    }

    fn handle(&mut self, now: Time, end: End, message: &FlowMessage) {
        let FlowMessage::Datagram(datagram) = message else { panic!("{message:?}") };
        if end == End::Terminal {
            self.received += 1;
            self.answers.push(datagram.number);
            return;
        }
        self.answered.insert(datagram.number);
        while self.answered.remove(&self.first) {
            self.first += 1;
        }
        self.deadline = now + self.timeout;
        if self.first == self.count {
            self.completed.get_or_insert(now);
            self.deadline = Time::NEVER;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if now < self.deadline {
            self.early += 1;
            return;
        }
        self.due += 1;
        self.next = self.first;
        self.deadline = now + self.timeout;
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(End, FlowMessage)> {
        let message = |number, octets| FlowMessage::Datagram(Datagram { number, sent: now, octets });
        if let Some(number) = self.answers.pop() {
            return Some((End::Terminal, message(number, 0)));
        }
        while self.answered.contains(&self.next) {
            self.next += 1;
        }
        let ready = self.deadline != Time::NEVER && self.next < self.count.min(self.first + self.size);
        self.next += u64::from(ready);
        ready.then(|| (End::Hub, message(self.next - 1, 97)))
    }

    fn poll_timeout(&self) -> Time {
        self.deadline
    }

    fn has_end(&self) -> bool {
        true
    }

    fn completed(&self) -> Option<Time> {
        self.completed
    }

    /// Reports the numbers of due and early timers in the fields of a CBR report.
    fn report(&self) -> FlowReport {
        let none = None;
        let counts = CbrReport {
            sent: self.due,
            received: self.early,
            delay_mean_s: none,
            delay_p95_s: none,
            jitter_s: none,
        };
        FlowReport { octets: self.received, counts: Counts::Cbr(counts) }
    }
}

/// Runs a window over the links of [`CBR`]: 1 ms for a packet of 125 octets on the way there, and 100 ms each way.
/// `lost` are the lost packets to the terminal.
fn play(flow: Window, lost: &str) -> Star<'static, Mftp> {
    let mut config = scenario(CBR, &["link.forward.queue=unlimited"]).star(1, 0).unwrap();
    let vector = parse_error_vector(lost).unwrap();
    config.flows = vec![FlowConfig {
        name: "window".into(),
        source: End::Hub,
        flow: Box::new(flow),
        start: Time::ZERO + Span::from_secs(2),
        stop: None,
        overhead: 20,
        local_congestion: false,
        forward_losses: Box::new(ErrorVectors::new(&[vector], AtEnd::Keep).unwrap()),
        return_losses: Box::new(NoLoss),
    }];
    let mut star = Star::new(config, None).unwrap();
    star.run();
    star
}

/// Returns the nanoseconds from the start to the end.
fn took(star: &Star<'_, Mftp>) -> u64 {
    star.flows()[0].flow().completed().unwrap().since(Time::ZERO + Span::from_secs(2)).as_nanos()
}

#[test]
fn stop_and_wait_takes_a_round_trip_each() {
    let star = play(Window::new(1, 20, Span::from_secs(1)), "0");
    assert_eq!(took(&star), 20 * 201 * MS);
    // There is an event for the start and one for each arrival. The timer, which each answer moves, wakes once a second
    // and finds that it has moved. One wake is left after the end.
    let tally = star.tally();
    assert_eq!((tally.forward_datagrams, tally.return_datagrams), (20, 20));
    assert!(tally.events <= 1 + 40 + 5 + 1, "{tally:?}");
    assert_eq!((tally.forward_octets, tally.return_octets), (20 * 125, 20 * 28));
    let FlowReport { counts: Counts::Cbr(timers), .. } = star.flows()[0].flow().report() else { panic!() };
    assert_eq!((timers.sent, timers.received), (0, 0), "nobody is told of a timer that is not due");
}

#[test]
fn a_window_is_limited_by_itself_or_by_the_link() {
    // 50 packets a round trip of 201 ms: four windows, the last packet of each 49 ms behind its first.
    let star = play(Window::new(50, 200, Span::from_secs(1)), "0");
    assert_eq!(took(&star), 4 * 201 * MS + 49 * MS);
    // 300 packets ahead keep the link busy: a millisecond each, and the way there and back.
    let star = play(Window::new(300, 2000, Span::from_secs(1)), "0");
    assert_eq!(took(&star), 2000 * MS + 200 * MS);
}

#[test]
fn a_timer_fires_when_it_is_due() {
    // The third packet is lost once, and repeated a second after the second was answered.
    let star = play(Window::new(1, 4, Span::from_secs(1)), "001");
    assert_eq!(took(&star), 4 * 201 * MS + 1000 * MS);
    let passage = *star.flows()[0].passage(End::Terminal);
    assert_eq!((passage.entered, passage.lost, passage.dropped()), (5, 1, 0));
    let FlowReport { counts: Counts::Cbr(timers), octets } = star.flows()[0].flow().report() else {
        panic!()
    };
    assert_eq!((timers.sent, timers.received, octets), (1, 0, 4));
}
