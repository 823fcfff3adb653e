use farcast_core::random::RandomStream;
use farcast_core::units::BitRate;
use farcast_core::{Losses, Span, Time};
use farcast_link::losses::Bernoulli;
use farcast_scenario::streams::Purpose;
use farcast_scenario::{Document, Links};

use super::*;
use crate::control::{Change, LinkDirection};

mod fates;
mod live;
mod queues;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn link(text: &str, terminals: u32, seed: u64) -> Link {
    let document = Document::parse("link.toml", text).unwrap();
    let links = Links::read(&mut document.root()).unwrap();
    let groups = vec![Group { receivers: terminals, delay: Span::ZERO, losses: None }];
    Link::new(LinkConfig { links, groups, flows: 0, seed }, None)
}

/// Returns the packets that have left by `now`: time, destination, and the first octet, which tests use as a number.
fn leave(link: &mut Link, now: Time) -> Vec<(Time, HostPosition, u8)> {
    let mut left = Vec::new();
    link.advance(now, |link, departure| {
        left.push((departure.at, departure.to, departure.packet.octets()[0]));
        link.delivered(departure, Some(now));
    });
    left
}

const TERMINAL: HostPosition = HostPosition::Terminal(0);

/// 1000 octets at 1 Mbit/s take 8 ms.
const SLOW: &str = "[link.forward]\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\nqueue = \"3000 B\"\n\
                    [link.return]\ndelay = \"50 ms\"\n";

#[test]
fn packets_leave_by_link_time_however_late_the_driver_comes() {
    let expected = [(at(108), TERMINAL, 0), (at(116), TERMINAL, 1), (at(124), TERMINAL, 2)];
    for step in [1, 7, 1000] {
        let mut link = link(SLOW, 1, 1);
        for number in 0..3 {
            link.enter(Time::ZERO, End::Terminal, Some(0), &[number; 1000]);
        }
        let times = (0..=1000_u64.div_ceil(step)).map(|n| at(n * step));
        let left: Vec<_> = times.flat_map(|now| leave(&mut link, now)).collect();
        assert_eq!(left, expected, "looked every {step} ms");
    }
}

#[test]
fn a_full_queue_drops_and_both_ways_are_counted() {
    let mut link = link(SLOW, 1, 1);
    for number in 0..5 {
        link.enter(Time::ZERO, End::Terminal, Some(0), &[number; 1000]);
    }
    link.enter(Time::ZERO, End::Hub, Some(0), &[9; 40]);
    assert_eq!((link.inside(End::Terminal).packets, link.inside(End::Hub).octets), (3, 40));
    assert_eq!(link.queued(End::Terminal), Some(3000));
    assert_eq!(leave(&mut link, at(60)), [(at(50), HostPosition::Hub, 9)]);
    assert_eq!(leave(&mut link, at(1000)).len(), 3);
    let Counts { entered, delivered, dropped, lost, .. } = *link.forward();
    assert_eq!((entered.packets, delivered.packets, dropped.packets, lost.packets), (5, 3, 2, 0));
    assert_eq!((link.back().delivered.octets, link.inside(End::Hub).packets), (40, 0));
    assert_eq!(link.next_at(), Time::NEVER);
}

/// Returns the packets, of 500 to all, that each terminal loses.
fn lost(terminals: u32, seed: u64, others: bool) -> Vec<Vec<u8>> {
    let mut link = link("[link.forward]\nper = 0.2\ndelay = \"10 ms\"\n", terminals, seed);
    let mut got = vec![Vec::new(); terminals as usize];
    for n in 0..250_u8 {
        let now = at(u64::from(n));
        link.enter(now, End::Terminal, None, &[n; 100]);
        if others {
            link.enter(now, End::Hub, Some(0), &[n; 100]);
        }
        for (_, to, number) in leave(&mut link, now + Span::from_millis(10)) {
            if let HostPosition::Terminal(terminal) = to {
                got[terminal as usize].push(number);
            }
        }
    }
    got.iter().map(|got| (0..250).filter(|n| !got.contains(n)).collect()).collect()
}

