//! Output of programs, line by line, with the program's name before each.

use std::io::{self, PipeReader, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::EmuError;

/// Longest line in octets; longer lines are broken.
const LONGEST: usize = 8192;

/// Longest wait of [`Lines::finish`] for output of programs that have ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// The threads that carry output to our standard error.
#[derive(Debug)]
pub(super) struct Lines {
    /// Each thread holds a sender, and nobody ever sends: the channel is closed once all threads have ended.
    running: Sender<()>,
    closed: Receiver<()>,
}

impl Lines {
    pub(super) fn new() -> Self {
        let (running, closed) = channel();
        Self { running, closed }
    }

    /// Copies `source` until its end, on a thread of its own, with `name: ` before each line.
    ///
    /// # Errors
    /// The system's error of starting a thread.
    pub(super) fn carry(&self, name: &str, mut source: PipeReader) -> Result<(), EmuError> {
        let (mut prefixed, running) = (Prefixed::new(name), self.running.clone());
        let carry = move || {
            let _running = running;
            let mut buffer = vec![0; LONGEST];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                prefixed.push(&buffer[..count], &mut io::stderr());
            }
            prefixed.finish(&mut io::stderr());
        };
        let started = thread::Builder::new().name("output".into()).spawn(carry);
        started.map(drop).map_err(EmuError::when("start a thread"))
    }

    /// Waits until all output has been printed, for 1 s at most: a program may have left its output open for ever.
    pub(super) fn finish(&mut self) {
        let closed = std::mem::replace(self, Self::new()).closed;
        // Nobody sends, so the wait ends with the last sender or the time.
        let _ = closed.recv_timeout(PATIENCE);
    }
}

/// Maker of prefixed lines from octets.
#[derive(Debug)]
struct Prefixed {
    /// Prefix, and the part of the current line so far.
    line: Vec<u8>,
    prefix: usize,
}

impl Prefixed {
    fn new(name: &str) -> Self {
        let mut line = Vec::with_capacity(name.len() + LONGEST + 3);
        line.extend_from_slice(name.as_bytes());
        line.extend_from_slice(b": ");
        Self { prefix: line.len(), line }
    }

    /// Takes octets and writes the lines that are complete, each at once.
    fn push(&mut self, octets: &[u8], out: &mut impl Write) {
        for piece in octets.split_inclusive(|octet| *octet == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let mut rest = text;
            while self.line.len() - self.prefix + rest.len() > LONGEST {
                let (now, later) = rest.split_at(LONGEST - (self.line.len() - self.prefix));
                self.line.extend_from_slice(now);
                self.write(out);
                rest = later;
            }
            self.line.extend_from_slice(rest);
            if ends {
                self.write(out);
            }
        }
    }

    /// Writes the rest of a last line that has no end.
    fn finish(&mut self, out: &mut impl Write) {
        if self.line.len() > self.prefix {
            self.write(out);
        }
    }

    fn write(&mut self, out: &mut impl Write) {
        self.line.push(b'\n');
        // If nobody reads any more, the program's output is discarded, so that the program can go on.
        let _ = out.write_all(&self.line);
        self.line.truncate(self.prefix);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns the prefixed lines of `pieces`.
    fn prefixed(name: &str, pieces: &[&[u8]]) -> Vec<u8> {
        let (mut prefixed, mut out) = (Prefixed::new(name), Vec::new());
        for piece in pieces {
            prefixed.push(piece, &mut out);
        }
        prefixed.finish(&mut out);
        out
    }

    #[test]
    fn lines_are_put_together_and_a_last_one_without_an_end_is_printed() {
        assert_eq!(
            prefixed("far", &[b"on", b"e\n\ntwo\nthr", b"ee"]),
            b"far: one\nfar: \nfar: two\nfar: three\n"
        );
        assert_eq!(prefixed("far", &[b"one\n"]), b"far: one\n");
        assert_eq!(prefixed("far", &[]), b"");
    }

    #[test]
    fn a_line_without_end_is_broken_and_memory_stays_bounded() {
        let (mut prefixed, mut out) = (Prefixed::new("x"), Vec::new());
        let capacity = prefixed.line.capacity();
        for _ in 0..100 {
            prefixed.push(&[b'a'; 1000], &mut out);
        }
        prefixed.finish(&mut out);
        assert_eq!(prefixed.line.capacity(), capacity);
        let lines: Vec<_> = out.split(|octet| *octet == b'\n').collect();
        assert_eq!(lines.iter().map(|line| line.len().saturating_sub(3)).sum::<usize>(), 100_000);
        assert!(lines.iter().all(|line| line.len() <= 3 + LONGEST));
        assert_eq!(lines.len(), 100_000usize.div_ceil(LONGEST) + 1);
    }

    proptest! {
        /// Compares with the result of `sed 's/^/x: /'` on the whole, for pieces cut anywhere.
        #[test]
        fn cutting_changes_nothing(pieces in vec(vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..50), 0..20)) {
            let whole = pieces.concat();
            let mut expected = Vec::new();
            for line in whole.strip_suffix(b"\n").unwrap_or(&whole).split(|octet| *octet == b'\n') {
                expected.extend_from_slice(&[b"x: ", line, b"\n"].concat());
            }
            if whole.is_empty() {
                expected.clear();
            }
            let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(prefixed("x", &pieces), expected);
        }
    }
}
