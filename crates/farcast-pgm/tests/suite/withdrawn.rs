//! Files that are withdrawn while they are sent: the others arrive, and receivers are told without a storm of requests.

use farcast_core::{Span, Time};
use farcast_delivery::{Gone, ObjectId, Outcome, SenderEngine as _};
use farcast_pgm::config::Grouping;
use farcast_pgm::message::{DataKind, NakKind};
use farcast_pgm::{Sender, SenderConfig, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, files, ms, naks};

const DELAY: Span = ms(10);
/// Segments of a file; each takes about 8 ms.
const SEGMENTS: u32 = 20;

/// Returns a session with three files, of which the second is withdrawn at `at`.
fn session(name: &str, config: SenderConfig, at: Option<Span>, receivers: u32, loss: f64) -> Session {
    let mut session = Session::new(name, Setup::plain(7), config, receivers, Link::lossy(DELAY, loss));
    if let Some(at) = at {
        session.net.at(Time::ZERO + at, session.sender, |engine: &mut Sender, now| {
            let gone = Gone { whole: None, touched: farcast_core::Run::one(0) };
            engine.withdraw(now, ObjectId::new(1), &gone, "changed");
        });
    }
    session.run()
}

#[test]
fn a_withdrawn_file_ends_at_every_receiver_and_the_others_arrive() {
    let grouping = |on_demand, ahead| Some(Grouping { size: 8, ahead, on_demand });
    for parity in [None, grouping(true, 0), grouping(false, 2)] {
        for loss in [0.0, 0.1] {
            // Before the descriptor, just behind it, in the middle, and when all of the file has left.
            for at in [50, 175, 260, 560] {
                for named in [0, 4] {
                    let config = SenderConfig { parity, ..files(&[SEGMENTS; 3], named) };
                    let name = format!("withdrawn at {at} ms, {parity:?}, loss {loss}, {named} named");
                    let session = session(&name, config, Some(ms(at)), 4, loss);
                    let mut bereft = 0;
                    for client in &session.clients {
                        let mut outcomes = client.outcomes();
                        outcomes.retain(|outcome| !matches!(outcome, Outcome::Complete(_)));
                        let names = client.complete_names();
                        assert!(names.contains(&"file-0".into()), "{name}: {names:?}");
                        assert!(names.contains(&"file-2".into()), "{name}: {names:?}");
                        let has = names.contains(&"file-1".into());
                        let expected: &[Outcome] = if has { &[] } else { &[Outcome::Withdrawn] };
                        assert_eq!(outcomes, expected, "{name}");
                        assert!(!has || at > 300, "{name}: more was sent");
                        bereft += u32::from(!has);
                    }
                    let outcome = match named {
                        0 if at < 300 => SenderOutcome::Incomplete { lacking: 0 },
                        0 => SenderOutcome::Unknown,
                        _ if bereft == 0 => SenderOutcome::Acknowledged,
                        _ => SenderOutcome::Incomplete { lacking: bereft },
                    };
                    assert_eq!(session.outcome(), Some(outcome), "{name}");
                }
            }
        }
    }
}

/// A withdrawn file costs no more requests than the losses of a file that is not.
#[test]
fn a_thousand_receivers_do_not_storm() {
    let run = |at| {
        let mut session = session("storm", files(&[SEGMENTS; 3], 0), at, 1000, 0.05);
        let log = session.net.take_log();
        let requests: usize = (1..=1000).map(|from| naks(&log, from, NakKind::Nak).len()).sum();
        let confirmed = naks(&log, 0, NakKind::Confirmation).len();
        (session, requests, confirmed, data(&log, DataKind::Repair))
    };
    let (_, before, _, _) = run(None);
    // The file is half sent.
    let (session, requests, confirmed, repairs) = run(Some(ms(480)));
    let repeated =
        repairs.iter().filter(|(_, data)| data.descriptor.as_ref().is_some_and(|said| said.withdrawn));
    let repeated = repeated.count();
    assert!(requests <= before, "{requests} requests, {before} where nothing is withdrawn");
    assert!((1..=10).contains(&repeated) && confirmed < 100, "{repeated} times told, {confirmed} confirmed");
    for client in &session.clients {
        assert_eq!(client.complete(), 2);
        assert!(client.outcomes().contains(&Outcome::Withdrawn));
    }
}
