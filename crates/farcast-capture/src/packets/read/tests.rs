//! Logs are read back as they were written, by hand-worked text and by whole logs; other files are refused.

use std::fs;

use farcast_core::random::RandomStream;

use super::*;
use crate::packets::create;

/// Facts about the run in a file.
type About = Vec<(String, String)>;

/// A record that owns its cause.
type Record = PacketRecord<String>;

fn records(count: u64) -> Vec<Record> {
    let mut stream = RandomStream::derive(9, &[1]);
    let causes = ["", "losses", "forward: dropped", "say \"when\", then\nstop"];
    let mut draw = |number| {
        let time = |stream: &mut RandomStream| Time::from_nanos(stream.below(1 << 62));
        PacketRecord {
            number: if stream.chance(0.01) { u64::MAX } else { number },
            way: [PacketDirection::Forward, PacketDirection::Return][stream.below(2) as usize],
            terminal: stream.chance(0.8).then(|| stream.below(1 << 32) as u32),
            entered: time(&mut stream),
            planned: stream.chance(0.7).then(|| time(&mut stream)),
            left: stream.chance(0.6).then(|| time(&mut stream)),
            octets: stream.below(1 << 32) as u32,
            verdict: [Verdict::Delivered, Verdict::Lost, Verdict::Dropped, Verdict::Held]
                [stream.below(4) as usize],
            cause: causes[stream.below(4) as usize].to_string(),
        }
    };
    (0..count).map(&mut draw).collect()
}

/// Reads a file. Returns its records, and its facts about the run.
fn read_all(path: &Path) -> Result<(Vec<Record>, About), ReadError> {
    let mut records = Vec::new();
    let about = read(path, |record| records.push(record.with_cause(record.cause.to_string())))?;
    Ok((records, about))
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["link.CSV", "link.parquet"] {
        let path = directory.path().join(name);
        for written in [Vec::new(), records(3000)] {
            let mut log = create(&path, &[("seed", "17"), ("link", "geo")]).unwrap();
            for record in &written {
                log.record(&record.with_cause(&record.cause));
            }
            log.finish().unwrap();
            let (read, about) = read_all(&path).unwrap();
            assert_eq!(read, written, "{name}");
            let says_seed = about.contains(&("seed".to_string(), "17".to_string()));
            assert_eq!(says_seed, name == "link.parquet");
        }
    }
}

/// Returns the error for a CSV file with these lines.
fn refusal(lines: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.csv");
    fs::write(&path, lines).unwrap();
    let sentence = read_all(&path).unwrap_err().to_string();
    sentence.strip_prefix(&format!("\"{}\" is no log of packets: ", path.display())).unwrap().to_string()
}

#[test]
fn what_is_no_log_is_refused_with_its_place() {
    const HEADER: &str = "number,way,terminal,entered_ns,planned_ns,left_ns,octets,verdict,cause";
    let behind = |line: &str| refusal(&format!("{HEADER}\n0,return,,1,,,40,held,\"a\nb\"\n{line}"));
    assert_eq!(refusal(""), format!("its first line is not \"{HEADER}\""));
    assert_eq!(
        refusal(&format!("{}\n", HEADER.replace("way", "path"))),
        format!("its first line is not \"{HEADER}\"")
    );
    for (line, expected) in [
        ("1,forward,0,1,2,3,40,delivered,\n1,forward,0,1,2,3,40,delivered", "line 5: it has no end"),
        ("1,forward,0,1,2,3,40,delivered\n", "line 4: it does not have nine columns"),
        ("1,forward,0,1,2,3,40,delivered,,\n", "line 4: it does not have nine columns"),
        ("1,sideways,0,1,2,3,40,delivered,\n", "line 4: way cannot be read"),
        ("-1,forward,0,1,2,3,40,delivered,\n", "line 4: number cannot be read"),
        ("1,forward,x,1,2,3,40,delivered,\n", "line 4: terminal cannot be read"),
        ("1,forward,0,,2,3,40,delivered,\n", "line 4: entered_ns cannot be read"),
        ("1,forward,0,1,-2,3,40,delivered,\n", "line 4: planned_ns cannot be read"),
        ("1,forward,0,1,2,9223372036854775808,40,delivered,\n", "line 4: left_ns cannot be read"),
        ("1,forward,0,1,2,3,4294967296,delivered,\n", "line 4: octets cannot be read"),
        ("1,forward,0,1,2,3,40,gone,\n", "line 4: verdict cannot be read"),
        ("1,forward,0,1,2,3,40,lost,\"\n", "line 4: it has no end"),
    ] {
        assert_eq!(behind(line), expected);
    }
    assert_eq!(behind(&"x".repeat(2 << 20)), "line 4: it is too long");
}

#[test]
fn what_is_no_parquet_and_what_is_not_there_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.parquet");
    fs::write(&path, "PAR1, but not more").unwrap();
    assert!(matches!(read_all(&path), Err(ReadError::Content { .. })));
    assert!(matches!(read_all(&directory.path().join("none.csv")), Err(ReadError::File { .. })));
    assert!(matches!(read_all(&directory.path().join("link.json")), Err(ReadError::Ending(_))));
}
