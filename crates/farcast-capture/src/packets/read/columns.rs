//! Reading of a log in Parquet.

use std::fs::File;

use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use super::super::{COLUMNS, PacketRecord};
use super::{Wrong, time, verdict, way};

/// Calls `each` for each record of a Parquet file. Returns the pairs of its metadata.
pub(super) fn read(
    file: File,
    each: &mut impl FnMut(&PacketRecord<&str>),
) -> Result<Vec<(String, String)>, Wrong> {
    let file = SerializedFileReader::new(file).map_err(wrong)?;
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    if !columns.iter().map(|column| column.name()).eq(COLUMNS) {
        return Err(Wrong::Content(format!("its columns are not {}", COLUMNS.join(", "))));
    }
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let about =
        pairs.map(|KeyValue { key, value }| (key.clone(), value.clone().unwrap_or_default())).collect();
    for (index, row) in file.get_row_iter(None).map_err(wrong)?.enumerate() {
        let row = row.map_err(wrong)?;
        let (record, cause) = record(&row)
            .map_err(|column| Wrong::Content(format!("row {}: {column} cannot be read", index + 1)))?;
        each(&record.with_cause(cause));
    }
    Ok(about)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn wrong(error: ParquetError) -> Wrong {
    Wrong::Content(error.to_string())
}

/// Returns the record of a row without its cause, and the cause; or the name of the first column that is not valid.
fn record(row: &Row) -> Result<(PacketRecord<()>, &str), &'static str> {
    let mut fields = row.get_column_iter().map(|(_, field)| field);
    let mut next = || fields.next().unwrap_or(&Field::Null);
    let [number, way_, terminal, entered, planned, left, octets, verdict_, cause]: [&Field; COLUMNS.len()] =
        std::array::from_fn(|_| next());
    let instant = |field: &Field| if let Field::Long(at) = field { time(*at) } else { None };
    let record = PacketRecord {
        number: if let Field::ULong(number) = number { *number } else { return Err(COLUMNS[0]) },
        way: text(way_).and_then(way).ok_or(COLUMNS[1])?,
        terminal: match terminal {
            Field::Null => None,
            Field::UInt(number) => Some(*number),
            _ => return Err(COLUMNS[2]),
        },
        entered: instant(entered).ok_or(COLUMNS[3])?,
        planned: optional(planned, COLUMNS[4], instant)?,
        left: optional(left, COLUMNS[5], instant)?,
        octets: if let Field::UInt(octets) = octets { *octets } else { return Err(COLUMNS[6]) },
        verdict: text(verdict_).and_then(verdict).ok_or(COLUMNS[7])?,
        cause: (),
    };
    Ok((record, text(cause).ok_or(COLUMNS[8])?))
}

fn text(field: &Field) -> Option<&str> {
    if let Field::Str(text) = field { Some(text) } else { None }
}

/// Reads a column that may be absent: null is absent.
fn optional<T>(
    field: &Field,
    column: &'static str,
    read: impl FnOnce(&Field) -> Option<T>,
) -> Result<Option<T>, &'static str> {
    if matches!(field, Field::Null) { Ok(None) } else { read(field).map(Some).ok_or(column) }
}
