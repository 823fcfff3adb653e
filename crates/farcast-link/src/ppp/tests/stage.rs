use core::num::NonZeroU32;
use std::vec::Vec;

use farcast_core::Probability;
use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, Output, Port, Stage, Totals};
use proptest::prelude::*;

use super::*;
use crate::outage::{Schedule, Window};
use crate::pipe::QueueLimit;
use crate::ppp::stage::EndCounters;
use crate::tests::probe::Probe;

mod live;

/// A datagram with its octets at hand.
#[derive(Clone, PartialEq, Debug)]
struct Octets(Vec<u8>);

impl Message for Octets {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, _segment: u32) -> usize {
        self.0.len()
    }

    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        Some(&self.0)
    }
}

fn ppp<M: Message>(config: PppConfig) -> Ppp<M> {
    Ppp::new(config, RandomStream::derive(3, &[54])).expect("valid")
}

/// Lines of 2,400 bit/s to the terminals and 115,200 bit/s back, as in the study.
fn uneven() -> PppConfig {
    PppConfig::new(LineConfig::new(rate(2400)), LineConfig::new(rate(115_200)))
}

/// Hands over a packet of `octets` octets `A`. Returns the time and the port at which it leaves.
fn send(ppp: &mut Ppp<Octets>, now: Time, port: Port, octets: usize) -> Option<(Time, Port)> {
    ppp.handle(now, port, Frame::new(Octets(std::vec![0x41; octets]), 0));
    let output = ppp.poll_output();
    assert_eq!(ppp.poll_output(), None);
    output.map(|output| (output.at, output.port))
}

#[test]
fn each_direction_has_its_rate_and_its_delay() {
    let mut config = uneven();
    config.forward.delay = Span::from_millis(250);
    config.back.delay = Span::from_secs(5);
    let mut ppp = ppp(config);
    // 1505 octets of 10 bits at 2,400 bit/s; 45 at 115,200 bit/s.
    let forward = send(&mut ppp, Time::ZERO, Port::Hub, 1500);
    assert_eq!(forward, Some((ns(6_270_833_334 + 250_000_000), Port::Terminals)));
    let back = send(&mut ppp, ns(10), Port::Terminal(0), 40);
    assert_eq!(back, Some((ns(10 + 3_906_250 + 5_000_000_000), Port::Hub)));
    assert_eq!(ppp.poll_timeout(), None);
    let totals = |sent, airtime| Totals { sent, airtime: Span::from_nanos(airtime), ..Totals::default() };
    assert_eq!((ppp.totals(), ppp.return_totals()), (totals(1, 6_270_833_334), totals(1, 3_906_250)));
}

#[test]
fn a_packet_beyond_the_mtu_is_dropped_and_counted() {
    let mut ppp = ppp(PppConfig { mtu: 68, ..uneven() });
    assert!(send(&mut ppp, Time::ZERO, Port::Hub, 69).is_none());
    assert!(send(&mut ppp, Time::ZERO, Port::Hub, 68).is_some());
    assert!(send(&mut ppp, Time::ZERO, Port::Terminal(3), 69).is_none());
    let counters = EndCounters { delivered: 1, too_long: 1, ..EndCounters::default() };
    assert_eq!(*ppp.counters(Port::Hub), counters);
    assert_eq!(ppp.counters(Port::Terminal(1)).too_long, 1);
    assert_eq!((ppp.totals().dropped, ppp.return_totals().dropped), (1, 1));
}

