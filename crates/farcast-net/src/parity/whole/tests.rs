use farcast_delivery::ErasureCode;

use super::*;
use crate::parity::ParityEncoder;

/// Returns a file of `size` octets that repeats nothing, ready to be sent, and its geometry.
fn outgoing(dir: &Path, size: usize, block: u32) -> (Outgoing, Geometry) {
    let content: Vec<u8> = (0..size as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(dir.join("file"), content).unwrap();
    let outgoing = Outgoing::scan(&[dir.join("file")], |_| {}).unwrap();
    let geometry = Geometry::partitioned(outgoing.size(), 100, block).unwrap();
    (outgoing, geometry)
}

fn read(parity: &mut WholeParity, block: u32, symbols: core::ops::Range<u32>) -> Result<Vec<u8>, NetError> {
    let mut bytes = vec![0; symbols.len() * 100];
    let mut slots: Vec<IoSliceMut<'_>> = bytes.chunks_mut(100).map(IoSliceMut::new).collect();
    parity.read(block, symbols.start, &mut slots)?;
    Ok(bytes)
}

#[test]
fn it_is_the_parity_that_blocks_have_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    // Both fields, and blocks of two lengths, the last segment short.
    for (block, symbols) in [(30, 60), (200, 200)] {
        let (mut outgoing, geometry) = outgoing(dir.path(), 99_950, block);
        let mut one_by_one = ParityEncoder::new(
            geometry,
            BlockParity { symbols, kind: ErasureCode::BySize },
            outgoing.clone(),
        )
        .unwrap();
        let mut whole = WholeParity::start(
            geometry,
            BlockParity { symbols, kind: ErasureCode::BySize },
            20,
            outgoing.clone(),
        )
        .unwrap();
        // Symbols are read at once, so the reader waits for those that are not there yet.
        for block in (0..geometry.blocks()).rev() {
            let bytes = read(&mut whole, block, 3..20).unwrap();
            for (symbol, bytes) in (3..).zip(bytes.chunks(100)) {
                assert_eq!(
                    one_by_one.symbol(&mut outgoing, block, symbol).unwrap(),
                    bytes,
                    "{block} {symbol}"
                );
            }
        }
        assert!(read(&mut whole, 0, 19..21).is_err(), "more than was said");
    }
}

#[test]
fn what_cannot_be_computed_is_an_error_and_no_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (outgoing, geometry) = outgoing(dir.path(), 100_000, 200);
    std::fs::remove_file(dir.path().join("file")).unwrap();
    let mut whole =
        WholeParity::start(geometry, BlockParity { symbols: 200, kind: ErasureCode::BySize }, 20, outgoing)
            .unwrap();
    assert!(matches!(read(&mut whole, 0, 0..1), Err(NetError::Source(_))));
    assert!(read(&mut whole, 0, 0..1).is_err(), "again");
}
