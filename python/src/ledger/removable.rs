//! The class `Removable`: the identity of a ledger's file to remove.

use deedbook::ledger::Removable;
use deedbook::storage::FileId;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::arguments::numbers;
use crate::common::errors::unsupported;

const FIELDS: [&str; 5] = ["index", "device", "inode", "born_ns", "quarantine"];
type Values = (u32, u64, u64, u64, bool);

#[doc = doc!("Removable")]
#[pyclass(frozen, eq, hash, name = "Removable", module = "deedbook")]
#[derive(PartialEq, Eq, Hash)]
pub struct PyRemovable(pub Removable);

impl PyRemovable {
    fn values(&self) -> Values {
        let FileId { device, inode, created_ns } = self.0.file();
        (self.0.index(), device, inode, created_ns, self.0.is_quarantined())
    }
}

/// A later file may reuse an inode. Only the birth time tells the files apart. A file without a
/// birth time is therefore named only during the life of its handle, because the handle keeps the
/// file open.
fn check_born(py: Python<'_>, born_ns: u64) -> PyResult<()> {
    match born_ns {
        0 => {
            let message = "the file system notes no birth of files, so that a removable holds only \
                           in the process that fetched it";
            Err(unsupported(py, message))
        }
        _ => Ok(()),
    }
}

#[pymethods]
impl PyRemovable {
    #[new]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::index)] index: u32,
        #[pyo3(from_py_with = numbers::device)] device: u64,
        #[pyo3(from_py_with = numbers::inode)] inode: u64,
        #[pyo3(from_py_with = numbers::born_ns)] born_ns: u64,
        quarantine: bool,
    ) -> PyResult<Self> {
        check_born(py, born_ns)?;
        let file = FileId { device, inode, created_ns: born_ns };
        Ok(Self(Removable::new(index, file, quarantine)))
    }

    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(PyTuple::new(py, FIELDS)?.unbind())
    }

    fn __getnewargs__(&self, py: Python<'_>) -> PyResult<Values> {
        check_born(py, self.born_ns())?;
        Ok(self.values())
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    #[doc = doc!("Removable".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip(self.values().into_pyobject(py)?) {
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }

    #[doc = doc!("Removable".index)]
    #[getter]
    fn index(&self) -> u32 {
        self.0.index()
    }

    #[doc = doc!("Removable".device)]
    #[getter]
    fn device(&self) -> u64 {
        self.0.file().device
    }

    #[doc = doc!("Removable".inode)]
    #[getter]
    fn inode(&self) -> u64 {
        self.0.file().inode
    }

    #[doc = doc!("Removable".born_ns)]
    #[getter]
    fn born_ns(&self) -> u64 {
        self.0.file().created_ns
    }

    #[doc = doc!("Removable".quarantine)]
    #[getter]
    fn quarantine(&self) -> bool {
        self.0.is_quarantined()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = FIELDS.iter().zip(self.values().into_pyobject(py)?);
        let shown = fields.map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
        Ok(format!("Removable({})", shown.collect::<PyResult<Vec<_>>>()?.join(", ")))
    }
}
