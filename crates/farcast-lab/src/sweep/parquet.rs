//! Parquet file with all replications of a sweep.
//!
//! It has a row for each replication of each point: `point`, the varied keys, `replication`, and the figures. A key
//! whose values are numbers of one unit is a column of doubles in the base unit (s, bit/s, B), which the metadata
//! gives as `KEY.unit`; other keys are text. A figure that a replication does not have is null. The file has
//! key-value metadata: the scenario, the varied settings, the seed and the version.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{PrimitiveTypeBuilder, Type, TypePtr};

use super::{Sweep, Swept};
use crate::vary::Axis;

/// Least number of rows of a row group, except the last.
const ROWS: usize = 1 << 16;

/// Writes the results of `sweep` as a Parquet file. Equal results give equal octets.
pub(super) fn write(out: impl Write + Send, sweep: &Sweep, swept: &Swept) -> io::Result<()> {
    write_all(out, sweep, swept).map_err(|error| match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_all(out: impl Write + Send, sweep: &Sweep, swept: &Swept) -> Result<(), ParquetError> {
    let columns = swept.columns();
    let properties = WriterProperties::builder()
        .set_created_by(format!("farcast {}", sweep.version))
        .set_key_value_metadata(Some(metadata(sweep)))
        .build();
    let mut file = SerializedFileWriter::new(out, schema(sweep, &columns)?, Arc::new(properties))?;
    let mut begin = 0;
    while begin < swept.points.len() {
        let (mut end, mut rows) = (begin, 0);
        while end < swept.points.len() && rows < ROWS {
            rows += swept.points[end].figures.len();
            end += 1;
        }
        let mut group = file.next_row_group()?;
        RowGroup { swept, points: begin..end }.write(&mut group, &columns)?;
        group.close()?;
        begin = end;
    }
    file.close()?;
    Ok(())
}

fn metadata(sweep: &Sweep) -> Vec<KeyValue> {
    let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let axes = sweep.grid.axes();
    let units = axes.iter().filter_map(|axis| {
        let unit = axis.numbers()?.unit;
        (!unit.is_empty()).then(|| pair(&format!("{}.unit", axis.key()), unit.to_owned()))
    });
    let vary = axes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    [
        pair("farcast.version", sweep.version.clone()),
        pair("farcast.scenario", sweep.document.in_effect()),
        pair("farcast.vary", vary),
        pair("farcast.seed", sweep.seed.to_string()),
    ]
    .into_iter()
    .chain(units)
    .collect()
}

fn schema(sweep: &Sweep, columns: &[&str]) -> Result<TypePtr, ParquetError> {
    let mut fields = vec![field("point", Physical::INT64, Repetition::REQUIRED).build()?];
    for axis in sweep.grid.axes() {
        fields.push(if axis.numbers().is_some() {
            field(axis.key(), Physical::DOUBLE, Repetition::REQUIRED).build()?
        } else {
            field(axis.key(), Physical::BYTE_ARRAY, Repetition::REQUIRED)
                .with_logical_type(Some(LogicalType::String))
                .build()?
        });
    }
    fields.push(field("replication", Physical::INT64, Repetition::REQUIRED).build()?);
    for name in columns {
        fields.push(field(name, Physical::DOUBLE, Repetition::OPTIONAL).build()?);
    }
    let fields = fields.into_iter().map(Arc::new).collect();
    Ok(Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?))
}

fn field(name: &str, physical: Physical, repetition: Repetition) -> PrimitiveTypeBuilder<'_> {
    Type::primitive_type_builder(name, physical).with_repetition(repetition)
}

/// Points whose rows form a row group.
struct RowGroup<'a> {
    swept: &'a Swept,
    points: std::ops::Range<usize>,
}

impl RowGroup<'_> {
    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        columns: &[&str],
    ) -> Result<(), ParquetError> {
        put::<Int64Type, _>(group, &self.of_each(whole), None)?;
        for (place, axis) in self.swept.grid.axes().iter().enumerate() {
            self.write_axis(group, place, axis)?;
        }
        let numbers: Vec<i64> = self.points.clone().flat_map(|point| 0..whole(self.rows(point))).collect();
        put::<Int64Type, _>(group, &numbers, None)?;
        for name in columns {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            for point in self.points.clone() {
                match self.swept.points[point].figures.column(name) {
                    None => levels.resize(levels.len() + self.rows(point), 0),
                    Some(column) => {
                        levels.extend(column.iter().map(|value| i16::from(!value.is_nan())));
                        values.extend(column.iter().filter(|value| !value.is_nan()));
                    }
                }
            }
            put::<DoubleType, _>(group, &values, Some(&levels))?;
        }
        Ok(())
    }

    fn write_axis<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        place: usize,
        axis: &Axis,
    ) -> Result<(), ParquetError> {
        let index = |point: usize| self.swept.grid.indices(point)[place];
        if let Some(numbers) = axis.numbers() {
            return put::<DoubleType, _>(group, &self.of_each(|point| numbers.values[index(point)]), None);
        }
        let texts: Vec<ByteArray> =
            axis.values().iter().map(|value| ByteArray::from(value.as_str())).collect();
        put::<ByteArrayType, _>(group, &self.of_each(|point| texts[index(point)].clone()), None)
    }

    fn rows(&self, point: usize) -> usize {
        self.swept.points[point].figures.len()
    }

    /// Returns a value of each point, once for each of its rows.
    fn of_each<T: Clone>(&self, value: impl Fn(usize) -> T) -> Vec<T> {
        let rows = |point| std::iter::repeat_n(value(point), self.rows(point));
        self.points.clone().flat_map(rows).collect()
    }
}

/// Returns a count in the file's type; all counts are below 2^63.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Writes a column.
fn put<D: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[D::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("there are more columns than the schema has".into()));
    };
    column.typed::<D>().write_batch(values, levels, None)?;
    column.close()
}
