//! Pieces of both ends of a stream, one by one.

use core::iter::from_fn;
use std::collections::VecDeque;
use std::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Reject};
use farcast_delivery::{StreamEngine, StreamSenderEngine};

use super::super::asked::{Asked, Check, Need, Parts};
use super::super::asking::{Heard, Needs};
use super::super::block::{Block, Shape};
use super::super::outgoing::{Next, Outgoing, StreamCut};
use super::super::segment::{HEADER, Segment};
use super::super::{StreamSender, code};
use super::{address, at, group, sender, text};
use crate::message::{
    Answer, Body, Fec, Form, FromReceiver, FromSender, Level, Message, Point, Request, Symbol,
};
use crate::{NodeId, wire};

const FEC: Fec = Fec::ReedSolomon8;
const LEN: u32 = 4;
/// Octets of a symbol's content.
const CONTENT: usize = 10;
const SHAPE: Shape = Shape { len: LEN, parity: 2, symbol: CONTENT + HEADER };

fn point(object: u16, (block, symbol): (u32, u16)) -> Point {
    Point { fec: FEC, object, symbol: Symbol { block, block_len: None, symbol } }
}

fn request(form: Form, level: Level, object: u16, symbols: &[(u32, u16)]) -> Request {
    Request { form, level, points: symbols.iter().map(|&symbol| point(object, symbol)).collect() }
}

/// Returns a window of three blocks of four symbols and two parity symbols, of which `auto` leave unasked. All blocks
/// are kept and have left.
const fn cut(parity: u16, auto: u16) -> StreamCut {
    StreamCut { len: LEN as u16, segment: CONTENT as u16, parity, auto }
}

fn outgoing(auto: u16) -> Outgoing {
    let code = code(FEC, LEN as u16, 2, CONTENT + HEADER);
    let mut outgoing = Outgoing::new(cut(2, auto), code, 3);
    fill(&mut outgoing, 120, at(10));
    outgoing
}

/// Takes `len` octets and sends everything.
fn fill(outgoing: &mut Outgoing, len: usize, until: Time) -> Vec<Next> {
    let octets = text(len);
    let mut taken = 0;
    while taken < len {
        assert!(outgoing.make_room(|_, _| true));
        taken += outgoing.take(&octets[taken..]);
    }
    outgoing.seal();
    drain(outgoing, until)
}

fn drain(outgoing: &mut Outgoing, until: Time) -> Vec<Next> {
    from_fn(|| {
        let next = outgoing.next()?;
        outgoing.sent(until, &next);
        Some(next)
    })
    .collect()
}

fn symbols(sent: &[Next]) -> Vec<(u32, u32)> {
    sent.iter().map(|next| (next.block, next.symbol)).collect()
}

fn need(count: u32, whole: bool) -> Need {
    let mut need = Need::default();
    (need.count, need.whole) = (count, whole);
    need
}

fn check(outgoing: &Outgoing, requests: &[Request]) -> Result<Parts, Reject> {
    Check { object: 0, fec: FEC, outgoing, parity: 2 }.parts(requests)
}

/// Returns the repairs for messages that came one after the other.
fn answer(outgoing: &mut Outgoing, messages: &[Vec<Request>]) -> Vec<Next> {
    let mut asked = Asked::default();
    for message in messages {
        asked.note(check(outgoing, message).expect("valid"), 0);
    }
    asked.commit(outgoing);
    drain(outgoing, at(10))
}

#[test]
fn what_was_never_sent_cannot_be_asked_for_and_what_is_gone_is_told() {
    let mut sent = outgoing(0);
    let items = |object, symbols: &[(u32, u16)]| [request(Form::Items, Level::SEGMENT, object, symbols)];
    assert!(check(&sent, &items(0, &[(2, 5)])).is_ok_and(|parts| !parts.gone));
    for bad in [(3, 0), (2, 6)] {
        assert_eq!(check(&sent, &items(0, &[bad])).err(), Some(Reject::OutOfRange), "{bad:?}");
    }
    let ahead = [request(Form::Ranges, Level::BLOCK, 0, &[(1, 0), (3, 0)])];
    assert_eq!(check(&sent, &ahead).err(), Some(Reject::OutOfRange));
    assert!(check(&sent, &items(7, &[(0, 0)])).is_ok_and(|parts| parts.gone), "another object");
    fill(&mut sent, 40, at(10));
    assert_eq!(sent.first(), 1);
    assert!(check(&sent, &items(0, &[(0, 1)])).is_ok_and(|parts| parts.gone), "the first block was let go");
}

