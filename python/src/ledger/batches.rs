//! The records of a ledger's finished files as a stream of record batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use deedbook::ledger::LedgerFormat;
use deedbook::report::Damage;
use deedbook::{Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::common::errors::invalid;
use crate::log::batches::Batches;

const FILE: &str = "file";

type Files = deedbook::Batches<LedgerFormat>;

/// A column of a ledger's batch: the file's index, or a column of the file's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    File,
    Record(String),
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
        let column = |name: String| match Files::schema_of(&[&name]) {
            _ if name == FILE => Ok(Self::File),
            Ok(_) => Ok(Self::Record(name)),
            Err(_) => {
                let known = "must be one of file, record, offset, payload, length";
                Err(invalid(py, format!("column {name:?}, {known}")))
            }
        };
        names.into_iter().map(column).collect()
    }

    pub fn default_columns() -> Vec<Self> {
        let own = Files::DEFAULT.iter().map(|&name| Self::Record(name.into()));
        std::iter::once(Self::File).chain(own).collect()
    }

    pub fn schema(columns: &[Self]) -> Result<SchemaRef> {
        let field = |asked: &Self| match asked {
            Self::File => Ok(Field::new(FILE, DataType::Int64, false)),
            Self::Record(name) => Ok(Files::schema_of(&[name])?.field(0).clone()),
        };
        Ok(Arc::new(Schema::new(columns.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }
}

/// Batches of one file after another; none holds records of two files.
pub struct FileBatches {
    batches: Files,
    columns: Vec<Asked>,
    schema: SchemaRef,
}

impl FileBatches {
    pub fn new(
        files: deedbook::Chained<LedgerFormat>,
        columns: Vec<Asked>,
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Self> {
        let of_file = columns.iter().filter_map(|asked| match asked {
            Asked::File => None,
            Asked::Record(name) => Some(&**name),
        });
        let batches = Files::new(files, &of_file.collect::<Vec<_>>(), rows_max, bytes_max)?;
        let schema = Asked::schema(&columns)?;
        Ok(Self { batches, columns, schema })
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
