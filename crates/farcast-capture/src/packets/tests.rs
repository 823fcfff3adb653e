//! CSV by hand-worked text, Parquet by the library's reader.

use std::fs;

use ::parquet::basic::Encoding;
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use farcast_core::random::RandomStream;

use super::*;

type Record = PacketRecord<&'static str>;

fn delivered() -> Record {
    PacketRecord {
        number: 0,
        way: PacketDirection::Forward,
        terminal: Some(0),
        entered: Time::from_nanos(1),
        planned: Some(Time::from_nanos(260_000_001)),
        left: Some(Time::from_nanos(260_040_000)),
        octets: 1500,
        verdict: Verdict::Delivered,
        cause: "",
    }
}

/// One record for each verdict and way, and the ends of all ranges.
fn corners() -> [Record; 4] {
    let none = PacketRecord { planned: None, left: None, ..delivered() };
    [
        delivered(),
        PacketRecord {
            number: 1,
            terminal: Some(7),
            verdict: Verdict::Lost,
            cause: "forward: errors",
            ..none
        },
        PacketRecord {
            number: u64::MAX,
            way: PacketDirection::Return,
            terminal: None,
            entered: Time::NEVER,
            octets: u32::MAX,
            verdict: Verdict::Dropped,
            cause: "say \"when\", then\nstop",
            ..none
        },
        PacketRecord {
            number: 3,
            planned: Some(Time::from_nanos(i64::MAX as u64 + 1)),
            verdict: Verdict::Held,
            ..none
        },
    ]
}

/// Records as a link may make them.
fn random(count: u64) -> Vec<Record> {
    let mut stream = RandomStream::derive(6, &[2]);
    let mut record = |number| {
        let time = |stream: &mut RandomStream| Time::from_nanos(stream.below(1 << 40));
        let (verdict, cause) = [
            (Verdict::Delivered, ""),
            (Verdict::Lost, "forward: errors"),
            (Verdict::Dropped, "return: queue"),
            (Verdict::Held, ""),
        ][stream.below(4) as usize];
        PacketRecord {
            number,
            way: if stream.chance(0.5) { PacketDirection::Forward } else { PacketDirection::Return },
            terminal: stream.chance(0.8).then(|| stream.below(5) as u32),
            entered: time(&mut stream),
            planned: stream.chance(0.7).then(|| time(&mut stream)),
            left: stream.chance(0.6).then(|| time(&mut stream)),
            octets: stream.below(1501) as u32,
            verdict,
            cause,
        }
    };
    (0..count).map(&mut record).collect()
}

fn log(path: &Path, records: &[Record]) {
    let mut log = create(path, &[("seed", "17"), ("link", "geo")]).unwrap();
    for record in records {
        log.record(record);
    }
    log.finish().unwrap();
}

fn reader(path: &Path) -> SerializedFileReader<fs::File> {
    SerializedFileReader::try_from(path).unwrap()
}

/// Returns the expected row of a Parquet file.
fn row(record: &Record) -> Row {
    let time = |at: Time| i64::try_from(at.as_nanos()).map_or(Field::Long(i64::MAX), Field::Long);
    let optional = |at: Option<Time>| at.map_or(Field::Null, time);
    let text = |text: &str| Field::Str(text.to_string());
    let way = match record.way {
        PacketDirection::Forward => "forward",
        PacketDirection::Return => "return",
    };
    let verdict = match record.verdict {
        Verdict::Delivered => "delivered",
        Verdict::Lost => "lost",
        Verdict::Dropped => "dropped",
        Verdict::Held => "held",
    };
    let fields = [
        ("number", Field::ULong(record.number)),
        ("way", text(way)),
        ("terminal", record.terminal.map_or(Field::Null, Field::UInt)),
        ("entered_ns", time(record.entered)),
        ("planned_ns", optional(record.planned)),
        ("left_ns", optional(record.left)),
        ("octets", Field::UInt(record.octets)),
        ("verdict", text(verdict)),
        ("cause", text(record.cause)),
    ];
    Row::new(fields.map(|(name, field)| (name.to_string(), field)).to_vec())
}

