//! Chodorek and Chodorek, "PGM-based reliable multicast data dissemination in satellite IP networks".
//!
//! It has figures 2 to 5 over the shipped scenario, and judges the paper's claims by rules. A parameter that the
//! paper does not give has one value in all figures; a claim that depends on it is also judged for other values.

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
    plots: plots::of,
};

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let cells = Cells::new(runner);
    let mut rows = figures::rows(&cells)?;
    rows.extend(claims::rows(&cells)?);
    Ok(rows)
}
