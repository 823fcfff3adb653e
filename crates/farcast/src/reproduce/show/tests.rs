use super::*;
use crate::reproduce::PAPERS;
use crate::reproduce::row::{Judged, Rule};

fn row(place: (&str, &str, &str), published: Option<f64>, verdict: Verdict) -> Row {
    let rule = Rule { sentence: "a rule", agrees_within: published.map(|it| (it - 1.0, it + 1.0)) };
    let judged = Judged { published, farcast: 2.346, ci95_half_width: Some(0.5), verdict, rule };
    Row::new("mftp-bgan", place, 2, judged)
}

fn results() -> Vec<Results> {
    let rows = vec![
        row(("delay, s", "all", "n = 1"), Some(2.5), Verdict::Agrees),
        row(("delay, s", "all", "n = 2"), Some(9.0), Verdict::Differs),
        row(("passes", "some", ""), None, Verdict::NotPublished),
        row(("least", "some", ""), Some(4.0), Verdict::Undetermined),
    ];
    vec![Results { paper: &PAPERS[0], seed: 7, replications: 100, rows }]
}

#[test]
fn each_case_is_a_table_and_the_verdicts_are_counted() {
    let text = text(&results());
    let expected = "\
                 published  farcast  95 % interval  agrees within  verdict
--------------------------------------------------------------------------
delay, s  n = 1        2.5     2.35         \u{b1} 0.50   1.50 .. 3.50  agrees
          n = 2          9     2.35         \u{b1} 0.50  8.00 .. 10.00  differs";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\n\nsome\n\n"), "{text}");
    assert!(text.contains("100 replications of each setting, seed 7"), "{text}");
    assert!(text.contains("Rules:\n\n- a rule\n\n"), "each rule stands once: {text}");
    assert!(
        text.contains("3 numbers compared: 1 agree, 1 differ, 1 undetermined; not published: 1."),
        "{text}"
    );
}

#[test]
fn markdown_has_the_same_cells() {
    let page = markdown(&results());
    assert!(
        page.contains("\n| delay, s | n = 1 | 2.5 | 2.35 | \u{b1} 0.50 | 1.50 .. 3.50 | agrees |\n"),
        "{page}"
    );
    assert!(page.contains("\n| --- | --- | --: | --: | --: | --: | --- |\n"), "{page}");
    assert!(page.contains("| passes |  | - | 2.35 | \u{b1} 0.50 | - | not published |"), "{page}");
}
