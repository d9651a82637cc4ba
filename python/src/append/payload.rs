//! Bytes in: any bytes-like object, within a limit, and iterables of them.

use deedbook::{Durable, Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::common::errors::to_py;
use crate::common::logging::check_signals;

/// Looks for Ctrl-C this often while an iterable is gathered.
const SIGNAL_ITEMS: u64 = 1024;
const SIGNAL_BYTES: usize = 1 << 20;

/// How long a payload may be.
#[derive(Clone, Copy)]
pub struct Limit {
    pub format: &'static str,
    pub noun: &'static str,
    pub bytes_max: u64,
}

impl Limit {
    /// Refuse long payloads before copying.
    fn check(self, py: Python<'_>, len: usize) -> PyResult<()> {
        let Self { format, noun, bytes_max } = self;
        match len as u64 <= bytes_max {
            true => Ok(()),
            false => {
                let message = format!("{noun} of {len} bytes, limit {bytes_max}");
                let error = Error::new(ErrorKind::TooLarge, message).of(format);
                Err(to_py(py, &error.with_durable(Durable::No)))
            }
        }
    }
}

/// The bytes of an object, unchanged while the GIL is released.
pub enum Payload<'a, 'py> {
    Borrowed(&'a [u8]),
    Copied(Vec<u8>),
    Held(Bound<'py, PyBytes>),
}

impl AsRef<[u8]> for Payload<'_, '_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
            Self::Held(bytes) => bytes.as_bytes(),
        }
    }
}

/// The bytes of an object: borrowed from `bytes`, which cannot change. Any other object is copied,
/// because another thread may change the object once the GIL is released.
pub fn bytes_of<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    limit: Limit,
) -> PyResult<Payload<'a, 'py>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Payload::Borrowed(bytes.as_bytes()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        limit.check(object.py(), bytes.len())?;
        return Ok(Payload::Copied(bytes.to_vec()));
    }
    let refuse = |raised: PyErr| {
        if !raised.is_instance_of::<PyTypeError>(object.py()) {
            return raised;
        }
        if object.is_instance_of::<PyString>() {
            return PyTypeError::new_err("bytes are needed, not str: encode it");
        }
        let name = object.get_type().name().map_or("?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("a bytes-like object is required, not {name:?}"))
    };
    let view = PyMemoryView::from(object).map_err(refuse)?;
    limit.check(object.py(), view.getattr("nbytes")?.extract()?)?;
    Ok(Payload::Held(view.call_method0("tobytes")?.cast_into::<PyBytes>()?))
}

/// Take every item of an iterable, which may be endless; `take` returns the bytes taken.
pub fn each<'py>(
    items: &Bound<'py, PyAny>,
    mut take: impl FnMut(&Bound<'py, PyAny>) -> PyResult<usize>,
) -> PyResult<()> {
    let (mut count, mut bytes) = (0, 0);
    for item in items.try_iter()? {
        bytes += take(&item?)?;
        count += 1;
        if count >= SIGNAL_ITEMS || bytes >= SIGNAL_BYTES {
            (count, bytes) = (0, 0);
            check_signals(items.py())?;
        }
    }
    Ok(())
}
