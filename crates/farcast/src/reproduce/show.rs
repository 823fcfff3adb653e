//! Tables of results for a terminal.

use farcast_lab::study::Results;
use farcast_lab::study::tables::{ResultPart, ResultTable as Cells, parts};

use crate::table::{Align, Table};
use crate::text::Text;

/// Returns all results as text.
pub(super) fn text(results: &[Results]) -> Text {
    let text = parts(results).into_iter().map(|part| match part {
        ResultPart::Text(text) => Text::lines(text.lines()),
        ResultPart::Table(cells) => table(cells),
    });
    Text::paragraphs(text)
}

fn table(Cells { heading, rows }: Cells) -> Text {
    let align = |column| if Cells::is_of_numbers(column) { Align::Right } else { Align::Left };
    let heading: Vec<_> = (0..).zip(heading).map(|(column, text)| (text, align(column))).collect();
    let mut table = Table::new(&heading);
    for row in rows {
        table.row(row);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let heading = ["", "", "published", "farcast", "95 % interval", "agrees within", "verdict"];
        let row = |cells: [&str; 7]| cells.map(str::to_owned);
        let cells = Cells {
            heading,
            rows: vec![
                row(["delay, s", "n = 1", "2.5", "2.35", "\u{b1} 0.50", "1.50 .. 3.50", "agrees"]),
                row(["", "n = 2", "9", "2.35", "\u{b1} 0.50", "8.00 .. 10.00", "differs"]),
            ],
        };
        let expected = "                 published  farcast  95 % interval  agrees within  verdict
--------------------------------------------------------------------------
delay, s  n = 1        2.5     2.35         \u{b1} 0.50   1.50 .. 3.50  agrees
          n = 2          9     2.35         \u{b1} 0.50  8.00 .. 10.00  differs";
        assert_eq!(table(cells).to_string(), expected);
    }
}
