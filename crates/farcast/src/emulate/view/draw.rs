//! Drawing of the view, as a function of its state.

use farcast_core::BitRate;
use farcast_core::units::Bytes;
use farcast_emu::control::{
    DirectionState, Lateness, LinkDirection, ProgramPhase, ProgramState, Snapshot, TerminalState,
};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

use super::keys::{KEYS, name};
use super::state::View;

/// Lines that belong to no chart, no histogram and no table row: head, message and keys, text below the charts, frames
/// and headings.
const AROUND: u16 = 3 + 6 + 3 + 4;

/// Draws the view on the whole screen.
pub(super) fn draw(frame: &mut Frame, view: &View) {
    let area = frame.area();
    let histogram = (area.height / 12).clamp(2, 6);
    // The charts take the lines that the tables do not need.
    let rows = view.latest.as_ref().map_or(0, |latest| latest.terminals.len().max(latest.programs.len()));
    let needed = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(AROUND + histogram);
    let least = (area.height / 8).clamp(2, 10);
    let chart = area.height.saturating_sub(needed).clamp(least, (area.height / 3).max(least));
    let heights = [
        Constraint::Length(1),
        Constraint::Length(chart + 6),
        Constraint::Min(3),
        Constraint::Length(histogram + 4),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, ways, middle, late, message, keys] = Layout::vertical(heights).areas(area);
    header(frame, head, view);
    frame.render_widget(Line::from(&*view.message).yellow(), message);
    frame.render_widget(Line::from(KEYS).dim(), keys);
    let Some(snapshot) = &view.latest else {
        frame.render_widget(Line::from("waiting for the emulation"), ways);
        return;
    };
    let [forward, back] = Layout::horizontal([Constraint::Fill(1); 2]).areas(ways);
    way(frame, forward, view, LinkDirection::Forward, &snapshot.forward);
    way(frame, back, view, LinkDirection::Return, &snapshot.back);
    let [terminals, programs] = Layout::horizontal([Constraint::Fill(1); 2]).areas(middle);
    terminal_table(frame, terminals, snapshot, view.scroll);
    program_table(frame, programs, &snapshot.programs);
    lateness(frame, late, &snapshot.lateness);
}

fn header(frame: &mut Frame, area: Rect, view: &View) {
    let description = &view.description;
    let mut spans = vec![Span::from("farcast emulate ").bold()];
    // The description comes before the first snapshot.
    let Some(snapshot) = &view.latest else {
        frame.render_widget(Line::from(spans), area);
        return;
    };
    spans.extend([
        Span::from(&*description.link).bold().cyan(),
        Span::from(format!("  seed {}", description.seed)),
        Span::from(format!("  {:.1} s  ", snapshot.time_s)),
        validity(&snapshot.lateness),
    ]);
    frame.render_widget(Line::from(spans), area);
    let version = format!("{}  process {}", description.version, description.pid);
    frame.render_widget(Line::from(version).dim().right_aligned(), area);
}

fn validity(lateness: &Lateness) -> Span<'static> {
    if lateness.valid { Span::from("VALID").bold().green() } else { Span::from("INVALID").bold().red() }
}