#[test]
fn losses_of_all_follow_from_the_seed_and_not_from_the_way_back() {
    let three = lost(3, 7, false);
    // 250 x 0.2 = 50, with a standard deviation of 6.3.
    assert!(three.iter().all(|lost| (25..=75).contains(&lost.len())), "{three:?}");
    assert_eq!(lost(3, 7, true), three);
    assert!(three[0] != three[1] && three[1] != three[2] && three[0] != three[2]);
    assert_ne!(lost(3, 8, false), three);
}

/// Packets to all and to one by turns: of each group one process decides, asked about those that a packet is for.
#[test]
fn what_is_for_one_and_for_all_is_drawn_by_one_process_of_each_group() {
    let mut link = link("[link.forward]\nper = 0.3\n", 3, 7);
    let group = |receivers| Group { receivers, delay: Span::ZERO, losses: None };
    link.config.groups = vec![group(3), group(2)];
    let mut link = Link::new(link.config, None);
    let per = Probability::new(0.3).unwrap();
    let process = |number, receivers| {
        Bernoulli::new(per, receivers, RandomStream::derive(7, &[0, number, Purpose::Losses as u64]))
    };
    let (mut near, mut far) = (process(0, 3), process(1, 2));
    for n in 0..200_u8 {
        let one = (n % 3 > 0).then_some(u32::from(n) % 5);
        link.enter(at(n.into()), End::Terminal, one, &[n; 100]);
        let got: Vec<HostPosition> = leave(&mut link, at(n.into())).into_iter().map(|left| left.1).collect();
        let mut lost = [Vec::new(), Vec::new()];
        let mut draw = |process: &mut Bernoulli, group: usize, among: Among<'_>| {
            process.draw(at(n.into()), 100, among, &mut lost[group]);
        };
        match one {
            None => {
                draw(&mut near, 0, Among::All);
                draw(&mut far, 1, Among::All);
            }
            Some(terminal @ ..3) => draw(&mut near, 0, Among::These(&[terminal])),
            Some(terminal) => draw(&mut far, 1, Among::These(&[terminal - 3])),
        }
        let lost: Vec<u32> = lost[0].iter().copied().chain(lost[1].iter().map(|n| n + 3)).collect();
        let expected = (0..5).filter(|n| one.is_none_or(|one| one == *n) && !lost.contains(n));
        assert_eq!(got, expected.map(HostPosition::Terminal).collect::<Vec<_>>(), "packet {n} to {one:?}");
    }
}

#[test]
fn a_packet_for_one_is_nobody_elses() {
    let mut link = link("[link.forward]\ndelay = \"1 ms\"\n", 3, 1);
    link.enter(Time::ZERO, End::Terminal, Some(1), &[5; 50]);
    link.enter(Time::ZERO, End::Terminal, None, &[6; 50]);
    let to = |n| HostPosition::Terminal(n);
    let expected = [(at(1), to(1), 5), (at(1), to(0), 6), (at(1), to(1), 6), (at(1), to(2), 6)];
    assert_eq!(leave(&mut link, at(1)), expected);
    let got: Vec<u64> = link.terminals().map(|counts| counts.delivered[0].packets).collect();
    assert_eq!(got, [1, 2, 1]);
}

#[test]
fn changes_hold_for_what_enters_from_then_on() {
    let mut link = link(SLOW, 1, 1);
    let change = |change: Change| Change { way: Some(LinkDirection::Forward), ..change };
    link.enter(Time::ZERO, End::Terminal, Some(0), &[0; 1000]);
    let _ = leave(&mut link, at(200));
    let rate = BitRate::from_bps(8_000_000);
    link.change(at(200), &change(Change { rate, delay: Some(Span::from_millis(10)), ..Change::default() }))
        .unwrap();
    link.enter(at(200), End::Terminal, Some(0), &[1; 1000]);
    assert_eq!(leave(&mut link, at(300)), [(at(211), TERMINAL, 1)]);
    assert_eq!(link.settings(End::Terminal).rate, rate);

    let outage = Some(Span::from_secs(1));
    link.change(at(300), &change(Change { outage, ..Change::default() })).unwrap();
    link.enter(at(300), End::Terminal, Some(0), &[2; 1000]);
    link.enter(at(300), End::Hub, Some(0), &[3; 40]);
    assert_eq!(leave(&mut link, at(400)), [(at(350), HostPosition::Hub, 3)]);
    assert_eq!((link.forward().lost.packets, link.outage(End::Terminal)), (1, Some(Span::from_millis(900))));
    link.change(at(400), &change(Change { outage: Some(Span::ZERO), ..Change::default() })).unwrap();
    link.enter(at(400), End::Terminal, Some(0), &[4; 1000]);
    assert_eq!(leave(&mut link, at(500)).len(), 1);

    let per = Probability::new(1.0);
    link.change(at(500), &change(Change { per, ..Change::default() })).unwrap();
    link.enter(at(500), End::Terminal, Some(0), &[5; 1000]);
    assert_eq!(leave(&mut link, at(600)), []);
}