#[test]
fn real_octets_take_the_time_of_their_escapes_and_others_a_draw() {
    let lines = || LineConfig::new(rate(1_000_000));
    let mut real: Ppp<Octets> = ppp(PppConfig::new(lines(), lines()));
    real.handle(Time::ZERO, Port::Hub, Frame::new(Octets(std::vec![0x7E; 1000]), 0));
    assert!(real.poll_output().is_some());
    let escapes = real.line_counters(Port::Hub).escapes;
    assert!((1000..=1002).contains(&escapes), "{escapes}: the content's, and perhaps the check sequence's");
    // The overhead of layers above is part of the packet: 972 and 28 octets.
    let mut drawn: Ppp<Probe> = ppp(PppConfig::new(lines(), lines()));
    drawn.handle(Time::ZERO, Port::Hub, Frame::new(Probe::new(0, 1, 972, 972), 28));
    assert!(drawn.poll_output().is_some());
    let counters = drawn.line_counters(Port::Hub);
    assert_eq!(counters.octets, 1005 + counters.escapes);
    // The mean is 7.8, the deviation 2.8.
    assert!((1..30).contains(&counters.escapes), "{}", counters.escapes);
}

fn window(start: Time, length: Span) -> Window {
    Window { start, length }
}

/// Requests go out every second from the first packet on, at 0 s. The hub's line is cut off from 9.5 s to 29.5 s. So
/// the hub's requests of 10, 11 and 12 s are lost, and the terminals' ones are not answered, for the hub answers in
/// vain: both ends find the link dead at 13 s. The requests of 30 s are answered, and both revive.
#[test]
fn a_dead_link_takes_nothing_until_an_echo_is_answered() {
    let cut_offs = Schedule::new(&[window(ms(9500), Span::from_secs(20))], None).expect("valid");
    let forward = LineConfig { cut_offs, ..LineConfig::new(rate(115_200)) };
    let echo = Some(EchoConfig { interval: Span::from_secs(1), failures: 3 });
    let back = LineConfig::new(rate(115_200));
    let mut ppp = ppp(PppConfig { echo, ..PppConfig::new(forward, back) });
    for (at, port, arrives) in [
        (0, Port::Hub, true),
        (9400, Port::Hub, true),
        (9400, Port::Terminal(0), true),
        (12_900, Port::Hub, false),
        (12_900, Port::Terminal(0), true),
        (13_001, Port::Hub, false),
        (13_001, Port::Terminal(0), false),
        (29_900, Port::Hub, false),
        (29_900, Port::Terminal(0), false),
        (30_100, Port::Hub, true),
        (30_100, Port::Terminal(0), true),
    ] {
        while let Some(due) = ppp.poll_timeout().filter(|due| due.at <= ms(at)) {
            ppp.handle_timeout(due.at);
        }
        assert_eq!(send(&mut ppp, ms(at), port, 100).is_some(), arrives, "at {at} ms, {port:?}");
    }
    let hub = *ppp.counters(Port::Hub);
    assert_eq!((hub.delivered, hub.lost, hub.dead_dropped, hub.deaths), (3, 1, 2, 1));
    // 0 to 30 s are 31 requests; those of 10 to 29 s have no answer.
    assert_eq!((hub.echo_requests, hub.echo_replies), (31, 11));
    let terminals = *ppp.counters(Port::Terminal(0));
    assert_eq!((terminals.delivered, terminals.dead_dropped, terminals.deaths), (3, 2, 1));
    assert_eq!((terminals.echo_requests, terminals.echo_replies), (31, 11));
    let deaths = ppp.figures().into_iter().find(|figure| figure.name == "link_deaths");
    assert_eq!(deaths.and_then(|figure| figure.value), Some(2.0));
}

