//! Keys of an FTP session.

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_tcp::Config;
use farcast_tcp::ftp::Mode;

use super::tcp;
use crate::traffic::{End, Ftp, FtpConfig};
use farcast_scenario::streams::{Purpose, Streams};
use farcast_scenario::{DocumentError, Reader};

/// Maximum number of files that one session transfers.
const MOST_FILES: u32 = 10_000;

/// Settings of an FTP session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spec {
    tcp: Config,
    put: bool,
    mode: Mode,
    syst: bool,
    files: Vec<u64>,
    gap: Span,
}

/// Reads the keys of a session.
pub(super) fn read(table: &mut Reader<'_>) -> Result<Spec, DocumentError> {
    let put = table.choice_or("operation", &[("get", false), ("put", true)], false)?;
    let modes = [("passive", Mode::Passive), ("active", Mode::Active)];
    let mode = table.choice_or("mode", &modes, Mode::Passive)?;
    let syst = table.flag_or("syst", false)?;
    let files = files(table)?;
    let gap = table.span_or("gap", Span::ZERO)?;
    Ok(Spec { tcp: tcp::config(table)?, put, mode, syst, files, gap })
}

/// Reads the sizes of the files: `files`, or `size` and `count`.
fn files(table: &mut Reader<'_>) -> Result<Vec<u64>, DocumentError> {
    let Some(files) = table.optional_list_of_bytes("files")? else {
        let Bytes(size) = table.bytes("size")?;
        let count = table.integer_or("count", 1..=MOST_FILES, 1)?;
        return Ok(vec![size; count as usize]);
    };
    for other in ["size", "count"] {
        if table.holds(other) {
            return Err(table.refuse(other, "files says all sizes", "files alone, or size and count"));
        }
    }
    if files.is_empty() || files.len() > MOST_FILES as usize {
        return Err(table.refuse("files", "there are none, or too many", format!("1 to {MOST_FILES} files")));
    }
    Ok(files.into_iter().map(|Bytes(size)| size).collect())
}

impl Spec {
    /// Makes the session of the flow with number `entity`, whose files come from `source`, at a terminal.
    pub(super) fn make(&self, source: End, terminal: u32, entity: u64, streams: Streams) -> Ftp {
        // The flow's stream has exactly these two draws.
        let mut stream = streams.of(entity, Purpose::Flow);
        let seeds = [(); 2].map(|()| stream.bits());
        let Self { tcp, put, mode, syst, files, gap } = self.clone();
        let config = FtpConfig { tcp, source, put, mode, syst, files, gap, terminal, seeds };
        Ftp::new(config).expect("checked when read")
    }
}
