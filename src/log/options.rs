//! The options of an opening that all formats share.

use std::sync::Arc;
use std::time::Duration;

use crate::durability::Durability;
use crate::mode::Recovery;
use crate::sidecar::LockTimeout;
use crate::storage::Storage;

/// The options that the engine needs.
#[derive(Clone, Debug)]
pub struct Common {
    /// When appends are synced.
    pub durability: Durability,
    /// How opening for write treats a tail that is not clean.
    pub recovery: Recovery,
    /// Unix permissions of new files, less the umask. Who may read them may list new directories.
    pub file_mode: u32,
    /// A sync that takes longer is logged and counted.
    pub slow_sync: Duration,
    /// How long opening for writing waits for another writer; by default not at all.
    pub lock_timeout: LockTimeout,
    /// Whether opening reads the whole log first.
    pub check_all: bool,
    /// The file system.
    pub storage: Arc<dyn Storage>,
}

/// The options of a format, `Options`: the common options, and the format's own. A setter of
/// `field: type = default` takes the value as it is. A field after `optional` is an `Option`, by
/// default `None`. A field after `hidden`, too, but the format has its setter.
macro_rules! log_options {
    (
        $(#[$doc:meta])*
        Options {
            $($(#[$about:meta])* $field:ident: $kind:ty = $default:expr,)*
        }
        optional {
            $($(#[$about_maybe:meta])* $maybe:ident: $inner:ty,)*
        }
        $(hidden {
            $($(#[$about_hidden:meta])* $hidden:ident: $within:ty,)*
        })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Options {
            $($(#[$about])* pub $field: $kind,)*
            $($(#[$about_maybe])* pub $maybe: Option<$inner>,)*
            $($($(#[$about_hidden])* pub(super) $hidden: Option<$within>,)*)?
            /// How opening for write treats a tail that is not clean.
            pub recovery: Recovery,
            /// A sync that takes longer is logged and counted.
            pub slow_sync: Duration,
            /// How long opening for writing waits for another writer; by default not at all.
            pub lock_timeout: LockTimeout,
            /// Whether opening reads the whole log first, and refuses it for damage anywhere. By default,
            /// opening reads only enough to find the end, and trusts the mark for the rest.
            pub check_all: bool,
            /// The file system.
            pub storage: Arc<dyn Storage>,
        }

        impl Default for Options {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($maybe: None,)*
                    $($($hidden: None,)*)?
                    recovery: Recovery::Valid,
                    slow_sync: Duration::from_secs(1),
                    lock_timeout: LockTimeout::default(),
                    check_all: false,
                    storage: Arc::new(Disk),
                }
            }
        }

        impl Options {
            /// The defaults.
            pub fn new() -> Self {
                Self::default()
            }

            /// The options that the engine needs.
            pub(super) fn common(&self) -> Result<Common> {
                self.check()?;
                let Self { durability, recovery, file_mode, slow_sync, check_all, .. } = *self;
                let (lock_timeout, storage) = (self.lock_timeout.clone(), self.storage.clone());
                Ok(Common {
                    durability,
                    recovery,
                    file_mode,
                    slow_sync,
                    lock_timeout,
                    check_all,
                    storage,
                })
            }
        }

        setters! {
            Options {
                $($field: $kind,)*
                recovery: Recovery,
                slow_sync: Duration,
                check_all: bool,
                storage: Arc<dyn Storage>,
            }
            optional { $($maybe: $inner,)* }
            into { lock_timeout: LockTimeout }
        }
    };
}

pub(crate) use log_options;
