use core::net::SocketAddr;

use farcast_core::BitRate;
use farcast_core::engine::Reject;

use super::super::objects::Item;
use super::super::parts::Check;
use super::*;
use crate::config::{Kind, Object, SenderConfig};
use crate::message::{Fec, Form, NodeId, Point, Symbol};

const FEC: Fec = Fec::ReedSolomon8;

fn point(object: u16, (block, symbol): (u32, u16)) -> Point {
    Point { fec: FEC, object, symbol: Symbol { block, block_len: None, symbol } }
}

fn request_of(object: u16, form: Form, level: Level, symbols: &[(u32, u16)]) -> Request {
    Request { form, level, points: symbols.iter().map(|&symbol| point(object, symbol)).collect() }
}

fn request(form: Form, level: Level, symbols: &[(u32, u16)]) -> Request {
    request_of(1, form, level, symbols)
}

/// Returns three objects, each of ten segments in blocks of 4, 3 and 3 with two parity symbols.
fn objects() -> Objects {
    let address: SocketAddr = "192.0.2.1:1".parse().expect("an address");
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    let mut config = SenderConfig::new(NodeId(1), 1000, address, address, rate);
    (config.segment_size, config.block_len, config.parity) = (100, 4, 2);
    config.objects =
        alloc::vec![Object { kind: Kind::File, size: 1000, info: b"name".to_vec(), vouched: None }; 3];
    let geometries = config.check().expect("valid");
    Objects::new(&mut config, geometries)
}

/// Transmission: an object, with the block, the first symbol and the number of symbols; `None` for INFO.
type Sent = (u32, Option<(u32, u32, u32)>);

/// Sends everything that is due.
fn drain(objects: &mut Objects) -> Vec<Sent> {
    let mut sent = Vec::new();
    while let Some(item) = objects.next() {
        let (object, symbols, count) = match item {
            Item::Info(object, _) => (object, None, 1),
            Item::Data(object, next) => {
                let (first, count) = (next.symbols.first(), next.symbols.count());
                (object, Some((next.block, first, count)), count)
            }
        };
        objects.sent(&item, count);
        sent.push((object, symbols));
    }
    sent
}

fn note(asked: &mut Asked, objects: &Objects, nack: &[Request]) -> Result<u32, Reject> {
    let parts = Check { objects, fec: FEC, parity: 2 }.parts(nack)?;
    Ok(asked.note(&parts, objects, &Unheard::default()))
}

/// Returns the repairs for requests that came one by one, after all objects were sent.
fn answer(nacks: &[Vec<Request>]) -> Vec<Sent> {
    let (mut objects, mut asked) = (objects(), Asked::new(3, 2));
    drain(&mut objects);
    for nack in nacks {
        note(&mut asked, &objects, nack).expect("all of it is there");
    }
    asked.commit(&mut objects);
    assert!(asked.is_empty());
    drain(&mut objects)
}

/// Returns the repairs for requests about object 1 alone.
fn answer_one(nacks: &[Vec<Request>]) -> Vec<(u32, u32, u32)> {
    let answer = answer(nacks);
    assert!(answer.iter().all(|(object, _)| *object == 1), "{answer:?}");
    answer.into_iter().filter_map(|(_, symbols)| symbols).collect()
}

#[test]
fn the_worst_need_of_a_block_decides() {
    let one = request(Form::Items, Level::SEGMENT, &[(1, 0)]);
    let two = request(Form::Ranges, Level::SEGMENT, &[(1, 1), (1, 2)]);
    assert_eq!(answer_one(&[[one.clone()].to_vec()]), [(1, 3, 1)]);
    assert_eq!(answer_one(&[[one.clone()].to_vec(), [two.clone()].to_vec()]), [(1, 3, 2)]);
    // A receiver that lacks all three segments needs more parity than there is.
    assert_eq!(answer_one(&[[one, two].to_vec()]), [(1, 0, 3)]);
    assert_eq!(answer_one(&[[request(Form::Erasures, Level::SEGMENT, &[(2, 2)])].to_vec()]), [(2, 3, 2)]);
    assert_eq!(answer_one(&[[request(Form::Erasures, Level::SEGMENT, &[(2, 3)])].to_vec()]), [(2, 0, 3)]);
}

