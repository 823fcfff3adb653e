//! `--missing`: a file with the receivers that are not known to have everything.

use std::io::{self, Write};
use std::path::Path;

use farcast_capture::output::{Output as _, StagedFile};
use farcast_core::Time;
use farcast_report::text::visible;
use farcast_transfer::send::{SendJob, SendProtocol, Sent, Standing, Unconfirmed};
use farcast_transfer::{Error, ErrorKind, ProtocolName};

use super::{Failure, SendArgs};
use crate::{outputs, stdio};

/// Names of the columns.
const HEADER: [&str; 6] = ["receiver", "address", "state", "lacks_segments", "lacks_octets", "unheard_s"];

/// Checks that the file can be written, and that this transfer will know its receivers.
pub(super) fn check(args: &SendArgs) -> Result<(), Failure> {
    let Some(path) = &args.missing else { return Ok(()) };
    let job = &args.job;
    let refuse = |why: &str| {
        Err(Failure::usage(format!("--missing lists receivers that have not confirmed, and {why}")))
    };
    match job.protocol_name() {
        ProtocolName::OneWay => return refuse("one way nobody can confirm: leave it out"),
        ProtocolName::Mftp if job.group.unlimited => {
            return refuse("with --unlimited none is known: leave one of them out");
        }
        ProtocolName::Mftp => {}
        _ if job.group.receivers.is_empty() => {
            return refuse("by this protocol only named ones are known: name them with --receivers");
        }
        _ => {}
    }
    outputs::files(&[("--missing", Some(path))])?;
    // The staged file has no name yet, and never gets one.
    match StagedFile::create(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("--missing: cannot write \"{}\": {error}", path.display()))),
    }
}

/// Writes the file, if there is to be one, after a transfer. One that could not be done as it is writes nothing.
pub(super) fn write<P: SendProtocol>(args: &SendArgs, sent: &Result<Sent<P>, Error>) {
    let Some(path) = &args.missing else { return };
    let (receivers, end) = match sent {
        Ok(sent) => (sent.unconfirmed(&args.job), Time::ZERO + sent.report.duration),
        Err(error) if error.kind == ErrorKind::Usage => return,
        Err(_) => (absent(&args.job), Time::ZERO),
    };
    if let Err(error) = replace(path, &receivers, end) {
        stdio::lose(&format!("--missing: cannot write \"{}\": {error}", path.display()));
    }
}

/// Returns the named receivers of a transfer that did not begin.
fn absent(job: &SendJob) -> Vec<Unconfirmed> {
    let one = |name: &String| Unconfirmed {
        name: name.clone(),
        address: None,
        standing: Standing::Absent,
        lacks: None,
        heard: None,
    };
    job.group.receivers.iter().map(one).collect()
}

/// Writes the rows of a transfer that ended at `end`.
fn table(out: impl Write, receivers: &[Unconfirmed], end: Time) -> io::Result<()> {
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    out.write_record(HEADER)?;
    for one in receivers {
        let lacks = one.lacks.map_or([const { String::new() }; 2], |lack| {
            [lack.segments, lack.octets].map(|number| number.to_string())
        });
        let heard = one.heard.map(|at| format!("{:.1}", end.since(at).as_secs_f64()));
        out.write_record([
            &*visible(&one.name),
            &one.address.map(|address| address.to_string()).unwrap_or_default(),
            one.standing.word(),
            &lacks[0],
            &lacks[1],
            &heard.unwrap_or_default(),
        ])?;
    }
    out.flush()
}

/// Replaces the file at `path` as a whole.
fn replace(path: &Path, receivers: &[Unconfirmed], end: Time) -> io::Result<()> {
    let mut file = Box::new(StagedFile::create(path)?);
    table(&mut file, receivers, end)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use farcast_core::Span;
    use farcast_transfer::send::Lack;

    use super::*;

    #[test]
    fn a_row_has_what_is_known() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let text = |rows: &[Unconfirmed]| {
            let mut text = Vec::new();
            table(&mut text, rows, at(10)).unwrap();
            String::from_utf8(text).unwrap()
        };
        let one = |name: &str| Unconfirmed {
            name: name.into(),
            address: None,
            standing: Standing::Absent,
            lacks: None,
            heard: None,
        };
        let lacks = Unconfirmed {
            address: Some("10.0.0.1:5402".parse().unwrap()),
            standing: Standing::Lacks,
            lacks: Some(Lack { segments: 3, octets: 4096 }),
            heard: Some(at(8)),
            ..one("station-7")
        };
        let left = Unconfirmed { standing: Standing::Left, heard: Some(at(10)), ..one("a \"b\"") };
        let all = [lacks, one("x,y"), left, Unconfirmed { standing: Standing::Refused, ..one("q\nr") }];
        assert_eq!(
            text(&all),
            "receiver,address,state,lacks_segments,lacks_octets,unheard_s\r\n\
             station-7,10.0.0.1:5402,lacks,3,4096,2.0\r\n\
             \"x,y\",,absent,,,\r\n\
             \"a \"\"b\"\"\",,left,,,0.0\r\n\
             q\\nr,,refused,,,\r\n"
        );
        assert_eq!(text(&[]), "receiver,address,state,lacks_segments,lacks_octets,unheard_s\r\n");
    }
}
