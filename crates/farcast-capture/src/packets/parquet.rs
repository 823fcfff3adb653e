//! The log in Parquet.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::{PacketLog, PacketRecord, nanoseconds};
use crate::output::Output;

/// Rows that are kept in memory and written together.
pub(super) const ROWS_PER_GROUP: usize = 1 << 16;

/// Units of the columns that have one.
const UNITS: [(&str, &str); 4] = [
    ("entered_ns.unit", "nanoseconds since the run began"),
    ("planned_ns.unit", "nanoseconds since the run began"),
    ("left_ns.unit", "nanoseconds since the run began"),
    ("octets.unit", "octets from the IP header on"),
];

/// Columns whose values change little from row to row: only their differences are written.
const GROWING: [&str; 5] = ["number", "entered_ns", "planned_ns", "left_ns", "octets"];

/// A log in Parquet, without compression: numbers are written as differences, texts by a dictionary.
pub struct ParquetLog<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
    /// Each distinct text once.
    texts: BTreeMap<String, ByteArray>,
    error: Option<io::Error>,
}

/// Rows that are not yet written, by column.
#[derive(Debug, Default)]
struct Rows {
    number: Vec<i64>,
    way: Vec<ByteArray>,
    terminal: Optional<i32>,
    entered: Vec<i64>,
    planned: Optional<i64>,
    left: Optional<i64>,
    octets: Vec<i32>,
    verdict: Vec<ByteArray>,
    cause: Vec<ByteArray>,
}

/// A column with absent values: the present values, and a level for each row, 1 if its value is present.
#[derive(Debug, Default)]
struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }
}

impl<W: Write + Send> ParquetLog<W> {
    /// Creates a log into `out`, with the pairs of `about` as metadata.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn new(out: W, about: &[(&str, &str)]) -> io::Result<Self> {
        let pairs = about.iter().chain(&UNITS);
        let metadata = pairs.map(|&(key, value)| KeyValue::new(key.to_string(), value.to_string())).collect();
        let file = schema()
            .and_then(|schema| SerializedFileWriter::new(out, schema, Arc::new(properties(metadata))))
            .map_err(in_io)?;
        Ok(Self { file, rows: Rows::default(), texts: BTreeMap::new(), error: None })
    }

    /// Takes a row, and writes the rows that are kept once a group is full. Takes nothing after an error.
    pub fn push(&mut self, record: &PacketRecord<&str>) {
        if self.error.is_some() {
            return;
        }
        let (way, verdict, cause) =
            (self.text(record.way.name()), self.text(record.verdict.name()), self.text(record.cause));
        let rows = &mut self.rows;
        rows.number.push(record.number.cast_signed());
        rows.way.push(way);
        rows.terminal.push(record.terminal.map(u32::cast_signed));
        rows.entered.push(nanoseconds(record.entered));
        rows.planned.push(record.planned.map(nanoseconds));
        rows.left.push(record.left.map(nanoseconds));
        rows.octets.push(record.octets.cast_signed());
        rows.verdict.push(verdict);
        rows.cause.push(cause);
        if rows.number.len() == ROWS_PER_GROUP {
            self.error = self.flush().err();
        }
    }

    /// Completes the file and returns `W`, flushed.
    ///
    /// # Errors
    /// The first error of `W`.
    pub fn into_inner(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.rows.number.is_empty() {
            self.flush()?;
        }
        let mut out = self.file.into_inner().map_err(in_io)?;
        out.flush()?;
        Ok(out)
    }

    /// Returns `text` in the form of columns.
    fn text(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        self.texts.entry(text.to_string()).or_insert_with(|| ByteArray::from(text)).clone()
    }

    /// Writes the rows that are kept.
    fn flush(&mut self) -> io::Result<()> {
        let mut rows = mem::take(&mut self.rows);
        write_rows(&mut self.file, &rows).map_err(in_io)?;
        rows.clear();
        self.rows = rows;
        Ok(())
    }
}

impl<W: Write + Send> std::fmt::Debug for ParquetLog<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetLog").field("rows", &self.rows.number.len()).finish_non_exhaustive()
    }
}

impl PacketLog for ParquetLog<Box<dyn Output>> {
    fn record(&mut self, record: &PacketRecord<&str>) {
        self.push(record);
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.into_inner()?.commit()
    }
}

impl Rows {
    /// Empties all columns and keeps their memory.
    fn clear(&mut self) {
        let Self { number, way, terminal, entered, planned, left, octets, verdict, cause } = self;
        for column in [number, entered] {
            column.clear();
        }
        for column in [planned, left] {
            column.clear();
        }
        terminal.clear();
        octets.clear();
        for column in [way, verdict, cause] {
            column.clear();
        }
    }
}

/// Writes a group of rows, column by column in the order of the schema.
fn write_rows<W: Write + Send>(file: &mut SerializedFileWriter<W>, rows: &Rows) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    column::<Int64Type, W>(&mut group, &rows.number, None)?;
    column::<ByteArrayType, W>(&mut group, &rows.way, None)?;
    column::<Int32Type, W>(&mut group, &rows.terminal.values, Some(&rows.terminal.levels))?;
    column::<Int64Type, W>(&mut group, &rows.entered, None)?;
    column::<Int64Type, W>(&mut group, &rows.planned.values, Some(&rows.planned.levels))?;
    column::<Int64Type, W>(&mut group, &rows.left.values, Some(&rows.left.levels))?;
    column::<Int32Type, W>(&mut group, &rows.octets, None)?;
    column::<ByteArrayType, W>(&mut group, &rows.verdict, None)?;
    column::<ByteArrayType, W>(&mut group, &rows.cause, None)?;
    group.close().map(drop)
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_string()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Returns the schema, with the columns in order.
fn schema() -> Result<TypePtr, ParquetError> {
    let columns = [
        integer("number", 64, false, Repetition::REQUIRED),
        text("way"),
        integer("terminal", 32, false, Repetition::OPTIONAL),
        integer("entered_ns", 64, true, Repetition::REQUIRED),
        integer("planned_ns", 64, true, Repetition::OPTIONAL),
        integer("left_ns", 64, true, Repetition::OPTIONAL),
        integer("octets", 32, false, Repetition::REQUIRED),
        text("verdict"),
        text("cause"),
    ];
    let columns: Result<Vec<TypePtr>, ParquetError> = columns.into_iter().collect();
    Type::group_type_builder("packets").with_fields(columns?).build().map(Arc::new)
}

fn integer(
    name: &str,
    bit_width: i8,
    is_signed: bool,
    repetition: Repetition,
) -> Result<TypePtr, ParquetError> {
    let physical = if bit_width == 64 { Physical::INT64 } else { Physical::INT32 };
    let logical = LogicalType::integer(bit_width, is_signed);
    let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    builder.with_logical_type(Some(logical)).build().map(Arc::new)
}

fn text(name: &str) -> Result<TypePtr, ParquetError> {
    let builder =
        Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(Repetition::REQUIRED);
    builder.with_logical_type(Some(LogicalType::String)).build().map(Arc::new)
}

fn properties(metadata: Vec<KeyValue>) -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_created_by(concat!("farcast ", env!("CARGO_PKG_VERSION")).to_string())
        .set_key_value_metadata(Some(metadata))
        .set_max_row_group_row_count(Some(ROWS_PER_GROUP));
    let differences = |builder: parquet::file::properties::WriterPropertiesBuilder, name: &&str| {
        let path = ColumnPath::from(*name);
        builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    };
    GROWING.iter().fold(builder, differences).build()
}

/// Returns the system's own error, if the error has one inside.
fn in_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
