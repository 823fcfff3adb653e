//! The laws of engines that have no generic test here: early and late wake-ups, deadlines, determinism.

use std::vec;
use std::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::{Piece, Span, Time};
use smallvec::smallvec;

use super::{bare, entity, ttis};
use crate::config::{Discard, ErroneousStatus, MaxTransmissions};
use crate::pdu::{
    DataPdu, EndedBefore, LastEnd, MoveWindow, Pdu, RelativeList, Reset, Segment, SequenceNumber, Status,
    StatusBitmap, SuperField,
};
use crate::{Config, Entity, Event, wire};

/// Wake-ups of the entities.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// At their deadlines.
    Prompt,
    /// And before, at random.
    Early,
    /// Only in whole TTIs.
    Late,
    /// Not at all, but for what else happens.
    Never,
}

type Log = (Vec<(Time, usize, Pdu<Piece>)>, Vec<(usize, Event<Piece>)>);

/// Every timer is in use.
fn busy(seed: u64) -> Config {
    let mut config = Config { tx_window: 64, rx_window: 64, ..bare() };
    config.polling.last_pdu = true;
    config.polling.last_retransmitted_pdu = true;
    config.polling.timer = Some(Span::from_millis(95));
    config.polling.periodic = Some(Span::from_millis(333));
    config.polling.prohibit = Some(Span::from_millis(41));
    config.status.missing_pdu = true;
    config.status.periodic = Some(Span::from_millis(217));
    config.status.prohibit = Some(Span::from_millis(33));
    config.status.epc = Some(Span::from_millis(77));
    config.mrw.timer = Span::from_millis(85);
    config.reset.timer = Span::from_millis(85);
    config.reset.max_rst = 1000;
    config.erroneous_status = ErroneousStatus::Ignore;
    config.max_transmissions = MaxTransmissions::new(3).expect("above 0");
    config.discard = match seed % 3 {
        0 => Discard::None,
        1 => Discard::MaxTransmissions,
        _ => Discard::Timer { after: Span::from_millis(155) },
    };
    config
}

/// Runs two entities for 300 TTIs. Returns the PDUs sent and the events.
fn run(seed: u64, wake: Wake) -> Log {
    let mut random = RandomStream::derive(seed, &[2]);
    let mut early = RandomStream::derive(seed, &[3]);
    let mut ends = [entity(busy(seed)), entity(busy(seed))];
    let (mut sent, mut happened) = (Vec::new(), Vec::new());
    let mut flying: Vec<(u64, usize, Pdu<Piece>)> = Vec::new();
    for tti in 0..300 {
        let now = Time::ZERO + ttis(tti);
        for (index, end) in ends.iter_mut().enumerate() {
            wake_until(end, now, wake, &mut early);
            for (_, _, pdu) in flying.extract_if(.., |(at, to, _)| *at <= tti && *to == index) {
                let _ = end.handle(now, pdu);
            }
            end.tti(now, 4);
            if random.chance(0.2) {
                end.submit(now, Piece::whole(tti, 1 + random.below(300) as u32));
            }
            for _ in 0..4 {
                let Some(pdu) = end.poll_pdu(now) else { break };
                sent.push((now, index, pdu.clone()));
                if !random.chance(0.3) {
                    flying.push((tti + 4, 1 - index, pdu));
                }
            }
            happened.extend(core::iter::from_fn(|| end.poll_event()).map(|event| (index, event)));
        }
    }
    (sent, happened)
}

/// Wakes an entity up to `now`. Each wake-up at a deadline moves it on.
fn wake_until(end: &mut Entity<Piece>, now: Time, wake: Wake, early: &mut RandomStream) {
    if wake == Wake::Early {
        let since = now - Span::from_millis(10);
        let at = since + Span::from_nanos(early.below(10_000_000));
        if end.poll_timeout().is_none_or(|deadline| deadline.at > at) {
            let before = std::format!("{end:?}");
            end.handle_timeout(at);
            assert_eq!(std::format!("{end:?}"), before, "an early wake-up");
        }
    }
    if wake == Wake::Prompt || wake == Wake::Early {
        while let Some(deadline) = end.poll_timeout().filter(|deadline| deadline.at < now) {
            end.handle_timeout(deadline.at);
            let next = end.poll_timeout();
            assert!(next.is_none_or(|next| next.at > deadline.at), "{} stands still", deadline.timer);
        }
    }
    if wake == Wake::Late {
        end.handle_timeout(now);
    }
}