#[test]
fn repairs_are_parity_for_the_worst_message_or_what_was_asked_for() {
    let one = request(Form::Items, Level::SEGMENT, 0, &[(1, 0)]);
    let two = request(Form::Items, Level::SEGMENT, 0, &[(1, 1), (1, 2)]);
    let ask = |messages: &[Vec<Request>]| symbols(&answer(&mut outgoing(0), messages));
    assert_eq!(ask(&[[two.clone()].to_vec(), [one.clone()].to_vec()]), [(1, 4), (1, 5)], "the worst");
    // For a receiver that lacks all three symbols, parity is not enough.
    assert_eq!(ask(&[[one, two].to_vec()]), [(1, 0), (1, 1), (1, 2)]);
    let erasures = |count| [request(Form::Erasures, Level::SEGMENT, 0, &[(1, count)])].to_vec();
    assert_eq!(ask(&[erasures(1)]), [(1, 4)]);
    assert_eq!(ask(&[erasures(3)]), [(1, 0), (1, 1), (1, 2), (1, 3)], "nobody said which");
    // The requests that are gathered for a block are bounded.
    let three = [request(Form::Items, Level::SEGMENT, 0, &[(1, 0), (1, 1), (1, 2)])].to_vec();
    let many = std::vec![three; 200];
    assert_eq!(ask(&many), [(1, 0), (1, 1), (1, 2), (1, 3)], "beyond, all of it");
}

#[test]
fn a_block_is_repaired_only_so_often() {
    let mut sent = outgoing(0);
    let mut again = 0;
    loop {
        let need = need(LEN, true);
        if sent.repair(1, &need).is_none() {
            break;
        }
        again += drain(&mut sent, at(10)).len();
        assert!(again < 10_000, "without end");
    }
    assert_eq!(again, 64 * LEN as usize + 1024);
}

#[test]
fn a_block_that_is_used_again_is_as_new() {
    let (mut used, mut new) = (outgoing(1), outgoing(1));
    // Parity of the first block has been sent, and all of the block was repeated, before it is dropped.
    answer(&mut used, &[[request(Form::Items, Level::SEGMENT, 0, &[(0, 0)])].to_vec()]);
    let whole = answer(&mut used, &[[request(Form::Items, Level::BLOCK, 0, &[(0, 0)])].to_vec()]);
    assert!(whole.iter().all(|next| next.explicit && next.repair) && whole.len() == 4, "{whole:?}");
    used.sent(at(90_000), &whole[0]);
    let parity = |outgoing: &mut Outgoing| {
        // A symbol of five octets, and a full block that begins with it.
        fill(outgoing, 5, at(20));
        let sent = fill(outgoing, 30, at(20));
        let mut out = Vec::new();
        let asked = answer(outgoing, &[[request(Form::Items, Level::SEGMENT, 0, &[(3, 0)])].to_vec()]);
        for next in &asked {
            outgoing.put_payload(next, &mut out);
        }
        (sent, asked, out)
    };
    let (ours, theirs) = (parity(&mut used), parity(&mut new));
    assert_eq!(ours, theirs);
    // Parity that leaves with a block is no repair; requested parity is.
    let flags =
        |sent: &[Next]| sent.iter().map(|next| (next.symbol, next.repair, next.explicit)).collect::<Vec<_>>();
    assert_eq!(flags(&ours.0), [(1, false, false), (2, false, false), (3, false, false), (4, false, false)]);
    assert_eq!(flags(&ours.1), [(5, true, false)]);
    for until in [10, 10, 20] {
        assert!(used.make_room(|_, _| true) || until > 0);
        let mut kept = Time::ZERO;
        fill(&mut used, 40, at(30));
        used.make_room(|_, until| {
            kept = until;
            false
        });
        assert!(kept <= at(30), "kept until {kept:?}");
    }
}

