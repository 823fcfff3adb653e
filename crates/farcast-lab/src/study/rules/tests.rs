use super::*;

fn summary(mean: f64, sd: f64, n: u64) -> Summary {
    Summary { n, mean, sd: Some(sd), ci95_half_width: None, min: 0.0, max: 0.0, quantiles: None }
}

#[test]
fn a_printed_number_must_round_to_what_was_printed() {
    let verdict = |published, ours| printed(published, ours, 3).verdict;
    assert_eq!(verdict(7.845, 7.845_013), Verdict::Agrees);
    assert_eq!(verdict(7.845, 7.844_51), Verdict::Agrees);
    assert_eq!(verdict(7.845, 7.8456), Verdict::Differs);
    assert_eq!(verdict(7.845, 7.8444), Verdict::Differs);
}

/// With very many runs of ours the half width is 1.96 sd / sqrt(runs): 4.899 at sd 5 and 4 runs.
#[test]
fn a_mean_is_judged_by_the_noise_of_the_published_runs() {
    let ours = summary(50.0, 5.0, 100_000_000);
    let verdict = |published| mean(published, 4, &ours).unwrap().verdict;
    assert_eq!([54.89, 54.91, 45.11, 45.09].map(verdict), {
        use Verdict::{Agrees, Differs};
        [Agrees, Differs, Agrees, Differs]
    });
    let (low, high) = mean(50.0, 4, &ours).unwrap().rule.agrees_within.unwrap();
    assert!((low - 45.1).abs() < 1e-3 && (high - 54.9).abs() < 1e-3, "{low} {high}");
}

/// One replication has no spread, so there is nothing to judge by.
#[test]
fn a_mean_needs_two_replications() {
    let one = Summary { sd: None, ..summary(50.0, 0.0, 1) };
    assert_eq!(mean(50.0, 14, &one), Err(StatsError::TooFew { given: 1, needed: 2 }));
}

/// The 95 % range of 14 fair coins is 3 to 11: P(X <= 2) = 106 / 16384 and P(X <= 3) = 470 / 16384 (counted by hand:
/// 1 + 14 + 91, and 364 more).
#[test]
fn a_share_is_judged_as_a_count_of_the_published_runs() {
    let judge = |published| share(published, 14, 5_000_000, 10_000_000).unwrap();
    for (published, verdict) in [
        (21.0, Verdict::Agrees),
        (22.0, Verdict::Agrees),
        (14.0, Verdict::Differs),
        (79.0, Verdict::Agrees),
        (78.0, Verdict::Agrees),
        (86.0, Verdict::Differs),
    ] {
        assert_eq!(judge(published).verdict, verdict, "{published}");
    }
    let judged = judge(50.0);
    let (low, high) = judged.rule.agrees_within.unwrap();
    assert!((low - 300.0 / 14.0).abs() < 1e-9 && (high - 1100.0 / 14.0).abs() < 1e-9, "{low} {high}");
    assert!((judged.farcast - 50.0).abs() < 1e-12);
}

/// Count of 0 of 10: Clopper and Pearson's interval ends at 1 - 0.025^(1/10) = 30.85 %.
#[test]
fn our_share_has_the_exact_interval() {
    let (share, half) = our_share(0, 10).unwrap();
    let expected = 50.0 * (1.0 - 0.025_f64.powf(0.1));
    assert!(share == 0.0 && (half - expected).abs() < 1e-6, "{share} {half}");
}

/// Two categories and one published run: seen 0 and 9 times, with one half each, the shares are 0.05 and 0.95. The rare
/// category's p-value is its own probability, the other's is 1.
#[test]
fn what_we_have_not_seen_is_improbable_and_not_impossible() {
    assert!((distribution(&[1, 0], &[0, 9]).unwrap() - 0.05).abs() < 1e-12);
    assert!((distribution(&[0, 1], &[0, 9]).unwrap() - 1.0).abs() < 1e-12);
    // A category with no count on either side is left out.
    assert!((distribution(&[1, 0, 0], &[0, 9, 0]).unwrap() - 0.05).abs() < 1e-12);
}

fn compared(setting: f64, difference: f64, half: f64) -> Compared {
    Compared { setting, difference: (difference, half) }
}

