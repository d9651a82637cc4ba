//! Values: a deed of a book, a record of a write-ahead log or of a ledger, a book's metadata.

use deedbook::book::Meta;
use deedbook::ledger;
use deedbook::wal;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::append::positions::PyLedgerPosition;
use crate::common::arguments::numbers;

/// The first bytes of a payload, for `repr`.
fn shown(payload: &[u8]) -> String {
    let first = payload.get(..32).unwrap_or(payload).escape_ascii();
    let len = payload.len();
    let more = if len > 32 { format!("... {len} bytes") } else { String::new() };
    format!("b\"{first}\"{more}")
}

/// Equal or not; there is no order.
fn compared(py: Python<'_>, op: CompareOp, equal: Option<bool>) -> PyResult<Py<PyAny>> {
    let answer = match (op, equal) {
        (CompareOp::Eq, Some(equal)) => equal,
        (CompareOp::Ne, Some(equal)) => !equal,
        _ => return Ok(py.NotImplemented()),
    };
    Ok(answer.into_pyobject(py)?.to_owned().into_any().unbind())
}

#[doc = doc!("Deed")]
#[pyclass(frozen, name = "Deed", module = "deedbook")]
pub struct PyDeed {
    #[doc = doc!("Deed".event)]
    #[pyo3(get)]
    pub event: Option<u64>,
    #[doc = doc!("Deed".mug)]
    #[pyo3(get)]
    mug: u32,
    #[doc = doc!("Deed".jam)]
    #[pyo3(get)]
    jam: Py<PyBytes>,
}

impl PyDeed {
    pub fn build(py: Python<'_>, event: Option<u64>, mug: u32, jam: &[u8]) -> Self {
        Self { event, mug, jam: PyBytes::new(py, jam).unbind() }
    }

    pub fn holds(&self, py: Python<'_>, mug: u32, jam: &[u8]) -> bool {
        self.mug == mug && self.jam.as_bytes(py) == jam
    }
}

#[pymethods]
impl PyDeed {
    #[new]
    fn new(
        #[pyo3(from_py_with = numbers::event)] event: Option<u64>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
        jam: Py<PyBytes>,
    ) -> Self {
        Self { event, mug, jam }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("event", "mug", "jam")
    }

    #[doc = doc!("Deed".position)]
    #[getter]
    fn position(&self) -> Option<u64> {
        self.event
    }

    #[doc = doc!("Deed".payload)]
    #[getter]
    fn payload(&self, py: Python<'_>) -> Py<PyBytes> {
        self.jam.clone_ref(py)
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.event, self.mug, self.jam.clone_ref(py)).into_pyobject(py)
    }

    #[doc = doc!("Deed".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("event", self.event)?;
        fields.set_item("mug", self.mug)?;
        fields.set_item("jam", &self.jam)?;
        Ok(fields)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.jam.as_bytes(py).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.__getnewargs__(py)?.into_any().try_iter()?.into_any())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let other = other.cast::<Self>().ok().map(Bound::get);
        let equal = other.map(|other| {
            self.event == other.event && self.holds(py, other.mug, other.jam.as_bytes(py))
        });
        compared(py, op, equal)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let event = self.event.map_or("None".into(), |event| event.to_string());
        format!("Deed(event={event}, mug={}, jam={})", self.mug, shown(self.jam.as_bytes(py)))
    }
}

#[doc = doc!("Record")]
#[pyclass(frozen, name = "Record", module = "deedbook")]
pub struct PyRecord {
    #[doc = doc!("Record".lsn)]
    #[pyo3(get)]
    pub lsn: u64,
    #[doc = doc!("Record".payload)]
    #[pyo3(get)]
    payload: Py<PyBytes>,
}

impl PyRecord {
    pub fn build(py: Python<'_>, lsn: u64, payload: &[u8]) -> Self {
        Self { lsn, payload: PyBytes::new(py, payload).unbind() }
    }

    fn record<'a>(&'a self, py: Python<'a>) -> wal::Record<&'a [u8]> {
        wal::Record { lsn: wal::Lsn(self.lsn), payload: self.payload.as_bytes(py) }
    }

    pub fn holds(&self, py: Python<'_>, payload: &[u8]) -> bool {
        self.payload.as_bytes(py) == payload
    }
}

#[pymethods]
impl PyRecord {
    #[new]
    fn new(#[pyo3(from_py_with = numbers::lsn)] lsn: u64, payload: Py<PyBytes>) -> Self {
        Self { lsn, payload }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("lsn", "payload")
    }

    #[doc = doc!("Record".position)]
    #[getter]
    fn position(&self) -> u64 {
        self.lsn
    }

