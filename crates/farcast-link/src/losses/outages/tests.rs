use super::*;
use crate::losses::tests::{assert_fits, assert_share, losers, stream};
use crate::outage::Window;

fn random(between: f64, length: OutageLength, common: bool) -> RandomOutages {
    RandomOutages { between: Span::from_secs_f64(between), length, common }
}

fn fixed(seconds: f64) -> OutageLength {
    OutageLength::Fixed(Span::from_secs_f64(seconds))
}

fn exponential_length(seconds: f64) -> OutageLength {
    OutageLength::Exponential(Span::from_secs_f64(seconds))
}

fn process(config: RandomOutages, receivers: u32, label: u64) -> Outages {
    Outages::random(config, receivers, stream(label)).expect("valid")
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

/// Counts over 200,000 pairs of frames `gap` apart, the pairs of one receiver far apart. Returns the numbers of
/// receivers that were out at the first frame, at both, and at the second only.
fn pairs(process: &mut Outages, gap: f64) -> (u64, u64, u64) {
    let (mut first_out, mut both, mut second_only) = (0, 0, 0);
    for pair in 0..200_000 / process.receivers {
        let start = f64::from(pair) * 1000.0;
        let first = losers(process, at(start), 1, Among::All);
        let second = losers(process, at(start + gap), 1, Among::All);
        let stayed = first.iter().filter(|who| second.binary_search(who).is_ok()).count();
        first_out += first.len() as u64;
        both += stayed as u64;
        second_only += (second.len() - stayed) as u64;
    }
    (first_out, both, second_only)
}

#[test]
fn exponential_outages_follow_the_two_state_chain() {
    let (up, down) = (5.0f64, 2.0f64);
    let share = down / (up + down);
    // With 200,000 receivers there is but one pair, and it begins in the state that was drawn at the start.
    for (label, gap, receivers) in
        [(200, 0.3, 1000), (201, 2.0, 1000), (202, 9.0, 1000), (203, 60.0, 1000), (204, 2.0, 200_000)]
    {
        let mut outages = process(random(up, exponential_length(down), false), receivers, label);
        let (first, both, second_only) = pairs(&mut outages, gap);
        let kept = (-gap * (1.0 / up + 1.0 / down)).exp();
        assert_share(first, 200_000, share);
        assert_share(both, first, share + (1.0 - share) * kept);
        assert_share(second_only, 200_000 - first, share * (1.0 - kept));
    }
}

#[test]
fn fixed_outages_follow_the_renewal_equation() {
    let (up, down) = (5.0f64, 2.0f64);
    let share = down / (up + down);
    for (label, gap, receivers) in [(210, 0.3, 1000), (211, 1.1, 1000), (212, 2.0, 1000), (213, 1.1, 200_000)]
    {
        let mut outages = process(random(up, fixed(down), false), receivers, label);
        let (first, both, second_only) = pairs(&mut outages, gap);
        // What is left of an outage is uniform; then the next begins within the rest of the gap, and lasts beyond it.
        let kept = 1.0 - up / down * (1.0 - (-gap / up).exp());
        assert_share(first, 200_000, share);
        assert_share(both, first, kept);
        // In the stationary state as many are out at the second as at the first.
        assert_share(second_only, 200_000 - first, share * (1.0 - kept) / (1.0 - share));
    }
}

/// One site by single events, as a timeline of outages.
fn naive_timeline(up: f64, down: f64, stream: &mut RandomStream) -> Vec<(f64, f64)> {
    let mut timeline = Vec::new();
    let mut start =
        if stream.chance(down / (up + down)) { -down * stream.unit() } else { exponential(stream) * up };
    while start < 60.0 {
        timeline.push((start, start + down));
        start += down - up * (1.0 - stream.unit()).ln();
    }
    timeline
}

#[test]
fn long_gaps_follow_a_naive_timeline() {
    let (up, down) = (1.5, 2.0);
    for (label, gap) in [(220, 4.7), (221, 50.0)] {
        let mut outages = process(random(up, fixed(down), false), 1000, label);
        let (first, both, _) = pairs(&mut outages, gap);
        let mut naive = stream(label + 50);
        let (mut naive_first, mut naive_both) = (0u32, 0u32);
        for _ in 0..200_000 {
            let timeline = naive_timeline(up, down, &mut naive);
            let out = |t: f64| timeline.iter().any(|&(start, end)| start <= t && t < end);
            naive_first += u32::from(out(0.0));
            naive_both += u32::from(out(0.0) && out(gap));
        }
        let (a, b) = (both as f64 / first as f64, f64::from(naive_both) / f64::from(naive_first));
        let sigma = (b * (1.0 - b) * (1.0 / first as f64 + 1.0 / f64::from(naive_first))).sqrt();
        assert!((a - b).abs() < 4.0 * sigma, "{a} {b} {sigma}");
    }
}

/// Returns the number of frames, 10 ms apart, in each outage, and in each time between two.
fn observed(config: RandomOutages, label: u64) -> (Vec<usize>, Vec<usize>) {
    let mut outages = process(config, 1, label);
    let mut out =
        |frame: u64| !losers(&mut outages, Time::from_nanos(frame * 10_000_000), 1, Among::All).is_empty();
    let trace: Vec<bool> = (0..1_000_000).map(&mut out).collect();
    let phases: Vec<&[bool]> = trace.chunk_by(|a, b| a == b).collect();
    // The first and the last were under way before or go on.
    let inner = &phases[1..phases.len() - 1];
    let lengths = |out: bool| inner.iter().filter(|phase| phase[0] == out).map(|phase| phase.len()).collect();
    (lengths(true), lengths(false))
}

/// Numbers of frames from 1 agree with a geometric distribution whose next frame ends it with probability `end`.
fn assert_geometric(frames: &[usize], end: f64) {
    let mut counts = [0u64; 100];
    for &frames in frames {
        counts[frames.min(100) - 1] += 1;
    }
    let n = frames.len() as f64;
    let mut expected: Vec<f64> = (0..100).map(|k| n * end * (1.0 - end).powi(k)).collect();
    expected[99] = n * (1.0 - end).powi(99);
    assert_fits(&counts, &expected);
}

#[test]
fn fixed_outages_have_their_length_and_the_time_between_is_exponential() {
    let (step, between) = (0.01, 0.07);
    let (lengths, gaps) = observed(random(between, fixed(0.05), false), 230);
    // An outage takes five frames; two are seen as one where no frame falls between them.
    assert!(lengths.iter().all(|length| length % 5 == 0));
    let outages = lengths.iter().sum::<usize>() / 5;
    let unseen = 1.0 - between / step * (1.0 - (-step / between).exp());
    assert_share((outages - lengths.len()) as u64, outages as u64, unseen);
    // Once a frame has fallen between, what is left is exponential, whenever the outage ended.
    assert_geometric(&gaps, 1.0 - (-step / between).exp());
}

#[test]
fn exponential_outages_end_as_they_begin() {
    let (step, up, down) = (0.01, 0.07, 0.05);
    let (lengths, gaps) = observed(random(up, exponential_length(down), true), 231);
    let moved = 1.0 - (-step * (1.0 / up + 1.0 / down)).exp();
    assert_geometric(&lengths, up / (up + down) * moved);
    assert_geometric(&gaps, down / (up + down) * moved);
}

#[test]
fn common_outages_cut_off_everyone_together() {
    let mut outages = process(random(3.0, fixed(1.0), true), 5, 240);
    let mut out = 0;
    for second in 0..20_000u32 {
        let now = at(f64::from(second) * 50.0);
        let all = losers(&mut outages, now, 1, Among::All);
        let some = losers(&mut outages, now, 1, Among::These(&[1, 4]));
        match all.len() {
            0 => assert_eq!(some, []),
            _ => assert_eq!((all, some), (alloc::vec![0, 1, 2, 3, 4], alloc::vec![1, 4])),
        }
        out += u64::from(!losers(&mut outages, now, 1, Among::These(&[0])).is_empty());
    }
    assert_share(out, 20_000, 0.25);
    assert_eq!(losers(&mut process(random(1.0, fixed(9.0), true), 0, 241), at(1.0), 1, Among::All), []);
}

#[test]
fn a_subset_is_told_what_all_would_be() {
    let mut whole = process(random(3.0, fixed(1.0), false), 60, 242);
    let mut part = whole.clone();
    let mut pick = stream(243);
    for frame in 0..3000u32 {
        let now = at(f64::from(frame) * 0.37);
        let some: Vec<u32> = (0..60).filter(|_| pick.chance(0.3)).collect();
        let mut expected = losers(&mut whole, now, 1, Among::All);
        expected.retain(|who| some.contains(who));
        assert_eq!(losers(&mut part, now, 1, Among::These(&some)), expected);
    }
    assert!(!whole.is_memoryless());
}

#[test]
fn scheduled_outages_take_all_and_end() {
    let window = Window { start: at(2.0), length: Span::from_secs(1) };
    let schedule = Schedule::new(&[window], Some(Span::from_secs(10))).expect("valid");
    let mut outages = Outages::scheduled(schedule, 3);
    assert!(outages.is_memoryless());
    for (seconds, out) in
        [(1.999, false), (2.0, true), (2.999, true), (3.0, false), (12.5, true), (13.0, false)]
    {
        let expected: &[u32] = if out { &[0, 1, 2] } else { &[] };
        assert_eq!(losers(&mut outages, at(seconds), 1, Among::All), expected, "at {seconds}");
        assert_eq!(losers(&mut outages, at(seconds), 1, Among::These(&[1])).len(), usize::from(out));
    }
}

#[test]
fn an_empty_time_is_refused() {
    let refuse = |config| Outages::random(config, 1, stream(0)).map(|_| ());
    assert_eq!(refuse(random(0.0, fixed(1.0), false)), Err(LinkError::ZeroMean("time between outages")));
    assert_eq!(refuse(random(1.0, fixed(0.0), false)), Err(LinkError::ZeroOutage));
    assert_eq!(refuse(random(1.0, exponential_length(0.0), false)), Err(LinkError::ZeroOutage));
    assert_eq!(refuse(random(1.0, exponential_length(1.0), false)), Ok(()));
}

#[test]
fn extremes_neither_panic_nor_take_long() {
    let (nanosecond, forever) = (Span::from_nanos(1), Span::MAX);
    for (between, span) in
        [(nanosecond, nanosecond), (nanosecond, forever), (forever, nanosecond), (forever, forever)]
    {
        for length in [OutageLength::Fixed(span), OutageLength::Exponential(span)] {
            let mut outages = process(RandomOutages { between, length, common: false }, 10, 250);
            for now in
                [Time::ZERO, Time::from_nanos(1), at(1.0), at(1e9), Time::NEVER, Time::NEVER, Time::ZERO]
            {
                assert!(losers(&mut outages, now, 1, Among::All).len() <= 10);
            }
        }
    }
}

#[test]
fn after_a_very_long_time_the_state_is_stationary() {
    let mut outages = process(random(0.003, fixed(0.001), false), 100_000, 251);
    losers(&mut outages, Time::ZERO, 1, Among::All);
    let later = losers(&mut outages, at(1e6), 1, Among::All);
    assert_share(later.len() as u64, 100_000, 0.25);
}
