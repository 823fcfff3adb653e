//! Streams from end to end, in virtual time.

mod hostile;
mod named;
mod world;

use farcast_core::Time;
use farcast_delivery::{StreamEngine as _, StreamReceiverEngine as _, StreamSenderEngine as _};
use farcast_pgm::cc::CcConfig;
use farcast_pgm::message::Opt;
use farcast_pgm::stream::{MOST_FRAGMENTS, StreamReceiverEvent, StreamSender, StreamSenderEvent};
use farcast_pgm::{Body, Message, SenderOutcome, Sqn, wire};

use crate::common::ms;
use world::{TSDU, World, at, config, receiver, text};

const LONG: Time = Time::from_nanos(600 * 1_000_000_000);

fn message(datagram: &[u8]) -> Message {
    wire::decode(datagram).expect("a message").message
}

/// Returns the number of the data in `datagram`.
fn number(datagram: &[u8]) -> Option<u32> {
    message(datagram).data().map(|data| data.sqn.0)
}

#[test]
fn all_of_it_arrives_in_order_whatever_is_lost_doubled_or_overtaken() {
    let text = text(100_000);
    for (loss, twice, jitter) in
        [(0.0, 0.0, 0), (0.01, 0.0, 0), (0.1, 0.1, 0), (0.1, 0.0, 30), (0.3, 0.2, 10)]
    {
        for seed in 0..4 {
            let mut world = World::new(config(1 << 20, 0), 3, text.clone());
            (world.twice, world.jitter) = (twice, ms(jitter));
            world.lossy(loss, seed);
            let world = world.run(LONG);
            for n in 0..3 {
                world.assert_whole(n, &text);
                assert!(world.receivers[n].1.has_left(), "nobody waits for it any more");
            }
            let last = world.told.last().map(|(_, event)| *event);
            assert_eq!(last, Some(StreamSenderEvent::Ended(SenderOutcome::Unknown)));
        }
    }
}

#[test]
fn nothing_at_all_ends_too() {
    for loss in [0.0, 0.4] {
        let mut world = World::new(config(1 << 20, 2), 2, Vec::new());
        world.lossy(loss, 3);
        let world = world.run(LONG);
        world.assert_whole(0, &[]);
        let last = world.told.last().map(|(_, event)| *event);
        assert_eq!(last, Some(StreamSenderEvent::Ended(SenderOutcome::Acknowledged)));
    }
}

#[test]
fn numbers_go_round() {
    let text = text(60_000);
    let mut config = config(20_000, 1);
    config.sender.first = Sqn(u32::MAX - 30);
    let mut world = World::new(config, 1, text.clone());
    world.lossy(0.1, 1);
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    let numbers: Vec<u32> = world.said.iter().filter_map(|(_, _, said)| number(said)).collect();
    assert!(numbers.contains(&u32::MAX) && numbers.contains(&0));
}

#[test]
fn messages_keep_their_boundaries_and_are_cut_where_they_are_long() {
    let text = text(90_000);
    let most = (usize::from(TSDU) - 20) * MOST_FRAGMENTS;
    for len in [1, 7, usize::from(TSDU), usize::from(TSDU) + 1, 3000, most] {
        let text = &text[..text.len().min(len * 300)];
        let mut world = World::messages(config(1 << 20, 0), text.to_vec(), len);
        world.lossy(0.1, len as u64);
        let world = world.run(LONG);
        world.assert_whole(0, text);
        let (messages, rest) = (text.len() / len, text.len() % len);
        let expected = [vec![len; messages], vec![rest; usize::from(rest > 0)]].concat();
        assert_eq!(world.got(0).messages, expected, "messages of {len}");
    }
    // A message beyond the limit of other implementations leaves as several.
    let world = World::messages(config(1 << 20, 0), text.clone(), most + 1).run(LONG);
    world.assert_whole(0, &text);
    assert_eq!(world.got(0).messages[..3], [most, 1, most]);
}

#[test]
fn a_tpdu_is_as_full_as_it_may_be() {
    let text = text(50_000);
    let world = World::new(config(1 << 20, 0), 1, text.clone()).run(LONG);
    assert_eq!(world.got(0).messages.len(), text.len() / usize::from(TSDU));
    for (_, _, said) in world.said {
        let datagram = message(&said);
        assert!(datagram.data().is_none_or(|data| data.options.fragment.is_none()), "nothing is cut");
    }
}

