//! Objects in memory, and their codes.

use std::collections::BTreeMap;

use farcast_core::Bitmap;
use farcast_delivery::Geometry;
use farcast_fec::{ParitySymbol, PointSet, ReedSolomon, WideReedSolomon, WordOrder};
use farcast_norm::Fec;

enum Code {
    Narrow(ReedSolomon),
    Wide(WideReedSolomon),
}

/// Object in memory, as a foreign peer sends and stores it.
pub(crate) struct Object {
    octets: Vec<u8>,
    geometry: Geometry,
    code: Option<Code>,
    /// Parity that has arrived, by block.
    held: BTreeMap<u32, BTreeMap<u32, Vec<u8>>>,
}

impl Object {
    pub(crate) fn new(mut octets: Vec<u8>, geometry: Geometry, parity: u32, fec: Fec) -> Self {
        let len = usize::from(geometry.segment_size());
        let (symbols, count) = (geometry.code_size() as usize, parity as usize);
        let code = (count > 0).then(|| {
            if fec == Fec::ReedSolomon(16) {
                let code =
                    WideReedSolomon::new(PointSet::Rizzo, WordOrder::LittleEndian, symbols, count, len);
                Code::Wide(code.unwrap())
            } else {
                Code::Narrow(ReedSolomon::new(PointSet::Rizzo, symbols, count, len).unwrap())
            }
        });
        octets.resize(geometry.segments() as usize * len, 0);
        Self { octets, geometry, code, held: BTreeMap::new() }
    }

    /// Returns the range of the octets of `block`, padded.
    fn block(&self, block: u32) -> core::ops::Range<usize> {
        let (run, len) = (self.geometry.block_run(block).unwrap(), usize::from(self.geometry.segment_size()));
        run.first() as usize * len..run.end() as usize * len
    }

    pub(crate) fn segment(&self, block: u32, segment: u32) -> &[u8] {
        let number = self.geometry.first_of(block) + segment;
        let at = number as usize * usize::from(self.geometry.segment_size());
        &self.octets[at..at + usize::from(self.geometry.payload_len(number))]
    }

    pub(crate) fn parity(&self, block: u32, symbol: u32) -> Vec<u8> {
        let mut parity = vec![0; usize::from(self.geometry.segment_size())];
        let (source, symbol) = (&self.octets[self.block(block)], symbol as usize);
        match self.code.as_ref().unwrap() {
            Code::Narrow(code) => code.encode(source, symbol, &mut parity).unwrap(),
            Code::Wide(code) => code.encode(source, symbol, &mut parity).unwrap(),
        }
        parity
    }

    pub(crate) fn store(&mut self, segment: u32, payload: &[u8]) {
        let at = segment as usize * usize::from(self.geometry.segment_size());
        self.octets[at..at + payload.len()].copy_from_slice(payload);
    }

    pub(crate) fn keep(&mut self, block: u32, symbol: u32, payload: &[u8]) {
        self.held.entry(block).or_default().insert(symbol, payload.to_vec());
    }

    /// Rebuilds `block`, of which the segments in `have` are there.
    pub(crate) fn rebuild(&mut self, block: u32, have: &Bitmap) {
        let run = self.geometry.block_run(block).unwrap();
        let lacking = run.segments().filter(|&segment| !have.contains(segment));
        let missing: Vec<usize> = lacking.map(|segment| (segment - run.first()) as usize).collect();
        let held = self.held.remove(&block).unwrap_or_default();
        let symbol = |(&index, bytes)| ParitySymbol { index: index as usize, bytes };
        let symbols: Vec<ParitySymbol<'_>> =
            held.iter().map(|(index, bytes)| symbol((index, bytes.as_slice()))).collect();
        let range = self.block(block);
        let octets = &mut self.octets[range];
        match self.code.as_ref().unwrap() {
            Code::Narrow(code) => code.decode(octets, &missing, &symbols).unwrap(),
            Code::Wide(code) => code.decode(octets, &missing, &symbols).unwrap(),
        }
    }

    /// Returns the object without padding.
    pub(crate) fn content(&self) -> &[u8] {
        &self.octets[..self.geometry.size() as usize]
    }
}
