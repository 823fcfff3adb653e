//! What the view knows.

use std::collections::VecDeque;

use farcast_emu::control::{Answer, Description, Line, Snapshot, Way, WayState};

/// How far back the charts go, in seconds.
pub(super) const MEMORY_S: f64 = 60.0;
/// The most points that are kept: those of [`MEMORY_S`] at the fastest pace, and some.
const MOST_POINTS: usize = 1000;

/// Throughput over one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// When the interval ended, in seconds since the start.
    pub(super) time_s: f64,
    /// What came out in bit/s, forward and back.
    pub(super) delivered_bps: [f64; 2],
}

/// What the view knows of the emulation, and what its user has done.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) description: Description,
    pub(super) latest: Option<Snapshot>,
    pub(super) points: VecDeque<Point>,
    /// The last thing to tell the user.
    pub(super) message: String,
    /// The way that the keys change; both without one.
    pub(super) way: Option<Way>,
    /// The first terminal that the table shows.
    pub(super) scroll: usize,
    /// Whether the user has been asked if the emulation is to end.
    pub(super) stops: bool,
    /// What was asked and is not answered yet, in order.
    asked: VecDeque<String>,
}

impl View {
    /// Notes that a request was sent; `what` is what to call it, or empty.
    pub(super) fn ask(&mut self, what: String) {
        self.asked.push_back(what);
    }

    /// Takes a line of the emulation.
    pub(super) fn hear(&mut self, line: Line) {
        let answer = match line {
            Line::Snapshot(snapshot) => return self.see(*snapshot),
            Line::Ok(Answer::Description(description)) => {
                self.description = *description;
                Ok(())
            }
            Line::Ok(_) => Ok(()),
            Line::Error(sentence) => Err(sentence),
        };
        let what = self.asked.pop_front().unwrap_or_default();
        match (answer, &*what) {
            (Ok(()), "") => {}
            (Ok(()), what) => self.message = format!("{what}: done"),
            (Err(sentence), "") => self.message = sentence,
            (Err(sentence), what) => self.message = format!("{what}: {sentence}"),
        }
    }

    fn see(&mut self, snapshot: Snapshot) {
        // The first one's rates are means since the start, which is no point of a chart.
        if self.latest.is_some() {
            let delivered_bps = [snapshot.forward.delivered_bps, snapshot.back.delivered_bps];
            self.points.push_back(Point { time_s: snapshot.time_s, delivered_bps });
        }
        let oldest = snapshot.time_s - MEMORY_S;
        while self.points.front().is_some_and(|point| point.time_s <= oldest)
            || self.points.len() > MOST_POINTS
        {
            self.points.pop_front();
        }
        self.scroll = self.scroll.min(snapshot.terminals.len().saturating_sub(1));
        self.latest = Some(snapshot);
    }

    /// The ways that the keys change, as they were last seen.
    pub(super) fn chosen(&self) -> Vec<(Way, &WayState)> {
        let Some(latest) = &self.latest else { return Vec::new() };
        let both = [(Way::Forward, &latest.forward), (Way::Return, &latest.back)];
        both.into_iter().filter(|(way, _)| self.way.is_none_or(|chosen| chosen == *way)).collect()
    }

    /// The throughput of a way over the last minute in bit/s, in `columns` means from old to new; where there is no
    /// point, none.
    pub(super) fn chart(&self, way: Way, columns: usize) -> Vec<Option<u64>> {
        let now = self.latest.as_ref().map_or(0.0, |latest| latest.time_s);
        let mut sums = vec![(0.0, 0_u32); columns];
        for point in &self.points {
            let share = 1.0 - (now - point.time_s) / MEMORY_S;
            // The newest point lies at the right edge, and a point on an edge belongs to its left, whichever way it was
            // rounded; casts of what lies outside saturate.
            let column = ((share * columns as f64 - 1e-6).ceil() as usize).clamp(1, columns.max(1)) - 1;
            if let Some((sum, count)) = sums.get_mut(column) {
                *sum += point.delivered_bps[way as usize];
                *count += 1;
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| (sum / f64::from(count)) as u64)).collect()
    }
}
