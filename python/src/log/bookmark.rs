//! The class `Bookmark`: the place at which a reader goes on later.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use deedbook::jobs::Bookmark;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::common::arguments::numbers;
use crate::common::errors::OrRaise;

const FIELDS: (&str, &str, &str, &str) = ("offset", "ordinal", "first", "before");

#[doc = doc!("Bookmark")]
#[pyclass(frozen, eq, name = "Bookmark", module = "deedbook")]
#[derive(PartialEq)]
pub struct PyBookmark {
    pub bookmark: Bookmark,
}

impl From<Bookmark> for PyBookmark {
    fn from(bookmark: Bookmark) -> Self {
        Self { bookmark }
    }
}

#[pymethods]
impl PyBookmark {
    #[new]
    #[pyo3(signature = (offset, ordinal=None, first=None, before=None))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::offset)] offset: u64,
        #[pyo3(from_py_with = numbers::ordinal)] ordinal: Option<u64>,
        first: Option<&str>,
        before: Option<&str>,
    ) -> PyResult<Self> {
        let first = first.map(str::parse).transpose().or_raise(py)?;
        let before = before.map(str::parse).transpose().or_raise(py)?;
        Ok(Self { bookmark: Bookmark { offset, ordinal, first, before } })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        FIELDS
    }

    #[doc = doc!("Bookmark".offset)]
    #[getter]
    fn offset(&self) -> u64 {
        self.bookmark.offset
    }

    #[doc = doc!("Bookmark".ordinal)]
    #[getter]
    fn ordinal(&self) -> Option<u64> {
        self.bookmark.ordinal
    }

    #[doc = doc!("Bookmark".first)]
    #[getter]
    fn first(&self) -> Option<String> {
        self.bookmark.first.map(|first| first.to_string())
    }

    #[doc = doc!("Bookmark".before)]
    #[getter]
    fn before(&self) -> Option<String> {
        self.bookmark.before.map(|before| before.to_string())
    }

    #[doc = doc!("Bookmark".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item(FIELDS.0, self.offset())?;
        fields.set_item(FIELDS.1, self.ordinal())?;
        fields.set_item(FIELDS.2, self.first())?;
        fields.set_item(FIELDS.3, self.before())?;
        Ok(fields)
    }

    fn __getnewargs__(&self) -> (u64, Option<u64>, Option<String>, Option<String>) {
        (self.offset(), self.ordinal(), self.first(), self.before())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.__getnewargs__().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let known = |value: Option<String>| value.unwrap_or_else(|| "None".into());
        let quoted = |value: Option<String>| known(value.map(|value| format!("'{value}'")));
        let ordinal = known(self.ordinal().map(|ordinal| ordinal.to_string()));
        let (first, before) = (quoted(self.first()), quoted(self.before()));
        let offset = self.offset();
        format!("Bookmark(offset={offset}, ordinal={ordinal}, first={first}, before={before})")
    }
}
