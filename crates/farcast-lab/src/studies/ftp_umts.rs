//! Teyeb, Boussif, Sørensen, Wigard and Mogensen, "Emulation Based Performance Investigation of FTP File Downloads over
//! UMTS Dedicated Channels" (ICN 2005).
//!
//! Both experiments have the parameters of the shipped scenario; only maxDAT, the two timers and the file change. The
//! paper does not say what a frame of its frame erasure rate is. The figures use an interval of 10 ms, and the claims
//! are judged for four readings.

mod cell;
mod claims;
mod figures;

use crate::study::{Row, Runner, Study, StudyError};

use cell::BearerCell;

pub(super) const STUDY: Study = Study {
    name: "ftp-umts",
    citation: "O. M. Teyeb, M. Boussif, T. B. Sørensen, J. Wigard and P. E. Mogensen, Emulation Based Performance \
               Investigation of FTP File Downloads over UMTS Dedicated Channels (ICN 2005)",
    settings: settings(&ALL) + (READINGS.len() as u64 - 1) * settings(&SOME),
    replications: (200, 4),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// Values of the timer status prohibit in figure 3, in ms, and below a very high value for claim T11.
const PROHIBITS: [u32; 3] = [50, 100, 150];
const VERY_HIGH: u32 = 1000;
/// Files of figure 4 in `KByte` of 1024 octets. The paper names only the least and the greatest.
const FILES: [u32; 4] = [1, 10, 50, 100];
/// Values of `maxDAT` in the figures of the main reading, and below those of the other readings.
const ALL: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const SOME: [u32; 5] = [1, 2, 3, 5, 10];

/// Reading of the paper's frame erasure rate: the unit that is erased.
#[derive(Clone, Copy)]
struct ErasureUnit {
    name: &'static str,
    /// Unit of erasure, in the scenario's words.
    unit: &'static str,
    /// Transmission time interval of the downlink, in ms.
    tti: u32,
}

/// Readings, the main one first: the reference bearer of TS 34.108 has 10 ms, and an interval is a frame of the
/// channel.
const READINGS: [ErasureUnit; 4] = [
    ErasureUnit { name: "interval of 10 ms", unit: "tti", tti: 10 },
    ErasureUnit { name: "interval of 20 ms", unit: "tti", tti: 20 },
    ErasureUnit { name: "PDU, 10 ms", unit: "pdu", tti: 10 },
    ErasureUnit { name: "PDU, 20 ms", unit: "pdu", tti: 20 },
];

/// Returns the number of settings of a reading.
const fn settings(max_dats: &[u32]) -> u64 {
    (max_dats.len() * (PROHIBITS.len() + FILES.len()) + 1) as u64
}

/// Parameters that are constant along a curve.
#[derive(Clone, Copy)]
struct CurveParameters {
    /// Timer poll, in ms; `prohibit` is the timer status prohibit, in ms.
    poll: u32,
    prohibit: u32,
    /// Size of the file in `KByte` of 1024 octets.
    file: u32,
}

/// A curve of a figure: a cell for each `maxDAT`, in ascending order.
struct Curve {
    line: CurveParameters,
    cells: Vec<BearerCell>,
}

impl Curve {
    fn simulate(
        runner: &Runner<'_>,
        reading: ErasureUnit,
        line: CurveParameters,
        max_dats: &[u32],
    ) -> Result<Self, StudyError> {
        let cells = max_dats.iter().map(|&max_dat| BearerCell::simulate(runner, reading, line, max_dat));
        Ok(Self { line, cells: cells.collect::<Result<_, _>>()? })
    }

    /// Returns the cells at the ends: at `maxDAT` 1, and at 10.
    fn ends(&self) -> Option<(&BearerCell, &BearerCell)> {
        self.cells.first().zip(self.cells.last())
    }
}

/// Both experiments under one reading.
struct Experiments {
    reading: ErasureUnit,
    /// Figure 3: a curve for each status prohibit.
    prohibits: Vec<Curve>,
    /// Figure 4: a curve for each file.
    files: Vec<Curve>,
    /// Figure 3 at `maxDAT` 10, with a very high status prohibit.
    slow: Curve,
}

impl Experiments {
    fn simulate(runner: &Runner<'_>, reading: ErasureUnit, max_dats: &[u32]) -> Result<Self, StudyError> {
        let curve = |line, max_dats: &[u32]| Curve::simulate(runner, reading, line, max_dats);
        let third = |prohibit| CurveParameters { poll: 100, prohibit, file: 100 };
        let fourth = |file| CurveParameters { poll: 300, prohibit: 100, file };
        let prohibits = PROHIBITS.iter().map(|&prohibit| curve(third(prohibit), max_dats));
        let prohibits = prohibits.collect::<Result<_, _>>()?;
        let files = FILES.iter().map(|&file| curve(fourth(file), max_dats)).collect::<Result<_, _>>()?;
        Ok(Self { reading, prohibits, files, slow: curve(third(VERY_HIGH), &[10])? })
    }
}

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let [main, others @ ..] = READINGS;
    let mut studies = vec![Experiments::simulate(runner, main, &ALL)?];
    for reading in others {
        studies.push(Experiments::simulate(runner, reading, &SOME)?);
    }
    let mut rows = figures::rows(&studies[0])?;
    rows.extend(claims::rows(&studies)?);
    Ok(rows)
}
