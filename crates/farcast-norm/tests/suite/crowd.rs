//! Crowds: parity that leaves because of the first requests of very many receivers.

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{
    Answer, Flags, Form, FromReceiver, FromSender, Level, Point, Request, Stamp, Symbol, Terms,
};
use farcast_norm::quantise::GroupSize;
use farcast_norm::{Body, Fec, Message, NodeId, Sender, SenderConfig};

use crate::common::{group, ms, receiver_address, said, sender};

/// Segments of a block, which leave in 168 ms with their headers.
const LEN: u16 = 20;

/// Sender that is driven by hand, with everything that it has sent.
struct Driven {
    engine: Sender,
    now: Time,
    sent: Vec<(Time, Message)>,
}

impl Driven {
    /// Begins to send 400 segments in blocks of 20 with 8 parity symbols, to receivers whose number is not known.
    fn new(change: impl FnOnce(&mut SenderConfig)) -> Self {
        let mut config = SenderConfig { block_len: LEN, parity: 8, ..sender(400, 0) };
        change(&mut config);
        let mut engine = Sender::new(config).expect("valid");
        engine.open(Time::ZERO);
        Self { engine, now: Time::ZERO, sent: Vec::new() }
    }

    /// Sends until `until`.
    fn drive(&mut self, until: Time) {
        let mut now = self.now;
        loop {
            self.engine.handle_timeout(now);
            while let Some(transmit) = self.engine.poll_transmit(now, now + Span::from_nanos(1)) {
                self.sent.push((now, transmit.message));
            }
            match self.engine.poll_timeout() {
                Some(deadline) if deadline.at <= until => now = deadline.at.max(now),
                _ => break,
            }
        }
        self.now = until;
    }

    /// Has receiver `from`, which had heard all that left until `heard`, ask for the first `count` parity symbols of
    /// `block`.
    fn ask(&mut self, from: u32, block: u32, count: u16, heard: Time) {
        self.request(from, Level::SEGMENT, [(block, LEN), (block, LEN + count - 1)], heard);
    }

    /// Has receiver `from` ask for a range of symbols of blocks, or what else `level` says.
    fn request(&mut self, from: u32, level: Level, range: [(u32, u16); 2], heard: Time) {
        let symbol = |(block, symbol)| Symbol { block, block_len: None, symbol };
        let points = range.map(|at| Point { fec: Fec::ReedSolomon8, object: 0, symbol: symbol(at) });
        let answer = Answer::Nack(vec![Request { form: Form::Ranges, level, points: points.to_vec() }]);
        let (sender, response) = (NodeId(1), Some(Stamp::of(heard)));
        let said = FromReceiver { sender, instance: 1, response, feedback: None, answer };
        let message = Message { source: NodeId(from), sequence: 0, body: Body::Receiver(said) };
        let from = Arrival::new(receiver_address(0), group());
        self.engine.handle(self.now, &from, &message).expect("valid");
    }

    /// Has the first six of many receivers ask for block 0, soon after its end. Their requests come at `came`.
    fn six_ask(&mut self, came: Time) {
        self.drive(came);
        for from in 0..6 {
            self.ask(10 + from, 0, 2, at(180 + u64::from(from)));
        }
    }

    /// Returns the numbers of parity symbols of `block` that were sent since `since`: unasked ones, and repairs.
    fn parity(&self, block: u32, since: Time) -> [usize; 2] {
        let data = self.sent.iter().filter(|(at, _)| *at >= since).filter_map(|(_, message)| message.data());
        let parity = data.filter(|data| data.block == block && data.symbols.first() >= u32::from(LEN));
        let mut counts = [0; 2];
        for data in parity {
            counts[usize::from(data.flags.has(Flags::REPAIR))] += data.symbols.count() as usize;
        }
        counts
    }

    /// Returns the number of INFO that were sent.
    fn infos(&self) -> usize {
        self.sent.iter().filter(|(_, message)| matches!(said(message), Some(FromSender::Info(_)))).count()
    }

    /// Returns the terms of the last message.
    fn terms(&self) -> Terms {
        match self.sent.last().map(|(_, message)| &message.body) {
            Some(Body::Sender(terms, _)) => *terms,
            _ => unreachable!("a sender has sent"),
        }
    }
}

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

#[test]
fn parity_for_all_leaves_at_once_and_with_each_later_block() {
    let mut driven = Driven::new(|_| ());
    driven.drive(at(600));
    driven.request(9, Level::INFO, [(0, 0); 2], at(180));
    for from in 0..5 {
        driven.ask(10 + from, 0, 2, at(180));
    }
    driven.drive(at(700));
    assert_eq!(driven.parity(0, Time::ZERO), [0, 0], "five receivers may be a small group");
    assert_eq!((driven.terms().group, driven.infos()), (GroupSize::of(10_000), 1));
    driven.ask(20, 0, 2, at(181));
    driven.drive(at(1100));
    // Three blocks had ended, and the fourth was under way.
    for block in 0..4 {
        let [_, repairs] = driven.parity(block, at(700));
        assert_eq!(repairs, 8, "block {block}");
    }
    assert_eq!(driven.infos(), 2, "other requests are answered with it");
    driven.drive(at(2000));
    let later: Vec<[usize; 2]> = (5..8).map(|block| driven.parity(block, at(700))).collect();
    assert_eq!(later, [[8, 0]; 3], "the parity that they need leaves with them");
    assert_eq!(driven.terms().group, GroupSize::of(100_000), "later requests are spread for as many");
}

