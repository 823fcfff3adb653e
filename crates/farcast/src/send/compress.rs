//! `farcast send --compress`: its checks and its result.

use farcast_files::{Compressed, Outgoing};
use serde_json::{Value, json};

use crate::Failure;
use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::size;
use crate::protocols::Speaks;

/// Refuses options that do not go with `--compress`. Compression needs a list of files that names the compressed ones,
/// and receivers that understand the list.
pub(super) fn check(args: &SendArgs) -> Result<(), Failure> {
    if !args.compress {
        return Ok(());
    }
    if args.stream.stream {
        return Err(Failure::usage(
            "--compress is for files, and --stream sends none: compress what goes into it, as with zstd",
        ));
    }
    if !matches!(args.speaks(), Speaks::Mftp | Speaks::OneWay) {
        return Err(Failure::usage(
            "--compress needs the list of files that travels by MFTP and one way: leave out --protocol, or compress the \
             files before they are sent",
        ));
    }
    if args.group.draft {
        return Err(Failure::usage(
            "--compress needs receivers that are farcast, and --draft is for others: leave one of them out",
        ));
    }
    Ok(())
}

/// Returns the result of compression, if compression was asked for.
pub(super) fn brought(args: &SendArgs, outgoing: &Outgoing) -> Option<Compressed> {
    args.compress.then(|| outgoing.manifest().compressed())
}

/// Reports the result of compression.
pub(super) fn tell(args: &SendArgs, outgoing: &Outgoing, output: &mut Output) {
    let Some(compressed) = brought(args, outgoing) else { return };
    output.line(&sentence(&compressed));
    output.event("compressed", fields(&compressed));
}

/// Returns the result in words.
pub(super) fn sentence(compressed: &Compressed) -> String {
    match compressed.files {
        0 => "not compressed: that would make nothing shorter".into(),
        _ => format!("compressed {} to {}", size(compressed.size), size(compressed.stored)),
    }
}

/// Returns the result for programs.
pub(super) fn fields(compressed: &Compressed) -> Value {
    json!({
        "files": compressed.files,
        "size_bytes": compressed.size,
        "stored_bytes": compressed.stored,
    })
}
