//! Values of options as text, for a command line.

use farcast_core::units::Bytes;
use farcast_core::{BitRate, Span};
use farcast_delivery::Parity;
use farcast_mftp::StatusRetry;
use farcast_mftp::settings::Rate;

/// Reads a rate, or "max" for the pace of receivers' acknowledgements.
pub fn rate(text: &str) -> Result<Rate, String> {
    match text {
        "max" => Ok(Rate::Max),
        _ => text.parse::<BitRate>().map(Rate::Limit).map_err(|error| error.to_string()),
    }
}

/// Reads a number of parity symbols.
pub fn parity(text: &str) -> Result<Parity, String> {
    match text {
        "auto" => Ok(Parity::Auto),
        "off" => Ok(Parity::Symbols(0)),
        number => {
            let symbols = number.parse().ok().filter(|symbols| *symbols <= 32_768);
            let wrong = || "it must be \"auto\", \"off\", or a number of symbols up to 32768".into();
            symbols.map(Parity::Symbols).ok_or_else(wrong)
        }
    }
}

/// Reads a number of parity symbols that leave with each block unasked.
pub fn parity_ahead(text: &str) -> Result<Parity, String> {
    match text {
        "auto" => Ok(Parity::Auto),
        number => {
            let symbols = number.parse().ok().filter(|symbols| *symbols <= 254);
            symbols.map(Parity::Symbols).ok_or_else(|| "it must be \"auto\", or a number up to 254".into())
        }
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

/// Reads a size of DTUs: a quantity, or a number of bytes.
pub fn dtu_size(text: &str) -> Result<u32, String> {
    let number = || text.parse::<u64>().ok();
    let quantity = || text.parse().ok().map(|Bytes(bytes)| bytes);
    let size = number().or_else(quantity).and_then(|bytes| u32::try_from(bytes).ok());
    let fits = size.filter(|size| (1..=65_000).contains(size));
    fits.ok_or_else(|| "it must be a size from 1 B to 65000 B, as in \"1400 B\"".into())
}

/// Reads a Status Retry Timer.
pub fn status_retry(text: &str) -> Result<StatusRetry, String> {
    if text == "measured" {
        return Ok(StatusRetry::Measured);
    }
    if let Some(n) = text.strip_prefix("block+").and_then(|rest| rest.strip_suffix("rtt")) {
        let round_trips =
            n.parse().map_err(|_| "it must be a whole number of round trips, as in \"block+4rtt\"")?;
        return Ok(StatusRetry::BlockTime { round_trips });
    }
    match text.parse() {
        Ok(Span::ZERO) | Err(_) => Err("it must be a time (\"3 s\"), \"block+4rtt\", or \"measured\"".into()),
        Ok(span) => Ok(StatusRetry::Fixed(span)),
    }
}

/// Reads a time that is more than nothing.
pub fn some_time(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("it must be more than nothing".into()) } else { Ok(time) }
}