#[test]
fn who_lacks_a_whole_block_gets_it_whatever_others_ask() {
    let whole = request(Form::Items, Level::BLOCK, &[(0, 0)]);
    let one = request(Form::Items, Level::SEGMENT, &[(0, 1)]);
    assert_eq!(answer_one(&[[whole].to_vec(), [one].to_vec()]), [(0, 0, 4)]);
    let blocks = request(Form::Ranges, Level::BLOCK, &[(1, 0), (2, 0)]);
    assert_eq!(answer_one(&[[blocks].to_vec()]), [(1, 0, 3), (2, 0, 3)]);
}

#[test]
fn whole_objects_come_with_what_is_said_of_them() {
    let whole = |object| [(object, None), (object, Some((0, 0, 4)))];
    let rest = |object| [(object, Some((1, 0, 3))), (object, Some((2, 0, 3)))];
    let object = request(Form::Items, Level::OBJECT, &[(0, 0)]);
    let answered = answer(&[[object].to_vec()]);
    assert_eq!(answered, [whole(1), rest(1)].concat());
    let points = [point(0, (0, 0)), point(1, (0, 0))].to_vec();
    let two = Request { form: Form::Ranges, level: Level::OBJECT, points };
    assert_eq!(answer(&[[two].to_vec()]), [whole(0), rest(0), whole(1), rest(1)].concat());
    let info = request_of(2, Form::Items, Level::INFO, &[(0, 0)]);
    let other = request_of(0, Form::Items, Level::INFO.with(Level::SEGMENT), &[(2, 0)]);
    let expected = [(0, None), (0, Some((2, 3, 1))), (2, None)];
    assert_eq!(answer(&[[info].to_vec(), [other].to_vec()]), expected, "the lowest first");
}

#[test]
fn what_is_not_there_is_refused_whole() {
    let (mut objects, mut asked) = (objects(), Asked::new(3, 2));
    drain(&mut objects);
    let good = request(Form::Items, Level::SEGMENT, &[(0, 5)]);
    let bad = [
        request(Form::Items, Level::SEGMENT, &[(0, 6)]),
        request(Form::Items, Level::SEGMENT, &[(3, 0)]),
        request(Form::Ranges, Level::SEGMENT, &[(0, 2), (0, 1)]),
        request(Form::Ranges, Level::SEGMENT, &[(0, 2), (1, 2)]),
        request(Form::Ranges, Level::BLOCK, &[(1, 0), (3, 0)]),
        request(Form::Ranges, Level::BLOCK, &[(1, 0), (0, 0)]),
        request(Form::Erasures, Level::SEGMENT, &[(0, 7)]),
        Request {
            form: Form::Ranges,
            level: Level::SEGMENT,
            points: [point(0, (0, 0)), point(1, (0, 0))].to_vec(),
        },
        Request {
            form: Form::Ranges,
            level: Level::OBJECT,
            points: [point(2, (0, 0)), point(1, (0, 0))].to_vec(),
        },
    ];
    for bad in bad {
        let both = [good.clone(), bad.clone()];
        assert_eq!(note(&mut asked, &objects, &both), Err(Reject::OutOfRange), "{bad:?}");
        assert!(asked.is_empty());
    }
    let mut other = good.clone();
    other.points[0].fec = Fec::SmallBlock;
    assert_eq!(note(&mut asked, &objects, &[other]), Err(Reject::OutOfRange));
}

#[test]
fn objects_that_there_are_not_are_told_apart() {
    let mut objects = objects();
    drain(&mut objects);
    let check = Check { objects: &objects, fec: FEC, parity: 2 };
    let points = [point(1, (0, 0)), point(5, (0, 0))].to_vec();
    let parts = check.parts(&[Request { form: Form::Ranges, level: Level::OBJECT, points }]).expect("valid");
    assert_eq!(parts.asked, [Part::Objects(Run::new(1, 2).expect("a run"))]);
    assert_eq!(parts.gone, [3, 4, 5]);
    let everything = [point(0, (0, 0)), point(u16::MAX, (0, 0))].to_vec();
    let all = Request { form: Form::Ranges, level: Level::OBJECT, points: everything };
    assert!(check.parts(&[all.clone(), all]).is_ok_and(|parts| parts.gone.len() <= 64));
}