#[test]
fn what_is_due_keeps_its_block() {
    let mut sent = outgoing(0);
    assert_eq!(sent.repair(0, &need(1, false)), Some(true));
    assert!(!sent.make_room(|_, _| true));
    drain(&mut sent, at(10));
    assert!(sent.make_room(|_, _| true));
}

#[test]
fn one_symbol_of_a_message_says_where_it_begins() {
    let mut sent = Outgoing::new(cut(0, 0), None, 3);
    let mut marks = Vec::new();
    for len in [25, 3] {
        let mut taken = 0;
        while taken < len {
            taken += sent.take(&text(len)[taken..]);
        }
        sent.end_message();
    }
    sent.seal();
    while let Some(next) = sent.next() {
        let mut out = Vec::new();
        sent.put_payload(&next, &mut out);
        let segment = Segment::read(&out).expect("ours");
        marks.push((segment.len, segment.message, segment.offset));
        sent.sent(at(0), &next);
    }
    assert_eq!(marks, [(10, 1, 0), (10, 0, 10), (8, 6, 20)]);
    assert_eq!(Segment::read(&[0, 2, 0, 3, 0, 0, 0, 0, 1, 1]), Err(Reject::Inconsistent));
}

/// Returns a block that has these source symbols.
fn block(have: &[u32]) -> Block {
    let mut block = Block::new(SHAPE);
    for &symbol in have {
        assert!(block.store(SHAPE, symbol, &[symbol as u8 + 1; 12]));
    }
    block
}

fn needs(blocks: &VecDeque<Option<Block>>, place: (u32, u32)) -> Needs<'_> {
    Needs { shape: SHAPE, fec: FEC, object: 0, low: 0, blocks, place }
}

/// Request: its form, its level, and its blocks and symbols.
type Listed = (Form, Level, Vec<(u32, u16)>);

fn listed(requests: &[Request]) -> Vec<Listed> {
    let symbol = |point: &Point| (point.symbol.block, point.symbol.symbol);
    requests.iter().map(|one| (one.form, one.level, one.points.iter().map(symbol).collect())).collect()
}

#[test]
fn what_lacks_is_asked_for_by_parity_and_the_last_segments() {
    // Three symbols of the first block are lacking, and parity makes up for two. Of the current block only passed
    // symbols count.
    let blocks: VecDeque<_> = [Some(block(&[3])), None, None, None, Some(block(&[0]))].into();
    let of = needs(&blocks, (4, 3));
    assert_eq!(of.lacking().map(|block| of.lacks(block)).collect::<Vec<_>>(), [3, 4, 4, 4, 2]);
    let expected = [
        (Form::Items, Level::SEGMENT, [(0, 2), (0, 4), (0, 5)].to_vec()),
        (Form::Ranges, Level::BLOCK, [(1, 0), (3, 0)].to_vec()),
        (Form::Items, Level::SEGMENT, [(4, 1), (4, 2)].to_vec()),
    ];
    assert_eq!(listed(&of.list(1000)), expected);
}

#[test]
fn others_cover_what_they_ask_for_in_one_message() {
    let blocks: VecDeque<_> = [Some(block(&[3]))].into();
    let of = needs(&blocks, (1, 0));
    let covers = |object, symbols: &[(u32, u16)]| {
        let mut heard = Heard::new();
        of.overhear(&[request(Form::Items, Level::SEGMENT, object, symbols)], &mut heard);
        of.are_covered(&heard)
    };
    assert!(covers(0, &[(0, 0), (0, 1), (0, 4)]));
    assert!(!covers(0, &[(0, 0), (0, 1)]), "fewer than lack");
    assert!(!covers(0, &[(0, 0), (0, 1), (0, 3)]), "one of them is there");
    assert!(!covers(7, &[(0, 0), (0, 1), (0, 4)]), "another object");
    let (nothing, mut heard) = (VecDeque::new(), Heard::new());
    needs(&nothing, (9000, 0)).overhear(&[request(Form::Items, Level::OBJECT, 0, &[(0, 0)])], &mut heard);
    assert_eq!(heard.len(), 4096, "it is bounded");
}

