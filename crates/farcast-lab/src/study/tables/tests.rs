use super::*;
use crate::study::{Judged, RowPlace, Rule};

fn row([item, row, column]: [&str; 3], published: Option<f64>, verdict: Verdict) -> Row {
    let rule = Rule { sentence: "a rule", agrees_within: published.map(|it| (it - 1.0, it + 1.0)) };
    let judged = Judged { published, farcast: 2.346, ci95_half_width: Some(0.5), verdict, rule };
    Row::new("mftp-bgan", RowPlace { item, row, column }, 2, judged)
}

fn results() -> Vec<Results> {
    let rows = vec![
        row(["delay, s", "all", "n = 1"], Some(2.5), Verdict::Agrees),
        row(["delay, s", "all", "n = 2"], Some(9.0), Verdict::Differs),
        row(["passes", "some", ""], None, Verdict::NotPublished),
        row(["least", "some", ""], Some(4.0), Verdict::Undetermined),
    ];
    let (name, citation, columns) = ("mftp-bgan", "somebody, somewhere", ["published", "farcast"]);
    vec![Results { name, citation, columns, seed: 7, replications: Some(100), rows, plots: Vec::new() }]
}

#[test]
fn each_case_is_a_table_and_the_verdicts_are_counted() {
    let parts = parts(&results());
    let cells = |cells: [&str; COLUMNS]| cells.map(str::to_owned);
    let text = |text: &str| ResultPart::Text(text.to_owned());
    let heading = ["", "", "published", "farcast", "95 % interval", "agrees within", "verdict"];
    let expected = [
        text("mftp-bgan: somebody, somewhere; 100 replications of each setting, seed 7"),
        text("all"),
        ResultPart::Table(ResultTable {
            heading,
            rows: vec![
                cells(["delay, s", "n = 1", "2.5", "2.35", "\u{b1} 0.50", "1.50 .. 3.50", "agrees"]),
                // An item is named once.
                cells(["", "n = 2", "9", "2.35", "\u{b1} 0.50", "8.00 .. 10.00", "differs"]),
            ],
        }),
        text("some"),
        ResultPart::Table(ResultTable {
            heading,
            rows: vec![
                cells(["passes", "", "-", "2.35", "\u{b1} 0.50", "-", "not published"]),
                cells(["least", "", "4", "2.35", "\u{b1} 0.50", "3.00 .. 5.00", "undetermined"]),
            ],
        }),
        text("Rules:\n\n- a rule"),
        text(
            "3 numbers compared: 1 agree, 1 differ, 1 undetermined; not published: 1. Of like and like, about one \
             comparison in twenty differs by chance.",
        ),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn without_chance_nothing_is_said_of_it() {
    let results = results().into_iter().map(|one| Results { replications: None, ..one });
    let page = markdown(&results.collect::<Vec<_>>());
    assert!(page.contains("somewhere; by its formulas, no chance is in them\n"), "{page}");
    assert!(page.ends_with("not published: 1.\n"), "{page}");
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