    #[doc = doc!("Record".next_lsn)]
    #[getter]
    fn next_lsn(&self, py: Python<'_>) -> u64 {
        self.record(py).next_lsn().0
    }

    #[doc = doc!("Record".parts)]
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        Some(self.record(py).parts()?.map(|part| PyBytes::new(py, part)).collect())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.lsn, self.payload.clone_ref(py)).into_pyobject(py)
    }

    #[doc = doc!("Record".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("lsn", self.lsn)?;
        fields.set_item("payload", &self.payload)?;
        Ok(fields)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.payload.as_bytes(py).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.__getnewargs__(py)?.into_any().try_iter()?.into_any())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let other = other.cast::<Self>().ok().map(Bound::get);
        let equal =
            other.map(|other| self.lsn == other.lsn && self.holds(py, other.payload.as_bytes(py)));
        compared(py, op, equal)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("Record(lsn={}, payload={})", self.lsn, shown(self.payload.as_bytes(py)))
    }
}

#[doc = doc!("LedgerRecord")]
#[pyclass(frozen, name = "LedgerRecord", module = "deedbook")]
pub struct PyLedgerRecord {
    #[doc = doc!("LedgerRecord".file)]
    #[pyo3(get)]
    file: u32,
    #[doc = doc!("LedgerRecord".record)]
    #[pyo3(get)]
    record: Option<u64>,
    #[doc = doc!("LedgerRecord".payload)]
    #[pyo3(get)]
    payload: Py<PyBytes>,
}

impl PyLedgerRecord {
    pub fn build(py: Python<'_>, file: u32, record: Option<u64>, payload: &[u8]) -> Self {
        Self { file, record, payload: PyBytes::new(py, payload).unbind() }
    }
}

#[pymethods]
impl PyLedgerRecord {
    #[new]
    fn new(
        #[pyo3(from_py_with = numbers::file)] file: u32,
        #[pyo3(from_py_with = numbers::record)] record: Option<u64>,
        payload: Py<PyBytes>,
    ) -> Self {
        Self { file, record, payload }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("file", "record", "payload")
    }

    #[doc = doc!("LedgerRecord".position)]
    #[getter]
    fn position(&self) -> Option<PyLedgerPosition> {
        let (file, record) = (self.file, self.record?);
        Some(PyLedgerPosition(ledger::Position { file, record }))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.file, self.record, self.payload.clone_ref(py)).into_pyobject(py)
    }

    #[doc = doc!("LedgerRecord".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("file", self.file)?;
        fields.set_item("record", self.record)?;
        fields.set_item("payload", &self.payload)?;
        Ok(fields)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.payload.as_bytes(py).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.__getnewargs__(py)?.into_any().try_iter()?.into_any())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let other = other.cast::<Self>().ok().map(Bound::get);
        let equal = other.map(|other| {
            let same = (self.file, self.record) == (other.file, other.record);
            same && self.payload.as_bytes(py) == other.payload.as_bytes(py)
        });
        compared(py, op, equal)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let record = self.record.map_or("None".into(), |record| record.to_string());
        let payload = shown(self.payload.as_bytes(py));
        format!("LedgerRecord(file={}, record={record}, payload={payload})", self.file)
    }
}

#[doc = doc!("Meta")]
#[pyclass(frozen, eq, get_all, from_py_object, name = "Meta", module = "deedbook")]
#[derive(Clone, PartialEq)]
pub struct PyMeta {
    #[doc = doc!("Meta".who)]
    who: Option<u128>,
    #[doc = doc!("Meta".version)]
    version: Option<u32>,
    #[doc = doc!("Meta".life)]
    life: Option<u32>,
    #[doc = doc!("Meta".fake)]
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
    #[new]
    #[pyo3(signature = (who=None, version=None, life=None, fake=None))]
    fn new(
        #[pyo3(from_py_with = numbers::who)] who: Option<u128>,
        #[pyo3(from_py_with = numbers::version)] version: Option<u32>,
        #[pyo3(from_py_with = numbers::life)] life: Option<u32>,
        fake: Option<bool>,
    ) -> Self {
        Self { who, version, life, fake }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        ("who", "version", "life", "fake")
    }

    fn __getnewargs__(&self) -> (Option<u128>, Option<u32>, Option<u32>, Option<bool>) {
        (self.who, self.version, self.life, self.fake)
    }

    #[doc = doc!("Meta".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("who", self.who)?;
        fields.set_item("version", self.version)?;
        fields.set_item("life", self.life)?;
        fields.set_item("fake", self.fake)?;
        Ok(fields)
    }

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
