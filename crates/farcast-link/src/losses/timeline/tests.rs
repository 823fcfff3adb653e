use super::*;
use crate::losses::Bernoulli;
use farcast_core::Span;

fn timeline(text: &str, period: Option<Span>) -> Arc<Timeline> {
    Arc::new(Timeline::parse(text, period).expect("valid"))
}

fn losers(process: &mut impl Losses, now: u64, among: Among<'_>) -> Vec<u32> {
    let mut lost = Vec::new();
    process.draw(Time::from_nanos(now), 1000, among, &mut lost);
    lost
}

#[test]
fn the_probability_is_that_of_the_time() {
    let steps = timeline("time_s,per\n0,0\n1,1\n2,0.1\n", Some(Span::from_secs(4)));
    let mut process = TimelineLoss::new(steps, 2000, RandomStream::derive(5, &[]));
    assert!(process.is_memoryless());
    let everyone: Vec<u32> = (0..2000).collect();
    let second = 1_000_000_000;
    for lap in 0..20 {
        let begin = lap * 4 * second;
        assert_eq!(losers(&mut process, begin, Among::All), []);
        assert_eq!(losers(&mut process, begin + second - 1, Among::All), []);
        assert_eq!(losers(&mut process, begin + second, Among::All), everyone);
        assert_eq!(losers(&mut process, begin + 2 * second - 1, Among::These(&[3, 7])), [3, 7]);
        // Of 2000, 200 with a standard deviation of 13.4: within four.
        let some = losers(&mut process, begin + 2 * second, Among::All);
        assert!((147..=253).contains(&some.len()), "{}", some.len());
        assert!(some.is_sorted());
        let asked = [1, 5, 9];
        assert!(
            losers(&mut process, begin + 4 * second - 1, Among::These(&asked))
                .iter()
                .all(|r| asked.contains(r))
        );
    }
}

#[test]
fn losses_have_their_mean_and_are_independent_of_each_other() {
    let steps = timeline("time_s,per\n0,0.02\n10,0.2\n", None);
    let mut process = TimelineLoss::new(steps, 1, RandomStream::derive(6, &[]));
    for (from, p) in [(0, 0.02), (10_000_000_000, 0.2)] {
        let n = 100_000;
        let fates: Vec<bool> =
            (0..n).map(|k| !losers(&mut process, from + k * 100_000, Among::All).is_empty()).collect();
        let share = |count: usize, of: f64| count as f64 / of;
        let mean = share(fates.iter().filter(|lost| **lost).count(), n as f64);
        // Four standard deviations of a mean of n fates, and of products of neighbours.
        assert!((mean - p).abs() < 4.0 * (p * (1.0 - p) / n as f64).sqrt(), "{mean} for {p}");
        let pairs = share(fates.windows(2).filter(|pair| pair[0] && pair[1]).count(), n as f64 - 1.0);
        let variance = p * p * (1.0 - p * p) + 2.0 * p * p * p * (1.0 - p);
        assert!((pairs - p * p).abs() < 4.0 * (variance / n as f64).sqrt(), "{pairs} for {}", p * p);
    }
}

#[test]
fn a_constant_timeline_is_bernoulli_and_one_without_losses_loses_nothing() {
    let stream = RandomStream::derive(7, &[1]);
    let p = Probability::new(0.05).expect("in range");
    let mut constant = TimelineLoss::new(timeline("time_s,per\n0,0.05\n9,0.05\n", None), 50, stream.clone());
    let mut bernoulli = Bernoulli::new(p, 50, stream.clone());
    for k in 0..1000 {
        let now = k * 100_000_000;
        assert_eq!(losers(&mut constant, now, Among::All), losers(&mut bernoulli, now, Among::All));
    }
    let mut silent = TimelineLoss::new(timeline("time_s,delay_s\n0,0.5\n", None), 50, stream);
    assert!((0..1000).all(|k| losers(&mut silent, k, Among::All).is_empty()));
}
