//! The public types: newtypes around the [`Log`](super::Log) of a format, each with the verbs of every log on its own
//! page. A format adds more verbs.

/// Define methods that call the inner log's method of the same name.
macro_rules! verbs {
    ($name:ident: $($(#[$about:meta])* fn $verb:ident(&self $(, $arg:ident: $kind:ty)*) -> $given:ty;)*) => {
        impl $name {
            $($(#[$about])* pub fn $verb(&self $(, $arg: $kind)*) -> $given {
                self.0.$verb($($arg),*)
            })*
        }
    };
}

/// Define the type of a log, and the types of its walks. With `reads` the type has the verbs of
/// reading, with `writes` all verbs.
macro_rules! facade {
    ($(#[$doc:meta])* $name:ident($format:ty) reads) => {
        pub(crate) type Cursor = $crate::Cursor<$format>;
        pub(crate) type Iter = $crate::Iter<$format>;

        impl Options {
            /// Check every record of a part from [`splits`]($name::splits), without opening the log. `progress` gets
            /// the bytes done and the total, and its error ends the check.
            ///
            /// # Errors
            ///
            /// Fails where there is no log that can be read. Damage is no error: the report has it. An error of
            /// `progress` ends the work and is returned.
            pub fn verify_part(
                &self,
                split: &$crate::jobs::Split,
                progress: impl FnMut(u64, u64) -> $crate::Result<()>,
            ) -> $crate::Result<$crate::report::VerifyReport> {
                $crate::log::check::<$format>(split, self, progress)
            }
        }

        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name($crate::log::Log<$format>);

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        /// All present records.
        impl IntoIterator for &$name {
            type Item = <Iter as Iterator>::Item;
            type IntoIter = Iter;

            fn into_iter(self) -> Iter {
                self.0.all()
            }
        }

        $crate::log::verbs! { $name:
            /// Sync, cut the space reserved ahead, and release the lock. A second call waits for
            /// the first, and fails if the first failed. The call closes all files and maps, even
            /// if cursors and followers are left: they fail with
            /// [`ErrorKind::Closed`](crate::ErrorKind::Closed).
            ///
            /// # Errors
            ///
            /// Fails if the last sync fails. The handle is closed all the same.
            fn close(&self) -> $crate::Result<()>;
            /// Whether the handle is closed.
            fn is_closed(&self) -> bool;
            /// The mode of the handle.
            fn mode(&self) -> $crate::Mode;
            /// The options of the opening.
            fn options(&self) -> &Options;
            /// The report of the opening.
            fn recovery(&self) -> &$crate::report::OpenReport;
            /// Counts of this handle since the opening.
            ///
            /// # Errors
            ///
            /// Fails for a closed handle; see [Errors](crate#errors).
            fn stats(&self) -> $crate::Result<$crate::Stats>;
            /// The log's directory `.deedbook`.
            fn sidecar(&self) -> &std::path::Path;
            /// Number of records.
            ///
            /// # Errors
            ///
            /// Fails for a closed handle; see [Errors](crate#errors).
            fn len(&self) -> $crate::Result<u64>;
            /// Whether there are no records.
            ///
            /// # Errors
            ///
            /// Fails for a closed handle; see [Errors](crate#errors).
            fn is_empty(&self) -> $crate::Result<bool>;
            /// The begin of the log as it is now.
            ///
            /// # Errors
            ///
            /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
            /// [Errors](crate#errors).
            fn bookmark(&self) -> $crate::Result<$crate::jobs::Bookmark>;
            /// The place up to which a reader can read on from `from`: the end, or less far if `reach` says so. Returns
            /// `from` if there is nothing to read.
            ///
            /// `advance` steps through an undamaged log by the index. Damage and all records after
            /// it are one step, whatever `reach` asks for: up to the end of the last intact record,
            /// or of the damage.
            ///
            /// Fails with [`ErrorKind::NotALog`](crate::ErrorKind::NotALog) if `from` belongs to another log, and with
            /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) if the place was dropped or cut off.
            ///
            /// # Errors
            ///
            /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
            /// [Errors](crate#errors).
            fn advance(&self, from: &$crate::jobs::Bookmark, reach: &$crate::jobs::Reach) -> $crate::Result<$crate::jobs::Bookmark>;
            /// Divide the records between two bookmarks into parts of about `split_bytes` bytes. Fails as `advance`
            /// does.
            ///
            /// # Errors
            ///
            /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
            /// [Errors](crate#errors).
            fn splits_between(&self, split_bytes: u64, from: &$crate::jobs::Bookmark, to: &$crate::jobs::Bookmark) -> $crate::Result<Vec<$crate::jobs::Split>>;
        }
    };
    ($(#[$doc:meta])* $name:ident($format:ty) writes) => {
        $crate::log::facade! { $(#[$doc])* $name($format) reads }

        pub(crate) type Reverse = $crate::Reverse<$format>;
        pub(crate) type Follow = $crate::Follow<$format>;
        pub(crate) type Stage = $crate::jobs::Stage<$format>;

        impl Options {
            /// Check every record of a log. The log is not changed.
            ///
            /// # Errors
            ///
            /// Fails where there is no log that can be read. Damage is no error: the report has it.
            pub fn verify(&self, path: impl AsRef<std::path::Path>) -> $crate::Result<$crate::report::VerifyReport> {
                self.verify_with(path, |_, _| Ok(()))
            }

            /// As [`verify`](Self::verify). `progress` gets the bytes done and the total, and its error ends the check.
            ///
            /// # Errors
            ///
            /// Fails where there is no log that can be read. Damage is no error: the report has it. An error of
            /// `progress` ends the work and is returned.
            pub fn verify_with(
                &self,
                path: impl AsRef<std::path::Path>,
                progress: impl FnMut(u64, u64) -> $crate::Result<()>,
            ) -> $crate::Result<$crate::report::VerifyReport> {
                self.verify_rest(path, &[], progress)
            }

            /// As [`verify_with`](Self::verify_with), without reading the parts `intact` again: splits from the log's
            /// first record on, found intact by [`verify_part`](Self::verify_part). So several readers share a check.
            /// If the parts are not the beginning of the present log, the call reads them again.
            ///
            /// # Errors
            ///
            /// Fails where there is no log that can be read. Damage is no error: the report has it. An error of
            /// `progress` ends the work and is returned.
            pub fn verify_rest(
                &self,
                path: impl AsRef<std::path::Path>,
                intact: &[$crate::jobs::Split],
                progress: impl FnMut(u64, u64) -> $crate::Result<()>,
            ) -> $crate::Result<$crate::report::VerifyReport> {
                $crate::log::check_rest::<$format>(path.as_ref(), self, intact, progress)
            }
        }

        impl $name {
            /// Open a log for reading.
            ///
            /// # Errors
            ///
            /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
            /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while
            /// another handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or
            /// [`LostRecords`](crate::ErrorKind::LostRecords) for damage that `recovery` does not allow; see
            /// [Errors](crate#errors).
            pub fn open(path: impl AsRef<std::path::Path>) -> $crate::Result<Self> {
                Options::new().open(path, $crate::Mode::Read)
            }

            /// Create a log that must not exist, for appending.
            ///
            /// # Errors
            ///
            /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
            /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while
            /// another handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or
            /// [`LostRecords`](crate::ErrorKind::LostRecords) for damage that `recovery` does not allow; see
            /// [Errors](crate#errors).
            pub fn create(path: impl AsRef<std::path::Path>) -> $crate::Result<Self> {
                Options::new().open(path, $crate::Mode::Create)
            }

            /// Open a log for appending. Creates a missing log.
            ///
            /// # Errors
            ///
            /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
            /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while
            /// another handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or
            /// [`LostRecords`](crate::ErrorKind::LostRecords) for damage that `recovery` does not allow; see
            /// [Errors](crate#errors).
            pub fn append_to(path: impl AsRef<std::path::Path>) -> $crate::Result<Self> {
                Options::new().open(path, $crate::Mode::Append)
            }
        }

        $crate::log::verbs! { $name:
            /// Return when every record appended so far is on stable storage.
            ///
            /// # Errors
            ///
            /// Fails if the sync fails, now or before ([`Poisoned`](crate::ErrorKind::Poisoned)); see
            /// [Errors](crate#errors).
            fn sync(&self) -> $crate::Result<()>;
            /// Stage records for a commit of `job`: the file of one attempt of a task. `first` is the required number
            /// of the first record; a write-ahead log has no numbers and ignores `first`. Any handle may stage, in any
            /// process.
            ///
            /// # Errors
            ///
            /// Fails if the record cannot be staged; see [Errors](crate#errors).
            fn stage(&self, job: &str, partition: u32, attempt: u64, first: Option<u64>) -> $crate::Result<Stage>;
            /// Append the staged records of a job's parts, in the order of their partitions, all or
            /// nothing, and durably, whatever the durability option. A repeated transaction is not
            /// appended again.
            ///
            /// A commit that fails with [`Durable::No`](crate::Durable::No) changed nothing. Any other failed commit
            /// has begun: the next opening for writing finishes the commit.
            ///
            /// # Errors
            ///
            /// Fails with [`Contiguity`](crate::ErrorKind::Contiguity) if the transaction is not the application's
            /// next, and for missing or damaged parts; see [Errors](crate#errors).
            fn commit_staged(&self, transaction: &$crate::jobs::Transaction, parts: &[$crate::jobs::Part]) -> $crate::Result<$crate::jobs::Committed>;
            /// The last transaction of each application.
            ///
            /// # Errors
            ///
            /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
            fn transactions(&self) -> $crate::Result<std::collections::BTreeMap<String, $crate::jobs::TransactionId>>;
            /// The staged records that are not committed, by job.
            ///
            /// # Errors
            ///
            /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
            fn staged(&self) -> $crate::Result<Vec<$crate::jobs::StagedJob>>;
            /// Remove a job's staged records, unless the commit has begun. Returns whether they are gone.
            ///
            /// # Errors
            ///
            /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
            fn discard_staged(&self, job: &str) -> $crate::Result<bool>;
            /// Give up a commit that has begun and cannot finish, because staged records are gone or damaged. Records
            /// already appended stay. For a handle for reading; fails while the log is open for writing.
            ///
            /// # Errors
            ///
            /// Fails while the log is open for writing; see [Errors](crate#errors).
            fn abandon_transaction(&self) -> $crate::Result<Option<$crate::jobs::Transaction>>;
        }
    };
}

pub(crate) use {facade, verbs};
