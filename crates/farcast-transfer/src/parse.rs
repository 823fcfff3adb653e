//! Values of options as text, for a command line.

use farcast_core::{BitRate, Span};
use farcast_delivery::settings::SendRate;

/// Reads a rate, or "max" for the pace of receivers' acknowledgements.
pub fn rate(text: &str) -> Result<SendRate, String> {
    match text {
        "max" => Ok(SendRate::Max),
        _ => text.parse::<BitRate>().map(SendRate::Limit).map_err(|error| error.to_string()),
    }
}

/// Value of `--wait` without a time.
pub const WITHOUT_END: &str = "without end";

/// Reads the longest wait for a group.
pub fn wait(text: &str) -> Result<Span, String> {
    if text == WITHOUT_END {
        return Ok(Span::MAX);
    }
    let wrong =
        "it must be a time, as in \"10 min\"; to wait as long as it takes, write --wait behind the paths";
    text.parse().map_err(|_| wrong.into())
}

/// Reads a time that is more than nothing.
pub fn some_time(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("it must be more than nothing".into()) } else { Ok(time) }
}