#[test]
fn a_block_that_is_rebuilt_or_cleared_keeps_nothing_of_before() {
    let code = code(FEC, LEN as u16, 2, SHAPE.symbol).expect("a code");
    let octets: Vec<u8> = (0..LEN as usize * SHAPE.symbol).map(|at| at as u8).collect();
    let symbol = |n: usize| &octets[n * SHAPE.symbol..(n + 1) * SHAPE.symbol];
    let mut parity = [0; CONTENT + HEADER];
    code.encode(&octets, 0, &mut parity).expect("encodes");
    let mut block = Block::new(SHAPE);
    for n in [0, 1, 3] {
        assert!(block.store(SHAPE, n, symbol(n as usize)));
    }
    assert!(block.keep(SHAPE, 0, &parity) && !block.keep(SHAPE, 0, &parity));
    block.rebuild(SHAPE, &code).expect("enough");
    assert_eq!(block.symbol(SHAPE, 2), Some(symbol(2)));
    assert!(!block.holds(SHAPE, LEN), "its parity is used up");
    block.clear();
    assert_eq!(block.lacks(SHAPE), LEN);
    assert!(block.store(SHAPE, 2, &[7; HEADER]));
    let padded = block.symbol(SHAPE, 2).expect("stored");
    assert!(padded[..HEADER] == [7; HEADER] && padded[HEADER..] == [0; CONTENT], "{padded:?}");
    assert!(block.keep(SHAPE, 1, &parity));
    block.clear();
    assert_eq!(block.lacks(SHAPE), LEN, "parity, too");
}

#[test]
fn a_sender_says_once_what_is_gone_and_believes_no_acknowledgement_of_what_it_has_not_sent() {
    let mut engine = StreamSender::new(sender(2, 2)).expect("valid");
    engine.open(Time::ZERO);
    let (mut now, mut out, octets) = (Time::ZERO, Vec::new(), text(6_000));
    let mut written = 0;
    let hear = |engine: &mut StreamSender, now, node, answer| {
        let said = FromReceiver { sender: NodeId(1), instance: 1, response: None, feedback: None, answer };
        let message = Message { source: NodeId(node), sequence: 0, body: Body::Receiver(said) };
        let mut datagram = Vec::new();
        wire::encode(&message, 0, &mut datagram);
        engine.handle(now, &Arrival::new(address(1), group()), &datagram);
    };
    let flushed = |block, symbol| Answer::Flushed { id: 0, point: point(0, (block, symbol)) };
    // Both receivers acknowledge each block, so the stream goes on; two blocks are kept.
    for block in 0..4 {
        while engine.octets() < (block + 1) * 1000 {
            written += engine.write(now, &octets[written..(block as usize + 1) * 1000]);
            while engine.poll_transmit(now, &mut out).is_some() {}
            now = now.max(engine.poll_timeout());
            engine.handle_timeout(now);
        }
        for _ in 0..200 {
            while engine.poll_transmit(now, &mut out).is_some() {}
            now += super::ms(1);
            engine.handle_timeout(now);
        }
        for node in [2, 3] {
            hear(&mut engine, now, node, flushed(block as u32, 9));
        }
    }
    let before = engine.rejects().of(Reject::Duplicate);
    hear(&mut engine, now, 2, flushed(1, 9));
    assert_eq!(engine.rejects().of(Reject::Duplicate), before + 1, "it has said more before");
    let before = engine.rejects().of(Reject::OutOfRange);
    hear(&mut engine, now, 2, flushed(4, 0));
    hear(&mut engine, now, 2, flushed(7, 0));
    assert_eq!(engine.rejects().of(Reject::OutOfRange), before + 2, "nothing of those has left");
    while engine.poll_transmit(now, &mut out).is_some() {}
    let mut squelches = 0;
    for _ in 0..3 {
        let gone = request(Form::Items, Level::SEGMENT, 0, &[(0, 1)]);
        hear(&mut engine, now, 2, Answer::Nack([gone].to_vec()));
        loop {
            out.clear();
            if engine.poll_transmit(now, &mut out).is_none() {
                break;
            }
            let said = wire::decode(&out, 8).expect("ours").message.body;
            squelches += u32::from(matches!(said, Body::Sender(_, FromSender::Squelch { .. })));
        }
    }
    assert_eq!(squelches, 1);
}
