//! Arguments of an event store's methods: words and filters.

use deedbook::nostr::{Check, Filter, History, Include};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::common::errors::{OrRaise, invalid};

pub fn check(py: Python<'_>, word: &str) -> PyResult<Check> {
    match word {
        "none" => Ok(Check::None),
        "id" => Ok(Check::Id),
        "signature" => Ok(Check::Signature),
        _ => Err(unknown(py, "check", word, "\"none\", \"id\", \"signature\"")),
    }
}

pub fn include(py: Python<'_>, word: &str) -> PyResult<Include> {
    match word {
        "live" => Ok(Include::Live),
        "all" => Ok(Include::All),
        _ => Err(unknown(py, "include", word, "\"live\", \"all\"")),
    }
}

pub fn history(py: Python<'_>, word: &str) -> PyResult<History> {
    match word {
        "drop" => Ok(History::Drop),
        "keep" => Ok(History::Keep),
        _ => Err(unknown(py, "history", word, "\"drop\", \"keep\"")),
    }
}

/// The word of a history.
pub fn word_of(history: History) -> &'static str {
    match history {
        History::Drop => "drop",
        _ => "keep",
    }
}

fn unknown(py: Python<'_>, what: &str, word: &str, known: &str) -> PyErr {
    invalid(py, format!("{what} {word:?}, must be one of {known}"))
}

/// Filters as Python may give them: JSON, or what JSON is made of.
pub fn filters(given: &Bound<'_, PyAny>) -> PyResult<Vec<Filter>> {
    let py = given.py();
    let text = match given.cast::<PyString>() {
        Ok(text) => text.clone(),
        Err(_) if given.is_instance_of::<PyDict>() || given.is_instance_of::<PyList>() => {
            py.import("json")?.call_method1("dumps", (given,))?.cast_into()?
        }
        Err(_) => {
            let class = given.get_type().name()?.to_string();
            let message = format!("a filter is a dict, a list of them, or JSON, not {class:?}");
            return Err(PyTypeError::new_err(message));
        }
    };
    Filter::parse_any(text.to_str()?).or_raise(py)
}
