"""Seeded bugs of the event store's write-ahead log: numbers, files, checkpoints."""

from __future__ import annotations

from bug import Bug
from rows import FLIP, HEAD, POWER, SEGMENT, TRUNCATION, WRITER

CODEC = "src/nostr/codec.rs"
FILES = "src/nostr/files.rs"
CHECKED_LOG = "src/nostr/checked_log.rs"
WAL = "src/nostr/wal.rs"
STATE = "src/nostr/wal_state.rs"

NOSTR_WAL_BUGS = [
    Bug(
        "nostr wal: numbers begin again when the log is opened again",
        SEGMENT,
        STATE,
        "            next = Lsn(extent.next());\n",
        "            next = Lsn(if as_mode == mode { 1 } else { extent.next() });\n",
        [("nostr::entries", "numbers_go_on_over_files_and_reopening")],
    ),
    Bug(
        "nostr wal: a log that is gone as a whole is begun again",
        SEGMENT,
        CHECKED_LOG,
        "    if manifest.checkpoint() == Lsn(0) {\n",
        "    if manifest.checkpoint() >= Lsn(0) {\n",
        [("nostr::store", "lost_log::a_log_that_is_gone")],
    ),
    Bug(
        "nostr wal: numbers begin again in the next file",
        SEGMENT,
        WAL,
        "        state.finished = false;\n",
        "        state.finished = false;\n        state.next = Lsn(1);\n",
        [("nostr::entries", "numbers_go_on_over_files_and_reopening")],
    ),
    Bug(
        "nostr wal: the checksum leaves out the kind of entry",
        FLIP,
        CODEC,
        "        let sum = crc64(part(out, start..));\n",
        "        let sum = crc64(part(out, start + LSN_AT..));\n",
        [("nostr::entries", "the_same_entries_are_written_byte_for_byte")],
    ),
    Bug(
        "nostr wal: a flipped kind of entry is not noticed",
        FLIP,
        CODEC,
        "            let (crc, stored) = (crc64(covered), "
        "u64_be_at(stored, 0).unwrap_or_default());\n",
        "            let kind = [Op::Insert as u8; 1];\n"
        "            let covered = [&kind[..], part(covered, LSN_AT..)].concat();\n"
        "            let (crc, stored) = (crc64(&covered), "
        "u64_be_at(stored, 0).unwrap_or_default());\n",
        [("nostr::entries", "every_entry_is_read")],
    ),
    Bug(
        "nostr wal: a file goes that has entries after the checkpoint",
        TRUNCATION,
        WAL,
        "take_while(|next| next.first <= state.checkpoint)",
        "take_while(|next| next.first <= state.next)",
        [("nostr::entries", "files_wholly_before_the_checkpoint_go every_crash_leaves")],
    ),
    Bug(
        "nostr wal: files go in one sweep, synced at its end",
        TRUNCATION,
        FILES,
        "        storage.sync_dir(dir).map_err(",
        "        let last = Some(storage).filter(|_| numbers.last() == Some(number));\n"
        "        last.map_or(Ok(()), |storage| storage.sync_dir(dir)).map_err(",
        [("nostr::entries", "every_crash_leaves")],
    ),
    Bug(
        "nostr wal: a file is finished without a sync",
        POWER,
        STATE,
        "        self.current.sync()?;\n        if let Err(e) = self.current.close() {\n",
        "        if let Err(e) = Ok::<(), Error>(()) {\n",
        [("nostr::entries", "every_crash_leaves"), ("engine::crash", "nostr_wal_files")],
    ),
    Bug(
        "nostr wal: a checkpoint counts before its entry is durable",
        POWER,
        WAL,
        "        let lsn = self.commit(&Entry::Checkpoint, timestamp)?;\n",
        "        let lsn = self.append(&Entry::Checkpoint, timestamp)?;\n",
        [("nostr::entries", "every_crash_leaves")],
        # The header's sync makes it durable, too.
        also=(("        shared.sync_file(&extent)?;\n", ""),),
    ),
    Bug(
        "nostr wal: the header is believed, whatever the entries say",
        HEAD,
        WAL,
        "            None if named > first => self.last_checkpoint_from(first)?,\n",
        "            None if named > first => Some(named),\n",
        [("nostr::entries", "a_header_is_a_hint")],
    ),
    Bug(
        "nostr wal: a number that repeats or leaves a gap is none the worse",
        SEGMENT,
        CODEC,
        "            lsn if lsn == expected => Ok(()),\n",
        "            lsn if lsn == expected || lsn > 0 => Ok(()),\n",
        [("nostr::entries", "a_gap_and_a_repeat_are_damage")],
    ),
    Bug(
        "nostr wal: after a mark no number is held against the one before",
        SEGMENT,
        "src/log/walk.rs",
        "    if C::LINKED && extent.records > 0 {\n",
        "    if false && extent.records > 0 {\n",
        [("nostr::entries", "a_gap_after_the_mark")],
    ),
    Bug(
        "nostr wal: a file that is gone counts as the end of the log",
        SEGMENT,
        FILES,
        "        if let Some(mark) = mark.filter(|mark| mark.records > 0) {\n",
        "        if let Some(mark) = mark.filter(|_| false) {\n",
        [("nostr::entries", "a_missing_file_is_no_end_of_the_log")],
    ),
    Bug(
        "nostr wal: a sync fails where another thread begins the next file",
        WRITER,
        WAL,
        "        log.shared.sync_to(end)\n    }\n\n    /// Say that",
        "        let _ = end;\n        log.sync()\n    }\n\n    /// Say that",
        [("nostr::entries", "threads::a_sync_does_not_fail")],
    ),
]
