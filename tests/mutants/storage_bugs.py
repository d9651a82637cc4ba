"""The seeded bugs below the engine: group commit, scanning, the sidecar, storage."""

from __future__ import annotations

from bug import Bug
from rows import (
    ADVICE,
    FLIP,
    FORK,
    FSYNC,
    FULL,
    LENGTH,
    OVERFLOW,
    PANIC,
    PLACE,
    POWER,
    READ_ERROR,
    REPAIR,
    REPLACED,
    WRITER,
)

BUS_ERROR = "src/storage/bus_error.rs"
COMMIT = "src/commit.rs"
DISK = "src/storage/disk.rs"
INDEX = "src/sidecar/index.rs"
MAPPED = "src/storage/mapped_writes.rs"
SCAN = "src/scan.rs"
SEARCH = "src/search.rs"
STORAGE = "src/storage/mod.rs"

NO_FOLLOW = "libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC"

COMMIT_BUGS = [
    Bug(
        "no poison after a failed sync",
        FSYNC,
        COMMIT,
        "                self.poison(error.message());\n",
        "",
        [("lib", "commit")],
    ),
    Bug(
        "waiters of a failed sync succeed",
        FSYNC,
        COMMIT,
        "            self.check()?;\n            if self.durable() >= target {\n",
        "            if self.durable() >= target || self.check().is_err() {\n",
        [("lib", "commit")],
    ),
    Bug(
        "a panicking leader leaves its waiters believing",
        PANIC,
        COMMIT,
        '            self.commits.poison("the thread that synced panicked");\n',
        "            let _ = &self.commits;\n",
        [("lib", "commit")],
    ),
    Bug(
        "the poison wears off",
        FSYNC,
        COMMIT,
        "        match &*lock(&self.failed) {\n",
        "        match &lock(&self.failed).take() {\n",
        # That the loop over all faults can fail.
        [("engine::faults", "{subject}::every_call")],
        slow=True,
    ),
    Bug(
        "a rollback does not hold the leader up",
        FSYNC,
        COMMIT,
        "        let _rollback = lock(&self.rollback);\n",
        "        drop(lock(&self.rollback));\n",
        [("engine::faults", "poison::{subject}::a_leader_waits")],
    ),
]

SCAN_BUGS = [
    Bug(
        "a read error is the end of the log",
        READ_ERROR,
        SCAN,
        "let read = read?;",
        "let read = read.unwrap_or(0);",
        [("engine::faults", "reading::{subject}::a_check_gives")],
    ),
    Bug(
        "memory is reserved beyond the end of the file",
        LENGTH,
        SCAN,
        "        if need > left {\n            return Ok(left);\n        }\n"
        "        let want = need.max(self.block_bytes as u64).min(left) as usize;",
        "        let want = need.max(self.block_bytes as u64) as usize;",
        [("process::allocation", "")],
        slow=True,
    ),
    Bug(
        "the search for the next record passes over the end of each block",
        FLIP,
        SEARCH,
        "        for i in 0..candidates {\n",
        "        for i in 0..candidates - if last { 0 } else { 12 } {\n",
        [("engine::log", "large::the_next_record")],
    ),
]

SIDECAR_BUGS = [
    Bug(
        "an index is believed without its chain",
        ADVICE,
        INDEX,
        "        (entry.encode(before).1 == stored).then_some((entry, stored))\n",
        "        let _ = before;\n        Some((entry, stored))\n",
        [("lib", "sidecar::index")],
    ),
    Bug(
        "offsets in the index have 32 bits",
        ADVICE,
        INDEX,
        "        offset.copy_from_slice(&self.offset.to_le_bytes());\n",
        "        offset.copy_from_slice(&u64::from(self.offset as u32).to_le_bytes());\n",
        [("wal::own", "an_index_knows_positions")],
    ),
    Bug(
        "a torn mark is not noticed",
        ADVICE,
        "src/sidecar/mark.rs",
        "            && u32_at(CRC_AT)? == crc32(slot.get(..CRC_AT)?)\n",
        "            && crc32(slot.get(..CRC_AT)?) != 1\n",
        [("lib", "sidecar::mark")],
    ),
    Bug(
        "damaged settings are believed",
        ADVICE,
        "src/sidecar/settings.rs",
        "        (settings.encode() == text).then_some(settings)\n",
        "        Some(settings)\n",
        [("lib", "sidecar::settings")],
    ),
    Bug(
        "a damaged note, as of a loss, is believed",
        REPAIR,
        "src/sidecar/sealed.rs",
        "    (seal(lines) == text).then_some(lines)\n",
        "    Some(lines)\n",
        [("lib", "sidecar::sealed")],
    ),
]

