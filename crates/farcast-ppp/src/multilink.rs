//! Multilink PPP (RFC 1990): one virtual link made of several.
//!
//! | module | content |
//! |---|---|
//! | [`header`] | the header of a fragment, long or short, and numbers that wrap |
//! | [`fragment`] | cutting of packets, and links that carry the parts |
//! | [`reassembly`] | fragments back into packets: the rule of M, its bounds |
//!
//! Negotiation (LCP options 17 to 19) is left out: a bundle has the settings that its ends would have agreed on. So is
//! the class of RFC 2686, whose bits are reserved in RFC 1990. Senders do not send null fragments; receivers take them.

pub mod fragment;
pub mod header;
pub mod reassembly;

pub use fragment::Policy;
pub use header::{Format, Header, HeaderError};
pub use reassembly::{MOST_LINKS, Reassembler, ReassemblyConfig, ReassemblyCounters, Refusal};
