use super::*;

fn table(columns: &[(&str, &[f64])]) -> Table {
    let column = |(name, values): &(&str, &[f64])| ((*name).to_owned(), Column::Numbers(values.to_vec()));
    Table::of_columns(columns.iter().map(column).collect())
}

fn options(paired: bool) -> Options {
    Options { columns: Vec::new(), paired, level: 0.95 }
}

/// Expected numbers are from scipy 1.17: `ttest_ind(equal_var=False)` and `ttest_rel`, and their
/// `confidence_interval()`.
const A: [f64; 6] = [10.1, 11.4, 9.8, 12.0, 10.9, 11.1];
const B: [f64; 6] = [10.6, 12.1, 10.2, 12.4, 11.5, 11.3];

#[test]
fn common_random_numbers_show_what_independent_ones_do_not() {
    let (a, b) = (table(&[("completion_time_s", &A)]), table(&[("completion_time_s", &B)]));
    let apart = compare(&a, &b, &options(false)).unwrap().all;
    let together = compare(&a, &b, &options(true)).unwrap().all;
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
    let all = compare(&rows(0.0), &rows(10.0), &options(false)).unwrap().all;
    let shown: Vec<_> = all.iter().map(|one| (one.settings[0].1.as_str(), one.differs)).collect();
    assert_eq!(shown, [("4", false), ("6", true)]);
    assert!(all[1].p_adjusted > all[1].p, "two comparisons: {all:?}");
}

/// Returns the table of two points with three replications each, with these times.
fn sweep(values: &[f64; 2], times: &[f64; 6]) -> Table {
    let of_each = |values: &[f64; 2]| -> Vec<f64> { values.iter().flat_map(|&value| [value; 3]).collect() };
    let incomplete: Vec<f64> = times.iter().map(|time| f64::from(u8::from(time.is_nan()))).collect();
    table(&[
        ("point", &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        ("n", &of_each(values)),
        ("replication", &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]),
        ("completion_time_s", times),
        ("incomplete", &incomplete),
    ])
}

#[test]
fn one_point_that_was_not_finished_does_not_hide_the_others() {
    let times = [1.0, 2.0, 3.1, f64::NAN, f64::NAN, 6.0];
    let (a, b) = (sweep(&[4.0, 6.0], &times), sweep(&[4.0, 6.0], &[11.0, 12.0, 13.1, 4.0, 5.0, 6.0]));
    let compared = compare(&a, &b, &options(false)).unwrap();
    assert!(matches!(compared.all.as_slice(), [one] if one.settings[0].1 == "4" && one.differs));
    let said: Vec<_> = compared.left_out.iter().map(LeftOut::words).collect();
    assert_eq!(
        said,
        [
            "n = 6: completion_time_s: 2 of 3 replications of A and 0 of 3 of B were not finished, so there is no mean; give \
          them more time (time_limit), or compare how many receivers were left with --column incomplete"
        ]
    );
    let followed = Options { columns: vec!["incomplete".into()], ..options(false) };
    assert_eq!(compare(&a, &b, &followed).unwrap().all.len(), 2, "the advice can be followed");
}

#[test]
fn settings_that_one_alone_has_are_said() {
    let times = [1.0, 2.0, 3.1, 4.0, 5.0, 6.0];
    let compared =
        compare(&sweep(&[4.0, 6.0], &times), &sweep(&[4.0, 8.0], &times), &options(false)).unwrap();
    let said: Vec<_> = compared.left_out.iter().map(LeftOut::words).collect();
    assert_eq!(said, ["n = 6: only A has these settings", "n = 8: only B has these settings"]);
}

#[test]
fn equal_data_are_the_same() {
    let (a, flat) = (table(&[("completion_time_s", &A)]), table(&[("completion_time_s", &[2.5; 4])]));
    let words = |a: &Table, b: &Table, paired| compare(a, b, &options(paired)).unwrap().all[0].words();
    let each = "completion_time_s is the same in A and B in each pair: 10.88 in the mean";
    assert_eq!(words(&a, &a, true), each);
    let every = "completion_time_s is the same in A and B in every replication: 2.500 in the mean";
    assert_eq!((words(&flat, &flat, false), words(&flat, &flat, true)), (every.into(), every.into()));
}

#[test]
fn degenerate_samples_give_sentences() {
    let nan = f64::NAN;
    for (a, b) in [
        (&[1.0, 1.0][..], &[2.0, 2.0][..]),
        (&[0.0, 0.0], &[0.0, 0.0]),
        (&[0.0, 0.0], &[0.0, 1e-300]),
        (&[1.0], &[2.0]),
        (&[nan, nan], &[1.0, 2.0]),
        (&[nan, 1.0], &[nan, 1.0]),
        (&[1e150, 1.0], &[1.0, 2.0]),
        (&[f64::INFINITY, 1.0], &[1.0, 2.0]),
    ] {
        for (name, paired) in
            [("completion_time_s", true), ("completion_time_s", false), ("x", true), ("x", false)]
        {
            let said = match compare(&table(&[(name, a)]), &table(&[(name, b)]), &options(paired)) {
                Ok(compared) => compared.all[0].words(),
                Err(error) => error.to_string(),
            };
            assert!(!said.contains("NaN") && !said.contains(" 0 or more would"), "{a:?} {b:?}: {said}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let time = table(&[("completion_time_s", &[1.0, f64::NAN])]);
    let whole = table(&[("completion_time_s", &[1.0, 2.0])]);
    let why = |a: &Table, b: &Table, paired| match compare(a, b, &options(paired)) {
        Err(CompareError::AllLeftOut(left_out)) => left_out[0].why.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&time, &whole, false), LeftOutReason::Unfinished { a: (1, 2), b: (0, 2), counted: false });
    let longer = table(&[("completion_time_s", &[1.0, 2.0, 3.0])]);
    assert_eq!(why(&longer, &whole, true), LeftOutReason::Unpaired { a: 3, b: 2 });
    let other = table(&[("naks", &[1.0, 2.0])]);
    assert_eq!(compare(&other, &whole, &options(false)), Err(CompareError::Nothing));
    let named = Options { columns: vec!["naks".into()], ..options(false) };
    assert!(matches!(compare(&other, &whole, &named), Err(CompareError::Column { .. })));
}
