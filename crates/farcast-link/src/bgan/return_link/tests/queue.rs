use super::*;

#[test]
fn each_terminal_has_a_queue_of_its_own_until_its_slots_have_ended() {
    // One contention slot: 0 to 5 ms of a frame; reservation slots from 5, 25 and 45 ms.
    let queue = QueueLimit::Octets(500);
    let config = ReturnConfig { contention_slots: 1, queue, ..ReturnConfig::default() };
    let mut link = link(&config, 1);
    // Two packets of two slots, 400 octets; a third would make it 600, and 100 octets fill the queue.
    link.handle(ms(100), Port::Terminal(0), run(0, 3, &[200], Span::ZERO));
    link.handle(ms(100), Port::Terminal(0), packet(3, 100));
    link.handle(ms(100), Port::Terminal(0), packet(4, 1));
    // Another terminal has room. Its request goes a frame later, so it meets nobody.
    let mut left = drive(&mut link, ms(165));
    link.handle(ms(170), Port::Terminal(1), packet(5, 168));
    // Slots from 1165 (frame 14), 1205, 1225 and 1245 (frame 15) and 1285 ms (frame 16); then the other's.
    // At 1225 ms, and not before, the first packet has been sent.
    left.extend(drive(&mut link, ms(1225) - Span::from_nanos(1)));
    link.handle(ms(1225) - Span::from_nanos(1), Port::Terminal(0), packet(6, 200));
    link.handle(ms(1225), Port::Terminal(0), packet(7, 201));
    link.handle(ms(1225), Port::Terminal(0), packet(8, 200));
    left.extend(drive(&mut link, Time::NEVER));
    let early = [(ms(1225 + 450), 0), (ms(1265 + 450), 1), (ms(1305 + 450), 3), (ms(1325 + 450), 5)];
    assert_eq!(left[..4], early);
    assert_eq!(left.iter().map(|&(_, id)| id).collect::<Vec<_>>(), [0, 1, 3, 5, 8]);
    assert_eq!((link.counters().packets_in, link.counters().queue_dropped), (5, 4));
    assert_eq!(link.totals().dropped, 4);
}

#[test]
fn what_is_given_up_makes_room() {
    // One slot and no back-off: two terminals collide for ever.
    let config = ReturnConfig {
        contention_slots: 1,
        backoff_frames: 1,
        give_up_after: Some(3),
        queue: QueueLimit::Packets(1),
        ..ReturnConfig::default()
    };
    for request in [RequestFor::Queue, RequestFor::Packet] {
        let mut link = link(&ReturnConfig { request, ..config.clone() }, 1);
        enter_all(&mut link, 2, Time::ZERO);
        enter_all(&mut link, 2, Time::ZERO);
        assert_eq!(drive(&mut link, Time::NEVER), []);
        assert_eq!((link.counters().queue_dropped, link.counters().given_up), (2, 2));
        link.handle(ms(100_000), Port::Terminal(0), run(7, 2, &[100], Span::ZERO));
        let left = drive(&mut link, Time::NEVER);
        assert_eq!(left.iter().map(|&(_, id)| id).collect::<Vec<_>>(), [7], "{request:?}");
        assert_eq!(link.counters().queue_dropped, 3);
    }
}

#[test]
fn a_limit_of_nothing_is_refused() {
    for queue in [QueueLimit::Octets(0), QueueLimit::Packets(0)] {
        let config = ReturnConfig { queue, ..ReturnConfig::default() };
        assert_eq!(config.check(), Err(BganError::Zero("the limit of the queue")));
    }
}

/// Returns the packets that find room, if each packet that leaves does so at the time in `left`.
fn with_room(config: &ReturnConfig, entries: &[Entry], left: &[(Time, u32)]) -> BTreeSet<u32> {
    let mut taken: Vec<(u32, Time, u64)> = Vec::new();
    let mut ids = BTreeSet::new();
    for (entry, id) in entries.iter().zip(0..) {
        let here = |&&(terminal, ends, _): &&(u32, Time, u64)| {
            terminal == entry.terminal && ends > Time::from_nanos(entry.at)
        };
        let held: Vec<u64> = taken.iter().filter(here).map(|&(_, _, octets)| octets).collect();
        let fits = match config.queue {
            QueueLimit::Unbounded => true,
            QueueLimit::Packets(most) => held.len() < most as usize,
            QueueLimit::Octets(most) => held.iter().sum::<u64>() + entry.octets <= most,
        };
        if fits {
            ids.insert(id);
            let arrival = left.iter().find(|&&(_, other)| other == id).map_or(Time::NEVER, |&(at, _)| at);
            taken.push((entry.terminal, arrival - config.propagation, entry.octets));
        }
    }
    ids
}

proptest! {
    #[test]
    fn the_limit_is_never_passed_and_never_kept_too_early(
        config in configs(), loads in loads(), seed in any::<u64>(), request in request(), piggyback in any::<bool>(),
        packets in any::<bool>(), limit in 1u32..8, lengths in proptest::collection::vec(1usize..200, 1..4),
    ) {
        let queue =
            if packets { QueueLimit::Packets(limit) } else { QueueLimit::Octets(u64::from(limit) * 100) };
        let backoff_doubling = Some(10);
        let config =
            ReturnConfig { queue, give_up_after: None, backoff_doubling, request, piggyback, ..config };
        let mut link = link(&config, seed);
        let mut left = carry(&mut link, &loads, &lengths, u32::MAX);
        left.extend(drive(&mut link, Time::NEVER));
        let entries = entries(&loads, &lengths);
        let expected = with_room(&config, &entries, &left);
        prop_assert_eq!(left.iter().map(|&(_, id)| id).collect::<BTreeSet<_>>(), expected);
        let counters = link.counters();
        prop_assert_eq!(counters.packets_in + counters.queue_dropped, entries.len() as u64);
        prop_assert_eq!(counters.packets_out, counters.packets_in);
    }
}
