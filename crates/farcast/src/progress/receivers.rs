//! Progress of many receivers: how many have confirmed, how long the others may take, and the few that have a line.

use std::collections::{BTreeMap, VecDeque};

use farcast_core::{Span, Time};
use farcast_transfer::send::Tally;

/// Interval between samples of the confirmations.
const SAMPLE_EVERY: Span = Span::from_secs(1);
/// Samples from which the rate of confirmations is taken.
const SAMPLES: usize = 30;
/// Fewest confirmations that tell a rate.
const FEWEST: u64 = 2;
/// Most rows of a table of receivers.
pub(crate) const MOST_ROWS: usize = 16;
/// Most lines of one kind about single receivers.
const MOST_ALIKE: usize = 10;

/// Confirmations of the last half minute, which tell how long the rest may take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confirmations {
    /// Times, each with the number of confirmations then, the earliest first.
    samples: VecDeque<(Time, u64)>,
}

impl Confirmations {
    /// Returns the count in words, with the time that is left if the rate so far tells it.
    pub(crate) fn words(&mut self, now: Time, tally: Tally) -> String {
        let count = format!("{} of {} confirmed", grouped(tally.confirmed), grouped(tally.known));
        let gone = (tally.gone > 0).then(|| format!("{} gone", grouped(tally.gone)));
        let left = self.time_left(now, tally).map(|left| format!("{} left", in_seconds(left)));
        [Some(count), gone, left].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn time_left(&mut self, now: Time, tally: Tally) -> Option<Span> {
        let last = self.samples.back();
        if last.is_none_or(|&(at, _)| now.since(at) >= SAMPLE_EVERY) {
            self.samples.push_back((now, tally.confirmed));
            if self.samples.len() > SAMPLES {
                self.samples.pop_front();
            }
        }
        // The last sample before the first fresh confirmation begins the count.
        let &(_, old) = self.samples.front()?;
        let &(began, before) = self.samples.iter().rfind(|(_, count)| *count == old)?;
        let (fresh, elapsed) = (tally.confirmed.saturating_sub(before), now.since(began));
        if fresh < FEWEST || elapsed < SAMPLE_EVERY || waited_for(tally) == 0 {
            return None;
        }
        Some(Span::from_secs_f64(elapsed.as_secs_f64() * waited_for(tally) as f64 / fresh as f64))
    }
}

/// Returns the number of receivers that are waited for.
fn waited_for(tally: Tally) -> u64 {
    tally.known.saturating_sub(tally.confirmed + tally.gone)
}

/// Returns a span in whole seconds, or in minutes.
fn in_seconds(span: Span) -> String {
    let seconds = span.as_secs_f64().ceil();
    if seconds < 60.0 { format!("{seconds} s") } else { Span::from_secs_f64(seconds).to_string() }
}

/// Returns a number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| core::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// Returns `all` in their order, if they are at most `most`. Otherwise returns one less than `most` that `key` puts
/// first, and the number of the others.
pub(crate) fn few<T, K: Ord>(
    all: impl Iterator<Item = T>,
    most: usize,
    key: impl Fn(&T) -> K,
) -> (Vec<T>, usize) {
    let mut all: Vec<T> = all.collect();
    let count = all.len();
    let Some(first) = most.checked_sub(1).filter(|_| count > most) else {
        all.truncate(most);
        return (all, 0);
    };
    all.select_nth_unstable_by_key(first, &key);
    all.truncate(first);
    all.sort_by_key(key);
    (all, count - first)
}

/// Returns a line for each of the [few] receivers, and a last one that counts the others.
pub(crate) fn lines<T, K: Ord>(
    all: impl Iterator<Item = T>,
    most: usize,
    key: impl Fn(&T) -> K,
    line: impl Fn(T) -> String,
) -> Vec<String> {
    let (shown, more) = few(all, most, key);
    let rest = (more > 0).then(|| format!("  and {} more", grouped(more as u64)));
    shown.into_iter().map(line).chain(rest).collect()
}

/// Returns the sentence below a table without `more` receivers, or nothing.
pub(crate) fn left_out(more: usize) -> Option<String> {
    (more > 0)
        .then(|| format!("and {} more receivers; --json and --report have all of them", grouped(more as u64)))
}

/// Lines about single receivers, of which only the first few of each kind are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sparing(BTreeMap<&'static str, usize>);

impl Sparing {
    /// Returns the line about an event of this kind as it is shown, or `None` if it is left out.
    pub(crate) fn line(&mut self, kind: &'static str, line: String) -> Option<String> {
        let count = self.0.entry(kind).or_default();
        *count += 1;
        match (*count).cmp(&MOST_ALIKE) {
            std::cmp::Ordering::Less => Some(line),
            std::cmp::Ordering::Equal => Some(format!("{line}; and so on (--log has all)")),
            std::cmp::Ordering::Greater => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_rate_so_far_tells_the_time_left() {
        let mut so_far = Confirmations::default();
        let tally = |confirmed| Tally { known: 10_000, confirmed, gone: 0 };
        let mut said = String::new();
        // Nobody confirms for a minute; then 100 do each second.
        for tenth in 0..600 {
            said = so_far.words(at(tenth * 100), tally(0));
            assert_eq!(said, "0 of 10,000 confirmed");
        }
        for tenth in 600..1020 {
            said = so_far.words(at(tenth * 100), tally((tenth - 599) * 10));
        }
        assert_eq!(said, "4,200 of 10,000 confirmed, 58 s left");
        // The rate is that of the last half minute.
        for tenth in 1020..1500 {
            said = so_far.words(at(tenth * 100), tally(4200 + (tenth - 1019)));
        }
        assert_eq!(said, "4,680 of 10,000 confirmed, 8:52 min left");
        let all = Tally { known: 10_000, confirmed: 9_990, gone: 10 };
        assert_eq!(so_far.words(at(150_000), all), "9,990 of 10,000 confirmed, 10 gone");
    }

    #[test]
    fn the_slowest_have_the_lines() {
        let few = |most| lines([5, 3, 9, 1].into_iter(), most, |&n| n, |n| n.to_string());
        assert_eq!(few(4), ["5", "3", "9", "1"]);
        assert_eq!(few(3), ["1", "3", "  and 2 more"]);
        assert_eq!(few(1), ["  and 4 more"]);
        assert!(few(0).is_empty());
        let many = lines(0..2_000, 10, |&n| n % 7, |n| n.to_string());
        assert_eq!((many.len(), many[9].as_str()), (10, "  and 1,991 more"));
    }

    #[test]
    fn lines_of_one_kind_end() {
        let mut sparing = Sparing::default();
        let shown: Vec<String> = (0..100).filter_map(|n| sparing.line("done", n.to_string())).collect();
        assert_eq!(shown.len(), 10);
        assert_eq!(shown[9], "9; and so on (--log has all)");
        assert_eq!(sparing.line("lost", "a".into()).as_deref(), Some("a"));
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_048_576].map(grouped), ["0", "999", "1,000", "1,048,576"]);
    }
}