/// Begins to send `segments` segments, each of which takes 8 ms, to a crowd.
fn long(segments: u64) -> Driven {
    let mut driven = Driven::new(|config| {
        config.objects[0].size = segments * 1000;
        config.parity = 60;
        // A request costs little.
        config.return_rate = BitRate::from_bps(10_000_000);
    });
    driven.six_ask(at(600));
    driven
}

#[test]
fn the_last_blocks_take_more_parity() {
    let mut driven = long(2000);
    driven.drive(at(40_000));
    let unasked: Vec<usize> = [60, 85, 90, 99].map(|block| driven.parity(block, at(0))[0]).to_vec();
    assert!(
        unasked[1] > unasked[0] && unasked[1..].iter().all(|&symbols| symbols == unasked[1]),
        "{unasked:?}"
    );
}

#[test]
fn parity_follows_later_requests() {
    let mut driven = long(4000);
    driven.drive(at(4600));
    let before = driven.parity(14, at(0))[0];
    for (count, heard, raised) in [(7, ms(100), false), (20, ms(900), false), (20, ms(100), true)] {
        let heard = driven.now - heard;
        let block = driven.sent.iter().rev().find_map(|(_, message)| message.data()).expect("data").block - 2;
        for from in 0..count {
            // Each lacks another symbol.
            let symbols = driven.parity(block, at(0)).iter().sum::<usize>() as u16 + from as u16;
            driven.ask(100 + from, block, symbols.min(60), heard);
        }
        driven.drive(driven.now + ms(1000));
        let later = driven.sent.iter().rev().find_map(|(_, message)| message.data()).expect("data").block - 1;
        assert_eq!(driven.parity(later, at(0))[0] > before, raised, "{count} {heard:?}");
    }
}

#[test]
fn what_a_crowd_still_lacks_is_answered_soon() {
    for crowd in [false, true] {
        let mut driven = Driven::new(|config| config.parity = 60);
        if crowd {
            driven.six_ask(at(600));
        }
        driven.drive(at(4200));
        // Block 12 has ended, and its parity has left; a receiver lacks another symbol.
        let [left, _] = driven.parity(12, Time::ZERO);
        assert_eq!(left > 0, crowd);
        driven.ask(100, 12, 1, at(4190));
        driven.drive(at(4400));
        assert_eq!(driven.parity(12, at(4200))[1], usize::from(crowd), "otherwise requests are gathered");
    }
}

#[test]
fn round_trips_through_the_queue_of_first_requests_do_not_count() {
    for crowd in [false, true] {
        let mut driven = Driven::new(|_| ());
        if crowd {
            // Each of these took 0.8 s.
            driven.six_ask(at(1000));
        }
        driven.drive(at(2600));
        driven.ask(100, 1, 2, at(500));
        let grtt = driven.engine.grtt();
        assert_eq!(grtt < ms(600), crowd, "{grtt}");
        // What was sent after the queue was empty tells the round trip of the path again.
        driven.drive(at(4000));
        driven.ask(101, 1, 2, at(3000));
        assert!(driven.engine.grtt() >= ms(999));
    }
}

#[test]
fn a_request_may_have_waited_for_longer_than_any_round_trip() {
    let mut driven = Driven::new(|config| config.grtt_most = ms(600));
    driven.six_ask(at(600));
    driven.drive(at(1750));
    let used = driven.parity(0, Time::ZERO)[1];
    assert_eq!(used, 8);
    // This receiver had not heard the parity when it asked, 1.2 s ago.
    driven.ask(100, 0, 3, at(550));
    driven.drive(at(3300));
    assert_eq!(driven.parity(0, Time::ZERO)[1], used, "nothing is repeated for it");
    let repeated = driven.sent.iter().filter_map(|(_, message)| message.data());
    let repeated = repeated.filter(|data| data.flags.has(Flags::EXPLICIT)).count();
    assert_eq!(repeated, 0);
}

#[test]
fn first_waits_are_longer_until_requests_were_answered() {
    // The object takes 17 s.
    let first = |config: &mut SenderConfig| {
        config.objects[0].size = 2_000_000;
        (config.first_backoff, config.backoff) = (Some(9), 4);
    };
    // A few receivers ask, and are answered after ten GRTTs.
    let mut driven = Driven::new(first);
    driven.drive(at(500));
    assert_eq!((driven.terms().backoff, driven.infos()), (9, 2));
    driven.ask(10, 0, 1, at(400));
    driven.drive(at(1500));
    assert_eq!(driven.terms().backoff, 9);
    driven.drive(at(6000));
    assert_eq!((driven.terms().backoff, driven.parity(0, Time::ZERO)), (4, [0, 1]));
    // A crowd asks.
    let mut driven = Driven::new(first);
    driven.six_ask(at(600));
    driven.drive(at(1000));
    assert_eq!(driven.terms().backoff, 4);
    // Nobody asks, and the end is near.
    let mut driven = Driven::new(first);
    driven.drive(at(6000));
    assert_eq!(driven.terms().backoff, 9);
    driven.drive(at(8000));
    assert_eq!(driven.terms().backoff, 4);
    let mut driven = Driven::new(|_| ());
    driven.drive(at(500));
    assert_eq!((driven.terms().backoff, driven.infos()), (4, 1), "usually");
}