#[test]
fn what_is_not_full_leaves_when_nothing_more_is_there() {
    let mut sender = StreamSender::new(config(1 << 20, 0)).unwrap();
    sender.open(Time::ZERO);
    let sent = |sender: &mut StreamSender, now| {
        let mut data = Vec::new();
        let mut out = Vec::new();
        sender.handle_timeout(now);
        while sender.poll_transmit(now, &mut out).is_some() {
            data.extend(number(&out));
            out.clear();
        }
        data
    };
    assert_eq!(sender.write(at(1), b"prompt> "), 8);
    assert_eq!(sent(&mut sender, at(50)), [0; 0], "it may become more");
    sender.flush(at(50));
    assert_eq!(sent(&mut sender, at(60)), [0]);
    // A message ends only where the owner ends it.
    let mut lines =
        StreamSender::new(farcast_pgm::stream::StreamSenderConfig { messages: true, ..config(1 << 20, 0) })
            .unwrap();
    lines.open(Time::ZERO);
    assert_eq!(lines.write(at(1), b"half a"), 6);
    lines.flush(at(1));
    assert_eq!(sent(&mut lines, at(50)), [0; 0]);
    assert_eq!(lines.write(at(51), b" line\n"), 6);
    lines.end_message();
    assert_eq!(sent(&mut lines, at(60)), [0]);
    lines.finish(at(61));
    assert_eq!(lines.write(at(62), b"more"), 0, "it has ended");
}

#[test]
fn a_source_keeps_no_more_than_its_window_and_what_waits() {
    let text = text(2_000_000);
    let mut world = World::new(config(100_000, 0), 1, text.clone());
    world.lossy(0.02, 1);
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    let bound = 100_000 + (512 + 1) * u64::from(TSDU);
    assert!(world.most_kept <= bound && world.most_kept > bound / 2, "{} octets", world.most_kept);
}

#[test]
fn who_comes_late_has_all_while_it_is_kept_and_begins_where_it_is_afterwards() {
    let text = text(400_000);
    // 400 kB take three and a half seconds, and 120 kB are kept.
    let mut world = World::new(config(120_000, 0), 1, text.clone());
    world.join(at(300), receiver(1));
    world.join(at(2000), receiver(2));
    let from_now = |n| farcast_pgm::stream::StreamReceiverConfig { from_now: true, ..receiver(n) };
    world.join(at(300), from_now(3));
    world.join(Time::ZERO, from_now(4));
    let world = world.run(LONG);
    for n in [0, 1, 4] {
        world.assert_whole(n, &text);
    }
    for (n, least) in [(2, 100_000), (3, 20_000)] {
        let got = world.got(n);
        let &[(place, 0)] = &got.begins[..] else { panic!("{:?}", got.begins) };
        let begins = text.len() - got.octets.len();
        assert!(text.ends_with(&got.octets) && begins > least && begins < least + 150_000, "{n}: {begins}");
        assert_eq!(place as u32 as usize * usize::from(TSDU), begins, "{n}: it is told where it begins");
        assert_eq!((got.end, got.gaps.len()), (Some(got.octets.len() as u64), 0));
    }
}

#[test]
fn who_comes_when_all_was_sent_is_told_that_it_lacks_it() {
    let mut world = World::new(config(5_000, 0), 1, text(20_000));
    // Everything was sent in 200 ms; the source stays for five seconds.
    world.join(at(1000), receiver(1));
    let world = world.run(LONG);
    let got = world.got(1);
    assert_eq!((&got.octets[..], got.end, got.begins.len()), (&[][..], Some(0), 1));
    assert_eq!(got.begins[0].0 as u32, 40, "where it would have gone on");
}

#[test]
fn what_cannot_be_had_is_told_in_its_place_and_nothing_behind_it_is_lost() {
    let text = text(100_000);
    let mut config = config(4_000, 0);
    // The window does not wait for a receiver that cannot be helped.
    config.sender.linger = ms(400);
    let mut world = World::new(config, 2, text.clone());
    // Numbers 50 to 52 and 90 never come to the second.
    world.drop_if(|_, _, to, said| {
        to == 2 && number(said).is_some_and(|number| (50..53).contains(&number) || number == 90)
    });
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    let got = world.got(1);
    let tsdu = usize::from(TSDU);
    let expected = [&text[..50 * tsdu], &text[53 * tsdu..90 * tsdu], &text[91 * tsdu..]].concat();
    assert!(got.octets == expected, "{} octets", got.octets.len());
    let gaps: Vec<_> = got.gaps.iter().map(|&(from, to)| (from as u32, to.map(|to| to as u32))).collect();
    let each = [50, 51, 52, 90].map(|number| (number, Some(number + 1)));
    assert_eq!(gaps, each, "as the window leaves one behind after the other");
    let begins: Vec<_> = got.begins.iter().map(|&(at, octets)| (at as u32, octets / tsdu)).collect();
    assert_eq!(begins, [(0, 0), (53, 50), (91, 87)]);
    assert_eq!(got.end, Some(expected.len() as u64));
}

