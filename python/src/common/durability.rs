//! The class `Durability`, and the argument `durability` of every `open`.

use std::time::Duration;

use deedbook::Durability;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyString};

use crate::common::arguments::numbers;
use crate::common::errors::invalid;

/// The values that the argument may have, for errors.
const SPELLINGS: &str =
    "\"always\", \"manual\", \"none\", timedelta(milliseconds=N) or Durability.bytes(N)";

#[doc = doc!("Durability")]
#[pyclass(frozen, eq, hash, name = "Durability", module = "deedbook")]
#[derive(PartialEq, Eq, Hash)]
pub struct PyDurability {
    #[doc = doc!("Durability".n)]
    #[pyo3(get)]
    n: u64,
}

#[pymethods]
impl PyDurability {
    #[new]
    fn new(py: Python<'_>, #[pyo3(from_py_with = numbers::n)] n: u64) -> PyResult<Self> {
        match n {
            0 => {
                Err(invalid(py, "Durability.bytes(0), must be at least Durability.bytes(1)".into()))
            }
            n => Ok(Self { n }),
        }
    }

    #[doc = doc!("Durability".bytes)]
    #[staticmethod]
    fn bytes(py: Python<'_>, #[pyo3(from_py_with = numbers::n)] n: u64) -> PyResult<Self> {
        Self::new(py, n)
    }

    fn __getnewargs__(&self) -> (u64,) {
        (self.n,)
    }

    fn __repr__(&self) -> String {
        format!("Durability.bytes({})", self.n)
    }
}

/// The argument, for `from_py_with`; `None` where the format's own is wanted.
pub fn durability(given: &Bound<'_, PyAny>) -> PyResult<Option<Durability>> {
    if given.is_none() {
        return Ok(None);
    }
    if let Ok(word) = given.cast::<PyString>() {
        return by_word(given.py(), &word.to_cow()?).map(Some);
    }
    if let Ok(bytes) = given.cast::<PyDurability>() {
        return Ok(Some(Durability::Bytes(bytes.get().n)));
    }
    if given.is_instance_of::<PyDelta>() {
        let message = |_| invalid(given.py(), format!("durability {given}, must not be negative"));
        let time = given.extract::<Duration>().map_err(message)?;
        return Ok(Some(Durability::Interval(time)));
    }
    let class = given.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("durability must be {SPELLINGS}, not {class:?}")))
}

/// The words, and of the strings that there were, what is written now.
fn by_word(py: Python<'_>, word: &str) -> PyResult<Durability> {
    let now = match word.split_once(':') {
        None => match word {
            "always" => return Ok(Durability::Always),
            "manual" => return Ok(Durability::Manual),
            "none" => return Ok(Durability::None),
            "rotate" => "\"manual\"".into(),
            _ => SPELLINGS.into(),
        },
        Some(("interval", milliseconds)) => format!("timedelta(milliseconds={milliseconds})"),
        Some(("bytes", bytes)) => format!("Durability.bytes({bytes})"),
        Some(_) => SPELLINGS.into(),
    };
    Err(invalid(py, format!("durability {word:?}, must be {now}")))
}

/// A durability as it is given.
pub fn shown(py: Python<'_>, durability: Durability) -> PyResult<Bound<'_, PyAny>> {
    match durability {
        Durability::Always => "always".into_bound_py_any(py),
        Durability::None => "none".into_bound_py_any(py),
        Durability::Bytes(n) => PyDurability { n }.into_bound_py_any(py),
        Durability::Interval(time) => time.into_bound_py_any(py),
        // `Rotate` of a ledger, too: the two do the same there.
        _ => "manual".into_bound_py_any(py),
    }
}

/// How it is written in the `repr` of a handle.
pub fn in_repr(py: Python<'_>, durability: Durability) -> String {
    let text = shown(py, durability).and_then(|shown| Ok(shown.repr()?.to_string()));
    text.unwrap_or_else(|_| durability.to_string())
}
