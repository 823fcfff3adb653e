use farcast_delivery::ErasureCode;

use super::*;

/// Returns a file of five blocks and a short one, and its encoder. A block has `block` DTUs and `symbols` parity
/// symbols.
fn product(dir: &tempfile::TempDir, block: u32, symbols: u32) -> (Outgoing, ParityEncoder) {
    let size = block * 100 * 5 + 1234;
    let content: Vec<u8> = (0..size).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(dir.path().join("file"), content).unwrap();
    let outgoing = Outgoing::scan(&[dir.path().join("file")], |_| {}).unwrap();
    let geometry = Geometry::new(outgoing.size(), 100, block).unwrap();
    let encoder =
        ParityEncoder::new(geometry, BlockParity { symbols, kind: ErasureCode::BySize }, outgoing.clone())
            .unwrap();
    (outgoing, encoder)
}

/// Returns the parity symbols of `block` as the code computes them.
fn truth(outgoing: &mut Outgoing, encoder: &ParityEncoder, block: u32) -> Vec<u8> {
    let mut source = vec![0; encoder.geometry.block_len(block) as usize * 100];
    let offset = u64::from(block) * u64::from(encoder.geometry.block_size()) * 100;
    outgoing.read_segments(offset, &mut [IoSliceMut::new(&mut source)]).unwrap();
    let mut parity = vec![0; encoder.code.parity_symbols() * 100];
    encoder.code.encode(&source, 0, &mut parity).unwrap();
    parity
}

fn run(first: u32, count: u32) -> Run {
    Run::new(first, count).unwrap()
}

#[test]
fn symbols_are_the_same_wherever_they_are_made() {
    // Both fields of the code are tried.
    for (block, symbols) in [(20, 10), (300, 30)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut outgoing, mut encoder) = product(&dir, block, symbols);
        let truths: Vec<Vec<u8>> = (0..6).map(|block| truth(&mut outgoing, &encoder, block)).collect();
        let mut check = |encoder: &mut ParityEncoder, block: u32, wanted: Run| {
            for symbol in wanted.segments() {
                let made = encoder.symbol(&mut outgoing, block, symbol).unwrap();
                assert_eq!(made, &truths[block as usize][symbol as usize * 100..][..100], "{block} {symbol}");
            }
        };
        for block in 0..6 {
            let next = (block + 1 < 6).then(|| (block + 1, run(0, 3)));
            encoder.prepare([Some((block, run(2, 4))), next]);
            check(&mut encoder, block, run(2, 4));
            // More than was foreseen, now and in another pass.
            check(&mut encoder, block, run(0, symbols));
            check(&mut encoder, 0, run(0, 1));
        }
        assert!(encoder.here.len() + encoder.under_way.len() <= MOST_BLOCKS);
    }
}

#[test]
fn what_is_foreseen_is_made_before_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (mut outgoing, mut encoder) = product(&dir, 20, 10);
    let made = |encoder: &mut ParityEncoder, block: u32| {
        let at = encoder.find(block);
        let made = &encoder.here[at].made;
        (0..10).filter(|&symbol| made[symbol as usize]).collect::<Vec<u32>>()
    };
    encoder.prepare([Some((1, run(0, 3))), Some((2, run(4, 2)))]);
    assert_eq!(encoder.under_way, [1, 2]);
    assert_eq!((made(&mut encoder, 1), made(&mut encoder, 2)), (vec![0, 1, 2], vec![4, 5]));
    // More symbols of the second block are wanted, and the first block gives way to a third.
    encoder.prepare([Some((2, run(4, 4))), Some((3, run(0, 1)))]);
    assert_eq!(encoder.under_way, [2, 3]);
    assert_eq!((made(&mut encoder, 2), made(&mut encoder, 3)), (vec![4, 5, 6, 7], vec![0]));
    // The same symbols again are no work.
    encoder.prepare([Some((3, run(0, 1))), None]);
    encoder.prepare([None, None]);
    assert!(encoder.under_way.is_empty());
    // The block that was sent last stays for a while.
    encoder.symbol(&mut outgoing, 2, 9).unwrap();
    assert_eq!(made(&mut encoder, 2), [4, 5, 6, 7, 9]);
    // In the large field, one symbol costs as much as all of them.
    (outgoing, encoder) = product(&dir, 300, 10);
    encoder.symbol(&mut outgoing, 1, 3).unwrap();
    assert_eq!(made(&mut encoder, 1).len(), 10);
}

#[test]
fn no_more_blocks_are_kept_than_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let (mut outgoing, mut encoder) = product(&dir, 20, 10);
    let kept = |encoder: &ParityEncoder| encoder.here.len() + encoder.under_way.len();
    for block in [0, 2, 4, 1, 3, 0, 1, 2] {
        encoder.prepare([Some((block, run(0, 2))), Some((block + 1, run(0, 2)))]);
        assert!(kept(&encoder) <= 2);
        encoder.symbol(&mut outgoing, 5, 0).unwrap();
        assert!(kept(&encoder) <= 2);
    }
    // If blocks are large, only one is kept.
    encoder = product(&dir, 20, 10).1;
    encoder.most = 1;
    encoder.prepare([Some((0, run(0, 2))), Some((1, run(0, 2)))]);
    assert_eq!(encoder.under_way, [0]);
    encoder.symbol(&mut outgoing, 3, 0).unwrap();
    assert_eq!(kept(&encoder), 1);
}

#[test]
fn what_could_not_be_made_ahead_is_told_when_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (mut outgoing, mut encoder) = product(&dir, 20, 10);
    std::fs::write(dir.path().join("file"), "another").unwrap();
    encoder.prepare([Some((1, run(0, 2))), None]);
    let error = encoder.symbol(&mut outgoing, 1, 0).map(<[u8]>::to_vec);
    assert!(matches!(error, Err(NetError::Source(farcast_files::SourceError::Changed { .. }))), "{error:?}");
    assert!(matches!(encoder.symbol(&mut outgoing, 1, 10), Err(NetError::Parity { .. })));
}

#[test]
fn a_thread_that_has_ended_is_missed_by_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (mut outgoing, mut encoder) = product(&dir, 20, 10);
    let truth = truth(&mut outgoing, &encoder, 1);
    encoder.thread = CodingThread::start(|_: &mut EncodedBlock| panic!("as a mistake in the code would"));
    for _ in 0..2 {
        encoder.prepare([Some((1, run(0, 2))), Some((2, run(0, 2)))]);
        assert_eq!(encoder.symbol(&mut outgoing, 1, 1).unwrap(), &truth[100..200]);
    }
}