fn way(frame: &mut Frame, area: Rect, view: &View, way: LinkDirection, state: &DirectionState) {
    let ends = match way {
        LinkDirection::Forward => "hub to terminals",
        LinkDirection::Return => "terminals to hub",
    };
    let is_chosen = view.way.is_none_or(|chosen| chosen == way);
    let mark = if is_chosen { "\u{25b6} " } else { "" };
    let mut block = Block::bordered().title(Line::from(format!(" {mark}{}: {ends} ", name(way))));
    if let Some(left) = state.outage_s.filter(|left| *left > 0.0) {
        block = block.title_bottom(Line::from(format!(" OUTAGE {left:.1} s ")).bold().red().right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [chart, text] = Layout::vertical([Constraint::Fill(1), Constraint::Length(4)]).areas(inner);
    throughput(frame, chart, view, way, state);
    frame.render_widget(Paragraph::new(way_lines(state)), text);
}

/// Draws the chart of the last minute. Its top is the rate, or the highest throughput if that is higher.
fn throughput(frame: &mut Frame, area: Rect, view: &View, way: LinkDirection, state: &DirectionState) {
    let data = view.chart(way, usize::from(area.width));
    let most = data.iter().flatten().copied().max().unwrap_or(0).max(state.rate_bps.unwrap_or(0)).max(1);
    let line = Sparkline::default().data(data).max(most).style(Style::new().fg(Color::Cyan));
    frame.render_widget(line, area);
}

fn way_lines(state: &DirectionState) -> Vec<Line<'static>> {
    let queue = state.queue_octets.map_or_else(String::new, |octets| format!(", queue {}", Bytes(octets)));
    let lost = share(state.lost.packets, state.entered.packets);
    let settings = [
        state.rate_bps.map(|bps| rate(bps as f64)),
        state.delay_s.map(seconds),
        state.per.map(|per| format!("loss {}", per_cent(per))),
    ];
    let settings: Vec<String> = settings.into_iter().flatten().collect();
    vec![
        Line::from(vec![
            Span::from(format!("out {}", rate(state.delivered_bps))).bold(),
            Span::from(format!("  in {}", rate(state.entered_bps))),
        ]),
        Line::from(format!("inside {}{queue}", packets(state.inside.packets))),
        Line::from(format!("lost {}{lost}, dropped {}", state.lost.packets, state.dropped.packets)),
        Line::from(format!("set {}", settings.join(", "))).dim(),
    ]
}

fn terminal_table(frame: &mut Frame, area: Rect, snapshot: &Snapshot, scroll: usize) {
    let (count, rows) = (snapshot.terminals.len(), usize::from(area.height.saturating_sub(3)));
    // The last page stays full.
    let first = scroll.min(count.saturating_sub(rows));
    let shown = snapshot.terminals.iter().skip(first).take(rows);
    let title = if count > rows {
        format!(" terminals {} to {} of {count} ", first + 1, (first + rows).min(count))
    } else {
        String::from(" terminals ")
    };
    let widths = [Constraint::Length(8), Constraint::Fill(1), Constraint::Fill(2)];
    let table = Table::new(shown.map(terminal_row), widths)
        .header(Row::new(["terminal", "delivered", "lost"]).dim())
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn terminal_row(state: &TerminalState) -> Row<'static> {
    let (delivered, lost) = (state.delivered.packets, state.lost.packets);
    let share = share(lost, delivered.saturating_add(lost));
    Row::new([state.terminal.to_string(), delivered.to_string(), format!("{lost}{share}")])
}

fn program_table(frame: &mut Frame, area: Rect, programs: &[ProgramState]) {
    let rows = programs.iter().map(|program| {
        let (phase, style) = match (program.phase, program.exit_code, program.signal) {
            (ProgramPhase::Waiting, ..) => ("waiting".into(), Style::new().dim()),
            (ProgramPhase::Running, ..) => ("running".into(), Style::new().green()),
            (ProgramPhase::Ended, Some(0), _) => ("done".into(), Style::new()),
            (ProgramPhase::Ended, Some(code), _) => (format!("exit code {code}"), Style::new().red()),
            (ProgramPhase::Ended, None, Some(signal)) => (format!("signal {signal}"), Style::new().red()),
            (ProgramPhase::Ended, None, None) => ("ended".into(), Style::new()),
        };
        Row::new([program.name.clone(), program.host.clone(), phase]).style(style)
    });
    let table = Table::new(rows, [Constraint::Fill(1); 3])
        .header(Row::new(["program", "host", "state"]).dim())
        .block(Block::bordered().title(" programs "));
    frame.render_widget(table, area);
}

fn lateness(frame: &mut Frame, area: Rect, lateness: &Lateness) {
    let valid = Line::from(vec![Span::from(" "), validity(lateness), Span::from(" ")]).right_aligned();
    let title = format!(" lateness of {} ", packets(lateness.packets));
    let block = Block::bordered().title(title).title(valid);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let heights = [Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [line, bars, edges] = Layout::vertical(heights).areas(inner);
    let limit = lateness.limit_s.map_or_else(String::new, |limit| format!(" (limit {})", seconds(limit)));
    let text = format!(
        "p50 {}  p99 {}{limit}  p99.9 {}  max {}",
        seconds(lateness.p50_s),
        seconds(lateness.p99_s),
        seconds(lateness.p999_s),
        seconds(lateness.max_s),
    );
    frame.render_widget(Line::from(text), line);
    histogram(frame, bars, edges, lateness);
}

/// Draws the bins side by side, each as wide as fits, and below them the lower edges of some. The height is the
/// logarithm of the count: on a linear scale the few late packets that matter would be invisible.
fn histogram(frame: &mut Frame, bars: Rect, edges: Rect, lateness: &Lateness) {
    let bins = &lateness.bins;
    let width = (usize::from(bars.width) / bins.len().max(1)).clamp(1, 12);
    let height = |packets: u64| (packets as f64).ln_1p().mul_add(1000.0, 0.5) as u64;
    let data: Vec<u64> =
        bins.iter().flat_map(|bin| std::iter::repeat_n(height(bin.packets), width)).collect();
    frame.render_widget(Sparkline::default().data(data).style(Style::new().fg(Color::Cyan)), bars);
    let begins = std::iter::once(Some(0.0)).chain(bins.iter().map(|bin| bin.below_s));
    let mut text = String::new();
    let mut used = 0;
    for (begin, at) in begins.take(bins.len()).zip((0..).step_by(width)) {
        let Some(begin) = begin.filter(|_| at == 0 || at > used) else { continue };
        let label = seconds(begin);
        text.push_str(&" ".repeat(at - used));
        used = at + label.len();
        text.push_str(&label);
    }
    frame.render_widget(Line::from(text).dim(), edges);
}

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".into() } else { format!("{count} packets") }
}

/// Returns `part` of `whole` as a percentage in brackets, or nothing if `whole` is 0.
fn share(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!(" ({})", per_cent(part as f64 / whole as f64)) }
}

/// Returns a rate in bit/s as people write it.
fn rate(bps: f64) -> String {
    BitRate::from_bps(bps as u64).map_or_else(|| "0 bit/s".into(), |rate| rate.to_string())
}

/// Returns a probability as people write it.
pub(super) fn per_cent(probability: f64) -> String {
    format!("{} %", digits(probability * 100.0))
}

/// Returns seconds as people write them.
pub(super) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s > 0.0 => (s * 1e6, "us"),
        _ => (0.0, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Returns three significant digits, with at most nine decimal places and no trailing zeros in a fraction.
fn digits(value: f64) -> String {
    if value.abs() >= 100.0 || value == 0.0 {
        return format!("{value:.0}");
    }
    let places = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
