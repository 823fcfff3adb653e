//! Division of an object into blocks of segments.

use farcast_core::Run;

use crate::partition::Partition;

/// Maximum number of segments of an object; a bitmap of that many takes 128 MiB.
pub const MAX_SEGMENTS: u32 = 1 << 30;

/// Reason for which an object cannot be divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A segment must carry 1 to 65,000 bytes.
    #[error("a segment of {0} bytes: it must carry 1 to 65000 bytes")]
    SegmentSize(u32),
    /// A block must have 1 to 2^30 segments.
    #[error("a block of {0} segments: it must have 1 to 2^30")]
    BlockSize(u32),
    /// The object has no segment, or too many.
    #[error("an object of {size} bytes in segments of {segment_size} bytes: it must have 1 to 2^30 segments")]
    ObjectSize {
        /// Bytes of the object.
        size: u64,
        /// Bytes of a segment.
        segment_size: u32,
    },
}

/// Object of `size` bytes, divided into segments of `segment_size` bytes and blocks of at most `block_size` segments.
///
/// Segments are counted through the whole object. Only the last may be short. Blocks are full except for the last
/// ([`new`](Self::new)), or as equal as possible ([`partitioned`](Self::partitioned)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    size: u64,
    segment_size: u16,
    block_size: u32,
    segments: u32,
    /// Partition into blocks of nearly equal size, if the object has one.
    partition: Option<Partition>,
    /// `true` if the code is that of a full block, even if there is none.
    is_grouped: bool,
}

impl Geometry {
    /// Creates a geometry with full blocks except for the last. The three numbers may come from the network.
    ///
    /// # Errors
    /// Returns an error if one of them is 0, if a segment exceeds 65,000 bytes, or if the object or a block has more
    /// than [`MAX_SEGMENTS`].
    pub fn new(size: u64, segment_size: u32, block_size: u32) -> Result<Self, GeometryError> {
        let segment = u16::try_from(segment_size)
            .ok()
            .filter(|&n| (1..=65_000).contains(&n))
            .ok_or(GeometryError::SegmentSize(segment_size))?;
        if block_size == 0 || block_size > MAX_SEGMENTS {
            return Err(GeometryError::BlockSize(block_size));
        }
        let segments = size.div_ceil(u64::from(segment));
        let fits = u32::try_from(segments).ok().filter(|&n| (1..=MAX_SEGMENTS).contains(&n));
        Ok(Self {
            size,
            segment_size: segment,
            block_size,
            segments: fits.ok_or(GeometryError::ObjectSize { size, segment_size })?,
            partition: None,
            is_grouped: false,
        })
    }

