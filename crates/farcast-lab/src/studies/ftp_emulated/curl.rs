//! Reader of curl's trace of a transfer, with times.
//!
//! Lines that begin with a time report data sent or received, as in `12:00:01.250000 => Send header, 11 bytes (0xb)`.
//! The data stands on the lines below, as in `0000: RETR file`. Times are those of a day, in UTC.

/// Arguments with which curl writes the trace.
pub(super) const TRACE: &str = "--trace-ascii trace --trace-time";

const DAY_S: f64 = 86_400.0;

/// A transfer according to curl.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Transfer {
    /// Time from RETR to the arrival of the last octet, in seconds.
    pub(super) seconds: f64,
    /// Octets of the file that arrived.
    pub(super) octets: u64,
    /// Commands that were sent, without arguments.
    pub(super) commands: Vec<String>,
}

/// Reads a trace; `None` if there was no RETR or no data arrived.
pub(super) fn transfer(trace: &str) -> Option<Transfer> {
    let (mut commanded, mut last, mut octets) = (None, None, 0);
    let mut commands = Vec::new();
    let mut lines = trace.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(Entry { at, what }) = Entry::read(line) else { continue };
        if what.starts_with("=> Send header") {
            let text = lines.peek().and_then(|next| next.split_once(": ")).map_or("", |(_, text)| text);
            let command = text.split(' ').next().unwrap_or_default();
            if command == "RETR" {
                commanded = Some(at);
            }
            commands.push(command.to_owned());
        } else if let Some(rest) = what.strip_prefix("<= Recv data, ") {
            octets += rest.split(' ').next()?.parse::<u64>().ok()?;
            last = Some(at);
        }
    }
    // A transfer may end on the next day.
    let seconds = (last? - commanded?).rem_euclid(DAY_S);
    Some(Transfer { seconds, octets, commands })
}

/// A line with a time.
struct Entry<'a> {
    /// Time in seconds of the day.
    at: f64,
    what: &'a str,
}

impl<'a> Entry<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (time, what) = line.split_once(' ')?;
        let mut parts = time.splitn(3, ':').map(str::parse::<f64>);
        let mut part = || parts.next()?.ok();
        let at = 3600.0 * part()? + 60.0 * part()? + part()?;
        Some(Self { at, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_from_retr_to_the_last_data() {
        let trace = "23:59:58.000001 => Send header, 8 bytes (0x8)\n0000: TYPE I\n\
                     23:59:58.250000 <= Recv header, 31 bytes (0x1f)\n0000: 200 Switching to Binary mode.\n\
                     23:59:58.500000 => Send header, 11 bytes (0xb)\n0000: RETR file\n\
                     23:59:59.000000 <= Recv data, 1448 bytes (0x5a8)\n0000: 12:00:00 x\n0040: => Send header\n\
                     00:00:01.750000 <= Recv data, 52 bytes (0x34)\n0000: .\n\
                     00:00:02.000000 <= Recv header, 24 bytes (0x18)\n0000: 226 Transfer complete.\n";
        let expected = Transfer { seconds: 3.25, octets: 1500, commands: vec!["TYPE".into(), "RETR".into()] };
        assert_eq!(transfer(trace), Some(expected));
    }

    #[test]
    fn without_a_request_or_data_there_is_no_transfer() {
        let request = "10:00:00.0 => Send header, 11 bytes (0xb)\n0000: RETR file\n";
        let data = "10:00:01.5 <= Recv data, 52 bytes (0x34)\n";
        assert_eq!((transfer(""), transfer(request), transfer(data)), (None, None, None));
        let whole = Transfer { seconds: 1.5, octets: 52, commands: vec!["RETR".into()] };
        assert_eq!(transfer(&format!("{request}{data}")), Some(whole));
        assert_eq!(transfer(&format!("{request}10:00:01.5 <= Recv data, many\n")), None);
    }
}
