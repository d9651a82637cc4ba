//! Whether lines are JSON: the function `_not_json`, which the command line asks of its input.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

#[doc = doc!("_not_json")]
#[pyfunction]
#[pyo3(signature = (lines, /))]
pub fn _not_json(py: Python<'_>, lines: Vec<PyBackedBytes>) -> Vec<usize> {
    py.detach(|| {
        let wrong = lines.iter().enumerate().filter(|(_, line)| !is_json(line));
        wrong.map(|(index, _)| index).collect()
    })
}

fn is_json(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    let mut json = serde_json::Deserializer::from_str(text);
    IgnoredAny::deserialize(&mut json).and_then(|_| json.end()).is_ok()
}