DISK_BUGS = [
    Bug(
        "no sync of the directory after a rename",
        POWER,
        STORAGE,
        '    storage.sync_dir(path.parent().unwrap_or(Path::new(".")))\n}',
        "    Ok(())\n}",
        [("engine::crash", "mend::{subject}::")],
    ),
    Bug(
        "no sync of a new file before its rename",
        POWER,
        STORAGE,
        "write_full(&*file, bytes, 0).and_then(|()| file.sync_data())",
        "write_full(&*file, bytes, 0)",
        [("engine::crash", "durable::{subject}::names_left_by")],
    ),
    Bug(
        "EINTR is an error",
        FULL,
        STORAGE,
        "            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),\n"
        "            Ok(n) => done += n,\n"
        "            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}\n",
        "            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),\n"
        "            Ok(n) => done += n,\n",
        [("engine::faults", "reading::{subject}::interrupted")],
    ),
    Bug(
        "a short write counts as whole",
        FULL,
        STORAGE,
        "            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),\n"
        "            Ok(n) => done += n,\n",
        "            Ok(_) => return Ok(()),\n",
        [("engine::faults", "rollback::{subject}::")],
    ),
    Bug(
        "the lock is not taken",
        WRITER,
        DISK,
        "        match file.try_lock() {\n            Ok(()) => {}",
        "        match file.try_lock() {\n            _ if true => {}\n            Ok(()) => {}",
        [("engine::log", "places::a_writer_in_another_process")],
    ),
    Bug(
        "the lock does not name its holder",
        WRITER,
        DISK,
        'format!("{}\\n", std::process::id())',
        '"\\n".to_string()',
        [("engine::log", "places::a_writer_in_another_process")],
    ),
    Bug(
        "a forked child frees its parent's lock",
        FORK,
        DISK,
        "        if self.key.0 != fork_generation() {",
        "        if self.key.0 == u64::MAX {",
        [("engine::log", "live::a_forked_child")],
    ),
    Bug(
        "symbolic links are followed",
        PLACE,
        DISK,
        NO_FOLLOW,
        "libc::O_NONBLOCK | libc::O_CLOEXEC",
        [("engine::log", "places::what_is_no_regular_file_is_refused")],
    ),
    Bug(
        "opening a FIFO hangs",
        PLACE,
        DISK,
        NO_FOLLOW,
        "libc::O_NOFOLLOW | libc::O_CLOEXEC",
        [("engine::log", "places")],
        hangs=True,
        slow=True,
    ),
    Bug(
        "a cut file kills its writer",
        REPLACED,
        BUS_ERROR,
        "        install_handler();\n",
        "",
        [("lib", "a_store_after_a_foreign_truncation")],
    ),
    Bug(
        "the offset of the map has 32 bits",
        OVERFLOW,
        MAPPED,
        ".offset(base)",
        ".offset(u64::from(base as u32))",
        [("process::mapped_writes", "small_writes_beyond_4_gib")],
    ),
    Bug(
        "a slot stays registered after its map is gone",
        REPLACED,
        BUS_ERROR,
        "        self.0.extent.store(0, Ordering::Release);\n",
        "",
        [("lib", "mapped_writes")],
    ),
    Bug(
        "a mapped read takes the zeros in place of what was cut",
        REPLACED,
        "src/storage/mapped_reads.rs",
        "        !self.guard.faulted()\n",
        "        true\n",
        [("lib", "mapped_reads")],
    ),
    Bug(
        "a mapped read takes the map for all of the file",
        REPLACED,
        "src/storage/mapped_reads.rs",
        "            false => self.file.read_at(buf, offset),\n",
        "            false => Ok(0),\n",
        [("lib", "mapped_reads")],
    ),
    Bug(
        "a forked child keeps the lock of its parent",
        FORK,
        "src/storage/fork.rs",
        "            if descriptor != NONE {\n",
        "            if false && descriptor != NONE {\n",
        [("engine::log", "live::a_forked_child_that_outlives")],
    ),
]

STORAGE_BUGS = [*DISK_BUGS, *COMMIT_BUGS, *SCAN_BUGS, *SIDECAR_BUGS]
