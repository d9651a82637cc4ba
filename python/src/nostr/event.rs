//! The class `Event`, and the Python values for events, ids and places.

use std::fmt::Write;

use deedbook::nostr::{Event, Flags, Id, Location, StoredEvent};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::append::payload::{Limit, bytes_of};
use crate::common::errors::{OrRaise, invalid};

const FIELDS: [&str; 7] = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"];

/// The number of the segment, and the byte of its file.
pub type Place = (u32, u32);

/// An event's JSON may be longer than its record, because of escapes.
const JSON: Limit = Limit { format: "nostr", noun: "event", bytes_max: 1 << 30 };

#[doc = doc!("Event")]
#[pyclass(frozen, name = "Event", module = "deedbook")]
pub struct PyEvent {
    event: Event,
    location: Option<Location>,
    flags: Flags,
}

impl From<StoredEvent> for PyEvent {
    fn from(stored: StoredEvent) -> Self {
        let StoredEvent { event, location, flags } = stored;
        Self { event, location: Some(location), flags }
    }
}

pub fn place_of(location: Location) -> Place {
    (location.segment, location.offset)
}

pub fn location_of((segment, offset): Place) -> Location {
    Location { segment, offset }
}

pub fn flags_of(deleted: bool, replaced: bool) -> Flags {
    flag(deleted, Flags::DELETED) | flag(replaced, Flags::REPLACED)
}

fn flag(set: bool, flag: Flags) -> Flags {
    if set { flag } else { Flags::default() }
}

fn class_of(given: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(given.get_type().name()?.to_string())
}

/// An event in any of Python's forms: a dictionary, JSON, or an `Event`.
pub fn event_of(given: &Bound<'_, PyAny>) -> PyResult<Event> {
    let py = given.py();
    if let Ok(event) = given.cast::<PyEvent>() {
        return Ok(event.get().event.clone());
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Event::from_json(text.to_str()?.as_bytes()).or_raise(py);
    }
    if let Ok(fields) = given.cast::<PyDict>() {
        return event_of_fields(fields);
    }
    let bytes = bytes_of(given, JSON).map_err(|raised| match class_of(given) {
        Ok(class) if raised.is_instance_of::<PyTypeError>(py) => {
            PyTypeError::new_err(format!("an event is a dict, JSON or an Event, not {class:?}"))
        }
        _ => raised,
    })?;
    Event::from_json(bytes.as_ref()).or_raise(py)
}

/// Through JSON, because the fields are checked in one place only.
fn event_of_fields(fields: &Bound<'_, PyDict>) -> PyResult<Event> {
    let py = fields.py();
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    let text = py.import("json")?.call_method("dumps", (fields,), Some(&options))?;
    Event::from_json(text.cast::<PyString>()?.to_str()?.as_bytes()).or_raise(py)
}

/// An id in any of Python's forms.
pub fn id_of(given: &Bound<'_, PyAny>) -> PyResult<Id> {
    let py = given.py();
    if let Ok(text) = given.cast::<PyString>() {
        return text.to_str()?.parse().or_raise(py);
    }
    let Ok(bytes) = given.cast::<PyBytes>() else {
        let class = class_of(given)?;
        return Err(PyTypeError::new_err(format!("an id is a str or bytes, not {class:?}")));
    };
    let bytes = bytes.as_bytes();
    let wrong = || invalid(py, format!("id of {} bytes, 32 needed", bytes.len()));
    Ok(Id(bytes.try_into().map_err(|_| wrong())?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a String takes everything
        text
    })
}

