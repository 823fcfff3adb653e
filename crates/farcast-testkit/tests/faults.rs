//! Temporary faults have their documented effect, and no other.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, Transmit};
use farcast_core::{BitRate, Span, Time};
use farcast_testkit::{Handle, Host, Link, Network, Setup, Transmitter};

/// A number.
#[derive(Clone, Debug, PartialEq)]
struct Number(u32);

impl Message for Number {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, _: u32) -> usize {
        4
    }
}

/// Sends the numbers below 100, one each millisecond, and reports the numbers that it receives.
struct Counter {
    to: Option<SocketAddr>,
    claims: Option<SocketAddr>,
    next: u32,
    heard: Vec<(SocketAddr, u32)>,
}

const MS: Span = Span::from_millis(1);

fn ms(n: u64) -> Time {
    Time::ZERO + MS * n
}

impl Counter {
    fn due(&self) -> Time {
        ms(u64::from(self.next))
    }
}

impl Engine for Counter {
    type Message = Number;
    type Event = (SocketAddr, u32);

    fn handle(&mut self, _: Time, from: &Arrival, message: &Number) -> Result<(), Reject> {
        self.heard.push((from.source, message.0));
        Ok(())
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, _: Time) -> Option<Transmit<Number>> {
        let to = self.to.filter(|_| self.next < 100 && self.due() <= now)?;
        self.next += 1;
        let mut transmit = Transmit::new(Number(self.next - 1), to);
        transmit.source = self.claims;
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        (self.to.is_some() && self.next < 100).then(|| Deadline { at: self.due(), timer: "count" })
    }

    fn poll_event(&mut self) -> Option<(SocketAddr, u32)> {
        (!self.heard.is_empty()).then(|| self.heard.remove(0))
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }
}

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n], 1000))
}

/// One counts to the other, half a millisecond away.
fn network(link: Link, claims: Option<SocketAddr>) -> (Network<Number>, [Handle<Counter>; 2]) {
    let mut network = Network::new("counting", Setup::plain(1));
    network.links(link);
    let counter = |to, claims| Counter { to, claims, next: 0, heard: Vec::new() };
    let one = network.add(address(0), &[], Host::alone(counter(Some(address(1)), claims)));
    let other = network.add(address(1), &[], Host::alone(counter(None, None)));
    (network, [one, other])
}

fn clean() -> Link {
    Link::clean(MS / 2)
}

/// Returns the times at which each number was received.
fn heard(mut network: Network<Number>) -> Vec<(Time, String)> {
    network.run();
    network.take_log().events.into_iter().map(|event| (event.at, event.text)).collect()
}

fn text(n: u32) -> String {
    format!("{:?}", (address(0), n))
}

#[test]
fn an_outage_takes_what_leaves_in_it_one_way_only() {
    let (mut net, [one, other]) = network(clean(), None);
    net.outage(ms(20)..ms(30), Some(one.index()), Some(other.index()));
    net.outage(ms(40)..ms(50), Some(other.index()), None);
    net.outage(ms(60)..ms(70), None, Some(one.index()));
    let texts: Vec<String> = heard(net).into_iter().map(|(_, text)| text).collect();
    let expected: Vec<String> = (0..20).chain(30..100).map(text).collect();
    assert_eq!(texts, expected);
}

#[test]
fn an_outage_moves_no_draw() {
    let run = |outage: bool| {
        let (mut net, [one, _]) = network(Link::lossy(MS / 2, 0.3), None);
        if outage {
            net.outage(ms(20)..ms(30), Some(one.index()), None);
        }
        heard(net)
    };
    let without: Vec<_> = run(false).into_iter().filter(|(at, _)| !(ms(20)..ms(31)).contains(at)).collect();
    assert!(without.len() < 80);
    assert_eq!(run(true), without);
}

#[test]
fn once_calm_nothing_is_lost() {
    let (mut net, _) = network(Link::lossy(MS / 2, 1.0), None);
    net.calm(ms(60));
    let texts: Vec<String> = heard(net).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, (60..100).map(text).collect::<Vec<_>>());
}

#[test]
fn who_stands_still_hears_what_its_buffer_held_when_it_goes_on() {
    let (mut net, [_, other]) = network(clean(), None);
    net.freeze(ms(10), other, MS * 50, 15);
    let heard = heard(net);
    let late: Vec<_> = heard.iter().filter(|(at, _)| *at == ms(60)).map(|(_, text)| text.clone()).collect();
    assert_eq!(late, (10..25).map(text).collect::<Vec<_>>());
    // 35 did not fit; earlier and later numbers are in time.
    assert_eq!(heard.len(), 100 - 35);
    assert!(heard.iter().all(|(at, _)| *at <= ms(10) || *at >= ms(60)));
}

#[test]
fn who_stands_still_sends_nothing() {
    let (mut net, [one, _]) = network(clean(), None);
    net.freeze(ms(10), one, MS * 50, 15);
    let heard = heard(net);
    assert_eq!(heard.len(), 100);
    assert!(heard.iter().all(|(at, _)| *at <= ms(10) || *at >= ms(60)));
}

#[test]
fn a_claimed_source_is_what_is_heard() {
    let (net, _) = network(clean(), Some(address(9)));
    assert_eq!(heard(net)[0].1, format!("{:?}", (address(9), 0)));
}

/// Returns the number of messages of each of two hosts that got to a third, through a transmitter for one in 2 ms.
fn through(shared: bool, calm: Time) -> [usize; 2] {
    let rate = BitRate::from_bps(16_000).expect("positive");
    let narrow = Some(Transmitter { rate, overhead: 0, queue: MS * 10, shared });
    let mut net = Network::new("counting", Setup::plain(1));
    net.links(Link { narrow, ..clean() });
    net.calm(calm);
    let counter = |to| Counter { to, claims: None, next: 0, heard: Vec::new() };
    for n in 0..2 {
        net.add(address(n), &[], Host::alone(counter(Some(address(2)))));
    }
    net.add(address(2), &[], Host::alone(counter(None)));
    let heard = heard(net);
    [0, 1].map(|n| heard.iter().filter(|(_, text)| text.contains(&address(n).to_string())).count())
}

#[test]
fn a_shared_transmitter_carries_what_one_link_of_its_own_would() {
    for calm in [Time::NEVER, Time::ZERO] {
        let (own, shared) = (through(false, calm), through(true, calm));
        // 50 leave in the 100 ms, and the queue holds five more.
        assert!(own.iter().all(|heard| (54..=57).contains(heard)), "{own:?}");
        assert!((54..=57).contains(&shared.iter().sum::<usize>()), "{shared:?}");
    }
}

#[test]
#[should_panic(expected = "steps without end")]
fn too_many_steps_fail() {
    let (mut net, _) = network(clean(), None);
    net.bound(50);
    net.run();
}
