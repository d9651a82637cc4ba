"""The seeded bugs of the write-ahead log; only its own tests are to catch them."""

from __future__ import annotations

from bug import Bug

# The quick ones first: on a busy machine the long ones run out of time, which proves nothing.
CRASH = [
    # The quick ones first.
    ("wal_own", ""),
    ("crash", "::{subject}::"),
    ("crash", "wal_tiny::every_short"),
    ("crash", "{subject}::every_short"),
]
KEEP = [("wal_keep", ""), ("wal_regressions", "")]
READERS = [("wal_readers", "")]
FAULTS = [
    ("wal_own", ""),
    ("faults", "::{subject}::"),
    ("faults", "wal_tiny::every_call"),
    ("faults", "{subject}::every_call"),
]

COMMIT = "src/commit.rs"
LOOK = "src/wal/look.rs"
MEND = "src/wal/mend.rs"
OPEN = "src/wal/open.rs"
PLACE = "src/wal/place.rs"
RECOVER = "src/wal/recover.rs"
REFRESH = "src/wal/refresh.rs"
SEGMENTS = "src/wal/segments.rs"
SURVEY = "src/wal/survey.rs"
SYNC = "src/wal/sync.rs"
TAIL = "src/wal/tail.rs"
TRUNCATE = "src/wal/truncate.rs"
WRITER = "src/wal/writer.rs"

POWER = "power loss"
KILL = "kill -9 at any instruction"
TRUNCATION = "crash at any step of truncation, compaction, migration, removal"
FSYNC = "fsync fails once, then works"
FULL = "ENOSPC, EDQUOT, EFBIG, short write, 0, EINTR, EAGAIN"
SEGMENT = "missing, duplicated, renamed, wrong-sized segment"
HEAD = "header, head marker, manifest damaged or missing"
NESTED = "a payload that contains whole valid records, outer record torn"
REPLACED = "file truncated or replaced under reader or writer"
AGAIN = "crash during recovery, again and again"

