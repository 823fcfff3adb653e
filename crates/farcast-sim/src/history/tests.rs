use std::net::{IpAddr, Ipv4Addr};

use farcast_core::{Bitmap, Run, Span};
use farcast_mftp::message::{Data, DataKind, Nak};
use farcast_mftp::{Body, ClientId, Message, Mftp, SenderEvent, SenderOutcome};

use super::*;

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn message(body: Body) -> Message {
    Message::new(1, body)
}

fn data(pass: u32, first: u32, count: u32) -> Frame<Message> {
    let dtus = Run::new(first, count).unwrap();
    let data = Data { pass, block: 0, kind: DataKind::Source, dtus, len: 500, last_len: 500 };
    Frame { spacing: Span::from_secs(1), ..Frame::new(message(Body::Data(data)), 28) }
}

fn nak(dtus: u32) -> Frame<Message> {
    let mut missing = Bitmap::new(16);
    missing.insert_run(Run::new(0, dtus).unwrap());
    let (server, client) = ("10.0.0.1:5402".parse().unwrap(), ClientId(5));
    Frame::new(
        message(Body::Nak(Nak { server, client, pass: 1, block: 0, missing, parity_held: 0, unstored: 0 })),
        28,
    )
}

fn asked(round: u32, count: u64, fate: NakFate) -> Asked {
    Asked { round, count, fate }
}

/// Destination of the sender's messages.
const GROUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 54, 2)), 5402);

#[test]
fn a_story_told_by_hand() {
    let mut kept = History::new(2, HistoryConfig::default());
    let history: &mut dyn Observer<Mftp> = &mut kept;
    history.phase(at(0), Phase::Announcing);
    history.told(at(3), &SenderEvent::Started { receivers: 2, restart: false });
    history.told(at(3), &SenderEvent::Pass { pass: 1, dtus: 5 });
    history.sent(at(3), GROUP, &data(1, 0, 4));
    history.phase(at(3), Phase::Sending);
    history.sent(at(7), GROUP, &data(1, 4, 1));
    history.phase(at(8), Phase::Waiting);
    history.answered(at(9), 0, &nak(2));
    history.answered(at(10), 1, &nak(1));
    history.reached(at(11), 1, &nak(1).message);
    history.nak(at(11), &asked(1, 1, NakFate::Used));
    // Under the draft's rule, the first DTU of a pass leaves before the sender reports the pass.
    history.sent(at(12), GROUP, &data(2, 0, 1));
    history.told(at(12), &SenderEvent::Pass { pass: 2, dtus: 1 });
    history.phase(at(13), Phase::Waiting);
    history.told(at(16), &SenderEvent::Delivered);
    history.phase(at(16), Phase::Completing);
    history.told(at(17), &SenderEvent::Ended(SenderOutcome::Finished));
    history.phase(at(17), Phase::Ended);
    history.completed(at(8), 0);
    history.completed(at(13), 1);
    let record = kept.finish();

    let pass = |number, begin, end, scheduled, dtus| Pass {
        number,
        begin: at(begin),
        end: at(end),
        scheduled,
        dtus,
    };
    assert_eq!(record.passes, [pass(1, 3, 8, 5, 5), pass(2, 12, 13, 1, 1)]);
    let wait = |begin, end, waits_for, after_pass| Wait {
        end: at(end),
        ..Wait::new(at(begin), waits_for, after_pass)
    };
    let used = NakCounts { used: 1, ..NakCounts::default() };
    let waits = [
        wait(0, 3, WaitFor::Registrations, 0),
        Wait { naks: used, ..wait(8, 12, WaitFor::Answers, 1) },
        wait(13, 16, WaitFor::Answers, 2),
        wait(16, 17, WaitFor::Closing, 2),
    ];
    assert_eq!(record.waits, waits);
    let interval = |begin, end, count| Interval { begin: at(begin), end: at(end), count };
    assert_eq!(record.data, [interval(3, 8, 5), interval(12, 13, 1)]);
    let lane = |sent, dtus, reached, completed| Lane {
        naks: vec![LaneNak { sent: at(sent), pass: 1, block: 0, dtus, reached }],
        naks_left_out: 0,
        completed: Some(at(completed)),
    };
    assert_eq!(record.lanes, [lane(9, 2, None, 8), lane(10, 1, Some((at(11), NakFate::Used)), 13)]);
    let milestones = [
        (at(3), Milestone::Began { receivers: 2 }),
        (at(16), Milestone::Delivered),
        (at(17), Milestone::Ended { alone: false }),
    ];
    assert_eq!(record.milestones, milestones);
    assert_eq!((record.end, record.receivers, total(&record.completions)), (at(17), 2, 2));
}

#[test]
fn merged_naks_count_as_many() {
    let mut kept = History::new(1_000_000, HistoryConfig::default());
    let history: &mut dyn Observer<Mftp> = &mut kept;
    history.phase(at(1), Phase::Waiting);
    history.nak(at(2), &asked(1, 700, NakFate::Used));
    history.nak(at(2), &asked(1, 11, NakFate::Known));
    history.nak(at(3), &asked(1, 5, NakFate::Late));
    let record = kept.finish();
    let totals = [&record.naks_used, &record.naks_known, &record.naks_late].map(|points| total(points));
    assert_eq!((totals, record.naks_sent.len()), ([700, 11, 5], 0));
    assert_eq!(record.waits[0].naks, NakCounts { used: 700, known: 11, late: 5 });
    assert!(record.lanes.is_empty());
}

#[test]
fn receivers_without_lanes_may_merge_their_naks() {
    let wants_each = |receivers| {
        let history = History::new(receivers, HistoryConfig::default());
        Observer::<Mftp>::wants_each(&history)
    };
    assert!(wants_each(60) && !wants_each(61));
}

#[test]
fn memory_is_bounded() {
    let mut kept = History::new(2, HistoryConfig { points: 10, ..HistoryConfig::default() });
    let history: &mut dyn Observer<Mftp> = &mut kept;
    for n in 0..1000 {
        history.sent(at(4 * n), GROUP, &data(n as u32 + 1, 0, 1));
        history.phase(at(4 * n + 1), Phase::Waiting);
        history.answered(at(4 * n + 2), 1, &nak(1));
        history.reached(at(4 * n + 3), 1, &nak(1).message);
        history.nak(at(4 * n + 3), &asked(1, 1, NakFate::Used));
    }
    let record = kept.finish();
    assert_eq!((record.passes.len(), record.passes_left_out), (10, 990));
    assert_eq!((record.waits.len(), record.waits_left_out), (10, 990));
    assert_eq!((record.lanes[1].naks.len(), record.lanes[1].naks_left_out), (10, 990));
    assert!(record.data.len() <= 10 && record.naks_used.len() <= 10 && record.naks_sent.len() <= 10);
    assert_eq!((total(&record.naks_sent), total(&record.naks_used)), (1000, 1000));
    assert_eq!(record.data.iter().map(|interval| interval.count).sum::<u64>(), 1000);
}
