use super::*;
use crate::chunks::Chunks;
use crate::{Entry, EntryKind};
use proptest::collection::vec;
use proptest::prelude::*;

fn layout(sizes: &[u64]) -> (Layout, u64) {
    let entry = |(i, size): (usize, &u64)| {
        let kind = EntryKind::File { size: *size, digest: [0; 32] };
        Entry {
            path: format!("{i:04}").into_bytes(),
            mode: 0,
            mtime_ns: 0,
            kind,
            parts: Box::default(),
            chunks: Chunks::default(),
        }
    };
    let manifest = Manifest::new(sizes.iter().enumerate().map(entry).collect()).unwrap();
    (Layout::new(&manifest), manifest.product_size())
}

proptest! {
    #[test]
    fn pieces_cover_every_byte_once(sizes in vec(0..30_u64, 0..10), from in 0..900_u64, len in 0..900_u64) {
        let (layout, size) = layout(&sizes);
        let bytes = from.min(size)..size.min(from + len);
        let mut at = bytes.start;
        for piece in layout.pieces(bytes.clone()) {
            prop_assert!(piece.len > 0);
            let start = piece.file.map_or(0, |file| layout.spans()[file].start);
            prop_assert_eq!(start + piece.offset, at);
            let room = piece.file.map_or(layout.head_len(), |file| layout.spans()[file].size);
            prop_assert!(piece.offset + piece.len <= room);
            at += piece.len;
        }
        prop_assert_eq!(at, bytes.end);
    }

    #[test]
    fn touching_and_covered_segments(size in 1..500_u64, len in 1..40_u32, from in 0..500_u64, count in 0..500_u64) {
        let geometry = Geometry::new(size, len).unwrap();
        let bytes = from.min(size)..size.min(from + count);
        let (touching, covered) = (geometry.touching(&bytes), geometry.covered(&bytes));
        for segment in 0..geometry.count {
            let own = geometry.bytes(Run::one(segment));
            let touches = own.start < bytes.end && bytes.start < own.end;
            prop_assert_eq!(touching.is_some_and(|run| run.contains(segment)), touches && !bytes.is_empty());
            let within = bytes.start <= own.start && own.end <= bytes.end;
            prop_assert_eq!(covered.is_some_and(|run| run.contains(segment)), within);
        }
    }
}

#[test]
fn geometry_has_limits() {
    assert_eq!(Geometry::new(10, 0), None);
    assert_eq!(Geometry::new(u64::MAX, u32::MAX), None);
    assert_eq!(Geometry::new(u64::from(u32::MAX) + 1, 1), None);
    assert_eq!(Geometry::new(u64::from(u32::MAX), 1).map(|geometry| geometry.count), Some(u32::MAX));
}
