//! One error type for every format: kind, format, place, and the durability of the data.

use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, by how the caller can react.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused an operation; the source is the `io::Error`.
    Io,
    /// The log, or a file of the log, does not exist.
    Missing,
    /// A log is created where one exists.
    AlreadyExists,
    /// The file is not of the format: wrong magic, version, size or file type. Or another log now
    /// lies at the path of an earlier read or split.
    NotALog,
    /// A layout that this version knows, but cannot read or write.
    Unsupported,
    /// Damage with intact records after it.
    Corrupt,
    /// Records that were acknowledged as durable are missing or damaged.
    LostRecords,
    /// Another writer holds the log, or a lock in its `.deedbook` was not free in time.
    Locked,
    /// An earlier write or sync failed; the handle takes no more writes.
    Poisoned,
    /// A write, or a wait for one's durability, through a handle opened for reading.
    ReadOnly,
    /// A call on a closed handle.
    Closed,
    /// A call on a handle opened before a fork, in the child.
    Forked,
    /// No record with the given number: the record never existed, or was dropped or cut off.
    OutOfRange,
    /// A number that would leave a gap in the log, or repeat a record.
    Contiguity,
    /// A record beyond the format's or the caller's limit.
    TooLarge,
    /// An argument outside its domain, or not allowed in the log's present state. Examples: to drop
    /// unsynced records, or records that a consumer needs.
    InvalidArgument,
}

impl ErrorKind {
    /// The kind's name as Python and JSON show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Missing => "missing",
            Self::AlreadyExists => "already_exists",
            Self::NotALog => "not_a_log",
            Self::Unsupported => "unsupported",
            Self::Corrupt => "corrupt",
            Self::LostRecords => "lost_records",
            Self::Locked => "locked",
            Self::Poisoned => "poisoned",
            Self::ReadOnly => "read_only",
            Self::Closed => "closed",
            Self::Forked => "forked",
            Self::OutOfRange => "out_of_range",
            Self::Contiguity => "contiguity",
            Self::TooLarge => "too_large",
            Self::InvalidArgument => "invalid_argument",
        }
    }
}

/// The durability of the data after a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durable {
    /// The data is not in the log; the write was rolled back or never began.
    No,
    /// The data may or may not be found after a restart.
    Unknown,
}

/// Why a call on a file of a closed log fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log is closed")
    }
}

impl std::error::Error for Closed {}

impl Closed {
    /// Whether a call failed because its log is closed.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// An error with its place. Small: one pointer.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    format: Option<&'static str>,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    durable: Option<Durable>,
    holder: Option<u32>,
    next_intact: Option<u64>,
    source: Option<io::Error>,
}

impl Error {
    /// An error of that kind; the message is lower case and names both values.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let message =
            if message.chars().any(steers) { Plain(message).to_string() } else { message };
        Self(Box::new(Inner {
            kind,
            format: None,
            message,
            path: None,
            offset: None,
            durable: None,
            holder: None,
            next_intact: None,
            source: None,
        }))
    }

    /// An error of the operating system, with the failed action.
    pub fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::Missing,
            io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            _ if Closed::is(&source) => ErrorKind::Closed,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("cannot {doing}: {source}")).at(path);
        error.0.source = Some(source);
        error
    }

    /// Name the file, unless one is named.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// Name the byte in the file.
    #[must_use]
    pub fn offset_at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Name the format, unless one is named.
    #[must_use]
    pub fn of(mut self, format: &'static str) -> Self {
        self.0.format.get_or_insert(format);
        self
    }

    /// Set the durability of the data.
    #[must_use]
    pub fn with_durable(mut self, durable: Durable) -> Self {
        self.0.durable = Some(durable);
        self
    }

    /// A poisoned handle refuses a call before the call writes anything: the log has nothing of it.
    pub(crate) fn if_poisoned_nothing_begun(self) -> Self {
        match self.kind() {
            ErrorKind::Poisoned => self.with_durable(Durable::No),
            _ => self,
        }
    }

    /// Name the process that holds the lock.
    #[must_use]
    pub fn with_holder(mut self, holder: Option<u32>) -> Self {
        self.0.holder = holder;
        self
    }

    /// Name the next intact record after the damage.
    #[must_use]
    pub fn with_next_intact(mut self, next_intact: Option<u64>) -> Self {
        self.0.next_intact = next_intact;
        self
    }

    /// Add the advice for the caller.
    #[must_use]
    pub(crate) fn with_advice(mut self, advice: &str) -> Self {
        self.0.message = format!("{}; {advice}", self.0.message);
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The log format, for example `"book"`.
    pub fn format(&self) -> Option<&'static str> {
        self.0.format
    }

    /// The text without the place. No character in it steers a terminal.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte in the file.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// For writes: the durability of the data.
    pub fn durable(&self) -> Option<Durable> {
        self.0.durable
    }

    /// For [`ErrorKind::Locked`]: the process that holds the lock, if known.
    pub fn holder(&self) -> Option<u32> {
        self.0.holder
    }

    /// For [`ErrorKind::Corrupt`] and [`ErrorKind::LostRecords`]: the next intact record.
    pub fn next_intact(&self) -> Option<u64> {
        self.0.next_intact
    }

    /// The error of the operating system, if that is the cause.
    pub fn io_source(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match (&self.0.path, self.0.offset) {
            (Some(path), Some(at)) => {
                write!(f, " (byte {} of {})", grouped(at), Plain(path.display()))?
            }
            (Some(path), None) => write!(f, " ({})", Plain(path.display()))?,
            (None, Some(at)) => write!(f, " (byte {})", grouped(at))?,
            (None, None) => {}
        }
        if let Some(next) = self.0.next_intact {
            write!(f, "; next intact record at byte {}", grouped(next))?;
        }
        Ok(())
    }
}

