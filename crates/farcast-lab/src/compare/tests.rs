use super::*;

fn table(columns: &[(&str, &[f64])]) -> Table {
    let column = |(name, values): &(&str, &[f64])| ((*name).to_owned(), Column::Numbers(values.to_vec()));
    Table::of_columns(columns.iter().map(column).collect())
}

fn options(paired: bool) -> Options {
    Options { columns: Vec::new(), paired, level: 0.95 }
}

/// Worked by scipy 1.17 `ttest_ind(equal_var=False)` and `ttest_rel`, and their `confidence_interval()`.
const A: [f64; 6] = [10.1, 11.4, 9.8, 12.0, 10.9, 11.1];
const B: [f64; 6] = [10.6, 12.1, 10.2, 12.4, 11.5, 11.3];

#[test]
fn common_random_numbers_show_what_independent_ones_do_not() {
    let (a, b) = (table(&[("completion_time_s", &A)]), table(&[("completion_time_s", &B)]));
    let apart = compare(&a, &b, &options(false)).unwrap();
    let together = compare(&a, &b, &options(true)).unwrap();
    let close = |value: f64, expected: f64| (value - expected).abs() < 1e-9 * expected.abs().max(1e-3);
    assert!(close(apart[0].difference, 0.466_666_666_666_666_5), "{apart:?}");
    assert!(!apart[0].differs && together[0].differs, "{apart:?} {together:?}");
    assert!(close(together[0].p, P_PAIRED), "{together:?}");
    assert!(close(apart[0].p, P_WELCH), "{apart:?}");
    let words = together[0].words();
    assert!(
        words.starts_with("completion_time_s is 0.4667 more in B than in A (4.3 % of it), 95 % interval"),
        "{words}"
    );
    assert!(
        apart[0].words().contains("does not differ for sure: 10.88 in A, 11.35 in B"),
        "{}",
        apart[0].words()
    );
}

const P_PAIRED: f64 = 0.001_262_161_779_623_473;
const P_WELCH: f64 = 0.354_270_093_944_558_5;

#[test]
fn sweeps_are_compared_setting_by_setting() {
    let rows = |shift: f64| {
        table(&[
            ("point", &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
            ("n", &[4.0, 4.0, 4.0, 6.0, 6.0, 6.0]),
            ("replication", &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]),
            ("completion_time_s", &[1.0, 2.0, 3.1, 4.0 + shift, 5.0 + shift, 6.3 + shift]),
        ])
    };
    let all = compare(&rows(0.0), &rows(10.0), &options(false)).unwrap();
    let shown: Vec<_> = all.iter().map(|one| (one.settings[0].1.as_str(), one.differs)).collect();
    assert_eq!(shown, [("4", false), ("6", true)]);
    assert!(all[1].p_adjusted > all[1].p, "two comparisons: {all:?}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let time = table(&[("completion_time_s", &[1.0, f64::NAN])]);
    let whole = table(&[("completion_time_s", &[1.0, 2.0])]);
    assert!(matches!(
        compare(&time, &whole, &options(false)),
        Err(CompareError::Unfinished { a: 1, b: 0, .. })
    ));
    let longer = table(&[("completion_time_s", &[1.0, 2.0, 3.0])]);
    assert!(matches!(
        compare(&longer, &whole, &options(true)),
        Err(CompareError::Unpaired { a: 3, b: 2, .. })
    ));
    let other = table(&[("naks", &[1.0, 2.0])]);
    assert_eq!(compare(&other, &whole, &options(false)), Err(CompareError::Nothing));
    let named = Options { columns: vec!["naks".into()], ..options(false) };
    assert!(matches!(compare(&other, &whole, &named), Err(CompareError::Column { .. })));
}
