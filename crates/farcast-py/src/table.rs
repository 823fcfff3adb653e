//! Tables for Arrow's readers.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use farcast_lab::table::{Column, Table as Columns};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::failed;

/// A table that pyarrow, pandas and polars read without copying, by Arrow's `PyCapsule` interface.
#[pyclass(frozen, module = "farcast._native")]
pub(crate) struct Table(RecordBatch);

impl Table {
    pub(crate) fn of(columns: &Columns) -> PyResult<Self> {
        let of = |(name, column): (&str, &Column)| -> (Field, ArrayRef) {
            match column {
                Column::Numbers(values) => {
                    let array: Float64Array =
                        values.iter().map(|value| (!value.is_nan()).then_some(*value)).collect();
                    (Field::new(name, DataType::Float64, true), Arc::new(array))
                }
                Column::Texts(texts) => {
                    let array = StringArray::from_iter_values(texts);
                    (Field::new(name, DataType::Utf8, true), Arc::new(array))
                }
            }
        };
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.columns().map(of).unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self).map_err(failed)
    }
}

#[pymethods]
impl Table {
    /// Returns the table as a stream of record batches.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Consumers cast to other types by themselves.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns the names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}
