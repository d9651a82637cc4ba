//! The records of a ledger's finished files as a stream of record batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use deedbook::ledger::Column;
use deedbook::report::Damage;
use deedbook::{Columns, Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::common::errors::invalid;
use crate::log::batches::Batches;

const FILE: &str = "file";

/// A column of a ledger's batch: the file's index, or a column of the file's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    File,
    Record(Column),
}

impl Asked {
    /// The columns by name, or the default ones.
    pub fn columns(py: Python<'_>, names: Option<Vec<String>>) -> PyResult<Vec<Self>> {
        let Some(names) = names else {
            return Ok(Self::default_columns());
        };
        if names.is_empty() {
            return Err(invalid(py, "no columns asked for".into()));
        }
        let column = |name: String| match (&*name, name.parse()) {
            (FILE, _) => Ok(Self::File),
            (_, Ok(column)) => Ok(Self::Record(column)),
            (_, Err(_)) => {
                let known = "must be one of file, record, offset, payload, length";
                Err(invalid(py, format!("column {name:?}, {known}")))
            }
        };
        names.into_iter().map(column).collect()
    }

    pub fn default_columns() -> Vec<Self> {
        let own = Column::DEFAULT.into_iter().map(Self::Record);
        std::iter::once(Self::File).chain(own).collect()
    }

    pub fn schema(columns: &[Self]) -> SchemaRef {
        let field = |asked: &Self| match asked {
            Self::File => Field::new(FILE, DataType::Int64, false),
            Self::Record(column) => column.field(),
        };
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }
}

/// Batches of one file after another; none holds records of two files.
pub struct FileBatches {
    batches: deedbook::Batches<deedbook::ledger::LedgerFormat>,
    columns: Vec<Asked>,
    schema: SchemaRef,
}

impl FileBatches {
    pub fn new(
        files: deedbook::Chained<deedbook::ledger::LedgerFormat>,
        columns: Vec<Asked>,
        rows_max: usize,
        bytes_max: usize,
    ) -> Self {
        let of_file = columns.iter().filter_map(|asked| match asked {
            Asked::File => None,
            Asked::Record(column) => Some(*column),
        });
        let batches = deedbook::Batches::new(files, of_file.collect(), rows_max, bytes_max);
        let schema = Asked::schema(&columns);
        Self { batches, columns, schema }
    }

    /// The batch of a file with the column that says which file.
    fn with_file(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let file = self.batches.number().unwrap_or_default() as i64;
        let rows = batch.num_rows();
        let mut own = batch.columns().iter();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for asked in &self.columns {
            match asked {
                Asked::File => arrays.push(Arc::new(Int64Array::from_value(file, rows))),
                Asked::Record(_) => arrays.extend(own.next().cloned()),
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map_err(|e| Error::new(ErrorKind::InvalidArgument, format!("arrow: {e}")).of("ledger"))
    }
}

impl Iterator for FileBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(batch.and_then(|batch| self.with_file(&batch)))
    }
}

impl Batches for FileBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn damages(&self) -> &[Damage] {
        self.batches.damages()
    }
}
