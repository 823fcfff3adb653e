//! Any claimed symbols: decoding never panics, and right symbols give the source back.
#![no_main]

use arbitrary::Arbitrary;
use farcast_fec::{BlockCode, ParitySymbol};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    source: u8,
    parity: u8,
    large: bool,
    missing: Vec<u16>,
    symbols: Vec<(u16, u8)>,
    honest: bool,
    fill: u8,
}

fuzz_target!(|input: Input| {
    let (k, p) = (usize::from(input.source) + if input.large { 250 } else { 0 }, usize::from(input.parity % 32));
    let len = 6;
    let Ok(code) = BlockCode::new(k, p, len) else { return };
    let source: Vec<u8> = (0..k * len).map(|i| (i as u8).wrapping_mul(input.fill | 1)).collect();
    let mut parity = vec![0; p * len];
    code.encode(&source, 0, &mut parity).expect("lengths fit");
    let mut missing: Vec<usize> = input.missing.iter().map(|&m| usize::from(m)).collect();
    if input.honest {
        missing.iter_mut().for_each(|m| *m %= k);
        missing.sort_unstable();
        missing.dedup();
        missing.truncate(p);
    }
    let mut block = source.clone();
    for &m in missing.iter().filter(|&&m| m < k) {
        block[m * len..][..len].fill(0xEE);
    }
    if input.honest {
        let symbols: Vec<_> = (0..p).map(|index| ParitySymbol { index, bytes: &parity[index * len..][..len] }).collect();
        code.decode(&mut block, &missing, &symbols).expect("enough right symbols");
        assert_eq!(block, source);
    } else {
        let bytes = [input.fill; 8];
        let symbols: Vec<_> = input
            .symbols
            .iter()
            .map(|&(index, n)| ParitySymbol { index: usize::from(index), bytes: &bytes[..usize::from(n % 9)] })
            .collect();
        let _ = code.decode(&mut block, &missing, &symbols);
    }
});