#[test]
fn a_message_that_lacks_a_piece_is_not_told_and_its_place_is() {
    let text = text(30_000);
    let mut config = config(4_000, 0);
    config.sender.linger = ms(400);
    let mut world = World::messages(config, text.clone(), 1000);
    // Messages have three TPDUs each: the middle one of message 5 never comes.
    world.drop_if(|_, _, _, said| number(said) == Some(16));
    let world = world.run(LONG);
    let got = world.got(0);
    assert!(got.octets == [&text[..5000], &text[6000..]].concat(), "{} octets", got.octets.len());
    let [(from, Some(to))] = got.gaps[..] else { panic!("{:?}", got.gaps) };
    assert!((from as u32..to as u32).contains(&15) && (from as u32..to as u32).contains(&16), "{from} {to}");
    assert_eq!(got.begins.last().map(|&(at, octets)| (at as u32, octets)), Some((18, 5000)));
}

#[test]
fn a_source_that_dies_is_gone_after_a_while_and_what_came_is_there() {
    let text = text(100_000);
    let mut world = World::new(config(1 << 20, 0), 1, text.clone());
    world.dies = at(400);
    world.drop_if(|_, _, _, said| number(said) == Some(20));
    let world = world.run(LONG);
    let got = world.got(0);
    // The gap is reported, and the data behind it are delivered.
    assert_eq!(got.gaps.iter().map(|&(from, _)| from as u32).collect::<Vec<_>>(), [20]);
    let tsdu = usize::from(TSDU);
    assert!(got.octets.starts_with(&text[..20 * tsdu]) && got.octets.len() > 60 * tsdu);
    assert_eq!((got.end, got.events.last()), (None, Some(&StreamReceiverEvent::Gone)));
}

#[test]
fn an_end_that_was_heard_counts_though_the_source_dies() {
    let text = text(20_000);
    let mut world = World::new(config(1 << 20, 0), 2, text.clone());
    world.drop_if(|_, _, to, said| to == 2 && number(said) == Some(20));
    world.dies = at(1500);
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    let got = world.got(1);
    assert_eq!((got.gaps.len(), got.end), (1, Some(19_500)));
    assert!(!got.events.contains(&StreamReceiverEvent::Gone), "it has ended");
}

#[test]
fn the_end_is_said_at_once_though_nothing_was_sent_for_long() {
    let mut world = World::new(config(1 << 20, 0), 1, Vec::new());
    world.drop_if(|_, _, _, _| false);
    let world = world.run(at(200));
    assert_eq!(world.got(0).end, Some(0), "within 200 ms");
    let fins = world.said.iter().filter(|(_, _, said)| match message(said).body {
        Body::Spm(spm) => spm.options.contains(&Opt::Fin),
        _ => false,
    });
    assert!(fins.count() > 0);
}

#[test]
fn under_pgmcc_it_leaves_as_the_acker_lets_it_and_nothing_is_lost() {
    let text = text(300_000);
    let mut controlled = config(1 << 20, 0);
    controlled.sender.cc = Some(CcConfig::default());
    controlled.sender.tsdu -= 20;
    let ends = |loss: f64| {
        let mut world = World::new(controlled.clone(), 2, text.clone());
        let mut random = farcast_core::random::RandomStream::derive(5, &[1]);
        world.drop_if(move |_, _, _, _| random.unit() < loss);
        let world = world.run(LONG);
        world.assert_whole(0, &text);
        let bound = (512 + 1) * u64::from(TSDU) + (1 << 20);
        assert!(world.most_kept <= bound);
        let data = world.said.iter().filter(|(_, from, said)| *from == 0 && number(said).is_some());
        data.map(|&(at, ..)| at).max().unwrap()
    };
    let (clean, lossy) = (ends(0.0), ends(0.05));
    // 1 Mbit/s lets 300 kB leave in two and a half seconds; 5 % of loss is worth 30 kbit each round trip of 40 ms.
    assert!(clean < at(4000) && lossy > at(5000), "{clean:?} {lossy:?}");
}

#[test]
fn what_a_receiver_keeps_has_a_bound() {
    let mut world = World::new(config(1 << 20, 0), 0, text(200_000));
    let mut small = receiver(0);
    small.receiver.message_memory = 20_000;
    world.join(Time::ZERO, small);
    // Number 3 comes only after a second.
    world.drop_if(|now, _, _, said| now < at(1000) && number(said) == Some(3));
    let world = world.run(LONG);
    world.assert_whole(0, &text(200_000));
    assert!(world.got(0).most_kept <= 20_000 + u64::from(TSDU), "{}", world.got(0).most_kept);
}
