"""The seeded bugs of the ledger."""

from __future__ import annotations

from bug import Bug
from rows import (
    ADVICE,
    FLIP,
    FSYNC,
    FULL,
    HEAD,
    LENGTH,
    PLACE,
    POWER,
    READ_ERROR,
    READER,
    REPLACED,
    SEGMENT,
    TRUNCATION,
    WRITER,
)

APPEND = "src/ledger/append.rs"
DIRECTORY = "src/ledger/directory.rs"
DURABLE = "src/ledger/durable.rs"
FETCH = "src/ledger/fetch.rs"
FORMAT = "src/ledger/format.rs"
LOOK = "src/ledger/look.rs"
QUOTA = "src/ledger/quota.rs"
READ = "src/ledger/reader.rs"
RECORD = "src/ledger/record.rs"

CRASH = ("ledger", "crash::every_short_history")

LEDGER_BUGS = [
    Bug(
        "ledger: checksums are not compared",
        FLIP,
        RECORD,
        "            if crc != stored {\n",
        "            if false && crc != stored {\n",
        [("ledger", "damage::every_single_bit")],
    ),
    Bug(
        "ledger: zeros are records of 0 bytes",
        LENGTH,
        RECORD,
        """            (0, 0) => return Step::Blank,
            (0, _) => return Self::bad_length(0, "minimum", 1),
""",
        "",
        [("lib", "ledger"), ("ledger", "damage::a_file_cut")],
    ),
    Bug(
        "ledger: names with leading zeros are files",
        SEGMENT,
        RECORD,
        """digits == "0" || !digits.starts_with('0');""",
        "!digits.is_empty();",
        [("ledger", "golden::names_outside")],
    ),
    Bug(
        "ledger: files go by the order of a listing",
        SEGMENT,
        DIRECTORY,
        "        found.sort_unstable();\n",
        "        found.reverse();\n",
        [("ledger", "rotation::fetching_finishes")],
    ),
    Bug(
        "ledger: a file that another store writes is given",
        WRITER,
        DIRECTORY,
        "            Ok(LockAttempt::Busy(_)) => return Ok(None),\n",
        "            Ok(LockAttempt::Busy(_)) => {}\n",
        [("ledger", "handles::a_file_being_written")],
    ),
    Bug(
        "ledger: the file being written is not locked",
        WRITER,
        APPEND,
        "        let Created { index, path, file, id, lock } = created;\n",
        "        let Created { index, path, file, id, .. } = created;\n"
        "        let crate::storage::LockAttempt::Held(lock) =\n"
        "            crate::storage::Storage::lock(&crate::storage::Memory::new(), "
        'std::path::Path::new("/"), false)\n'
        "                .unwrap_or(crate::storage::LockAttempt::Busy(None))\n"
        "        else {\n"
        '            return Err(self.refused(crate::ErrorKind::Locked, ""));\n'
        "        };\n",
        [("ledger", "handles::a_file_being_written")],
    ),
    Bug(
        "ledger: the next index is not stored",
        TRUNCATION,
        DIRECTORY,
        "        if counter::load(&*self.storage, &sidecar, &self.base)? >= next {\n",
        "        if next > 0 {\n",
        [("ledger", "removal::indexes_never_repeat")],
    ),
    Bug(
        "ledger: an index is shown before the next one is stored",
        POWER,
        FETCH,
        "            self.directory.claim(&self.directory.gate()?, last.index)?;\n",
        "            let _ = last;\n",
        [CRASH],
    ),
    Bug(
        "ledger: the counter is not read when a file is created",
        TRUNCATION,
        DIRECTORY,
        "        let mut next = next.max(highest).max(counted);\n",
        "        let mut next = next.max(highest).max(counted.min(highest));\n",
        [("ledger", "removal::indexes_never_repeat")],
    ),
    Bug(
        "ledger: whatever has the name is removed",
        REPLACED,
        DIRECTORY,
        "        if found != id {\n",
        "        if false && found != id {\n",
        [("ledger", "removal::a_file_that_took")],
    ),
    Bug(
        "ledger: the file goes on after a failed write",
        FULL,
        APPEND,
        "        self.finish_active(state);\n        error\n",
        "        error\n",
        [("ledger", "faults::after_a_failed")],
    ),
    Bug(
        "ledger: a short write is taken for the whole",
        FULL,
        APPEND,
        "            Ok(written) if written == bytes.len() => return Ok(()),\n",
        "            Ok(written) if written <= bytes.len() => return Ok(()),\n",
        [("ledger", "faults::after_a_failed")],
    ),
    Bug(
        "ledger: a failed write is not cut off",
        FULL,
        APPEND,
        "            file.set_len(*len)?;\n            file.sync_data()\n",
        "            file.sync_data()\n",
        [("ledger", "faults::after_a_failed")],
    ),
    Bug(
        "ledger: a full disk gets an empty file with each append",
        FULL,
        APPEND,
        "        if active.records > 0 {\n",
        "        if active.records < u64::MAX {\n",
        [("ledger", "faults::a_full_disk")],
    ),
    Bug(
        "ledger: always acknowledges before the sync",
        POWER,
        DURABLE,
        "            Durability::Always => self.sync_to(end, true),\n",
        "            Durability::Always => Ok(()),\n",
        [("ledger", "crash::names_that"), CRASH],
    ),
    Bug(
        "ledger: a finished file is not synced",
        POWER,
        DURABLE,
        "                Some(finished) => self.sync_to(finished, false),\n",
        "                Some(_) => Ok(()),\n",
        [CRASH],
    ),
    Bug(
        "ledger: the name of a new file is not synced",
        POWER,
        DURABLE,
        "        if names {\n",
        "        if false && names {\n",
        [CRASH],
    ),
    Bug(
        "ledger: the directory's own name is not synced",
        POWER,
        DIRECTORY,
        "        if !self.settled.load(Ordering::Acquire) {\n",
        "        if false && !self.settled.load(Ordering::Acquire) {\n",
        [("ledger", "crash::names_that")],
    ),
    Bug(
        "ledger: the sidecar's name is not synced",
        POWER,
        DIRECTORY,
        "        if !self.sidecar_settled.load(Ordering::Acquire) {\n",
        "        if false && !self.sidecar_settled.load(Ordering::Acquire) {\n",
        [("ledger", "crash::names_that")],
    ),
    Bug(
        "ledger: a removal is not synced",
        POWER,
        FETCH,
        "            _ => self.directory.sync(),\n",
        "            _ => Ok(()),\n",
        [CRASH],
    ),
    Bug(
        "ledger: a store goes on after a failed sync",
        FSYNC,
        "src/ledger/mod.rs",
        "        self.commits.check().map_err(|e| e.of(FORMAT).at(&self.directory.path))\n",
        "        Ok(())\n",
        [("ledger", "faults::a_failed_sync")],
    ),
    Bug(
        "ledger: a sync that a sender overtook poisons the store",
        READER,
        DURABLE,
        "        match state.active.as_ref()",
        "        match true | state.active.as_ref()",
        [("ledger", "handles::a_file_that_was_sent")],
    ),
    Bug(
        "ledger: a corrupt file is removed",
        FLIP,
        FETCH,
        "        let quarantine = seen.withheld &&",
        "        let quarantine = false && seen.withheld &&",
        [("ledger", "golden::a_file_with_damage")],
    ),
    Bug(
        "ledger: skipping removes a file that may hold more",
        FLIP,
        LOOK,
        "rescued(source, range)? > seen.records,",
        "rescued(source, range)? < seen.records,",
        [("ledger", "damage::")],
    ),
    Bug(
        "ledger: a file without a record makes an empty batch",
        HEAD,
        FETCH,
        "                Ok(seen) if seen.records == 0 => self.set_aside(&found, &seen)?,\n",
        "                Ok(seen) if seen.blank => self.set_aside(&found, &seen)?,\n",
        [("ledger", "removal::files_without")],
    ),
    Bug(
        "ledger: a torn file without a record is removed",
        HEAD,
        FETCH,
        "if seen.blank { Away::Removed } else { Away::Quarantined };",
        "Away::Removed;",
        [("ledger", "removal::files_without")],
    ),
    Bug(
        "ledger: the announced length has a separator more",
        LENGTH,
        READ,
        "records.saturating_sub(1);",
        "records;",
        [("ledger", "reader::a_body_has")],
    ),
    Bug(
        "ledger: records that were changed end a walk",
        REPLACED,
        "src/ledger/walk.rs",
        'return Err(changed(format!("byte {offset}: {}", why.reason())));',
        "return Ok(None);",
        [("ledger", "reader::a_file_that_changes")],
    ),
    Bug(
        "ledger: a replay goes on where the attempt before ended",
        READER,
        READ,
        "            self.walk = self.walk.rewound();\n",
        "",
        [("ledger", "reader::a_body_has")],
    ),
    Bug(
        "ledger: a file ends before its cap",
        SEGMENT,
        APPEND,
        "active.len + bytes > self.max_file_size",
        "active.len + bytes >= self.max_file_size",
        [("ledger", "rotation::a_file_that_passes")],
    ),
    Bug(
        "ledger: dropped events are not counted",
        FULL,
        QUOTA,
        "        self.tally.dropped(records, bytes);\n",
        "        self.tally.dropped(0, bytes);\n",
        [("ledger", "limits::a_full_ledger_drops")],
    ),
    Bug(
        "ledger: the newest files are dropped",
        FULL,
        QUOTA,
        "self.directory.indexes()? {\n            if freed >= over {",
        "self.directory.indexes()?.into_iter().rev() {\n            if freed >= over {",
        [("ledger", "limits::a_full_ledger_drops")],
    ),
    Bug(
        "ledger: one file that cannot be read holds up the others",
        READ_ERROR,
        FETCH,
        "                Err(e) => {\n"
        "                    unreadable.get_or_insert(e);\n"
        "                }\n",
        "                Err(e) => return Err(e),\n",
        [("ledger", "faults::a_file_that_cannot_be_read")],
    ),
    Bug(
        "ledger: the sidecar may be a link",
        PLACE,
        DIRECTORY,
        "        if self.storage.is_link(&sidecar) {\n",
        "        if false && self.storage.is_link(&sidecar) {\n",
        [("ledger", "handles::what_is_no_regular")],
    ),
    Bug(
        "ledger: a limit that no store takes is believed",
        ADVICE,
        FORMAT,
        "(RECORD_BYTES_MAX..=RECORD_BYTES_LIMIT).contains(limit)",
        "*limit >= RECORD_BYTES_MAX",
        [("fuzz_corpus", "a_ledger_of_any_bytes")],
    ),
    Bug(
        "ledger: a short write does not say why",
        FULL,
        APPEND,
        "                if let Err(e) = file.write_at(part(bytes, written..), "
        "at + written as u64)\n",
        "                if false\n"
        "                    && let Err(e) = file.write_at(part(bytes, written..), "
        "at + written as u64)\n",
        [("ledger", "faults::a_short_write_on_a_full_disk")],
    ),
    Bug(
        "ledger: the background syncs only after a second append",
        POWER,
        DURABLE,
        "        if end > shared.commits.durable()\n",
        "        if shared.commits.durable() > 0\n            && end > shared.commits.durable()\n",
        [("ledger", "crash::an_interval")],
        hangs=True,
    ),
]
