//! Tables in files: columns of numbers or of text.
//!
//! | file | content |
//! |---|---|
//! | `.parquet` | columns of any Parquet file; a sweep's directory stands for its `sweep.parquet` |
//! | `.csv` | RFC 4180 with a header; a column is of numbers if all its cells are; an empty cell is an absent value |
//! | `.json` | output of `simulate --json`: a row for each replication, columns named as by [`Figures`] |

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::figures::Figures;

/// Columns by name, all of one length.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Column)>,
}

/// A column.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    /// Numbers; an absent value is not-a-number.
    Numbers(Vec<f64>),
    /// Texts; an absent value is empty.
    Texts(Vec<String>),
}

/// Error of reading a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not contain a table.
    #[error("{}: {what}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Description of what is wrong.
        what: String,
    },
}

impl Table {
    /// Reads a file by its extension, or the results in a directory of a sweep.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain a table.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let path = if path.is_dir() { path.join(crate::sweep::NAMES[0]) } else { path.to_path_buf() };
        let content = |what: String| TableError::Content { path: path.clone(), what };
        #[expect(clippy::disallowed_methods, reason = "a result, which is read whole")]
        let file = File::open(&path).map_err(|source| TableError::File { path: path.clone(), source })?;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => parquet(file).map_err(content),
            Some("csv") => csv(file).map_err(content),
            Some("json") => json(file).map_err(content),
            _ => Err(content("its name tells no format: name a file .parquet, .csv or .json".into())),
        }
    }

    /// Returns the columns in their order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    /// Returns the column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(other, _)| other == name).map(|(_, column)| column)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Returns `true` if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Creates a table of columns of one length, whose names differ.
    pub(crate) fn of_columns(columns: Vec<(String, Column)>) -> Self {
        Self { columns }
    }

    fn of(columns: Vec<(String, Column)>) -> Result<Self, String> {
        for (number, (name, _)) in columns.iter().enumerate() {
            if columns[..number].iter().any(|(other, _)| other == name) {
                return Err(format!("two columns are called {name}"));
            }
        }
        Ok(Self { columns })
    }
}

impl From<Figures> for Table {
    fn from(figures: Figures) -> Self {
        let column = |(name, values): (&str, &[f64])| (name.to_owned(), Column::Numbers(values.to_vec()));
        Self { columns: figures.columns().map(column).collect() }
    }
}

impl Column {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Returns `true` if the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a row as text.
    pub fn text(&self, row: usize) -> String {
        match self {
            Self::Numbers(values) => values[row].to_string(),
            Self::Texts(values) => values[row].clone(),
        }
    }
}

fn parquet(file: File) -> Result<Table, String> {
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> =
        schema.root_schema().get_fields().iter().map(|field| field.name().to_owned()).collect();
    let mut cells: Vec<Vec<Field>> = vec![Vec::new(); names.len()];
    for row in reader.get_row_iter(None).map_err(|error| error.to_string())? {
        let row = row.map_err(|error| error.to_string())?;
        for ((_, field), column) in row.get_column_iter().zip(&mut cells) {
            column.push(field.clone());
        }
    }
    Table::of(names.into_iter().zip(cells.into_iter().map(of_fields)).collect())
}

/// Returns a column of numbers if all fields are numbers, and otherwise one of texts.
fn of_fields(fields: Vec<Field>) -> Column {
    let numbers: Option<Vec<f64>> = fields.iter().map(number).collect();
    numbers.map_or_else(
        || {
            let text = |field: Field| match field {
                Field::Str(text) => text,
                Field::Null => String::new(),
                other => other.to_string(),
            };
            Column::Texts(fields.into_iter().map(text).collect())
        },
        Column::Numbers,
    )
}

fn number(field: &Field) -> Option<f64> {
    Some(match *field {
        Field::Null => f64::NAN,
        Field::Bool(truth) => f64::from(u8::from(truth)),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value as f64,
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value as f64,
        Field::Float(value) => value.into(),
        Field::Double(value) => value,
        _ => return None,
    })
}

fn csv(file: File) -> Result<Table, String> {
    let mut reader = csv::Reader::from_reader(file);
    let names: Vec<String> =
        reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
    let mut cells: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        for (cell, column) in record.iter().zip(&mut cells) {
            column.push(cell.to_owned());
        }
    }
    let column = |cells: Vec<String>| {
        let number =
            |cell: &String| if cell.is_empty() { Some(f64::NAN) } else { cell.trim().parse::<f64>().ok() };
        let numbers: Option<Vec<f64>> = cells.iter().map(number).collect();
        numbers.map_or_else(|| Column::Texts(cells), Column::Numbers)
    };
    Table::of(names.into_iter().zip(cells.into_iter().map(column)).collect())
}

fn json(mut file: File) -> Result<Table, String> {
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let replications = value.get("replications").and_then(Value::as_array);
    let replications =
        replications.ok_or("it has no \"replications\", as farcast simulate --json prints them")?;
    let mut figures = Figures::new();
    for one in replications {
        figures.push(one);
    }
    Ok(figures.into())
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the same digits are asked for")]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Table, TableError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        Table::read(&path)
    }

    #[test]
    fn a_column_of_csv_is_of_numbers_or_of_text() {
        let table = read("a.csv", "n,what,t\r\n1,\"a,\"\"b\",2.5\r\n2,c,\r\n").unwrap();
        assert_eq!(table.len(), 2);
        assert_eq!(table.column("n"), Some(&Column::Numbers(vec![1.0, 2.0])));
        assert_eq!(table.column("what"), Some(&Column::Texts(vec!["a,\"b".into(), "c".into()])));
        let Some(Column::Numbers(times)) = table.column("t") else { panic!("no numbers") };
        assert!(times[0] == 2.5 && times[1].is_nan());
    }

    #[test]
    fn what_simulate_prints_is_a_table() {
        let table = read("a.json", r#"{"replications": [{"index": 0, "forward": {"octets": 3}}]}"#).unwrap();
        assert_eq!(table.column("forward.octets"), Some(&Column::Numbers(vec![3.0])));
    }

    #[test]
    fn what_is_no_table_is_said() {
        for (name, text) in [
            ("a.csv", "a,b\n1\n"),
            ("a.csv", "a,a\n1,2\n"),
            ("a.json", "{}"),
            ("a.json", "{"),
            ("a.txt", ""),
            ("a.parquet", "PAR1"),
        ] {
            let error = read(name, text).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(matches!(Table::read(Path::new("/nowhere.csv")), Err(TableError::File { .. })));
    }
}
