//! Speed of the codes and of other libraries, in the same run: source octets a second on one core.
//!
//! `codec [ROUNDS]` prints a JSON line for each code and number of parity symbols. A block has 64 source symbols of
//! 1,400 octets; encoding makes all parity symbols, decoding rebuilds as many source symbols, the first ones. The codes
//! take turns, and of all rounds (200) the fastest counts.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark of real time, which may panic"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use farcast_fec::{ParitySymbol, PointSet, ReedSolomon, WideReedSolomon, WordOrder};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

const SOURCE: usize = 64;
const LEN: usize = 1400;

/// A code under test, with its buffers.
trait Codec {
    fn name(&self) -> &'static str;
    /// Makes all parity of `source`.
    fn encode(&mut self, source: &[u8]);
    /// Rebuilds the first symbols of `block`, as many as there is parity.
    fn decode(&mut self, block: &mut [u8]);
}

/// A code of ours, by its functions, because the types of codes share no trait.
struct Own<E, D> {
    name: &'static str,
    parity: Vec<u8>,
    encode: E,
    decode: D,
}

impl<E: FnMut(&[u8], &mut [u8]), D: FnMut(&mut [u8], &[usize], &[ParitySymbol<'_>])> Codec for Own<E, D> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&mut self, source: &[u8]) {
        (self.encode)(source, &mut self.parity);
    }

    fn decode(&mut self, block: &mut [u8]) {
        let symbols = self.parity.chunks_exact(LEN).enumerate();
        let symbols: Vec<ParitySymbol<'_>> =
            symbols.map(|(index, bytes)| ParitySymbol { index, bytes }).collect();
        let missing: Vec<usize> = (0..symbols.len()).collect();
        (self.decode)(block, &missing, &symbols);
    }
}

fn small(name: &'static str, points: PointSet, parity: usize) -> Box<dyn Codec> {
    let code = ReedSolomon::new(points, SOURCE, parity, LEN).unwrap();
    let other = code.clone();
    Box::new(Own {
        name,
        parity: vec![0; parity * LEN],
        encode: move |source: &[u8], out: &mut [u8]| code.encode(source, 0, out).unwrap(),
        decode: move |block: &mut [u8], missing: &[usize], symbols: &[ParitySymbol<'_>]| {
            other.decode(block, missing, symbols).unwrap();
        },
    })
}

fn wide(parity: usize) -> Box<dyn Codec> {
    let code = WideReedSolomon::new(PointSet::Rizzo, WordOrder::LittleEndian, SOURCE, parity, LEN).unwrap();
    let other = code.clone();
    Box::new(Own {
        name: "farcast GF(2^16)",
        parity: vec![0; parity * LEN],
        encode: move |source: &[u8], out: &mut [u8]| code.encode(source, 0, out).unwrap(),
        decode: move |block: &mut [u8], missing: &[usize], symbols: &[ParitySymbol<'_>]| {
            other.decode(block, missing, symbols).unwrap();
        },
    })
}

/// fec-rs, which codes in place among its own shards.
struct FecRs {
    code: fec_rs::ReedSolomon,
    shards: Vec<Vec<u8>>,
}

impl FecRs {
    fn new(parity: usize) -> Self {
        let code = fec_rs::ReedSolomon::new(SOURCE, parity).unwrap();
        Self { code, shards: vec![vec![0; LEN]; SOURCE + parity] }
    }
}

impl Codec for FecRs {
    fn name(&self) -> &'static str {
        "fec-rs GF(2^8)"
    }

    fn encode(&mut self, source: &[u8]) {
        let sources: Vec<&[u8]> = source.chunks_exact(LEN).collect();
        self.code.encode_sep(&sources, &mut self.shards[SOURCE..]).unwrap();
    }

    fn decode(&mut self, block: &mut [u8]) {
        let parity = self.shards.len() - SOURCE;
        let mut shards: Vec<Option<Vec<u8>>> = self.shards.drain(..).map(Some).collect();
        for (shard, symbol) in shards.iter_mut().zip(block.chunks_exact(LEN)).skip(parity) {
            shard.as_mut().unwrap().copy_from_slice(symbol);
        }
        shards[..parity].fill(None);
        self.code.reconstruct_data(&mut shards).unwrap();
        self.shards = shards.into_iter().map(Option::unwrap).collect();
        for (symbol, shard) in block.chunks_exact_mut(LEN).zip(&self.shards[..parity]) {
            symbol.copy_from_slice(shard);
        }
    }
}

/// reed-solomon-simd, by FFT over GF(2^16).
struct Leopard {
    encoder: ReedSolomonEncoder,
    decoder: ReedSolomonDecoder,
    parity: Vec<Vec<u8>>,
}

impl Leopard {
    fn new(parity: usize) -> Self {
        Self {
            encoder: ReedSolomonEncoder::new(SOURCE, parity, LEN).unwrap(),
            decoder: ReedSolomonDecoder::new(SOURCE, parity, LEN).unwrap(),
            parity: vec![vec![0; LEN]; parity],
        }
    }
}

impl Codec for Leopard {
    fn name(&self) -> &'static str {
        "reed-solomon-simd GF(2^16)"
    }

    fn encode(&mut self, source: &[u8]) {
        for symbol in source.chunks_exact(LEN) {
            self.encoder.add_original_shard(symbol).unwrap();
        }
        for (out, symbol) in self.parity.iter_mut().zip(self.encoder.encode().unwrap().recovery_iter()) {
            out.copy_from_slice(symbol);
        }
    }

    fn decode(&mut self, block: &mut [u8]) {
        for (index, symbol) in self.parity.iter().enumerate() {
            self.decoder.add_recovery_shard(index, symbol).unwrap();
        }
        for (index, symbol) in block.chunks_exact(LEN).enumerate().skip(self.parity.len()) {
            self.decoder.add_original_shard(index, symbol).unwrap();
        }
        for (index, symbol) in self.decoder.decode().unwrap().restored_original_iter() {
            block[index * LEN..][..LEN].copy_from_slice(symbol);
        }
    }
}

/// The fastest time so far, and the one of `run`.
fn fastest(best: Duration, run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    best.min(began.elapsed())
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(200, |word| word.parse().unwrap());
    let source: Vec<u8> = (0..SOURCE * LEN).map(|i| (i * i / 7 + i) as u8).collect();
    for parity in [4, 16, 32] {
        let mut codecs = [
            small("farcast GF(2^8), points of NORM", PointSet::Rizzo, parity),
            small("farcast GF(2^8), points of RFC 5510", PointSet::Rfc5510, parity),
            Box::new(FecRs::new(parity)),
            wide(parity),
            Box::new(Leopard::new(parity)),
        ];
        let mut best = vec![[Duration::MAX; 2]; codecs.len()];
        let mut block = source.clone();
        for _ in 0..rounds {
            for (codec, [encode, decode]) in codecs.iter_mut().zip(&mut best) {
                *encode = fastest(*encode, || codec.encode(black_box(&source)));
                block[..parity * LEN].fill(0);
                *decode = fastest(*decode, || codec.decode(black_box(&mut block)));
                assert!(block == source, "{} gives the block back", codec.name());
            }
        }
        for (codec, best) in codecs.iter().zip(&best) {
            let [encode, decode] = best.map(|time| (SOURCE * LEN) as f64 / time.as_secs_f64() / 1e6);
            println!(
                "{{\"code\":\"{}\",\"source\":{SOURCE},\"parity\":{parity},\"encode_mb_s\":{encode:.0},\
                 \"decode_mb_s\":{decode:.0}}}",
                codec.name()
            );
        }
    }
}