/// An echo is 4 octets of header, 8 of LCP, 2 of FCS and a flag; at 1 s intervals over an idle line each request begins
/// with a flag of its own, unless a reply came within the second before it.
#[test]
fn echoes_take_line_time() {
    let echo = Some(EchoConfig { interval: Span::from_secs(2), failures: 3 });
    // An octet takes 4 ms.
    let lines = || LineConfig::new(rate(2500));
    let mut ppp = ppp(PppConfig { echo, ..PppConfig::new(lines(), lines()) });
    // The packet waits for the request that enters with it: 16 octets and its escapes, then 104, of 10 bits.
    let (at, _) = send(&mut ppp, Time::ZERO, Port::Hub, 100).expect("arrives");
    let counters = *ppp.line_counters(Port::Hub);
    assert_eq!((counters.sent, counters.octets), (2, 16 + 104 + counters.escapes));
    assert_eq!(at, ms(4 * counters.octets));
    while let Some(due) = ppp.poll_timeout().filter(|due| due.at < ms(19_000)) {
        ppp.handle_timeout(due.at);
    }
    // Requests at 0, 2, .. 18 s and as many replies from both ends; at 18 s all but the last have come.
    for port in [Port::Hub, Port::Terminal(0)] {
        let (end, line) = (*ppp.counters(port), *ppp.line_counters(port));
        assert_eq!((end.echo_requests, end.echo_replies), (10, 10));
        let packets = end.delivered;
        assert_eq!(line.sent, 20 + packets);
        // A request after more than a second of silence has its flag; the first has one as well.
        assert_eq!(line.octets, 20 * 15 + 104 * packets + 10 + line.escapes);
    }
}

/// Appends the outputs, datagram by datagram: time, port and number.
fn drain(ppp: &mut Ppp<Probe>, out: &mut Vec<(Time, Port, u32)>) {
    while let Some(Output { at, port, frame }) = ppp.poll_output() {
        let each = (0_u64..).zip(frame.message.run.segments());
        out.extend(each.map(|(k, number)| (at + frame.spacing * k, port, number)));
    }
}

/// Runs as (gap behind the run before in ms, count, spacing in ms, octets, octets of the last, whether back).
type Runs = Vec<(u64, u32, u64, usize, usize, bool)>;

/// Sends `runs` through, cut after each of `cuts` in turn; woken at every deadline, or only by what enters.
fn transfer(ppp: &mut Ppp<Probe>, runs: &Runs, cuts: &[u32], woken: bool) -> Vec<(Time, Port, u32)> {
    let mut cuts = cuts.iter();
    let (mut now, mut number, mut out) = (Time::ZERO, 0, Vec::new());
    for &(gap, count, spacing, octets, last, back) in runs {
        now += Span::from_millis(gap);
        let spacing = Span::from_millis(spacing);
        let port = if back { Port::Terminal(number) } else { Port::Hub };
        let mut rest =
            Some(Frame { message: Probe::new(number, count, octets, last), overhead: 28, spacing });
        let mut entry = now;
        while let Some(frame) = rest.take() {
            while let Some(due) = ppp.poll_timeout().filter(|due| woken && due.at <= entry) {
                ppp.handle_timeout(due.at);
            }
            let cut = cuts.next().copied().unwrap_or(u32::MAX);
            let (head, tail) = frame.split(NonZeroU32::new(cut).expect("positive"));
            ppp.handle(entry, port, head);
            drain(ppp, &mut out);
            entry += spacing * u64::from(cut);
            rest = tail;
        }
        number += count;
        now += spacing * u64::from(count - 1);
    }
    out
}

fn runs() -> impl Strategy<Value = Runs> {
    let run = (0_u64..2000, 1_u32..20, 0_u64..300, 0_usize..200, 0_usize..200, any::<bool>());
    proptest::collection::vec(run, 1..10)
}

