use super::*;
use crate::multilink::MultilinkError;
use crate::pipe::QueueLimit;
use crate::tests::probe::Probe;
use farcast_core::{BitRate, Probability};
use farcast_ppp::multilink::{Format, Policy, ReassemblyConfig};
use farcast_ppp::{ConfigError, EchoConfig, Framing};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::vec;

mod calls;
mod laws;
mod live;
mod octets;
mod rates;

const START: Time = Time::ZERO;

fn ms(milliseconds: u64) -> Span {
    Span::from_millis(milliseconds)
}

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps).expect("positive")
}

/// A bundle of links of 2400 bit/s and 0.9 s, as of Iridium.
fn iridium(links: usize) -> MultilinkConfig {
    let link = LinkConfig { delay: ms(900), ..LinkConfig::new(rate(2400)) };
    MultilinkConfig::new(vec![link; links])
}

fn bundle<M: Message>(config: &MultilinkConfig, seed: u64) -> Multilink<M> {
    Multilink::new(config, RandomStream::derive(seed, &[])).expect("valid")
}

fn packet(number: u32, octets: usize) -> Frame<Probe> {
    Frame::new(Probe::new(number, 1, octets, octets), 0)
}

/// A packet whose octets are at hand, none of which needs an escape.
#[derive(Clone, PartialEq, Debug)]
struct Plain(u32, Vec<u8>);

impl Message for Plain {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, _segment: u32) -> usize {
        self.1.len()
    }

    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        Some(&self.1)
    }
}

fn plain(number: u32, octets: usize) -> Frame<Plain> {
    Frame::new(Plain(number, vec![b'a'; octets]), 0)
}

/// Number of a message in a test.
trait Number {
    fn number(&self) -> u32;
}

impl Number for Probe {
    fn number(&self) -> u32 {
        self.run.first()
    }
}

impl Number for Plain {
    fn number(&self) -> u32 {
        self.0
    }
}

/// Wakes the bundle at every time that it asks for, up to `until`. Returns the outputs: time, port and number.
fn drive<M: Message + Number>(bundle: &mut Multilink<M>, until: Time) -> Vec<(Time, Port, u32)> {
    let mut out = Vec::new();
    loop {
        while let Some(output) = bundle.poll_output() {
            out.push((output.at, output.port, output.frame.message.number()));
        }
        match bundle.poll_timeout() {
            Some(deadline) if deadline.at <= until => bundle.handle_timeout(deadline.at),
            _ => return out,
        }
    }
}

/// The numbers of what left.
fn numbers(out: &[(Time, Port, u32)]) -> Vec<u32> {
    out.iter().map(|&(_, _, number)| number).collect()
}

#[test]
fn a_packet_on_one_link_takes_its_frame_and_the_delay() {
    let mut bundle = bundle(&iridium(1), 1);
    // 1500 octets, 1 of protocol field; 1 of the fragment's, 4 of Multilink, 2 of FCS, 2 flags: 1510 at 300 octet/s.
    bundle.handle(START, Port::Hub, plain(0, 1500));
    // This one follows without a flag of its own: 1509.
    bundle.handle(START + ms(1), Port::Hub, plain(1, 1500));
    // Others wait for the bundle, behind one that waits at the link.
    bundle.handle(START + ms(2), Port::Hub, plain(2, 1500));
    // The way back has a line of its own: 50 octets.
    bundle.handle(START + ms(2), Port::Terminal(3), plain(3, 40));
    assert!(bundle.poll_output().is_none());
    let out = drive(&mut bundle, Time::NEVER);
    let third = |octets: u64| Span::from_nanos((octets * 1_000_000_000).div_ceil(300));
    let at = |spans: &[Span]| spans.iter().fold(START + ms(900), |at, &span| at + span);
    assert_eq!(
        out,
        [
            (at(&[third(50), ms(2)]), Port::Hub, 3),
            (at(&[third(1510)]), Port::Terminals, 0),
            (at(&[third(1510), third(1509)]), Port::Terminals, 1),
            (at(&[third(1510), third(1509), third(1509)]), Port::Terminals, 2),
        ]
    );
    let line = *bundle.line(0, End::Terminal).expect("a link");
    assert_eq!((line.octets, line.overhead, line.escapes), (4528, 25, 0));
    assert_eq!((line.fragments, line.echoes, line.errors), (3, 0, 0));
    assert_eq!(line.busy, third(1510) + third(1509) * 2);
    assert_eq!(bundle.line(1, End::Terminal), None);
    let totals = |sent, airtime| Totals { sent, airtime, ..Totals::default() };
    assert_eq!(bundle.totals(), totals(3, line.busy));
    assert_eq!(bundle.return_totals(), totals(1, third(50)));
    let figure =
        |name| bundle.figures().iter().find(|figure| figure.name == name).and_then(|figure| figure.value);
    assert_eq!((figure("forward_octets"), figure("return_fragments")), (Some(4528.0), Some(1.0)));
    assert_eq!((figure("calls_dropped"), figure("links_down_s")), (Some(0.0), Some(0.0)));
    assert_eq!(bundle.poll_timeout(), None, "nothing is under way");
}

