//! Any text as a quantity: parsing never panics, and what is shown can be read again.
#![no_main]

use farcast_core::units::Bytes;
use farcast_core::{BitRate, Probability, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<BitRate>() {
        rate.to_string().parse::<BitRate>().expect("a rate as shown is a rate");
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        bytes.to_string().parse::<Bytes>().expect("a size as shown is a size");
    }
    let _ = text.parse::<Span>();
    let _ = text.parse::<Probability>();
});
