//! Values: a deed, the metadata.

use deedbook::book::Meta;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

#[pyclass(frozen, name = "Deed", module = "deedbook")]
pub struct PyDeed {
    #[pyo3(get)]
    pub event: Option<u64>,
    #[pyo3(get)]
    pub mug: u32,
    #[pyo3(get)]
    pub jam: Py<PyBytes>,
}

impl PyDeed {
    pub fn build(py: Python<'_>, event: Option<u64>, mug: u32, jam: &[u8]) -> Self {
        Self { event, mug, jam: PyBytes::new(py, jam).unbind() }
    }

    pub fn holds(&self, py: Python<'_>, mug: u32, jam: &[u8]) -> bool {
        self.mug == mug && self.jam.as_bytes(py) == jam
    }

    fn key(&self, py: Python<'_>) -> (Option<u64>, u32, &[u8]) {
        (self.event, self.mug, self.jam.as_bytes(py))
    }
}

#[pymethods]
impl PyDeed {
    #[new]
    fn new(event: Option<u64>, mug: u32, jam: Py<PyBytes>) -> Self {
        Self { event, mug, jam }
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.jam.as_bytes(py).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fields = (self.event, self.mug, self.jam.clone_ref(py)).into_pyobject(py)?;
        Ok(fields.into_any().try_iter()?.into_any())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let equal = match other.cast::<Self>() {
            Ok(other) => self.key(py) == other.get().key(py),
            Err(_) => return Ok(py.NotImplemented()),
        };
        match op {
            CompareOp::Eq => Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!equal).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let fields: Bound<'_, PyTuple> =
            (self.event, self.mug, self.jam.clone_ref(py)).into_pyobject(py)?;
        fields.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let jam = self.jam.as_bytes(py);
        let event = self.event.map_or("None".into(), |event| event.to_string());
        let shown = jam.get(..32).unwrap_or(jam).escape_ascii();
        let more = if jam.len() > 32 { format!("... {} bytes", jam.len()) } else { String::new() };
        format!("Deed(event={event}, mug={}, jam=b\"{shown}\"{more})", self.mug)
    }
}

#[pyclass(frozen, eq, name = "Meta", module = "deedbook")]
#[derive(PartialEq)]
pub struct PyMeta {
    #[pyo3(get)]
    who: Option<u128>,
    #[pyo3(get)]
    version: Option<u32>,
    #[pyo3(get)]
    life: Option<u32>,
    #[pyo3(get)]
    fake: Option<bool>,
}

impl From<Meta> for PyMeta {
    fn from(meta: Meta) -> Self {
        let Meta { who, version, life, fake } = meta;
        Self { who, version, life, fake }
    }
}

#[pymethods]
impl PyMeta {
    fn __repr__(&self) -> String {
        fn shown<T: ToString>(value: Option<T>) -> String {
            value.map_or("None".into(), |value| value.to_string())
        }
        let who = self.who.map_or("None".into(), |who| format!("{who:#x}"));
        let fake = self.fake.map_or("None", |fake| if fake { "True" } else { "False" });
        let (version, life) = (shown(self.version), shown(self.life));
        format!("Meta(who={who}, version={version}, life={life}, fake={fake})")
    }
}