#[pymethods]
impl PyEvent {
    #[new]
    #[pyo3(signature = (id, pubkey, created_at, kind, tags, content, sig, *, location=None,
                        deleted=false, replaced=false, lossy=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        id: Bound<'_, PyAny>,
        pubkey: Bound<'_, PyAny>,
        created_at: Bound<'_, PyAny>,
        kind: Bound<'_, PyAny>,
        tags: Bound<'_, PyAny>,
        content: Bound<'_, PyAny>,
        sig: Bound<'_, PyAny>,
        location: Option<Place>,
        deleted: bool,
        replaced: bool,
        lossy: bool,
    ) -> PyResult<Self> {
        let fields = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip([id, pubkey, created_at, kind, tags, content, sig]) {
            fields.set_item(name, value)?;
        }
        let event = event_of_fields(&fields)?;
        let flags = flags_of(deleted, replaced) | flag(lossy, Flags::LOSSY);
        Ok(Self { event, location: location.map(location_of), flags })
    }

    #[doc = doc!("Event".from_json)]
    #[staticmethod]
    fn from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        if text.is_instance_of::<PyDict>() || text.is_instance_of::<Self>() {
            let class = class_of(text)?;
            return Err(PyTypeError::new_err(format!("JSON is a str or bytes, not {class:?}")));
        }
        let event = event_of(text)?;
        Ok(Self { event, location: None, flags: Flags::default() })
    }

    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(PyTuple::new(py, FIELDS)?.unbind())
    }

    #[doc = doc!("Event".id)]
    #[getter]
    fn id(&self) -> String {
        self.event.id.to_string()
    }

    #[doc = doc!("Event".pubkey)]
    #[getter]
    fn pubkey(&self) -> String {
        hex(&self.event.pubkey)
    }

    #[doc = doc!("Event".created_at)]
    #[getter]
    fn created_at(&self) -> u32 {
        self.event.created_at
    }

    #[doc = doc!("Event".kind)]
    #[getter]
    fn kind(&self) -> u16 {
        self.event.kind
    }

    #[doc = doc!("Event".tags)]
    #[getter]
    fn tags(&self) -> Vec<Vec<String>> {
        self.event.tags.clone()
    }

    #[doc = doc!("Event".content)]
    #[getter]
    fn content(&self) -> &str {
        &self.event.content
    }

    #[doc = doc!("Event".sig)]
    #[getter]
    fn sig(&self) -> String {
        hex(&self.event.sig)
    }

    #[doc = doc!("Event".location)]
    #[getter]
    fn location(&self) -> Option<Place> {
        self.location.map(place_of)
    }

    #[doc = doc!("Event".position)]
    #[getter]
    fn position(&self) -> Option<Place> {
        self.location()
    }

    #[doc = doc!("Event".payload)]
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.event.to_json().as_bytes())
    }

    #[doc = doc!("Event".deleted)]
    #[getter]
    fn deleted(&self) -> bool {
        self.flags.contains(Flags::DELETED)
    }

    #[doc = doc!("Event".replaced)]
    #[getter]
    fn replaced(&self) -> bool {
        self.flags.contains(Flags::REPLACED)
    }

    #[doc = doc!("Event".lossy)]
    #[getter]
    fn lossy(&self) -> bool {
        self.flags.contains(Flags::LOSSY)
    }

    #[doc = doc!("Event".check_id)]
    fn check_id(&self, py: Python<'_>) -> PyResult<()> {
        self.event.check_id(&mut Vec::new()).or_raise(py)
    }

    #[doc = doc!("Event".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("id", self.id())?;
        fields.set_item("pubkey", self.pubkey())?;
        fields.set_item("created_at", self.created_at())?;
        fields.set_item("kind", self.kind())?;
        fields.set_item("tags", self.tags())?;
        fields.set_item("content", self.content())?;
        fields.set_item("sig", self.sig())?;
        Ok(fields)
    }

    #[doc = doc!("Event".to_json)]
    fn to_json(&self) -> String {
        self.event.to_json()
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let fields = PyTuple::new(py, self.to_dict(py)?.values())?;
        let named = PyDict::new(py);
        named.set_item("location", self.location())?;
        named.set_item("deleted", self.deleted())?;
        named.set_item("replaced", self.replaced())?;
        named.set_item("lossy", self.lossy())?;
        Ok((fields, named))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => Ok((self.event == other.get().event).into_pyobject(py)?.to_owned().into()),
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    /// The beginning of the id is as good as any hash.
    fn __hash__(&self) -> u64 {
        self.event.id.0.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Event { id, kind, created_at, content, .. } = &self.event;
        let first: String = content.chars().take(40).collect();
        let more = if first.len() < content.len() { "..." } else { "" };
        let first = PyString::new(py, &first).repr()?;
        Ok(format!("<Event {id}, kind {kind}, at {created_at}, {first}{more}>"))
    }
}
