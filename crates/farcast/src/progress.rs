//! Progress for people: bars on a terminal, a line every two seconds elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use farcast_core::units::Bytes;
use farcast_core::{BitRate, Span, Time};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output::{Output, clean};

/// Between lines where there is no terminal.
const LINE_EVERY: Span = Span::from_secs(2);
/// Lines below the bar that still can be read.
const MOST_LINES: usize = 10;

/// A bar with lines below it.
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
            let all = MultiProgress::new();
            let main = all.add(ProgressBar::new(0));
            let style = ProgressStyle::with_template("{prefix:<10} [{bar:32}] {percent:>3} %  {msg}");
            main.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            main.enable_steady_tick(Duration::from_millis(250));
            (all, main, Vec::new())
        });
        Self { bars, next_line: Time::ZERO + LINE_EVERY, shown }
    }

    /// Shows `done` of `total` units, and a line for each of `lines` (on a terminal; the first few).
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
        main.set_length(total.max(1));
        main.set_position(done);
        main.set_prefix(prefix.to_owned());
        main.set_message(clean(message));
        while below.len() < lines.len().min(MOST_LINES) {
            let line = all.add(ProgressBar::new(0));
            line.set_style(
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            below.push(line);
        }
        for (bar, line) in below.iter().zip(lines) {
            bar.set_message(clean(line));
        }
        if let (Some(bar), true) = (below.last(), lines.len() > MOST_LINES) {
            bar.set_message(format!("  and {} more", lines.len() - MOST_LINES + 1));
        }
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, output: &Output, text: &str) {
        match &self.bars {
            // Where the terminal is gone there is nobody to tell.
            Some((all, ..)) => drop(all.println(clean(text))),
            None => output.line(text),
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&mut self) {
        if let Some((all, main, below)) = self.bars.take() {
            main.finish_and_clear();
            for bar in below {
                bar.finish_and_clear();
            }
            // It is only cosmetics.
            let _ = all.clear();
        }
        self.shown = false;
    }
}

/// A part in per cent, one decimal.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// The rate at which `bytes` were moved in `span`.
pub(crate) fn rate(bytes: u64, span: Span) -> String {
    let bps = bytes as f64 * 8.0 / span.as_secs_f64().max(1e-9);
    BitRate::from_bps(bps as u64).map_or_else(|| "-".into(), |rate| rate.to_string())
}

/// Bytes as a person writes them.
pub(crate) fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// The time that is left at the pace so far.
pub(crate) fn time_left(done: u64, total: u64, elapsed: Span) -> String {
    if done == 0 || done >= total {
        return String::new();
    }
    let left = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    format!("  {} left", Span::from_secs_f64(left))
}
