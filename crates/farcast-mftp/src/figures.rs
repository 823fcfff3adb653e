//! Names of the figures that MFTP reports of a transfer.

use alloc::vec;
use alloc::vec::Vec;

use farcast_delivery::{Figure, Noun, RequestCounts, Words};

/// Passes that sent something.
pub const PASSES: &str = "passes";
/// DTUs that each pass sent, including parity symbols and repetitions.
pub const DTUS_PER_PASS: &str = "dtus_per_pass";
/// NAKs that receivers sent.
pub const NAKS_SENT: &str = "naks.sent";
/// Requests for return capacity that collided; always 0 on a return path without contention.
pub const NAKS_COLLIDED: &str = "naks.collided";
/// NAKs that reached the sender after a later pass than theirs had begun.
pub const NAKS_LATE: &str = "naks.late";
/// NAKs that the sender accepted before a later pass than theirs had begun.
pub const NAKS_USED: &str = "naks.used";

/// Terms of the draft.
pub(crate) const WORDS: Words = Words {
    round: Noun { one: "pass", many: "passes" },
    segment: Noun { one: "DTU", many: "DTUs" },
    nak: Noun { one: "NAK", many: "NAKs" },
    query: Noun { one: "status request", many: "status requests" },
    answers: "the Status Retry Timer",
};

/// Returns the figures of a transfer whose passes sent this many DTUs each.
pub(crate) fn figures(dtus_per_pass: &[u64], naks: &RequestCounts) -> Vec<Figure> {
    vec![
        Figure::count(PASSES, dtus_per_pass.len() as u64).labelled("passes"),
        Figure::counts(DTUS_PER_PASS, dtus_per_pass.to_vec()).labelled("DTUs sent"),
        Figure::count(NAKS_SENT, naks.sent).labelled("NAKs sent"),
        Figure::count(NAKS_COLLIDED, naks.collided).labelled("requests collided"),
        Figure::count(NAKS_LATE, naks.late).labelled("NAKs too late"),
        // A NAK that is neither late nor used requested nothing new; the summary omits it.
        Figure::count(NAKS_USED, naks.used),
    ]
}