#[test]
fn the_same_seed_gives_the_same_and_wake_ups_between_ttis_change_nothing() {
    for seed in 0..30 {
        let prompt = run(seed, Wake::Prompt);
        assert!(prompt.0.len() > 200, "seed {seed}: {}", prompt.0.len());
        for other in [Wake::Prompt, Wake::Early, Wake::Late, Wake::Never] {
            assert!(run(seed, other) == prompt, "seed {seed}");
        }
    }
}

#[test]
fn an_idle_entity_asks_for_nothing() {
    let end = entity(busy(0));
    assert_eq!(end.poll_timeout(), None);
    assert!(!end.has_output(Time::ZERO + Span::from_secs(1000)) && !end.counts_ttis());
}

#[test]
fn a_long_sleep_makes_up_for_nothing_twice() {
    let mut end = entity(busy(1));
    assert!(end.submit(Time::ZERO, Piece::whole(0, 30)));
    assert!(end.poll_pdu(Time::ZERO).is_some());
    let late = Time::ZERO + Span::from_secs(100);
    end.handle_timeout(late);
    assert!(end.poll_pdu(late).is_some());
    assert!(end.poll_pdu(late).is_none());
    assert!(end.poll_timeout().is_some_and(|deadline| deadline.at > late));
}

#[test]
fn the_end_of_time_is_no_trouble() {
    let mut end = entity(busy(2));
    let late = Time::NEVER - Span::from_nanos(1);
    assert!(end.submit(late, Piece::whole(0, 30)));
    assert!(end.poll_pdu(late).is_some());
    end.handle_timeout(Time::NEVER);
    assert_eq!(end.poll_timeout(), None);
}

/// A PDU of a peer that knows about where the numbers are, and nothing else.
fn hostile(random: &mut RandomStream, near: u16) -> Pdu<Vec<u8>> {
    let mut number = |most: u64| SequenceNumber::new(near).plus(random.below(most) as u16).minus(8);
    let (sn, other) = (number(40), number(24));
    let small = random.below(16) as u8;
    let field = match random.below(12) {
        0 => SuperField::Window(sn.get()),
        1 => SuperField::MoveWindowAck { sn, n: small / 8 },
        2 => SuperField::MoveWindow(MoveWindow {
            sns: smallvec![sn],
            beyond_window: random.chance(0.2),
            n_length: small / 4,
        }),
        3 => SuperField::List(smallvec![(other, small / 4), (sn, small)]),
        4 => SuperField::Bitmap(StatusBitmap { first: other, octets: smallvec![random.bits() as u8] }),
        5 => SuperField::RelativeList(RelativeList { first: other, words: smallvec![small, 0b0101, small] }),
        6 | 7 => SuperField::Ack(other),
        8 => return Pdu::Reset(Reset { acknowledges: small > 2, rsn: random.chance(0.5), hfni: 0 }),
        _ => {
            let segment = |ends| Segment { data: vec![7; 1 + usize::from(small)], ends };
            let ended_before = random.chance(0.3).then_some(EndedBefore::OneOctetShort);
            let segments = smallvec![segment(true), segment(random.chance(0.5))];
            let (poll, last_end) = (random.chance(0.3), LastEnd::Indicator);
            return Pdu::Data(DataPdu { sn, poll, ended_before, segments, last_end, piggybacked: None });
        }
    };
    Pdu::Status(Status { fields: smallvec![field] })
}

#[test]
fn whatever_arrives_it_goes_on() {
    for seed in 0..12 {
        let mut random = RandomStream::derive(seed, &[4]);
        let config = Config { in_sequence: seed % 2 == 0, ..busy(seed) };
        let format = config.format;
        let mut end = Entity::<Vec<u8>>::new(config).expect("legal");
        let (mut handled, mut near) = (0, 0);
        for tick in 0..5_000 {
            let now = Time::ZERO + Span::from_millis(5) * tick;
            handled += u32::from(end.handle(now, hostile(&mut random, near)).is_ok());
            end.submit(now, vec![1; 1 + random.below(60) as usize]);
            for _ in 0..10 {
                let Some(pdu) = end.poll_pdu(now) else { break };
                assert!(wire::encode(&pdu, format, &mut [0; 64]).is_ok(), "seed {seed}: {pdu:?}");
                if let Pdu::Data(data) = pdu {
                    near = data.sn.get();
                }
            }
            while end.poll_event().is_some() {}
        }
        assert!(handled > 1_000, "seed {seed}: only {handled} were taken");
        let counters = end.counters();
        assert!(counters.sdus_delivered > 0 && counters.sdus_discarded > 0, "seed {seed}: {counters:?}");
        let reasons = counters.rejected.iter().count();
        assert!(reasons >= 4, "seed {seed}: {counters:?}");
    }
}
