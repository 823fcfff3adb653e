//! Progress for people: bars on a terminal, a line every two seconds elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use farcast_core::{Span, Time};
use farcast_report::text::visible;
pub(crate) use farcast_transfer::words::{loss_percent, part_of, percent, rate, size};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

pub(crate) mod receivers;
mod terminal;

use terminal::Terminal;

/// Interval between lines where there is no terminal.
const LINE_EVERY: Span = Span::from_secs(2);
/// Highest number of times per second that the bars are drawn.
const DRAWN_PER_SECOND: u8 = 10;
/// Most lines below the bar that can still be read.
pub(crate) const MOST_LINES: usize = 10;

/// Progress bar with lines below it.
#[derive(Debug)]
pub(crate) struct Progress {
    bars: Option<(MultiProgress, ProgressBar, Vec<ProgressBar>)>,
    next_line: Time,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(output: &Output) -> Self {
        let shown = output.is_for_people();
        let bars = (shown && std::io::stderr().is_terminal()).then(|| {
            let terminal = Box::new(Terminal::new());
            let target = ProgressDrawTarget::term_like_with_hz(terminal, DRAWN_PER_SECOND);
            let all = MultiProgress::with_draw_target(target);
            let main = all.add(ProgressBar::new(0));
            let style = ProgressStyle::with_template("{prefix:<10.10} [{bar:16}] {percent:>3} %  {msg}");
            main.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            main.enable_steady_tick(Duration::from_millis(250));
            (all, main, Vec::new())
        });
        Self { bars, next_line: Time::ZERO + LINE_EVERY, shown }
    }

    /// Returns `true` if lines below the bar are shown.
    pub(crate) fn shows_lines(&self) -> bool {
        self.bars.is_some()
    }

    /// Returns the number of lines for which there is room below the bar.
    pub(crate) fn room(&self) -> usize {
        if self.bars.is_some() { MOST_LINES.min(rows().saturating_sub(BAR_ROWS)) } else { 0 }
    }

    /// Shows `done` of `total` units. On a terminal it also shows the first few of `lines`.
    pub(crate) fn update(
        &mut self,
        output: &Output,
        now: Time,
        (prefix, message): (&str, &str),
        (done, total): (u64, u64),
        lines: &[String],
    ) {
        let Some((all, main, below)) = &mut self.bars else {
            if self.shown && now >= self.next_line {
                self.next_line = now + LINE_EVERY;
                let percent = (done * 100).checked_div(total).unwrap_or(0);
                output.line(&format!("{prefix:<10} {percent:>3} %  {message}"));
            }
            return;
        };
        let room = columns();
        main.set_length(total.max(1));
        main.set_position(done);
        main.set_prefix(prefix.to_owned());
        main.set_message(cut(message, room.saturating_sub(BAR_COLUMNS)));
        while below.len() < lines.len().min(MOST_LINES) {
            let line = all.add(ProgressBar::new(0));
            line.set_style(
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            below.push(line);
        }
        for (n, bar) in below.iter().enumerate() {
            bar.set_message(lines.get(n).map_or_else(String::new, |line| cut(line, room)));
        }
        if let (Some(bar), true) = (below.last(), lines.len() > MOST_LINES) {
            bar.set_message(format!("  and {} more", lines.len() - MOST_LINES + 1));
        }
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, output: &Output, text: &str) {
        match &self.bars {
            // A terminal that is gone has no reader.
            Some((all, ..)) => drop(all.println(visible(text))),
            None => output.line(text),
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&mut self) {
        if let Some((all, main, below)) = self.bars.take() {
            main.finish_and_clear();
            for bar in below {
                bar.finish_and_clear();
            }
            // A failure only affects the looks.
            let _ = all.clear();
        }
        self.shown = false;
    }
}

/// Columns of the bar's line without its message.
const BAR_COLUMNS: usize = 10 + 1 + 18 + 1 + 5 + 2;

/// Rows of the terminal for the bar, and for lines above and below.
const BAR_ROWS: usize = 3;

/// Returns the rows of the terminal.
fn rows() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    usize::from(size.map_or(24, |size| if size.ws_row == 0 { 24 } else { size.ws_row }))
}

/// Returns the columns that a line may fill without reaching the end of the terminal's row. A line that wraps takes
/// more or fewer rows when the terminal's width changes. Rows that are wrongly counted as part of it would be erased.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let columns = size.map_or(80, |size| if size.ws_col == 0 { 80 } else { size.ws_col });
    usize::from(columns).saturating_sub(1)
}

/// Returns the part of `text` that fits into `columns`, with commands to the terminal made visible.
fn cut(text: &str, columns: usize) -> String {
    console::truncate_str(&visible(text), columns, "").into_owned()
}

/// Returns the octets on the wire divided by the octets of the files, or `None` if there are none of these.
pub(crate) fn times_the_size(wire: u64, octets: u64) -> Option<f64> {
    (octets > 0).then(|| wire as f64 / octets as f64)
}

/// Returns that ratio in words, or a dash if the files have no octets.
pub(crate) fn overhead(wire: u64, octets: u64) -> String {
    times_the_size(wire, octets).map_or_else(|| "-".into(), |times| format!("{times:.3} times the size"))
}

/// Returns the time that is left at the pace so far, or nothing if that is unknown or all is done.
pub(crate) fn time_left(done: u64, total: u64, elapsed: Span) -> String {
    if done == 0 || done >= total {
        return String::new();
    }
    let left = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    format!("  {} left", Span::from_secs_f64(left))
}

/// Time without data after which the pace is unknown: files are compared, or the sender waits.
const SILENCE: Span = Span::from_secs(2);

/// Pace of data since it last began to arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Time and amount at the beginning.
    began: Option<(Time, u64)>,
    /// Time and amount at the last increase.
    came: Option<(Time, u64)>,
}

impl Pace {
    /// Returns the time that is left until `have` reaches `total`, or nothing while that is unknown.
    pub(crate) fn time_left(&mut self, now: Time, have: u64, total: u64) -> String {
        let (came, last) = *self.came.get_or_insert((now, have));
        let is_silent = now.since(came) > SILENCE;
        if have != last {
            self.came = Some((now, have));
        }
        if is_silent || self.began.is_none() {
            self.began = Some((now, have));
            return String::new();
        }
        let (began, from) = self.began.unwrap_or((now, have));
        let (fresh, elapsed) = (have.saturating_sub(from), now.since(began));
        if elapsed < SILENCE { String::new() } else { time_left(fresh, total.saturating_sub(from), elapsed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_estimated_while_data_comes() {
        let (mut pace, at) = (Pace::default(), |seconds| Time::ZERO + Span::from_secs(seconds));
        assert_eq!(pace.time_left(at(0), 0, 1000), "");
        // The list of files, and then nothing: they are compared.
        for seconds in 1..60 {
            let left = pace.time_left(at(seconds), 2, 1000);
            assert!(seconds <= 3 || left.is_empty(), "{seconds} s: {left}");
        }
        // Only data after the pause counts: 10 each second.
        let later: Vec<String> = (60..70).map(|n| pace.time_left(at(n), 2 + 10 * (n - 59), 1000)).collect();
        assert_eq!((later[0].as_str(), later[1].as_str()), ("", ""));
        assert_eq!(later[9], format!("  {} left", Span::from_secs_f64(89.8)));
    }
}