/// Text for people, with names and bytes from elsewhere. Characters that steer a terminal, or turn
/// the direction of text, are shown as `\u{1b}`.
pub(crate) struct Plain<T>(pub T);

impl<T: fmt::Display> fmt::Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut begin = 0;
        for (at, steering) in text.char_indices().filter(|(_, one)| steers(*one)) {
            write!(self.0, "{}{}", &text[begin..at], steering.escape_unicode())?;
            begin = at + steering.len_utf8();
        }
        self.0.write_str(&text[begin..])
    }
}

/// Whether a character is a control character, or turns the direction of text.
fn steers(one: char) -> bool {
    let turns =
        matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    one.is_control() || turns
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

/// The kind is the system error's. Damage is [`InvalidData`](io::ErrorKind::InvalidData), and all
/// else [`Other`](io::ErrorKind::Other). An interrupted call is `Other`, too, because callers would
/// repeat it. [`get_ref`](io::Error::get_ref) gives this error.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (error.io_source(), error.kind()) {
            (Some(source), _) if source.kind() != io::ErrorKind::Interrupted => source.kind(),
            (None, ErrorKind::Corrupt | ErrorKind::LostRecords) => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

/// A number with commas between thousands: `40,312`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_keep_their_kind() {
        let of = |kind: io::ErrorKind| Error::io("read", Path::new("log"), kind.into());
        for (error, kind) in [
            (of(io::ErrorKind::StorageFull), io::ErrorKind::StorageFull),
            (of(io::ErrorKind::Interrupted), io::ErrorKind::Other),
            (Error::new(ErrorKind::Corrupt, "deed 1"), io::ErrorKind::InvalidData),
            (Error::new(ErrorKind::Closed, "the log"), io::ErrorKind::Other),
        ] {
            let text = error.to_string();
            let error = io::Error::from(error);
            assert_eq!((error.kind(), error.to_string()), (kind, text));
            assert!(error.get_ref().is_some_and(|inner| inner.is::<Error>()));
        }
    }

    #[test]
    fn an_error_names_the_place_and_both_values() {
        let error = Error::new(ErrorKind::Corrupt, "deed 812: checksum 1ff78bc, stored 1ff78bd")
            .at(Path::new("book.log"))
            .offset_at(40_312)
            .with_next_intact(Some(1_040_400));
        assert_eq!(
            error.to_string(),
            "deed 812: checksum 1ff78bc, stored 1ff78bd (byte 40,312 of book.log); \
             next intact record at byte 1,040,400"
        );
    }

    #[test]
    fn no_text_steers_a_terminal() {
        // A job's name in a sidecar file had `ESC ]0;PWNED BEL ESC [31m`, and so may a directory's name.
        let raw = "\x1b]0;PWNED\x07\u{9b}31m\u{202e}\u{2066}\u{200f}\x7f\r\n";
        let error = Error::new(ErrorKind::Corrupt, format!("job {raw} of é"))
            .at(Path::new(raw))
            .offset_at(1);
        for shown in [error.to_string(), format!("{error:?}"), error.message().into()] {
            assert!(!shown.chars().any(steers), "{shown:?}");
            assert!(
                shown.contains(r"\u{1b}]0;PWNED\u{7}\u{9b}31m\u{202e}\u{2066}\u{200f}"),
                "{shown}"
            );
        }
        assert_eq!(error.path(), Some(Path::new(raw)));
        assert_eq!(Plain("plain é\u{1b}").to_string(), r"plain é\u{1b}");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let shown: Vec<_> = [0, 999, 1000, 1_234_567].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