WAL_BUGS = [
    Bug(
        "wal: acknowledge before the sync",
        POWER,
        SYNC,
        "            self.sync_file(tip)?;\n            // Durable now",
        "            // Durable now",
        CRASH,
    ),
    Bug(
        "wal: the mark is stored before the sync",
        POWER,
        SYNC,
        "            self.sync_file(tip)?;\n            // Durable now",
        """            self.store_mark(tip.mark(file_id), false)?;
            self.sync_file(tip)?;
            // Durable now""",
        CRASH,
    ),
    Bug(
        "wal: no sync of the directory for a new segment",
        POWER,
        SEGMENTS,
        "        state.names_dirty = true;\n        state.dirty.insert(index);",
        "        state.dirty.insert(index);",
        CRASH,
    ),
    Bug(
        "wal: only the newest unsynced segment is synced",
        POWER,
        SEGMENTS,
        "        for index in dirty {",
        "        for index in dirty.last().copied() {",
        CRASH,
    ),
    Bug(
        "wal: a segment counts as unsynced before it is written, not behind it",
        POWER,
        SEGMENTS,
        """        drop(state);
        let written = file.write_at(part, at);
        // Behind the write: a sync that took the set in between has not covered it.
        lock(&self.state).dirty.insert(index);
        written""",
        """        state.dirty.insert(index);
        drop(state);
        file.write_at(part, at)""",
        [("lib", "segments"), *CRASH],
    ),
    Bug(
        "wal: what is written during a sync counts as synced",
        POWER,
        SEGMENTS,
        """        if let Err(e) = &synced {
            lock(&self.state).failed.get_or_insert_with(|| e.to_string());
        }
        synced
    }
}""",
        """        if let Err(e) = &synced {
            lock(&self.state).failed.get_or_insert_with(|| e.to_string());
        }
        lock(&self.state).dirty.clear();
        synced
    }
}""",
        CRASH,
    ),
    Bug(
        "wal: a segment that is closed for want of handles is not synced",
        FSYNC,
        SEGMENTS,
        """                self.sync_one(state, old, &*file)?;
                state.dirty.remove(&old);""",
        "                state.dirty.remove(&old);",
        FAULTS + CRASH,
    ),
    Bug(
        "wal: a failed sync of a segment that is closed is forgotten",
        FSYNC,
        SEGMENTS,
        """        if let Err(e) = &synced {
            state.failed.get_or_insert_with(|| e.to_string());
        }
        synced
    }

    fn file(""",
        """        synced
    }

    fn file(""",
        FAULTS,
    ),
    Bug(
        "wal: the poison wears off",
        FSYNC,
        COMMIT,
        "        match &*lock(&self.failed) {",
        "        match &lock(&self.failed).take() {",
        FAULTS,
    ),
    Bug(
        "wal: a poisoned handle still takes appends",
        FSYNC,
        WRITER,
        "        shared.commits.check().map_err(|e| e.of(FORMAT).at(&shared.place.log))?;\n",
        "",
        FAULTS,
    ),
    Bug(
        "wal: waiters of a failed sync succeed",
        FSYNC,
        COMMIT,
        "            self.check()?;\n            if self.durable() >= target {\n",
        "            if self.durable() >= target || self.check().is_err() {\n",
        FAULTS,
    ),
    Bug(
        "wal: the tail left by a failed sync is not written again",
        FSYNC,
        TAIL,
        """        rewrite(&*looked.file, from, tip.end)"""
        """.map_err(|e| fail("write the tail again", e))?;""",
        "        let _ = rewrite;",
        FAULTS,
    ),
    Bug(
        "wal: a cut whose sync failed is not made again",
        FSYNC,
        TAIL,
        "    if cut || !closed {",
        "    if cut {",
        FAULTS + CRASH,
    ),
    Bug(
        "wal: closing does not wait for a sync under way",
        POWER,
        SYNC,
        "            result = self.commits.exclusive(|| self.cut_and_sync());",
        "            result = self.commits.check().and_then(|()| self.cut_and_sync().map(drop));",
        [("closing", "")],
    ),
    Bug(
        "wal: a leader does not ask whether somebody else's sync failed",
        FSYNC,
        SYNC,
        "        self.commits.check_rollback()?;\n",
        "",
        [("closing", "")],
    ),
    Bug(
        "wal: an index keeps its numbers when a prefix was dropped since",
        TRUNCATION,
        RECOVER,
        "            let first = (mark.first + mark.records).checked_sub(tip.records);",
        "            let first = Some(0u64);",
        [("wal_truncation", "")],
    ),
    Bug(
        "wal: an intent to empty a log is any log's",
        REPLACED,
        LOOK,
        "frame.crc == intent.first_sum,",
        "true || frame.crc == intent.first_sum,",
        [("wal_truncation", "")],
    ),
    Bug(
        "wal: a failed write is not rolled back",
        FULL,
        WRITER,
        "            self.file.set_len(state.tip.end)?;\n            self.file.sync_data()?;\n",
        "",
        FAULTS,
    ),
    Bug(
        "wal: a rolled back append is not synced away",
        FULL,
        WRITER,
        "            self.file.set_len(state.tip.end)?;\n            self.file.sync_data()?;\n",
        "            self.file.set_len(state.tip.end)?;\n",
        FAULTS,
    ),
    Bug(
        "wal: the head is always taken for 0",
        HEAD,
        LOOK,
        "        Head::At(head) => return view.segmented(&indices, head, segment_bytes, damaged),",
        "        Head::At(_) => return view.segmented(&indices, 0, segment_bytes, damaged),",
        CRASH,
    ),
    Bug(
        "wal: a lost head is not made up for by the mark",
        HEAD,
        LOOK,
        "    if let Some(mark) = mark.filter(|mark| mark.start > 0)",
        "    if let Some(mark) = mark.filter(|mark| mark.start == u64::MAX)",
        CRASH,
    ),
    Bug(
        "wal: the head marker is not synced",
        TRUNCATION,
        PLACE,
        "        replace(&*options.storage, &path, &encode_head(head), options.file_mode)\n",
        """        let _ = options.storage.remove(&path);
        options
            .storage
            .create_new(&path, options.file_mode)
            .and_then(|file| crate::storage::write_full(&*file, &encode_head(head), 0))
""",
        CRASH,
    ),
    Bug(
        "wal: segments are removed before the head is stored",
        TRUNCATION,
        TRUNCATE,
        "        let marker = self.place.head(&*self.options.storage)?;\n",
        """        segments.remove_below(head / bytes).map_err(|e| io("remove segments", e))?;
        let marker = self.place.head(&*self.options.storage)?;
""",
        CRASH,
    ),
    Bug(
        "wal: a prefix goes newest first",
        TRUNCATION,
        SEGMENTS,
        "        for index in from..first {",
        "        for index in (from..first).rev() {",
        CRASH,
    ),
    Bug(
        "wal: an end goes oldest first",
        TRUNCATION,
        SEGMENTS,
        "        for index in gone.iter().rev() {",
        "        for index in gone.iter() {",
        CRASH,
    ),
    Bug(
        "wal: a prefix is dropped with unsynced records behind it",
        TRUNCATION,
        TRUNCATE,
        "        self.sync_file(tip).map_err(broken)?;\n",
        "",
        CRASH,
    ),
    Bug(
        "wal: the mark of a new head is not synced",
        TRUNCATION,
        TRUNCATE,
        "        self.sync_mark()?;\n        Ok(kept.end)",
        "        Ok(kept.end)",
        CRASH,
    ),
    Bug(
        "wal: what is not durable is dropped",
        TRUNCATION,
        TRUNCATE,
        "        if end <= durable {",
        "        if end <= durable || durable < u64::MAX {",
        CRASH,
    ),
    Bug(
        "wal: no intent before a cut",
        TRUNCATION,
        TRUNCATE,
        """        intent.store(&self.options, &self.place.sidecar).map_err(|e| {
            match Intent::load(&*self.options.storage, &self.place.sidecar) {
                Ok(Left::Absent) => refuse(e),
                _ => broken(e),
            }
        })?;
""",
        "",
        CRASH,
    ),
    Bug(
        "wal: the mark is not lowered before a cut",
        TRUNCATION,
        TRUNCATE,
        """        let lowered = MarkFile::reset(
            &*self.options.storage,
            &self.place.sidecar,
            &mark,
            self.options.file_mode,
        );""",
        """        let _ = mark;
        let lowered = MarkFile::open(&*self.options.storage, &self.place.sidecar);""",
        CRASH,
    ),
    Bug(
        "wal: a cut is not synced before its intent goes",
        TRUNCATION,
        TRUNCATE,
        "        self.sync_file(kept).map_err(broken)?;\n        Intent::clear",
        "        Intent::clear",
        CRASH,
    ),
    Bug(
        "wal: an intent is not ended by who opens the log next",
        TRUNCATION,
        LOOK,
        "            Left::Intent(intent) if is_ours",
        "            Left::Intent(intent) if head == u64::MAX && is_ours",
        CRASH,
    ),
    Bug(
        "wal: a log in pieces is cut before its mark is durable",
        AGAIN,
        TAIL,
        "    let in_pieces = looked.cut_begun || (cut && looked.segments.is_some());",
        "    let in_pieces = false;",
        CRASH,
    ),
    Bug(
        "wal: what opening found is acknowledged without a sync",
        KILL,
        TAIL,
        "    if cut || unmarked || looked.cut_begun {",
        "    if cut || looked.cut_begun {",
        CRASH,
    ),
    Bug(
        "wal: names of a killed writer are not synced",
        AGAIN,
        TAIL,
        "    if !closed {\n        sync_names",
        "    if closed {\n        sync_names",
        CRASH,
    ),
    Bug(
        "wal: a log stays marked as closed while it is open",
        KILL,
        TAIL,
        "            if found.closed {",
        "            if found.closed && found.records == u64::MAX {",
        CRASH,
    ),
    Bug(
        "wal: segments that come back below the head are kept",
        SEGMENT,
        TAIL,
        "    if looked.below.is_empty() {",
        "    if looked.below.len() < usize::MAX {",
        CRASH,
    ),
    Bug(
        "wal: a segment in the middle of a wrong size is accepted",
        SEGMENT,
        PLACE,
        "        if len < segment_bytes && from.last() != Some(&index) {",
        "        if len == u64::MAX && from.last() != Some(&index) {",
        CRASH,
    ),
    Bug(
        "wal: a missing segment is accepted",
        SEGMENT,
        PLACE,
        """            let missing = segment_name(found.extent.next);
            found.gap.get_or_insert_with(|| format!("segment {missing} is missing"));
            found.extent.stray.push(index);
            continue;""",
        "            continue;",
        CRASH,
    ),
    Bug(
        "wal: segments behind a gap stay",
        SEGMENT,
        SEGMENTS,
        "        let mut gone = std::mem::take(&mut state.stray);\n",
        "        state.stray.clear();\n        let mut gone = Vec::new();\n",
        CRASH,
    ),
    Bug(
        "wal: a record beyond the limit is torn",
        "length huge, 0, below the minimum, off by one; length trailer lies",
        RECOVER,
        "            let beyond_limit = self.is_beyond_limit(tip, stop.as_ref())?;",
        "            let beyond_limit = false;",
        CRASH,
    ),
    Bug(
        "wal: a torn record that holds records is corrupt above the mark",
        NESTED,
        RECOVER,
        "            findings.verdict = if beyond_limit"
        " { Verdict::Corrupt } else { Verdict::Torn };",
        "            let next = find_intact(self.subject.file, &self.subject.codec, tip.end + 1,\n"
        "                self.subject.file_end)?;\n"
        "            let corrupt = beyond_limit || next.is_some();\n"
        "            findings.verdict = if corrupt { Verdict::Corrupt } else { Verdict::Torn };",
        CRASH,
    ),
    Bug(
        "wal: records inside a torn record surface above the mark",
        NESTED,
        SURVEY,
        "    if borders.durable_end.is_some_and(|durable| offset >= durable) {",
        """    let borders = &Borders { durable_end: None, ..borders.clone() };
    if false {""",
        CRASH,
    ),
    Bug(
        "wal: recovery to the acknowledged keeps the rest",
        KILL,
        TAIL,
        "        findings.tip = Tip::of_mark(&mark);\n",
        "",
        CRASH,
    ),
    Bug(
        "wal: an intact record at a border of the index is passed over",
        NESTED,
        SURVEY,
        "    if border == Some(candidate) {",
        "    if border == Some(candidate) && candidate == u64::MAX {",
        KEEP,
    ),
    Bug(
        "wal: a reader does not notice that the end was cut",
        REPLACED,
        REFRESH,
        "        if self.mode != Mode::Read || tip.records == 0 {",
        "        if self.mode != Mode::Read || tip.records < 1 << 40 {",
        READERS,
    ),
    Bug(
        "wal: a reader stays at the head that it saw first",
        REPLACED,
        REFRESH,
        "            Head::At(head) if head > known.start => head,",
        "            Head::At(u64::MAX) => u64::MAX,",
        READERS,
    ),
    Bug(
        "wal: a consumer stays above a cut end",
        TRUNCATION,
        TRUNCATE,
        "        self.lower_consumers(kept.end).map_err(&refuse)?;\n",
        "",
        KEEP,
    ),
    Bug(
        "wal: a consumer stays above the end that a crash left",
        POWER,
        OPEN,
        "            match wal.shared.lower_consumers(tip.end) {",
        "            match wal.shared.lower_consumers(u64::MAX) {",
        KEEP,
    ),
    Bug(
        "wal: a segment seems as old as its first record",
        TRUNCATION,
        SEGMENTS,
        "            self.file(&mut state, index - 1)?.touch()?;\n",
        "",
        KEEP,
    ),
    Bug(
        "wal: segments behind a gap above the mark are salvaged",
        NESTED,
        MEND,
        "        if known_end.is_some_and(|end| start >= end) {",
        "        if known_end.is_some_and(|end| start > end + (1 << 40)) {",
        KEEP,
    ),
    Bug(
        "wal: closing does not sync",
        POWER,
        SYNC,
        "        self.sync_file(tip)?;\n        self.store_mark(tip.mark(file_id), true)?;",
        "        self.store_mark(tip.mark(file_id), true)?;",
        CRASH,
    ),
]