    /// Creates a geometry whose blocks have at most `block_size` segments and differ by at most one (RFC 5052 §9.1).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn partitioned(size: u64, segment_size: u32, block_size: u32) -> Result<Self, GeometryError> {
        let uniform = Self::new(size, segment_size, block_size)?;
        Ok(Self { partition: Some(Partition::new(uniform.segments, block_size)), ..uniform })
    }

    /// Like [`new`](Self::new), but the code is that of a full block even if the object has fewer segments, as a
    /// protocol announces it (RFC 3208 §11: `TGSIZE`).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn grouped(size: u64, segment_size: u32, block_size: u32) -> Result<Self, GeometryError> {
        Ok(Self { is_grouped: true, ..Self::new(size, segment_size, block_size)? })
    }

    /// Creates the geometry of an object of 0 bytes, for protocols that have such objects. The object has neither
    /// segments nor blocks; the arguments are the sizes that they would have.
    ///
    /// # Errors
    /// As [`new`](Self::new) for these two arguments.
    pub fn empty(segment_size: u32, block_size: u32) -> Result<Self, GeometryError> {
        let one = Self::new(1, segment_size, block_size)?;
        Ok(Self { size: 0, segments: 0, partition: Some(Partition::NONE), ..one })
    }

    /// Returns the object's size in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes of a full segment.
    pub const fn segment_size(&self) -> u16 {
        self.segment_size
    }

    /// Returns the number of segments of a full block, the maximum of a block.
    pub const fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Returns the number of source symbols of the blocks' erasure code. This is the length of the largest block. For a
    /// partitioned object it is the maximum block length (`B` in RFC 5052), which the protocol announces.
    pub const fn code_size(&self) -> u32 {
        if self.partition.is_some() || self.is_grouped || self.block_size < self.segments {
            self.block_size
        } else {
            self.segments
        }
    }

    /// Returns the number of segments, at least 1 except for an [`empty`](Self::empty) object.
    pub const fn segments(&self) -> u32 {
        self.segments
    }

    /// Returns the number of blocks, at least 1 except for an [`empty`](Self::empty) object.
    pub const fn blocks(&self) -> u32 {
        match &self.partition {
            Some(partition) => partition.blocks(),
            None => self.segments.div_ceil(self.block_size),
        }
    }

    /// Returns the number of segments of `block`; 0 past the last.
    pub const fn block_len(&self, block: u32) -> u32 {
        if let Some(partition) = &self.partition {
            return partition.block_len(block);
        }
        let Some(first) = block.checked_mul(self.block_size) else { return 0 };
        let left = self.segments.saturating_sub(first);
        if left < self.block_size { left } else { self.block_size }
    }

    /// Returns the first segment of `block`; past the last block, a number beyond the object's segments.
    pub const fn first_of(&self, block: u32) -> u32 {
        match &self.partition {
            Some(partition) => partition.first_of(block),
            None => block.saturating_mul(self.block_size),
        }
    }

    /// Returns the block that contains `segment`.
    pub const fn block_of(&self, segment: u32) -> u32 {
        match &self.partition {
            Some(partition) => partition.block_of(segment),
            None => segment / self.block_size,
        }
    }

    /// Returns the segments of `block`; `None` past the last.
    pub fn block_run(&self, block: u32) -> Option<Run> {
        Run::new(self.first_of(block), self.block_len(block))
    }

    /// Converts segments `within` of `block` to numbers within the object; `None` if the block does not have them.
    pub fn segments_of(&self, block: u32, within: Run) -> Option<Run> {
        (within.end() <= self.block_len(block))
            .then(|| Run::new(self.first_of(block) + within.first(), within.count()))?
    }

    /// Returns the payload bytes of `segment`, which must be below [`segments`](Self::segments).
    pub const fn payload_len(&self, segment: u32) -> u16 {
        if segment + 1 == self.segments {
            // 1 to segment_size bytes, so the cast keeps it.
            (self.size - (self.segments - 1) as u64 * self.segment_size as u64) as u16
        } else {
            self.segment_size
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_product() {
        // 10^6 bytes in segments of 526 bytes, blocks of 488: 1902 segments, three full blocks and one of 438.
        let g = Geometry::new(1_000_000, 526, 488).expect("valid");
        assert_eq!((g.segments(), g.blocks(), g.block_len(3), g.block_len(4)), (1902, 4, 438, 0));
        assert_eq!((g.payload_len(0), g.payload_len(1901)), (526, 74));
        assert_eq!(g.segments_of(3, Run::new(430, 8).expect("run")), Run::new(1894, 8));
        assert_eq!(g.segments_of(3, Run::new(430, 9).expect("run")), None);
    }

    #[test]
    fn blocks_may_be_as_equal_as_can_be() {
        let g = Geometry::partitioned(20_000, 512, 16).expect("valid");
        assert_eq!((g.segments(), g.blocks(), g.block_size(), g.code_size()), (40, 3, 16, 16));
        assert_eq!(g.block_run(1), Run::new(14, 13));
        assert_eq!(g.segments_of(2, Run::one(12)), Run::new(39, 1));
        assert_eq!((g.segments_of(2, Run::one(13)), g.segments_of(3, Run::one(0))), (None, None));
        assert_eq!((g.block_of(26), g.payload_len(39)), (1, 32));
        // The announced code may be larger than a small object needs.
        assert_eq!(Geometry::partitioned(1000, 512, 16).expect("valid").code_size(), 16);
        assert_eq!(Geometry::new(1000, 512, 16).expect("valid").code_size(), 2);
        let grouped = Geometry::grouped(1000, 512, 16).expect("valid");
        assert_eq!((grouped.code_size(), grouped.blocks(), grouped.block_len(0)), (16, 1, 2));
    }

    #[test]
    fn nothing_has_no_blocks() {
        let g = Geometry::empty(512, 16).expect("valid");
        assert_eq!((g.size(), g.segments(), g.blocks(), g.code_size()), (0, 0, 0, 16));
        assert_eq!((g.block_len(0), g.first_of(0), g.block_run(0)), (0, 0, None));
        assert_eq!(g.segments_of(0, Run::one(0)), None);
        assert_eq!(Geometry::empty(0, 16), Err(GeometryError::SegmentSize(0)));
        assert_eq!(Geometry::empty(512, 0), Err(GeometryError::BlockSize(0)));
    }

    #[test]
    fn above_4_gib_the_numbers_still_fit() {
        let g = Geometry::new(5 << 30, 1432, 11_104).expect("valid");
        assert_eq!(g.segments(), 3_749_099);
        assert_eq!(u64::from(g.segments() - 1) * 1432 + u64::from(g.payload_len(g.segments() - 1)), 5 << 30);
    }

    #[test]
    fn claims_from_the_network_are_bounded() {
        assert!(Geometry::new(u64::MAX, 1, 1).is_err());
        assert!(Geometry::new(0, 1, 1).is_err());
        assert!(Geometry::new(1, 0, 1).is_err());
        assert!(Geometry::new(1, 1, 0).is_err());
        assert!(Geometry::new(1, 70_000, 1).is_err());
        assert_eq!(Geometry::new(1, 1, MAX_SEGMENTS).expect("valid").block_len(u32::MAX), 0);
    }
}
