//! Files that come into being while they are sent: a source of constant bit rate.

use farcast_core::{BitRate, Span, Time};
use farcast_pgm::message::DataKind;
use farcast_pgm::{ConfigError, Grouping, Live, Sender, SenderConfig, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Reported, Session, data, files, messages, ms};

/// Returns live files of 300 kbit/s: a segment of 1,000 octets in 26.667 ms.
fn live(base: SenderConfig) -> SenderConfig {
    let rate = BitRate::from_bps(300_000).expect("positive");
    SenderConfig { live: Some(Live { rate, start: ms(500) }), ..base }
}

/// Returns the time at which the segment with this number exists.
fn made(segment: u32) -> Time {
    Time::ZERO + ms(500) + Span::from_nanos((u64::from(segment) * 8_000_000_000_000).div_ceil(300_000))
}

#[test]
fn segments_leave_when_they_are_there_however_long_it_goes_on() {
    let mut session = Session::new("live", Setup::plain(1), live(files(&[1000], 1)), 1, Link::clean(ms(20)));
    session = session.run();
    let log = session.net.take_log();
    let sent = data(&log, DataKind::Original);
    assert_eq!(sent.len(), 1001, "what says what the file is, and its segments");
    assert!(sent[0].0 < made(0), "the first at once");
    for (segment, (at, _)) in (0..).zip(&sent[1..]) {
        let late = at.since(made(segment));
        assert!(late < Span::from_micros(1), "segment {segment} {late:?} after it was there");
    }
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
}

#[test]
fn repairs_move_nothing_where_there_is_room() {
    let link = Link::lossy(ms(20), 0.1);
    let mut session = Session::new("live, lossy", Setup::plain(2), live(files(&[1000], 1)), 1, link).run();
    let log = session.net.take_log();
    let sent = data(&log, DataKind::Original);
    let repairs = data(&log, DataKind::Repair).len();
    assert!(repairs > 80, "{repairs}");
    // A packet that is leaving when a segment comes into being takes the line for 8.4 ms.
    for (segment, (at, _)) in (0..).zip(&sent[1..]) {
        let late = at.since(made(segment));
        assert!(late < ms(45), "segment {segment} {late:?} after it was there");
    }
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_eq!((session.clients[0].stored_count(), session.clients[0].lost()), (1000, 0));
}

#[test]
fn what_comes_faster_than_it_may_leave_waits() {
    let mut config = live(files(&[200], 1));
    config.pace.rate = BitRate::from_bps(100_000).expect("positive");
    let mut session = Session::new("live, slow", Setup::plain(3), config, 1, Link::clean(ms(20))).run();
    let log = session.net.take_log();
    let sent = data(&log, DataKind::Original);
    assert_eq!(sent.len(), 201);
    // 200 segments of 1,052 octets and their headers at 100 kbit/s.
    let took = sent[200].0.since(made(0));
    assert!(took > Span::from_millis(16_700) && took < Span::from_millis(17_200), "{took:?}");
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
}

#[test]
fn there_is_no_parity_of_what_is_not_there_yet() {
    let parity = Some(Grouping { size: 8, ahead: 0, on_demand: true });
    let error = Sender::new(SenderConfig { parity, ..live(files(&[16], 0)) }).expect_err("parity");
    assert!(matches!(error, ConfigError::Range(_)), "{error}");
}

#[test]
fn messages_come_from_their_owner_and_not_by_themselves() {
    let error = Sender::new(live(messages())).expect_err("messages");
    assert!(matches!(error, ConfigError::Range(_)), "{error}");
}
