//! Chodorek and Chodorek, "PGM-based reliable multicast data dissemination in satellite IP networks".
//!
//! Its figures 2 to 5 over the shipped scenario, and its claims judged by rules. What it does not say is a setting that
//! is the same in all figures; where a claim hangs on one, it is judged for other values beside that.

mod cell;
mod claims;
mod figures;
pub(super) mod plots;
mod setup;

use crate::study::{Row, Runner, Study, StudyError};

use cell::Cells;

pub(super) const STUDY: Study = Study {
    name: "pgm-satellite",
    citation: "A. Chodorek and R. R. Chodorek, PGM-based reliable multicast data dissemination in satellite IP networks",
    settings: 179,
    replications: (4, 2),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
};

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let cells = Cells::new(runner);
    let mut rows = figures::rows(&cells)?;
    rows.extend(claims::rows(&cells)?);
    Ok(rows)
}