#[test]
fn csv_is_as_worked_out_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.CSV");
    log(&path, &corners());
    let expected = "\
number,way,terminal,entered_ns,planned_ns,left_ns,octets,verdict,cause
0,forward,0,1,260000001,260040000,1500,delivered,
1,forward,7,1,,,1500,lost,forward: errors
18446744073709551615,return,,9223372036854775807,,,4294967295,dropped,\"say \"\"when\"\", then
stop\"
3,forward,0,1,9223372036854775807,,1500,held,
";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn parquet_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.parquet");
    for records in [corners().to_vec(), Vec::new(), random(1000)] {
        log(&path, &records);
        let rows: Vec<Row> = reader(&path).get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let expected: Vec<Row> = records.iter().map(row).collect();
        assert_eq!(rows, expected);
    }
}

#[test]
fn parquet_rows_come_in_groups_with_dictionaries() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.parquet");
    let records = random(2 * 65_536 + 5);
    log(&path, &records);
    let reader = reader(&path);
    let groups: Vec<_> = reader.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect();
    assert_eq!(groups, [65_536, 65_536, 5]);
    for column in reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let name = column.column_path().string();
        let expected = match name.as_str() {
            "way" | "terminal" | "verdict" | "cause" => Encoding::RLE_DICTIONARY,
            _ => Encoding::DELTA_BINARY_PACKED,
        };
        assert!(column.encodings().any(|encoding| encoding == expected), "{name}");
    }
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    assert_eq!(rows.zip(&records).filter(|(read, record)| *read == row(record)).count(), records.len());
}

#[test]
fn parquet_tells_the_run_and_the_units() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.parquet");
    log(&path, &corners());
    let reader = reader(&path);
    let metadata = reader.metadata().file_metadata();
    let mut pairs: Vec<_> = metadata.key_value_metadata().unwrap().iter().collect();
    pairs.sort_by(|a, b| a.key.cmp(&b.key));
    let pairs: Vec<_> =
        pairs.iter().map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap())).collect();
    let expected = [
        ("entered_ns.unit", "nanoseconds since the run began"),
        ("left_ns.unit", "nanoseconds since the run began"),
        ("link", "geo"),
        ("octets.unit", "octets from the IP header on"),
        ("planned_ns.unit", "nanoseconds since the run began"),
        ("seed", "17"),
    ];
    assert_eq!(pairs, expected);
    assert!(metadata.created_by().unwrap().starts_with("farcast "));
}

#[test]
fn other_names_and_places_are_refused() {
    for path in ["log", "log.txt", "csv", ".csv", "log.csv.gz", ""] {
        let refused = create(Path::new(path), &[]).err();
        assert!(matches!(refused, Some(LogError::Ending(_))), "{path}: {refused:?}");
    }
    let error = create(Path::new("log.txt"), &[]).err().unwrap();
    assert_eq!(error.to_string(), "\"log.txt\" tells no format: name a log FILE.csv or FILE.parquet");
    let error = create(Path::new("no/such/place.csv"), &[]).err().unwrap();
    assert!(error.to_string().starts_with("cannot write the log \"no/such/place.csv\": "), "{error}");
}

/// A disk that is full after this many octets.
#[derive(Debug)]
struct Disk(usize);

impl io::Write for Disk {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let taken = octets.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    let records = random(70_000);
    // Some meet the end in the header, some in a group of rows, some in the last one or the footer.
    for room in [0, 3, 5_000, 100_000] {
        let mut csv = CsvLog::new(Disk(room));
        for record in &records {
            csv.push(record);
        }
        assert_eq!(csv.into_inner().unwrap_err().kind(), io::ErrorKind::StorageFull, "{room}");
        let told = ParquetLog::new(Disk(room), &[]).and_then(|mut parquet| {
            for record in &records {
                parquet.push(record);
            }
            parquet.into_inner()
        });
        assert_eq!(told.unwrap_err().kind(), io::ErrorKind::StorageFull, "{room}");
    }
}
