//! Named receivers of streams: the source keeps all octets that one of them lacks.

use farcast_core::{Span, Time};
use farcast_pgm::stream::StreamSenderEvent;
use farcast_pgm::{NodeId, SenderOutcome};

use super::world::{TSDU, World, at, config, receiver, text};
use super::{LONG, number};

fn ended(world: &World) -> SenderOutcome {
    let outcome = world.told.iter().find_map(|(_, event)| match event {
        StreamSenderEvent::Ended(outcome) => Some(*outcome),
        _ => None,
    });
    outcome.expect("it ended")
}

fn acknowledged(world: &World) -> usize {
    world.told.iter().filter(|(_, event)| matches!(event, StreamSenderEvent::Acknowledged(_))).count()
}

#[test]
fn they_have_all_of_it_however_little_is_kept() {
    let text = text(60_000);
    for (kept, loss) in [(4_000, 0.0), (4_000, 0.1), (20_000, 0.3), (1 << 20, 0.1)] {
        let mut world = World::new(config(kept, 3), 3, text.clone());
        world.lossy(loss, 2);
        let world = world.run(LONG);
        for n in 0..3 {
            world.assert_whole(n, &text);
        }
        assert_eq!((ended(&world), acknowledged(&world)), (SenderOutcome::Acknowledged, 3));
        assert!(world.most_kept <= kept.max(8 * u64::from(TSDU)) + 513 * u64::from(TSDU));
    }
}

#[test]
fn one_that_is_cut_off_for_a_while_is_waited_for() {
    let text = text(100_000);
    let mut world = World::new(config(10_000, 2), 2, text.clone());
    // Nothing passes to or from the second for four seconds; the source stays for five.
    world.drop_if(|now, from, to, _| (from == 2 || to == 2) && now > at(200) && now < at(4200));
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    world.assert_whole(1, &text);
    assert_eq!(ended(&world), SenderOutcome::Acknowledged);
    let beyond = world.said.iter().filter(|(now, from, said)| {
        *from == 0 && *now < at(4000) && number(said).is_some_and(|number| number > 80)
    });
    assert_eq!(beyond.count(), 0, "it waited");
}

#[test]
fn one_that_dies_is_given_up_once_and_the_others_go_on() {
    let text = text(200_000);
    let mut world = World::new(config(10_000, 2), 2, text.clone());
    world.killed.push((at(300), 1));
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    let lost: Vec<Time> = world
        .told
        .iter()
        .filter(|(_, event)| *event == StreamSenderEvent::Lost(NodeId(1)))
        .map(|&(at, _)| at)
        .collect();
    assert_eq!(lost.len(), 1, "{:?}", world.told);
    assert!(lost[0] > at(5000) && lost[0] < at(7000), "after five seconds: {lost:?}");
    assert_eq!(ended(&world), SenderOutcome::Incomplete { lacking: 1 });
    let sent = world.said.iter().filter(|(_, _, said)| number(said).is_some()).map(|&(at, ..)| at);
    assert!(sent.max().unwrap() < lost[0] + Span::from_secs(4), "it is waited for once");
}

#[test]
fn one_that_comes_late_is_waited_for_and_has_all() {
    let text = text(100_000);
    let mut world = World::new(config(10_000, 2), 1, text.clone());
    world.join(at(3000), receiver(1));
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    world.assert_whole(1, &text);
    assert_eq!(ended(&world), SenderOutcome::Acknowledged);
}

#[test]
fn one_that_lacks_its_beginning_acknowledges_nothing() {
    let text = text(100_000);
    // The second receiver comes when the window has passed the beginning, since it was given up before.
    let mut config = config(10_000, 2);
    config.sender.linger = at(500).since(Time::ZERO);
    let mut world = World::new(config, 1, text.clone());
    world.join(at(1200), receiver(1));
    let world = world.run(LONG);
    world.assert_whole(0, &text);
    assert!(world.got(1).octets.len() < text.len() && !world.got(1).octets.is_empty());
    assert_eq!((ended(&world), acknowledged(&world)), (SenderOutcome::Incomplete { lacking: 1 }, 1));
}

#[test]
fn more_of_them_than_one_spm_asks() {
    let text = text(20_000);
    let mut world = World::new(config(8_000, 70), 70, text.clone());
    world.lossy(0.02, 4);
    let world = world.run(LONG);
    for n in 0..70 {
        world.assert_whole(n, &text);
    }
    assert_eq!((ended(&world), acknowledged(&world)), (SenderOutcome::Acknowledged, 70));
}