#[test]
fn a_packet_is_there_when_its_last_fragment_is() {
    // Equal parts of 401 octets over links of 1000, 2000 and 4000 bit/s: 134, 134 and 133 octets, 9 each beside.
    let mut config = MultilinkConfig::new([1000, 2000, 4000].map(|bps| LinkConfig::new(rate(bps))).into());
    config.policy = Policy::Equal { smallest: 64 };
    let mut equal = bundle(&config, 3);
    equal.handle(START, Port::Hub, plain(0, 400));
    assert_eq!(drive(&mut equal, Time::NEVER), [(START + ms(143 * 8), Port::Terminals, 0)]);
    // By rate 58, 114 and 229: 67 octets take 536 ms, 123 take 492 ms, 238 take 476 ms.
    config.policy = Policy::Proportional { smallest: 64 };
    let mut proportional = bundle(&config, 3);
    proportional.handle(START, Port::Hub, plain(0, 400));
    assert_eq!(drive(&mut proportional, Time::NEVER), [(START + ms(536), Port::Terminals, 0)]);
    // The fastest link holds the second packet back until the slowest has sent the first.
    config.policy = Policy::Whole;
    let mut whole = bundle(&config, 3);
    (0..3).for_each(|number| whole.handle(START, Port::Hub, plain(number, 400)));
    let slowest = START + ms(410 * 8);
    assert_eq!(drive(&mut whole, Time::NEVER), [0, 1, 2].map(|number| (slowest, Port::Terminals, number)));
    assert_eq!(whole.reassembly(End::Terminal).fragments, 3);
}

#[test]
fn octets_at_hand_are_looked_at() {
    let mut bundle = bundle(&iridium(1), 1);
    let mut octets = vec![0x7E; 100];
    octets[7] = 1;
    bundle.handle(START, Port::Hub, Frame::new(Plain(0, octets), 0));
    drive(&mut bundle, Time::NEVER);
    assert_eq!(bundle.line(0, End::Terminal).expect("a link").escapes, 99);
}

#[test]
fn headers_are_escaped_too() {
    // With the default ACCM and no compression: FF 03 00 3D has two octets below 32, the header of the first fragment
    // C0 00 00 00 three, the protocol field 00 21 one.
    let mut config = iridium(1);
    config.framing = Framing::UNCONFIGURED;
    let mut bundle = bundle(&config, 1);
    bundle.handle(START, Port::Hub, plain(0, 100));
    drive(&mut bundle, Time::NEVER);
    let line = *bundle.line(0, End::Terminal).expect("a link");
    // Two more octets, of the check sequence, are drawn.
    assert!((6..=8).contains(&line.escapes), "{}", line.escapes);
    assert_eq!(line.octets, 100 + 2 + 4 + 4 + 2 + 2 + line.escapes);
}

#[test]
fn a_full_queue_drops_what_enters() {
    for (queue, taken) in
        [(QueueLimit::Packets(2), 4), (QueueLimit::Octets(1000), 4), (QueueLimit::Octets(999), 3)]
    {
        let mut bundle =
            bundle(&MultilinkConfig { queue, back_queue: QueueLimit::Packets(1), ..iridium(1) }, 1);
        // One is sent, one waits at the link, the others wait for it.
        for number in 0..10 {
            bundle.handle(START, Port::Hub, packet(number, 500));
        }
        assert_eq!(numbers(&drive(&mut bundle, Time::NEVER)), (0..taken).collect::<Vec<_>>(), "{queue:?}");
        let counters = *bundle.counters(End::Terminal);
        assert_eq!((counters.entered, counters.queue_dropped), (10, 10 - u64::from(taken)));
        assert_eq!(bundle.totals().dropped, 10 - u64::from(taken));

        // Each way has a limit of its own: here one waits for the link.
        for number in 0..10 {
            bundle.handle(START + ms(60_000), Port::Terminal(0), packet(number, 500));
        }
        assert_eq!(numbers(&drive(&mut bundle, Time::NEVER)), [0, 1, 2], "{queue:?}");
        assert_eq!(bundle.return_totals().dropped, 7);
    }
}