#[test]
fn what_cannot_change_says_why() {
    let mut link = link(SLOW, 1, 1);
    let delay = Some(Span::from_millis(1));
    let named = |name: &str| Change { delay, stage: Some(name.into()), ..Change::default() };
    let sentence = link.change(at(0), &named("uplink")).unwrap_err().to_string();
    assert_eq!(sentence, "there is no stage \"uplink\" on this way; there are \"forward\"");
    let both = Change { outage: delay, ..named("forward") };
    assert_eq!(link.change(at(0), &both), Err(ChangeError::NotOfAStage));
    assert_eq!(link.change(at(0), &Change { way: Some(LinkDirection::Forward), ..named("forward") }), Ok(()));
}

#[test]
fn octets_come_out_of_every_bearer_as_they_went_in() {
    for name in ["umts-384", "sgls-115200", "iridium-8"] {
        let path = format!("{}/../../scenarios/links/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let mut link = link(&std::fs::read_to_string(path).unwrap(), 1, 1);
        let mut sent = Vec::new();
        let mut got = Vec::new();
        for n in 0..6_u8 {
            let octets: Vec<u8> = (0..200_u16).map(|i| (i * 7 + u16::from(n) * 31) as u8 ^ 0x7E).collect();
            let (to, terminal) = if n % 2 == 0 { (End::Terminal, Some(0)) } else { (End::Hub, Some(0)) };
            link.enter(at(0), to, terminal, &octets);
            sent.push(octets);
        }
        link.advance(Time::ZERO + Span::from_secs(60), |link, departure| {
            got.push(departure.packet.octets().to_vec());
            link.delivered(departure, Some(at(60_000)));
        });
        got.sort();
        sent.sort();
        assert_eq!(got, sent, "{name}");
        let faults =
            link.figures().iter().flat_map(|(_, figures)| figures.clone()).find(|f| f.name == "codec_faults");
        assert_eq!(faults.and_then(|figure| figure.value), Some(0.0), "{name}");
    }
}

#[test]
fn memory_is_bounded_where_a_queue_is_not() {
    let mut link = link("link.mtu = \"65535 B\"\n[link.forward]\nrate = \"1 kbit/s\"\n", 1, 1);
    let packet = vec![0; 65_535];
    for _ in 0..5000 {
        link.enter(Time::ZERO, End::Terminal, Some(0), &packet);
    }
    let most = MOST_OCTETS.div_ceil(65_535 + 256) - 1;
    assert_eq!(link.inside(End::Terminal).packets, most);
    assert_eq!(link.forward().dropped.packets, 5000 - most);
}

#[test]
fn every_packet_is_somewhere_in_the_end() {
    let mut link = link(SLOW, 2, 1);
    for number in 0..5 {
        link.enter(Time::ZERO, End::Terminal, None, &[number; 1000]);
    }
    link.enter(Time::ZERO, End::Terminal, Some(0), &[5; 1501]);
    assert_eq!(leave(&mut link, at(110)).len(), 2);
    link.end();
    let Counts { entered, delivered, dropped, held, .. } = *link.forward();
    // Three of the six fit the queue, of which one has reached both terminals; one is longer than the MTU.
    let packets = [entered, delivered, dropped, held].map(|sum| sum.packets);
    assert_eq!(packets, [6, 2, 3, 2]);
}

#[test]
fn a_pipe_without_a_rate_gets_none_while_it_runs() {
    let mut link = link("[link.forward]\ndelay = \"1 ms\"\n", 1, 1);
    let rate =
        Change { rate: BitRate::from_bps(1000), way: Some(LinkDirection::Forward), ..Change::default() };
    assert_eq!(link.change(at(0), &rate), Err(ChangeError::NoneHas("rate")));
}
