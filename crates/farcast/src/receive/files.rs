//! Files of a product as they become complete.

use std::sync::Arc;

use farcast_core::{Bitmap, Run};
use farcast_net::FileInfo;

use crate::progress::{MOST_LINES, size};

/// Files of the product that is being received.
#[derive(Default)]
pub(super) struct Files {
    pub(super) list: Arc<[FileInfo]>,
    /// Number of files that have their final names.
    pub(super) done: usize,
}

impl Files {
    /// Returns a line for each of the first files that lack something, and a line with the number of other files that
    /// are not done. Only those files are looked at: there may be a million.
    pub(super) fn lines(&self, have: &Bitmap, dtu_size: u64) -> Vec<String> {
        if self.list.len() < 2 {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut from = 0;
        while lines.len() < MOST_LINES
            && let Some(file) = self.next_open(have, dtu_size, from)
        {
            let FileInfo { path, size: bytes, .. } = &self.list[file];
            let part = part(&self.list[file], have, dtu_size);
            lines.push(format!("  {path:<40} {:>5.1} % of {}", part * 100.0, size(*bytes)));
            from = file + 1;
        }
        let more = (self.list.len() - self.done).saturating_sub(lines.len());
        if more > 0
            && lines.len() == MOST_LINES
            && let Some(last) = lines.last_mut()
        {
            *last = format!("  and {} more", more + 1);
        }
        lines
    }

    /// Returns the first file from number `from` on that lacks something.
    fn next_open(&self, have: &Bitmap, dtu_size: u64, from: usize) -> Option<usize> {
        let start = self.list.get(from)?.start;
        let gap = have.next_clear(u32::try_from(start / dtu_size).ok()?)?;
        let byte = (u64::from(gap) * dtu_size).max(start);
        // The file is the first one that ends behind the start of the gap. Empty files lack nothing.
        let behind = self.list[from..].partition_point(|file| file.start + file.stored <= byte);
        (from + behind < self.list.len()).then_some(from + behind)
    }
}

/// Returns the total size of the compressed files of `files`, uncompressed and compressed. Returns `None` if no file is
/// compressed.
pub(super) fn compressed(files: &[FileInfo]) -> Option<(String, String)> {
    let compressed = || files.iter().filter(|file| file.stored < file.size);
    compressed().next()?;
    Some((size(compressed().map(|file| file.size).sum()), size(compressed().map(|file| file.stored).sum())))
}

/// Returns the part of `file` that is there, from 0 to 1.
fn part(file: &FileInfo, have: &Bitmap, dtu_size: u64) -> f64 {
    let (first, end) = (file.start / dtu_size, (file.start + file.stored).div_ceil(dtu_size));
    let run = Run::new(first as u32, (end - first) as u32);
    run.map_or(1.0, |run| f64::from(have.count_in(run)) / f64::from(run.count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes files of these sizes, back to back behind a head of 50 bytes.
    fn files(sizes: &[u64]) -> Files {
        let mut start = 50;
        let list = sizes.iter().enumerate().map(|(at, &size)| {
            let file = FileInfo { path: format!("f{at}"), size, start, stored: size };
            start += size;
            file
        });
        Files { list: list.collect(), done: 0 }
    }

    /// Makes a bitmap of all `segments` but those in `lacks`.
    fn lacking(segments: u32, lacks: &[u32]) -> Bitmap {
        let mut have = Bitmap::full(segments);
        for &segment in lacks {
            have.remove(segment);
        }
        have
    }

    #[test]
    fn lines_are_of_the_files_that_lack_something() {
        let files = files(&[100, 0, 30, 300, 0, 120]);
        // Segments of 100 bytes: the head and half of f0; its rest, f2 and some of f3; ...
        assert_eq!(files.lines(&Bitmap::full(6), 100), Vec::<String>::new());
        let names = |lacks: &[u32]| -> Vec<String> {
            let lines = files.lines(&lacking(6, lacks), 100);
            lines.iter().map(|line| line.split_whitespace().next().unwrap_or_default().into()).collect()
        };
        assert_eq!(names(&[0]), ["f0"]);
        assert_eq!(names(&[1]), ["f0", "f2", "f3"]);
        assert_eq!(names(&[3]), ["f3"]);
        assert_eq!(names(&[5]), ["f5"]);
        assert_eq!(names(&[0, 1, 2, 3, 4, 5]), ["f0", "f2", "f3", "f5"]);
    }

    #[test]
    fn of_many_files_a_few_are_shown_and_the_others_counted() {
        let mut files = files(&[10; 1000]);
        files.done = 300;
        let lines = files.lines(&Bitmap::new(101), 100);
        assert_eq!(lines.len(), MOST_LINES);
        assert_eq!(lines[MOST_LINES - 1], "  and 691 more");
    }
}
