//! Positions of segments and files in the product.

use core::ops::Range;

use farcast_core::Run;

use crate::Manifest;

/// Division of a product into segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub(crate) size: u64,
    pub(crate) segment_len: u32,
    pub(crate) count: u32,
}

impl Geometry {
    /// Creates the geometry. `None` if `segment_len` is zero, if there are more than `u32::MAX` segments, or if `size`
    /// exceeds `i64::MAX`.
    pub(crate) fn new(size: u64, segment_len: u32) -> Option<Self> {
        if segment_len == 0 || i64::try_from(size).is_err() {
            return None;
        }
        let count = u32::try_from(size.div_ceil(u64::from(segment_len))).ok()?;
        Some(Self { size, segment_len, count })
    }

    /// Returns the first byte of `segment`; the size of the product for a segment past the last one.
    pub(crate) fn start(&self, segment: u32) -> u64 {
        (u64::from(segment) * u64::from(self.segment_len)).min(self.size)
    }

    /// Returns the bytes of `run`.
    pub(crate) fn bytes(&self, run: Run) -> Range<u64> {
        self.start(run.first())..self.start(run.end())
    }

    /// Returns the segments that have at least one byte of `bytes`.
    pub(crate) fn touching(&self, bytes: &Range<u64>) -> Option<Run> {
        if bytes.is_empty() {
            return None;
        }
        let len = u64::from(self.segment_len);
        let first = (bytes.start / len) as u32;
        let end = (bytes.end.min(self.size)).div_ceil(len) as u32;
        Run::new(first, end.checked_sub(first)?)
    }

    /// Returns the segments that lie wholly within `bytes`.
    pub(crate) fn covered(&self, bytes: &Range<u64>) -> Option<Run> {
        let len = u64::from(self.segment_len);
        let first = u32::try_from(bytes.start.div_ceil(len)).ok()?;
        let end = if bytes.end >= self.size { self.count } else { (bytes.end / len) as u32 };
        Run::new(first, end.checked_sub(first)?)
    }
}

/// One file of the product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// Index of the file in the manifest.
    pub(crate) entry: usize,
    /// Position of its first byte in the product.
    pub(crate) start: u64,
    /// Number of bytes that the product stores for it.
    pub(crate) size: u64,
}

impl Span {
    /// Returns the range of its bytes in the product.
    pub(crate) fn bytes(&self) -> Range<u64> {
        self.start..self.start + self.size
    }
}

/// A contiguous part of one file, or of the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilePart {
    /// The file, counted in [`Layout::spans`]; `None` for the head.
    pub(crate) file: Option<usize>,
    /// Start of the part in the file or head, in bytes.
    pub(crate) offset: u64,
    /// Length in bytes, at least one.
    pub(crate) len: u64,
}

/// Positions of all files in the product.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    head_len: u64,
    spans: Vec<Span>,
}

impl Layout {
    pub(crate) fn new(manifest: &Manifest) -> Self {
        Self::behind(manifest.head_len(), manifest)
    }

    /// Creates the layout of a product without a head.
    pub(crate) fn of_content(manifest: &Manifest) -> Self {
        Self::behind(0, manifest)
    }

    fn behind(head_len: u64, manifest: &Manifest) -> Self {
        let mut start = head_len;
        let mut spans = Vec::new();
        for (entry, item) in manifest.entries().iter().enumerate().filter(|(_, item)| item.is_file()) {
            spans.push(Span { entry, start, size: item.stored() });
            start += item.stored();
        }
        Self { head_len, spans }
    }

    /// Returns the files in the order of the manifest.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns the number of bytes of the head and all files.
    pub(crate) fn size(&self) -> u64 {
        self.spans.last().map_or(self.head_len, |span| span.bytes().end)
    }

    pub(crate) fn head_len(&self) -> u64 {
        self.head_len
    }

    /// Returns the first of the [`pieces`](Self::pieces), for callers that modify the owner of the layout between two
    /// pieces.
    pub(crate) fn first_piece(&self, bytes: Range<u64>) -> Option<FilePart> {
        self.pieces(bytes).next()
    }

    /// Returns the parts of head and files that make up `bytes` of the product, in order.
    pub(crate) fn pieces(&self, bytes: Range<u64>) -> impl Iterator<Item = FilePart> + '_ {
        let mut at = bytes.start;
        let mut file = self.spans.partition_point(|span| span.bytes().end <= at);
        core::iter::from_fn(move || {
            if at >= bytes.end {
                return None;
            }
            if at < self.head_len {
                let len = bytes.end.min(self.head_len) - at;
                let piece = FilePart { file: None, offset: at, len };
                at += len;
                return Some(piece);
            }
            while self.spans.get(file)?.bytes().end <= at {
                file += 1;
            }
            let span = self.spans[file];
            let len = bytes.end.min(span.bytes().end) - at;
            let piece = FilePart { file: Some(file), offset: at - span.start, len };
            at += len;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests;
