//! Parity symbols. The sender computes them ([`ParityEncoder`], [`WholeParity`]), the receiver rebuilds segments from
//! them ([`ParityDecoder`]). Both do so on threads of their own.

use farcast_delivery::{ErasureCode, Geometry};
use farcast_fec::BlockCode;

use crate::error::NetError;

mod decoder;
mod encoder;
mod thread;
mod whole;

pub(crate) use decoder::{DecodeJob, ParityDecoder};
pub(crate) use encoder::ParityEncoder;
pub(crate) use thread::CodingThread;
pub(crate) use whole::WholeParity;
pub use whole::scratch_dir;

/// Parity symbols of each block: their number, and the code that makes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockParity {
    pub(crate) symbols: u32,
    pub(crate) kind: ErasureCode,
}

/// Most memory that coding one block may take, bytes. Announced numbers alone could ask for gigabytes.
const CODING_BUDGET: usize = 256 << 20;

fn code(geometry: &Geometry, symbols: u32, kind: ErasureCode) -> Result<BlockCode, NetError> {
    let (block, parity) = (geometry.code_size(), symbols);
    let refuse = |reason: String| NetError::Parity { block, parity, reason };
    let make = match kind {
        ErasureCode::BySize => BlockCode::new,
        ErasureCode::ReedSolomon8 => BlockCode::narrow,
        ErasureCode::ReedSolomon16 => BlockCode::wide,
        ErasureCode::Unknown => return Err(refuse("they are of a code that is not known here".into())),
    };
    let code = make(block as usize, parity as usize, usize::from(geometry.segment_size()));
    let code = code.map_err(|error| refuse(error.to_string()))?;
    if code.working_memory() > CODING_BUDGET {
        return Err(refuse("coding them takes more than 256 MiB; choose smaller blocks".into()));
    }
    Ok(code)
}
