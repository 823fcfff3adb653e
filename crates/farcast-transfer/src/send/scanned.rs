//! Files of a transfer: reading, hashing and naming them.

use std::path::PathBuf;

use farcast_files::{Compressed, Entry, Grain, Outgoing, ScanProgress, Scanning, SourceError};

use super::{Preparation, SendJob};
use crate::{Error, ErrorKind};

/// Files of a transfer, scanned.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// Name of the product at receivers.
    pub name: String,
    /// Objects to send: one with a list of all files, or one for each file.
    pub objects: Vec<Outgoing>,
    /// Savings of compression, if that was asked for.
    pub compressed: Option<Compressed>,
}

impl Scanned {
    /// Returns the octets of all files as they are sent.
    pub fn octets(&self) -> u64 {
        self.objects.iter().map(|one| one.manifest().content_len()).sum()
    }

    /// Returns the octets of all files as they are on disk.
    pub fn files_octets(&self) -> u64 {
        self.objects.iter().map(|one| one.manifest().files_len()).sum()
    }

    /// Returns the entries of all lists of files.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.objects.iter().flat_map(|one| one.manifest().entries())
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.entries().filter(|entry| entry.is_file()).count()
    }
}

/// Scans the files that are sent as one product, with a list of files. Sealed products have small parts, because an
/// attacker gains more from damaging them.
pub(super) fn scan_product(
    job: &SendJob,
    sealed: bool,
    note: &mut dyn FnMut(Preparation<'_>),
) -> Result<Vec<Outgoing>, Error> {
    let grain = if sealed { Grain::Fine } else { Grain::Coarse };
    let scanning = Scanning { grain, compress: job.compress.then(farcast_net::scratch_dir) };
    let outgoing = hashed(note, |progress| Outgoing::scan_by(&scanning, &job.paths, progress))?;
    for skipped in outgoing.skipped() {
        note(Preparation::Skipped(skipped));
    }
    Ok(vec![outgoing])
}

/// Scans and hashes files by `scan`, and tells the progress.
pub(super) fn hashed<T>(
    note: &mut dyn FnMut(Preparation<'_>),
    scan: impl FnOnce(&mut dyn FnMut(ScanProgress)) -> Result<T, SourceError>,
) -> Result<T, Error> {
    let found = scan(&mut |progress| {
        note(Preparation::Hashing { hashed: progress.hashed, total: progress.total });
    });
    note(Preparation::Hashed);
    found.map_err(|error| {
        let failed = matches!(
            error,
            SourceError::Changed { .. } | SourceError::Removed { .. } | SourceError::Spool { .. }
        );
        let kind = if failed { ErrorKind::Failed } else { ErrorKind::Usage };
        Error { kind, sentence: error.to_string() }
    })
}

/// Returns the name of the product: the one that was chosen, or that of the first path.
pub fn product_name(job: &SendJob) -> String {
    // The name is the same as in the list of files: receivers look under it for an older version.
    let base = |path: &PathBuf| match path.file_name() {
        Some(base) => Some(base.to_owned()),
        None => path.canonicalize().ok()?.file_name().map(ToOwned::to_owned),
    };
    let base = job.paths.first().and_then(base).and_then(|base| base.into_string().ok());
    let mut name = job.name.clone().or(base).unwrap_or_else(|| "product".into());
    let end = (0..=name.len().min(256)).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    name.truncate(end);
    name
}