#[test]
fn what_has_not_been_sent_is_not_asked_for() {
    let (mut objects, mut asked) = (objects(), Asked::new(3, 2));
    let all = Request {
        form: Form::Ranges,
        level: Level::OBJECT,
        points: [point(0, (0, 0)), point(2, (0, 0))].to_vec(),
    };
    assert_eq!(note(&mut asked, &objects, core::slice::from_ref(&all)), Ok(0));
    // INFO and the first block of the first object.
    for _ in 0..2 {
        let item = objects.next().expect("more");
        objects.sent(&item, 4);
    }
    assert_eq!(note(&mut asked, &objects, &[all]), Ok(1));
    assert!(asked.commit(&mut objects));
    let sent = drain(&mut objects);
    assert_eq!(sent[..3], [(0, None), (0, Some((0, 0, 4))), (0, Some((1, 0, 3)))]);
    assert_eq!(sent.len(), 4 + 2 * 4, "everything once, but for what was asked for");
}

#[test]
fn what_is_advertised_is_what_the_worst_lacks() {
    let (mut objects, mut asked) = (objects(), Asked::new(3, 2));
    drain(&mut objects);
    let nacks = [
        request_of(0, Form::Items, Level::INFO, &[(0, 0)]),
        request_of(2, Form::Items, Level::OBJECT, &[(0, 0)]),
        // Two receivers lack one segment each, and different ones: one symbol repairs both.
        request(Form::Items, Level::SEGMENT, &[(0, 4)]),
        request(Form::Items, Level::SEGMENT, &[(0, 5)]),
        request(Form::Items, Level::BLOCK, &[(1, 0)]),
        // A receiver lacks all three segments, and parity makes up for two.
        request(Form::Items, Level::SEGMENT, &[(2, 2), (2, 3), (2, 4)]),
    ];
    for nack in nacks.clone() {
        note(&mut asked, &objects, &[nack]).expect("valid");
    }
    let (said, cut) = asked.advertise(&objects, 1000);
    let points: Vec<_> = said
        .iter()
        .flat_map(|request| request.points.iter().map(|point| (request.level, *point)))
        .map(|(level, point)| (level, point.object, point.symbol.block, point.symbol.symbol))
        .collect();
    let expected = [
        (Level::INFO, 0, 0, 0),
        (Level::OBJECT, 2, 0, 0),
        (Level::SEGMENT, 1, 0, 4),
        (Level::BLOCK, 1, 1, 0),
        (Level::SEGMENT, 1, 2, 3),
        (Level::SEGMENT, 1, 2, 4),
        (Level::SEGMENT, 1, 2, 2),
    ];
    assert_eq!(points, expected);
    assert!(!cut);
    let (said, cut) = asked.advertise(&objects, 30);
    assert_eq!((said.len(), cut), (2, true));
}

#[test]
fn a_request_of_which_all_has_left_since_is_no_request() {
    let (mut objects, mut asked) = (objects(), Asked::new(3, 2));
    drain(&mut objects);
    let again = |count| OfBlock { fresh: 0, again: alloc::vec![Run::new(0, count).expect("a run")] };
    let blocks = [((1, 0), again(4)), ((1, 1), again(3)), ((1, 2), again(3))].into();
    let unheard = Unheard { infos: [1].into(), blocks };
    let nack = [request(Form::Items, Level::OBJECT, &[(0, 0)])];
    let parts = Check { objects: &objects, fec: FEC, parity: 2 }.parts(&nack).expect("all of it is there");
    assert_eq!(asked.note(&parts, &objects, &unheard), 0);
    assert!(asked.is_empty(), "the sender would wait for ever for a time to answer");
    assert_eq!(note(&mut asked, &objects, &nack), Ok(1), "a receiver that has heard that needs it");
    assert!(!asked.is_empty());
}
