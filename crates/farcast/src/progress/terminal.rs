//! Terminal on which bars are drawn.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use console::Term;
use indicatif::TermLike;

/// Standard error, on which each line of the bars ends where its text ends.
///
/// The library fills lines with spaces to the right edge, so that the terminal goes to the next line by itself.
/// Terminals take lines that are joined in this way for one line. After a terminal has become wider, that line takes
/// fewer rows, and rows of other output would be erased.
#[derive(Debug)]
pub(super) struct Terminal {
    term: Term,
    /// Set if the next text begins a line.
    ended: AtomicBool,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self { term: Term::stderr(), ended: AtomicBool::new(false) }
    }

    /// Notes that the cursor has left the end of the line.
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
        // A fill consists of spaces alone, and no text of ours does.
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
