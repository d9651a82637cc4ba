"""The seeded bugs of segment files as one file, which write-ahead logs use."""

from __future__ import annotations

from bug import Bug
from rows import FSYNC, POWER, REPAIR, REPLACED, SEGMENT, TRUNCATION

SEGMENTED = "src/storage/segmented.rs"
ORPHANS = "src/storage/segmented/orphans.rs"
ENDED_SYNC = """            lock(&self.state).failed.get_or_insert_with(|| e.to_string());
        }
        synced
    }
}
"""

SEGMENTED_BUGS = [
    Bug(
        "no sync of the directory for a new segment",
        POWER,
        SEGMENTED,
        "        state.names_dirty = true;\n        state.dirty.insert(index);",
        "        state.dirty.insert(index);",
        [("wal::own", "a_segment_is_synced_before_it_is_closed")],
    ),
    Bug(
        "only the newest unsynced segment is synced",
        POWER,
        SEGMENTED,
        "        for index in dirty {",
        "        for index in dirty.last().copied() {",
        [("wal::own", "a_segment_is_synced_before_it_is_closed")],
    ),
    Bug(
        "a segment counts as unsynced before it is written, not after it",
        POWER,
        SEGMENTED,
        """        drop(state);
        let written = file.write_at(part, at);
        // After the write: a sync that took the set in between has not covered it.
        lock(&self.state).dirty.insert(index);
        written""",
        """        state.dirty.insert(index);
        drop(state);
        file.write_at(part, at)""",
        [("lib", "segmented")],
    ),
    Bug(
        "what is written during a sync of segments counts as synced",
        POWER,
        SEGMENTED,
        ENDED_SYNC,
        ENDED_SYNC.replace(
            "        synced\n", "        lock(&self.state).dirty.clear();\n        synced\n"
        ),
        [("engine::crash", "durable::wal_tiny::what_is_appended_during_a_sync")],
    ),
    Bug(
        "a segment that is closed for want of handles is not synced",
        FSYNC,
        SEGMENTED,
        "                self.sync_one(state, old, &*file)?;\n"
        "                state.dirty.remove(&old);",
        "                state.dirty.remove(&old);",
        [("wal::own", "a_segment_is_synced_before_it_is_closed")],
    ),
    Bug(
        "a failed sync of a segment that is closed is forgotten",
        FSYNC,
        SEGMENTED,
        """        if let Err(e) = &synced {
            state.failed.get_or_insert_with(|| e.to_string());
        }
        synced
    }

    fn file(""",
        """        let _ = state;
        synced
    }

    fn file(""",
        [("wal::own", "a_segment_is_synced_before_it_is_closed")],
    ),
    Bug(
        "a sync of segments does not wait for the one under way",
        POWER,
        SEGMENTED,
        "        let _syncing = lock(&self.syncing);\n        let mut state = lock(&self.state);\n"
        "        state.check()?;\n        let dirty",
        "        let mut state = lock(&self.state);\n        state.check()?;\n        let dirty",
        [("lib", "segmented")],
    ),
    Bug(
        "a prefix goes newest first",
        TRUNCATION,
        SEGMENTED,
        "        for index in from..first {",
        "        for index in (from..first).rev() {",
        [("wal::own", "segments_go_oldest_first")],
    ),
    Bug(
        "an end goes oldest first",
        TRUNCATION,
        SEGMENTED,
        "        for index in gone.iter().rev() {",
        "        for index in gone.iter() {",
        [("wal::own", "segments_go_oldest_first")],
    ),
    Bug(
        "segments after a gap stay",
        SEGMENT,
        SEGMENTED,
        "        let mut gone = std::mem::take(&mut state.orphans);\n",
        "        state.orphans.clear();\n        let mut gone = Vec::new();\n",
        [("wal::keep", "no_crash_leaves_a_consumer_above")],
    ),
    Bug(
        "segments after a gap are removed and not set aside",
        SEGMENT,
        ORPHANS,
        "            if !self.has_data(index)? {\n                state",
        "            if self.has_data(index)? {\n                state",
        [("wal::places", "a_second_repair_keeps")],
    ),
    Bug(
        "repair does not name the segments that it sets aside",
        REPAIR,
        "src/log/repair.rs",
        "    report.set_aside = recovery.set_aside;\n",
        "    report.set_aside.clear();\n",
        [("wal::places", "a_repair_names_the_segments")],
    ),
    Bug(
        "a segment seems as old as its first record",
        TRUNCATION,
        SEGMENTED,
        "            self.file(&mut state, index - 1)?.touch()?;\n",
        "",
        [("wal::keep", "retention_by_age_counts")],
    ),
    Bug(
        "a segment is created in a log that took the place of this one",
        REPLACED,
        SEGMENTED,
        "        self.check_place(state)?;\n",
        "",
        [("engine::log", "places::a_writer_whose_directory_was_moved")],
    ),
]
