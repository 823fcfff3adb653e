//! State of the view.

use std::collections::VecDeque;

use farcast_emu::control::{Answer, AnswerLine, Description, DirectionState, LinkDirection, Snapshot};

/// Length of the charts in seconds.
pub(super) const MEMORY_S: f64 = 60.0;
/// Most points that are kept: those of [`MEMORY_S`] at the fastest pace, and some more.
const MOST_POINTS: usize = 1000;

/// Throughput over one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// End of the interval, in seconds since the start.
    pub(super) time_s: f64,
    /// Delivered throughput in bit/s, forward and return.
    pub(super) delivered_bps: [f64; 2],
}

/// State of the emulation as last reported, and choices of the user.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) description: Description,
    pub(super) latest: Option<Snapshot>,
    pub(super) points: VecDeque<Point>,
    /// Last message to the user.
    pub(super) message: String,
    /// Direction that the keys change, or both for `None`.
    pub(super) way: Option<LinkDirection>,
    /// First terminal in the table.
    pub(super) scroll: usize,
    /// Set if the user was asked to confirm the end of the emulation.
    pub(super) stops: bool,
    /// Names of the requests that have no answer yet, in order.
    asked: VecDeque<String>,
}

impl View {
    /// Records that a request was sent. `what` names it in messages, and is empty for a silent one.
    pub(super) fn ask(&mut self, what: String) {
        self.asked.push_back(what);
    }

    /// Takes a line from the emulation.
    pub(super) fn hear(&mut self, line: AnswerLine) {
        let answer = match line {
            AnswerLine::Snapshot(snapshot) => return self.see(*snapshot),
            AnswerLine::Ok(Answer::Description(description)) => {
                self.description = *description;
                Ok(())
            }
            AnswerLine::Ok(_) => Ok(()),
            AnswerLine::Error(sentence) => Err(sentence),
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
        // The rates of the first snapshot are means since the start, which give no point of a chart.
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

    /// Returns the directions that the keys change, with their latest states.
    pub(super) fn chosen(&self) -> Vec<(LinkDirection, &DirectionState)> {
        let Some(latest) = &self.latest else { return Vec::new() };
        let both = [(LinkDirection::Forward, &latest.forward), (LinkDirection::Return, &latest.back)];
        both.into_iter().filter(|(way, _)| self.way.is_none_or(|chosen| chosen == *way)).collect()
    }

    /// Returns the throughput of a direction over the last minute in bit/s, as `columns` means from old to new. A
    /// column without a point is `None`.
    pub(super) fn chart(&self, way: LinkDirection, columns: usize) -> Vec<Option<u64>> {
        let now = self.latest.as_ref().map_or(0.0, |latest| latest.time_s);
        let mut sums = vec![(0.0, 0_u32); columns];
        for point in &self.points {
            let share = 1.0 - (now - point.time_s) / MEMORY_S;
            // The newest point lies at the right edge. A point on an edge belongs to the column on its left, whichever
            // way it was rounded. Casts of values outside saturate.
            let column = ((share * columns as f64 - 1e-6).ceil() as usize).clamp(1, columns.max(1)) - 1;
            if let Some((sum, count)) = sums.get_mut(column) {
                *sum += point.delivered_bps[way as usize];
                *count += 1;
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| (sum / f64::from(count)) as u64)).collect()
    }
}
