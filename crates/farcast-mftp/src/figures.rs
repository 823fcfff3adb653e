//! The names of what MFTP reports of a transfer.

use alloc::vec;
use alloc::vec::Vec;

use farcast_delivery::{Figure, Noun, RequestCounts, Words};

/// Passes that sent something.
pub const PASSES: &str = "passes";
/// DTUs that each of them sent, parity symbols and repetitions among them.
pub const DTUS_PER_PASS: &str = "dtus_per_pass";
/// NAKs that receivers sent.
pub const NAKS_SENT: &str = "naks.sent";
/// Requests for return capacity that collided; on a way back without contention always 0.
pub const NAKS_COLLIDED: &str = "naks.collided";
/// NAKs that reached the sender after the pass behind the one they answer had begun.
pub const NAKS_LATE: &str = "naks.late";
/// NAKs that the sender took in time for the pass behind the one they answer.
pub const NAKS_USED: &str = "naks.used";

/// The draft's words.
pub(crate) const WORDS: Words = Words {
    round: Noun { one: "pass", many: "passes" },
    segment: Noun { one: "DTU", many: "DTUs" },
    nak: Noun { one: "NAK", many: "NAKs" },
    query: Noun { one: "status request", many: "status requests" },
    answers: "the Status Retry Timer",
};

/// The figures of a transfer whose passes sent so many DTUs.
pub(crate) fn figures(dtus_per_pass: &[u64], naks: &RequestCounts) -> Vec<Figure> {
    vec![
        Figure::count(PASSES, dtus_per_pass.len() as u64).labelled("passes"),
        Figure::counts(DTUS_PER_PASS, dtus_per_pass.to_vec()).labelled("DTUs sent"),
        Figure::count(NAKS_SENT, naks.sent).labelled("NAKs sent"),
        Figure::count(NAKS_COLLIDED, naks.collided).labelled("requests collided"),
        Figure::count(NAKS_LATE, naks.late).labelled("NAKs too late"),
        // What is neither late nor used asked for nothing new: the summary does without it.
        Figure::count(NAKS_USED, naks.used),
    ]
}
