//! The terminal that bars are drawn on.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use console::Term;
use indicatif::TermLike;

/// Standard error, with each line of the bars ended where its text ends.
///
/// The library fills lines with spaces to the right edge and has the terminal go to the next by itself. Terminals take
/// what is so joined for one line: after they have become wider it takes fewer rows, and rows that are others' would be
/// erased.
#[derive(Debug)]
pub(super) struct Terminal {
    term: Term,
    /// Whether the next text begins a line.
    ended: AtomicBool,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self { term: Term::stderr(), ended: AtomicBool::new(false) }
    }

    /// The cursor goes elsewhere.
    fn moved(&self) {
        self.ended.store(false, Ordering::Relaxed);
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        self.term.size().1
    }

    fn height(&self) -> u16 {
        self.term.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.moved();
        self.term.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.moved();
        self.term.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.moved();
        self.term.write_str("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        // What fills a line is nothing but spaces, and no text of ours is.
        if !text.is_empty() && text.bytes().all(|octet| octet == b' ') {
            self.ended.store(true, Ordering::Relaxed);
            return self.term.write_str("\u{1b}[K");
        }
        if self.ended.swap(false, Ordering::Relaxed) && text != "\r" {
            self.term.write_str("\r\n")?;
        }
        self.term.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.moved();
        self.term.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.term.flush()
    }
}