fn configs() -> impl Strategy<Value = PppConfig> {
    let line = (2400_u64..20_000, 0_u64..3000, 0_u64..3, 0_u32..4, 1_u64..8000).prop_map(
        |(bps, delay, ber, queue, cut)| LineConfig {
            delay: Span::from_millis(delay),
            errors: LineErrors::Ber(Probability::new(ber as f64 * 1e-4).expect("a probability")),
            queue: if queue == 0 { QueueLimit::Octets(500) } else { QueueLimit::Packets(queue) },
            cut_offs: Schedule::new(&[window(ms(cut), Span::from_millis(cut))], None).expect("valid"),
            ..LineConfig::new(rate(bps))
        },
    );
    let echo = proptest::option::of(
        (300_u64..2000, 1_u32..4)
            .prop_map(|(interval, failures)| EchoConfig { interval: Span::from_millis(interval), failures }),
    );
    (line.clone(), line, echo, 68_u16..240).prop_map(|(forward, back, echo, mtu)| PppConfig {
        mtu,
        echo,
        ..PppConfig::new(forward, back)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn cuts_and_late_wake_ups_change_nothing(
        config in configs(), runs in runs(), cuts in proptest::collection::vec(1_u32..6, 0..60),
    ) {
        let (mut whole, mut pieces) = (ppp(config.clone()), ppp(config));
        let out = transfer(&mut whole, &runs, &[], false);
        prop_assert_eq!(&transfer(&mut pieces, &runs, &cuts, true), &out);
        let mut entered = [0, 0];
        for &(_, count, _, _, _, back) in &runs {
            entered[usize::from(back)] += u64::from(count);
        }
        for (port, entered) in [Port::Hub, Port::Terminals].into_iter().zip(entered) {
            prop_assert_eq!(whole.counters(port), pieces.counters(port));
            prop_assert_eq!(whole.line_counters(port), pieces.line_counters(port));
            // Every packet has one fate, and every frame that was sent is a packet or an echo.
            let EndCounters { delivered, too_long, queue_dropped, dead_dropped, lost, .. } = *whole.counters(port);
            prop_assert_eq!(delivered + too_long + queue_dropped + dead_dropped + lost, entered);
            let LineCounters { sent, .. } = *whole.line_counters(port);
            prop_assert!(sent >= delivered + lost);
            let leaves = if port == Port::Hub { Port::Terminals } else { Port::Hub };
            prop_assert_eq!(out.iter().filter(|&&(_, port, _)| port == leaves).count() as u64, delivered);
        }
        prop_assert_eq!(whole.figures(), pieces.figures());
    }
}

#[test]
fn settings_without_sense_are_refused() {
    let refuse = |config: PppConfig| Ppp::<Probe>::new(config, RandomStream::derive(1, &[])).map(|_| ());
    assert_eq!(refuse(PppConfig { mtu: 67, ..uneven() }), Err(PppError::Mtu(67)));
    let mut config = uneven();
    config.back.octet_bits = 7;
    assert_eq!(refuse(config), Err(PppError::OctetBits(7)));
    let mut config = uneven();
    config.forward.queue = QueueLimit::Packets(0);
    assert_eq!(refuse(config), Err(PppError::ZeroQueue));
    let echo =
        |interval, failures| refuse(PppConfig { echo: Some(EchoConfig { interval, failures }), ..uneven() });
    assert_eq!(echo(Span::from_secs(1), 0), Err(ConfigError::EchoFailures.into()));
    assert_eq!(echo(Span::ZERO, 1), Err(ConfigError::EchoInterval.into()));
    // 60 octets of 10 bits at 2,400 bit/s.
    let needed = Span::from_millis(250);
    assert_eq!(echo(Span::from_millis(249), 1), Err(PppError::EchoLoad { needed }));
    assert_eq!(echo(needed, 1), Ok(()));
}

#[test]
fn extremes_saturate() {
    let slow = || LineConfig { delay: Span::MAX, ..LineConfig::new(rate(1)) };
    let mut ppp = ppp(PppConfig { mtu: u16::MAX, ..PppConfig::new(slow(), slow()) });
    for (now, spacing) in [(0, u64::MAX), (1, 0), (u64::MAX, 1), (u64::MAX, u64::MAX), (5, 5)] {
        for octets in [0, 60_000, usize::MAX] {
            let spacing = Span::from_nanos(spacing);
            let frame = Frame { message: Probe::new(0, 3, octets, 7), overhead: 0, spacing };
            ppp.handle(ns(now), Port::Terminals, frame);
            while let Some(output) = ppp.poll_output() {
                assert_eq!(output.at, Time::NEVER);
            }
        }
    }
    assert_eq!(ppp.counters(Port::Terminals).too_long, 5 * 2);
}
