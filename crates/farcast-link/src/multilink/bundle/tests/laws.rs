//! Laws that every stage must keep: the same inputs give the same outputs, runs may be cut anywhere, wake-ups may come
//! early or late, and nothing is lost without a count.

use super::*;

/// A run that enters: its time, `true` at the hub, its datagrams, the octets of each, and their spacing.
type Entry = (u64, bool, u32, usize, u64);

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (0..20_000u64, any::<bool>(), 1..8u32, 0..1600usize, 0..700u64);
    prop::collection::vec(entry, 1..12).prop_map(|mut entries| {
        // Later runs enter when earlier ones have.
        let mut at = 0;
        for entry in &mut entries {
            at += entry.0;
            entry.0 = at;
            at += entry.4 * u64::from(entry.2);
        }
        entries
    })
}

pub(super) fn config() -> impl Strategy<Value = MultilinkConfig> {
    let policy = prop_oneof![
        Just(Policy::Free),
        Just(Policy::Whole),
        (1..200u16).prop_map(|smallest| Policy::Equal { smallest }),
        (1..200u16).prop_map(|smallest| Policy::Proportional { smallest }),
    ];
    let detection = prop_oneof![
        (0..30u64).prop_map(|after| Detection::Carrier { after: Span::from_secs(after) }),
        (5..20u64, 1..4u32).prop_map(|(interval, failures)| {
            Detection::Echo(EchoConfig { interval: Span::from_secs(interval), failures })
        }),
    ];
    let calls = (1..100u64, 0..40u64, detection).prop_map(|(mean, redial, detection)| Calls {
        time_between_drops: Span::from_secs(mean),
        redial: Span::from_secs(redial),
        detection,
    });
    let link = (1000..20_000u64, 1000..20_000u64, 0..900u64, prop::option::of(calls));
    let link = link.prop_map(|(forward, back, delay, calls)| LinkConfig {
        back: rate(back),
        delay: ms(delay),
        calls,
        ..LinkConfig::new(rate(forward))
    });
    let rest = (policy, any::<bool>(), 0..3u16, 0..2u32, prop::option::of(5..60u64), 1..40u32);
    (prop::collection::vec(link, 1..6), rest).prop_map(
        |(links, (policy, short, buffer, loss, idle, most))| MultilinkConfig {
            policy,
            header: if short { Format::Short } else { Format::Long },
            link_buffer: buffer,
            queue: QueueLimit::Packets(20),
            frame_loss: Probability::new(f64::from(loss) * 0.1).expect("a probability"),
            reassembly: ReassemblyConfig {
                idle: idle.map(Span::from_secs),
                most_fragments: most,
                ..ReassemblyConfig::default()
            },
            ..MultilinkConfig::new(links)
        },
    )
}

const END: Time = Time::from_nanos(1_000_000_000_000);

/// Manner in which a driver treats runs and wake-ups.
#[derive(Clone, Copy)]
enum Manner {
    /// Runs whole, wake-ups in time.
    Plain,
    /// Runs datagram by datagram.
    Cut,
    /// Runs datagram by datagram, and wake-ups that nobody asked for.
    Early,
}

/// Lets `entries` enter; all that leaves, by time.
fn outcome(bundle: &mut Multilink<Probe>, entries: &[Entry], manner: Manner) -> Vec<(Time, Port, u32)> {
    let mut out = Vec::new();
    let mut number = 0;
    for &(at, forward, count, octets, spacing) in entries {
        let port = if forward { Port::Hub } else { Port::Terminal(count) };
        let at = START + ms(at);
        let run = Frame {
            message: Probe::new(number, count, octets, octets / 2),
            overhead: 0,
            spacing: ms(spacing),
        };
        number += count;
        let (mut at, mut rest) = (at, Some(run));
        while let Some(run) = rest {
            let (head, tail) = match manner {
                Manner::Plain => (run, None),
                Manner::Cut | Manner::Early => run.split(NonZeroU32::MIN),
            };
            out.extend(drive(bundle, at));
            if matches!(manner, Manner::Early) {
                bundle.handle_timeout(at - ms(1).min(at.since(START)));
                bundle.handle_timeout(at);
                out.extend(drive(bundle, at));
            }
            bundle.handle(at, port, head);
            at += ms(spacing);
            rest = tail;
        }
    }
    out.extend(drive(bundle, END));
    bundle.handle_timeout(END);
    out.extend(drive(bundle, END));
    // Two ways may give what leaves at one instant in either order.
    out.sort_by_key(|&(at, port, _)| (at, port));
    out
}