#[test]
fn a_packet_over_the_mrru_is_not_sent() {
    let mut config = iridium(2);
    config.reassembly.mrru = 600;
    let mut bundle = bundle(&config, 1);
    for (number, octets) in [(0, 600), (1, 601), (2, usize::MAX), (3, 0)] {
        bundle.handle(START, Port::Hub, packet(number, octets));
    }
    assert_eq!(numbers(&drive(&mut bundle, Time::NEVER)), [0, 3]);
    assert_eq!(bundle.counters(End::Terminal).too_long, 2);
}

#[test]
fn errors_lose_packets_with_any_fragment_of_theirs() {
    let mut config = iridium(4);
    config.frame_loss = Probability::new(0.05).expect("a probability");
    config.policy = Policy::Equal { smallest: 64 };
    let mut bundle = bundle(&config, 5);
    let n = 4000;
    (0..n).for_each(|number| bundle.handle(START, Port::Hub, packet(number, 400)));
    let out = drive(&mut bundle, Time::NEVER);
    let counters = *bundle.counters(End::Terminal);
    assert!(numbers(&out).is_sorted_by(|a, b| a < b));
    // Four fragments each: 1 - 0.95^4 = 0.1855 are lost; 5 standard deviations of the count are 5 sqrt(n p q) = 123.
    let expected = f64::from(n) * (1.0 - 0.95f64.powi(4));
    assert!((counters.lost_by_errors as f64 - expected).abs() < 123.0, "{counters:?}");
    // What is complete behind a loss may wait for a fragment that never comes.
    let stuck = u64::from(n) - counters.delivered - counters.lost_by_errors;
    assert!(stuck < 4 && counters.given_up == 0, "{counters:?}");
    assert_eq!(out.len() as u64, counters.delivered);
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |config: &MultilinkConfig| {
        Multilink::<Probe>::new(config, RandomStream::derive(1, &[])).expect_err("refused")
    };
    assert_eq!(
        std::format!("{}", refused(&iridium(0))),
        "links has 0 members; a bundle needs at least one link, and can have 64"
    );
    assert_eq!(refused(&iridium(65)), MultilinkError::Links(65, 64));
    assert_eq!(iridium(64).check(), Ok(()));
    let with = |change: fn(&mut MultilinkConfig)| {
        let mut config = iridium(2);
        config.links[1].calls = Some(Calls {
            time_between_drops: ms(1),
            redial: Span::ZERO,
            detection: Detection::Carrier { after: Span::ZERO },
        });
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        refused(&config)
    };
    assert_eq!(with(|config| config.links[1].octet_bits = 7), MultilinkError::OctetBits(7));
    assert_eq!(with(|config| config.links[0].octet_bits = 13), MultilinkError::OctetBits(13));
    assert_eq!(
        with(|config| config.policy = Policy::Equal { smallest: 0 }),
        MultilinkError::Zero("smallest")
    );
    assert_eq!(with(|config| config.queue = QueueLimit::Packets(0)), MultilinkError::Zero("queue"));
    assert_eq!(with(|config| config.back_queue = QueueLimit::Octets(0)), MultilinkError::Zero("queue"));
    assert_eq!(with(|config| config.reassembly.mrru = 0), ConfigError::Zero("mrru").into());
    let never_up = |config: &mut MultilinkConfig| {
        config.links[1].calls.as_mut().expect("calls").time_between_drops = Span::ZERO;
    };
    assert_eq!(with(never_up), MultilinkError::Zero("time_between_drops"));
    let echo = |interval, failures| Detection::Echo(EchoConfig { interval: ms(interval), failures });
    for (detection, error) in [
        (echo(0, 1), MultilinkError::Zero("interval")),
        (echo(1, 0), MultilinkError::Zero("failures")),
        (echo(600, 3), MultilinkError::EchoTooSoon { gives_up: ms(1800), round_trip: ms(1800) }),
    ] {
        let mut config = iridium(1);
        config.links[0].calls = Some(Calls { time_between_drops: ms(1), redial: Span::ZERO, detection });
        assert_eq!(refused(&config), error);
    }
}
