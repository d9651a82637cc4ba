//! Data to keep until it was sent: an interface, a store in memory, and the ledger behind the
//! interface.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;

use super::codec::Codec;
use super::fetch::fetched::{DataResult, Removable};
use super::fetch::reader::LedgerReader;
use super::store::LedgerStore;
use crate::error::Result;
use crate::ground::locks::{Mutex, lock};
use crate::scan::framing::Framing as _;

/// Keeps records until they were sent. All calls take `&self`, and any thread may make them. A
/// store locks only as needed: appending threads share a sync and do not wait for a fetch.
pub trait DataStore: Send + Sync {
    /// The result of a fetch.
    type Output;
    /// Names a part of it, to be removed.
    type Removable;

    /// Append a record. A record has at least a byte.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an empty record, and as the store below
    /// does.
    fn append(&self, payload: &[u8]) -> Result<()>;

    /// The oldest data: at most `count` parts, with at most `max_bytes` together, but always one.
    /// `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    fn fetch(
        &self,
        count: Option<usize>,
        max_bytes: Option<u64>,
    ) -> Result<Option<DataResult<Self::Output, Self::Removable>>>;

    /// Remove what was sent.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    fn remove(&self, items: &[Self::Removable]) -> Result<()>;

    /// Give back what was fetched and will not be sent now, so that other stores may send it. A store
    /// that nobody else can reach has nothing to do.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    fn release(&self, _items: &[Self::Removable]) -> Result<()> {
        Ok(())
    }

    /// Whether there is anything to be sent.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    fn has_data(&self) -> Result<bool>;

    /// Remove everything.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    fn reset(&self) -> Result<()>;
}

impl DataStore for LedgerStore {
    type Output = Vec<LedgerReader>;
    type Removable = Removable;

    fn append(&self, payload: &[u8]) -> Result<()> {
        LedgerStore::append(self, payload).map(drop)
    }

    fn fetch(
        &self,
        count: Option<usize>,
        max_bytes: Option<u64>,
    ) -> Result<Option<DataResult<Self::Output>>> {
        LedgerStore::fetch(self, count, max_bytes)
    }

    fn remove(&self, items: &[Removable]) -> Result<()> {
        LedgerStore::remove(self, items)
    }

    fn release(&self, items: &[Removable]) -> Result<()> {
        LedgerStore::release(self, items)
    }

    fn has_data(&self) -> Result<bool> {
        LedgerStore::has_data(self)
    }

    fn reset(&self) -> Result<()> {
        LedgerStore::reset(self)
    }
}

/// Records in memory, for tests and for data that may end with the process. Each part of a fetch is
/// a single record. A record has at least one byte; its size and the number of records have no limit.
#[derive(Debug, Default)]
pub struct MemoryStore {
    records: Mutex<Numbered>,
}

/// Records with unique numbers.
#[derive(Debug, Default)]
struct Numbered {
    records: VecDeque<(u64, Vec<u8>)>,
    next: u64,
}

impl MemoryStore {
    /// Without records.
    pub fn new() -> Self {
        Self::default()
    }
}

impl DataStore for MemoryStore {
    type Output = Vec<Vec<u8>>;
    type Removable = u64;

    fn append(&self, payload: &[u8]) -> Result<()> {
        Codec::new(u64::MAX).check_len(payload.len())?;
        let mut numbered = lock(&self.records);
        let number = numbered.next;
        numbered.next += 1;
        numbered.records.push_back((number, payload.to_vec()));
        Ok(())
    }

    fn fetch(
        &self,
        count: Option<usize>,
        max_bytes: Option<u64>,
    ) -> Result<Option<DataResult<Self::Output, u64>>> {
        let (mut data, mut removable, mut bytes) = (Vec::new(), Vec::new(), 0u64);
        let records = &lock(&self.records).records;
        for (number, payload) in records.iter().take(count.unwrap_or(usize::MAX)) {
            bytes = bytes.saturating_add(payload.len() as u64);
            if !data.is_empty() && max_bytes.is_some_and(|max| bytes > max) {
                break;
            }
            data.push(payload.clone());
            removable.push(*number);
        }
        let more = removable.len() < records.len();
        let result = DataResult { data: Some(data), removable: Some(removable), more };
        Ok(Some(result).filter(|result| result.removable.as_ref().is_some_and(|r| !r.is_empty())))
    }