/// All counters together.
fn counters(bundle: &Multilink<Probe>) -> std::string::String {
    let ways = [End::Terminal, End::Hub].map(|to| {
        let lines: Vec<_> = (0..6).map(|link| bundle.line(link, to).copied()).collect();
        (*bundle.counters(to), *bundle.reassembly(to), lines)
    });
    let calls: Vec<_> = (0..6).map(|link| bundle.call(link).copied()).collect();
    std::format!("{ways:?} {calls:?} {:?}", bundle.drops())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn cuts_and_early_wake_ups_change_nothing(config in config(), entries in entries(), seed: u64) {
        let mut plain = bundle(&config, seed);
        let expected = outcome(&mut plain, &entries, Manner::Plain);
        for manner in [Manner::Plain, Manner::Cut, Manner::Early] {
            let mut other = bundle(&config, seed);
            prop_assert_eq!(&outcome(&mut other, &entries, manner), &expected);
            prop_assert_eq!(counters(&other), counters(&plain));
        }
    }

    #[test]
    fn every_packet_is_accounted_for(config in config(), entries in entries(), seed: u64) {
        let mut bundle = bundle(&config, seed);
        let out = outcome(&mut bundle, &entries, Manner::Plain);
        for (to, port) in [(End::Terminal, Port::Terminals), (End::Hub, Port::Hub)] {
            let left: Vec<u32> = out.iter().filter(|left| left.1 == port).map(|left| left.2).collect();
            prop_assert!(left.is_sorted_by(|a, b| a < b), "in order, none twice: {:?}", left);
            let way = if to == End::Terminal { &bundle.forward } else { &bundle.back };
            let c = *bundle.counters(to);
            prop_assert_eq!(c.delivered, left.len() as u64);
            let lost = c.lost_by_drops + c.lost_by_errors + c.given_up;
            let waiting = c.entered - c.too_long - c.queue_dropped - c.cut;
            prop_assert_eq!(c.cut, c.delivered + lost + way.packets_alive());
            prop_assert_eq!(waiting > 0 || way.packets_alive() > 0, way.is_busy());
            // Every fragment was sent, or a link that left had it.
            let reassembly = *bundle.reassembly(to);
            prop_assert_eq!(reassembly.packets, c.delivered);
            prop_assert_eq!((reassembly.not_member, reassembly.backwards, reassembly.duplicates), (0, 0, 0));
        }
        // Without errors, drops or bounds everything arrives.
        let quiet = config.links.iter().all(|link| link.calls.is_none());
        if quiet && config.frame_loss == Probability::ZERO && config.reassembly.idle.is_none() {
            let c = *bundle.counters(End::Terminal);
            prop_assert_eq!(c.lost_by_drops + c.lost_by_errors, 0);
            prop_assert!(c.given_up == 0 || config.reassembly.most_fragments < 40);
        }
    }

    #[test]
    fn late_wake_ups_are_legal(config in config(), entries in entries(), seed: u64) {
        let mut late = bundle::<Probe>(&config, seed);
        let (mut now, mut left) = (START, 0u64);
        for &(at, forward, count, octets, spacing) in &entries {
            now = START + ms(at);
            let port = if forward { Port::Hub } else { Port::Terminal(0) };
            late.handle(now, port, Frame { message: Probe::new(0, count, octets, octets), overhead: 0, spacing: ms(spacing) });
            while let Some(output) = late.poll_output() {
                prop_assert!(output.at >= now);
                left += 1;
            }
        }
        now = now.max(END);
        late.handle_timeout(now);
        while let Some(output) = late.poll_output() {
            prop_assert_eq!(output.at, now);
            left += 1;
        }
        prop_assert_eq!(late.totals().sent + late.return_totals().sent, left);
    }
}