/// Differences 1, 2, 3: mean 2, sd 1, and t(0.975, 2) = 4.302653 (tables), so the half width is 4.302653 / sqrt(3).
#[test]
fn differences_are_paired() {
    let found = Compared::of(6.0, &[11.0, 22.0, 33.0], &[10.0, 20.0, 30.0]).unwrap();
    assert!((found.difference.0 - 2.0).abs() < 1e-12, "{found:?}");
    assert!((found.difference.1 - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-5, "{found:?}");
    assert!(Compared::of(6.0, &[1.0], &[2.0]).is_err(), "one pair has no spread");
}

#[test]
fn an_optimum_stands_only_against_all_others() {
    let judge = |others: &[Compared]| {
        let judged = least_at(4.0, others);
        (judged.verdict, judged.farcast)
    };
    let (worse, unclear, better) =
        (compared(6.0, 2.0, 1.0), compared(1.0, -0.1, 1.0), compared(2.0, -2.0, 1.0));
    assert_eq!(judge(&[worse, compared(10.0, 5.0, 1.0)]), (Verdict::Agrees, 4.0));
    assert_eq!(judge(&[worse, unclear]), (Verdict::Undetermined, 1.0));
    assert_eq!(judge(&[worse, compared(1.0, 0.1, 1.0)]), (Verdict::Undetermined, 4.0));
    assert_eq!(judge(&[worse, unclear, better]), (Verdict::Differs, 2.0));
}

#[test]
fn growth_is_judged_step_by_step_behind_the_published_setting() {
    let judge = |steps: &[Compared]| {
        let judged = grows_from(4.0, steps);
        (judged.verdict, judged.farcast)
    };
    let up = |setting| compared(setting, 2.0, 1.0);
    assert_eq!(judge(&[compared(2.0, -2.0, 1.0), up(4.0), up(6.0)]), (Verdict::Agrees, 4.0));
    assert_eq!(judge(&[up(2.0), up(4.0), up(6.0)]), (Verdict::Agrees, 2.0));
    assert_eq!(judge(&[up(2.0), compared(4.0, 0.5, 1.0), up(6.0)]), (Verdict::Undetermined, 2.0));
    assert_eq!(judge(&[up(2.0), compared(4.0, -2.0, 1.0), up(6.0)]), (Verdict::Differs, 6.0));
}

/// Half of our runs take 2, half 3: all 14 of the paper's take 3 with about 2^-14, so a published minimum of 3 differs.
/// With 1 in 20: 0.95^14 = 0.49, so either minimum is likely.
#[test]
fn an_extreme_is_judged_by_how_often_so_many_runs_reach_it() {
    let runs = |twos: usize| {
        let mut all = vec![3_u64; 10_000];
        all[..twos].fill(2);
        vec![all]
    };
    let least = |published, twos| extreme(published, 14, &runs(twos), RangeEnd::Least).verdict;
    assert_eq!((least(2, 5000), least(3, 5000)), (Verdict::Agrees, Verdict::Differs));
    assert_eq!((least(2, 500), least(3, 500)), (Verdict::Agrees, Verdict::Agrees));
    assert_eq!((least(2, 1), least(3, 1)), (Verdict::Differs, Verdict::Agrees));
    let greatest = |published, twos| extreme(published, 14, &runs(twos), RangeEnd::Greatest).verdict;
    assert_eq!((greatest(3, 5000), greatest(2, 5000)), (Verdict::Agrees, Verdict::Differs));
    assert_eq!((greatest(2, 9500), greatest(3, 9500)), (Verdict::Agrees, Verdict::Agrees));
    assert_eq!((greatest(4, 5000), greatest(2, 9999)), (Verdict::Differs, Verdict::Agrees));
}

/// An extreme is reached if one of five settings reaches it in half of its runs, whatever the other four do.
#[test]
fn an_extreme_is_of_all_settings() {
    let mut settings = vec![vec![4_u64; 10_000]; 5];
    settings[3][..5000].fill(3);
    let judged = extreme(3, 14, &settings, RangeEnd::Least);
    assert_eq!((judged.verdict, judged.farcast), (Verdict::Agrees, 3.0));
    assert_eq!(judged.rule.agrees_within, Some((3.0, 3.0)));
}

/// One further run after k of n: (k + 1/2) / (n + 1). Two: times (k + 3/2) / (n + 2).
#[test]
fn further_runs_are_beta_binomial() {
    let ours = [2, 3, 3, 3];
    assert!((beyond(3, 1, &ours, RangeEnd::Least) - 3.5 / 5.0).abs() < 1e-12);
    assert!((beyond(3, 2, &ours, RangeEnd::Least) - 3.5 / 5.0 * 4.5 / 6.0).abs() < 1e-12);
    assert!((beyond(2, 1, &ours, RangeEnd::Greatest) - 1.5 / 5.0).abs() < 1e-12);
}