    fn remove(&self, items: &[u64]) -> Result<()> {
        lock(&self.records).records.retain(|(number, _)| !items.contains(number));
        Ok(())
    }

    fn has_data(&self) -> Result<bool> {
        Ok(!lock(&self.records).records.is_empty())
    }

    fn reset(&self) -> Result<()> {
        lock(&self.records).records.clear();
        Ok(())
    }
}

/// A store shared by threads: clones are the same one.
///
/// ```
/// # struct Request;
/// # impl Request {
/// #     fn set(&self, name: &str, value: &str) -> Self {
/// #         assert!(name == "Content-Length" && value == "58", "{name}: {value}");
/// #         Self
/// #     }
/// #     fn send(&self, mut body: impl std::io::Read) -> std::io::Result<()> {
/// #         let mut sent = String::new();
/// #         body.read_to_string(&mut sent)?;
/// #         assert_eq!(sent, r#"{"batch":[{"event":"page_view"},{"event":"button_click"}]}"#);
/// #         Ok(())
/// #     }
/// # }
/// use deedbook::ledger::{LedgerConfig, LedgerStore, TransientDB};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let request = Request;
/// let config = LedgerConfig {
///     storage_location: dir.path().join("events"),
///     base_filename: "events".into(),
///     max_file_size: 475_000,
///     header: Box::new(|| br#"{"batch":["#.to_vec()),
///     footer: Box::new(|| b"]}".to_vec()),
///     separator: b",".to_vec(),
/// };
/// // Full lifecycle through TransientDB
/// let db = TransientDB::new(LedgerStore::new(config)?);
///
/// // append side
/// db.append(json!({"event": "page_view"}))?;
/// db.append(json!({"event": "button_click"}))?;
///
/// // send side
/// if let Some(result) = db.fetch(None, None)? {
///     let readers = result.data.unwrap();
///     let removable = result.removable.unwrap();
///
///     for reader in readers {
///         request
///             .set("Content-Length", &reader.content_length().to_string())
///             .send(reader)?; // reader implements Read
///     }
///
///     // all sent successfully: delete the files
///     db.remove(&removable)?;
/// }
/// # assert!(!db.has_data()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TransientDB<S> {
    store: Arc<S>,
}

impl<S> Clone for TransientDB<S> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<S: DataStore> TransientDB<S> {
    /// Share a store.
    pub fn new(store: S) -> Self {
        Self { store: Arc::new(store) }
    }

    /// The store itself, for calls outside the interface.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Append an event as it is displayed; a JSON value of the usual crates is displayed compact.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn append(&self, event: impl Display) -> Result<()> {
        self.append_bytes(event.to_string().as_bytes())
    }

    /// Append an event that is bytes already.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn append_bytes(&self, payload: &[u8]) -> Result<()> {
        self.store.append(payload)
    }

    /// The oldest data; see [`DataStore::fetch`].
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn fetch(
        &self,
        count: Option<usize>,
        max_bytes: Option<u64>,
    ) -> Result<Option<DataResult<S::Output, S::Removable>>> {
        self.store.fetch(count, max_bytes)
    }

    /// Remove what was sent.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn remove(&self, items: &[S::Removable]) -> Result<()> {
        self.store.remove(items)
    }

    /// Give back what will not be sent now; see [`DataStore::release`].
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn release(&self, items: &[S::Removable]) -> Result<()> {
        self.store.release(items)
    }

    /// Whether there is anything to be sent.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn has_data(&self) -> Result<bool> {
        self.store.has_data()
    }

    /// Remove everything.
    ///
    /// # Errors
    ///
    /// Fails as the store below does.
    pub fn reset(&self) -> Result<()> {
        self.store.reset()
    }
}
