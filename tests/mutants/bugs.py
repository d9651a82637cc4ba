"""The seeded bugs: what is changed in the sources, and which tests are to catch it.

``row`` is the row of the promise table (docs/trust.md) that the bug breaks. ``tests`` are pairs of
a test target of cargo (``lib`` for unit tests) and its arguments, such as a filter (``""`` for all
of it; ``{subject}`` for the subjects of a format), tried in turn until one fails.
"""

from __future__ import annotations

from bug import Bug
from wal_bugs import WAL_BUGS

CRASH = [("crash", "::{subject}::"), ("crash", "{subject}::every_short")]
FAULTS = [("faults", "::{subject}::"), ("faults", "{subject}::every_call")]
DAMAGE = [("answers", ""), ("recovery", ""), ("log", "sidecar")]
FILES = [("log", "places"), ("log", "live")]

WRITER = "src/book/writer.rs"
SYNC = "src/book/sync.rs"
LOOK = "src/book/look.rs"
TAIL = "src/book/tail.rs"
OPEN = "src/book/open.rs"
RECOVER = "src/book/recover.rs"
SURVEY = "src/book/survey.rs"
FORMAT = "src/book/format.rs"
CURSOR = "src/book/cursor.rs"
SCAN = "src/scan.rs"
STORAGE = "src/storage/mod.rs"
DISK = "src/storage/disk.rs"
COMMIT = "src/commit.rs"
MARK = "src/sidecar/mark.rs"
INDEX = "src/sidecar/index.rs"

BUGS = [
    Bug(
        "acknowledge before the sync",
        "power loss",
        SYNC,
        "            self.sync_file(tip)?;\n            // Durable now",
        "            // Durable now",
        CRASH,
    ),
    Bug(
        "no sync of the directory after a rename",
        "power loss",
        STORAGE,
        '    storage.sync_dir(path.parent().unwrap_or(Path::new(".")))\n}',
        "    Ok(())\n}",
        CRASH + FAULTS,
    ),
    Bug(
        "no sync of a new file before its rename",
        "power loss",
        STORAGE,
        "write_full(&*file, bytes, 0).and_then(|()| file.sync_data())",
        "write_full(&*file, bytes, 0)",
        CRASH,
    ),
    Bug(
        "the mark is written before the sync",
        "power loss",
        SYNC,
        "            self.sync_file(tip)?;\n            // Durable now",
        "            self.store_mark(tip, false)?;\n"
        "            self.sync_file(tip)?;\n            // Durable now",
        CRASH + FAULTS,
    ),
    Bug(
        "closing does not wait for a sync under way",
        "power loss",
        SYNC,
        "            result = self.commits.exclusive(|| self.cut_and_sync());",
        "            result = self.commits.check().and_then(|()| self.cut_and_sync().map(drop));",
        [("closing", "")],
    ),
    Bug(
        "the header follows the deeds",
        "power loss",
        WRITER,
        "            if state.header_first != event {",
        "            if state.header_first != event && state.tip.records > 0 {",
        [*CRASH, ("golden", "")],
    ),
    Bug(
        "names of a killed creator are not synced",
        "crash during recovery, again and again",
        TAIL,
        "    if !keeps.is_some_and(|mark| mark.closed) {",
        "    if keeps.is_some_and(|_| false) {",
        CRASH,
    ),
    Bug(
        "what opening found is acknowledged without a sync",
        "kill -9 at any instruction",
        TAIL,
        "    if cut || unmarked {\n",
        "    if cut {\n",
        CRASH,
    ),
    Bug(
        "the tail left by a failed sync is not written again",
        "fsync fails once, then works",
        TAIL,
        "        rewrite(&*looked.file, from, tip.end)"
        '.map_err(|e| fail("write the tail again", e))?;\n',
        "        let _ = from;\n",
        FAULTS + CRASH,
    ),
    Bug(
        "no poison after a failed sync",
        "fsync fails once, then works",
        COMMIT,
        "                self.poison(&error.to_string());\n",
        "",
        [("lib", "commit"), *FAULTS],
    ),
    Bug(
        "waiters of a failed sync succeed",
        "fsync fails once, then works",
        COMMIT,
        "            self.check()?;\n            if self.durable() >= target {\n",
        "            if self.durable() >= target || self.check().is_err() {\n",
        [("lib", "commit"), *FAULTS],
    ),
    Bug(
        "a panicking leader leaves its waiters believing",
        "panic in a callback or in a group leader",
        COMMIT,
        '            self.commits.poison("the thread that synced panicked");',
        "            let _ = &self.commits;",
        [("lib", "commit")],
    ),
    Bug(
        "EINTR is an error",
        "ENOSPC, EDQUOT, EFBIG, short write, 0, EINTR, EAGAIN",
        STORAGE,
        "            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),\n"
        "            Ok(n) => done += n,\n"
        "            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}\n",
        "            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),\n"
        "            Ok(n) => done += n,\n",
        FAULTS,
    ),
    Bug(
        "a short write counts as whole",
        "ENOSPC, EDQUOT, EFBIG, short write, 0, EINTR, EAGAIN",
        STORAGE,
        "            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),\n"
        "            Ok(n) => done += n,\n",
        "            Ok(_) => return Ok(()),\n",
        FAULTS,
    ),
    Bug(
        "a failed write is not rolled back",
        "ENOSPC, EDQUOT, EFBIG, short write, 0, EINTR, EAGAIN",
        WRITER,
        "            self.file.set_len(state.tip.end)?;\n            self.file.sync_data()?;\n",
        "",
        FAULTS,
    ),
    Bug(
        "a rolled back append is not synced away",
        "ENOSPC, EDQUOT, EFBIG, short write, 0, EINTR, EAGAIN",
        WRITER,
        "            self.file.set_len(state.tip.end)?;\n            self.file.sync_data()?;\n",
        "            self.file.set_len(state.tip.end)?;\n",
        FAULTS,
    ),
    Bug(
        "a read error is the end of the log",
        "read error in the middle",
        SCAN,
        "        let read = read_full(file, target, self.pos + kept as u64)?;",
        "        let read = read_full(file, target, self.pos + kept as u64).unwrap_or(0);",
        FAULTS,
    ),
    Bug(
        "the length trailer is not compared",
        "length huge, 0, below the minimum, off by one; length trailer lies",
        FORMAT,
        "        if trailer != len {",
        "        if false && trailer != len {",
        DAMAGE,
    ),
    Bug(
        "checksums are not compared",
        "bit flip in the middle",
        FORMAT,
        "            if crc != stored {",
        "            if false && crc != stored {",
        DAMAGE,
    ),
    Bug(
        "the limit of a length is not checked",
        "length huge, 0, below the minimum, off by one; length trailer lies",
        FORMAT,
        "        if len > self.deed_bytes_max {",
        "        if false && len > self.deed_bytes_max {",
        [("lib", "format"), ("limits", ""), ("allocation", "")],
    ),
    Bug(
        "memory is reserved beyond the end of the file",
        "length huge, 0, below the minimum, off by one; length trailer lies",
        SCAN,
        "        if need > left {\n            return Ok(left);\n        }\n"
        "        let want = need.max(self.block_bytes as u64).min(left) as usize;",
        "        let want = need.max(self.block_bytes as u64) as usize;",
        [("allocation", "")],
    ),
    Bug(
        "interior damage is cut off like a torn tail",
        "bit flip in the middle",
        RECOVER,
        "            next.is_some() || beyond_limit(self.file, tip.end",
        "            beyond_limit(self.file, tip.end",
        DAMAGE,
    ),
    Bug(
        "the end below the mark is accepted",
        "bit flip in the last record",
        RECOVER,
        "    findings.verdict = Verdict::Corrupt;\n    findings.durable_end = Some(mark.end);",
        "    findings.durable_end = Some(mark.end);",
        DAMAGE,
    ),
    Bug(
        "a mark counts whatever the log holds at its end",
        "mark or index stale, damaged, foreign, deleted",
        RECOVER,
        "        let agrees = frame.crc == mark.last_sum && scanner.position() == mark.end;",
        "        let agrees = scanner.position() == mark.end;",
        [("recovery", ""), ("log", "sidecar"), ("log", "properties"), ("fuzz_corpus", "")],
    ),
    Bug(
        "a foreign mark is taken for the log's own",
        "mark or index stale, damaged, foreign, deleted",
        RECOVER,
        "    let same_start = tip.records == 0 || tip.first_sum == mark.first_sum;",
        "    let same_start = true;",
        [("recovery", ""), ("log", "sidecar")],
    ),
    Bug(
        "an index is believed without its chain",
        "mark or index stale, damaged, foreign, deleted",
        INDEX,
        "        (entry.encode(before).1 == stored).then_some((entry, stored))",
        "        let _ = before;\n        Some((entry, stored))",
        [("lib", "index"), ("recovery", ""), ("log", "sidecar")],
    ),
    Bug(
        "a torn mark is not noticed",
        "mark or index stale, damaged, foreign, deleted",
        MARK,
        "            && u32_at(CRC_AT)? == crc32(slot.get(..CRC_AT)?)\n",
        "            && crc32(slot.get(..CRC_AT)?) != 1\n",
        [("lib", "mark"), ("recovery", ""), ("log", "sidecar")],
    ),
    Bug(
        "deeds inside a torn deed surface",
        "a payload that contains whole valid records, outer record torn",
        SURVEY,
        "    if unacknowledged && !beyond_limit(file, offset, Some(why), end)? {",
        "    if false && !beyond_limit(file, offset, Some(why), end)? {",
        [("regressions", "torn_tail"), ("crash", "")],
    ),
    Bug(
        "a missing log is created anew below its mark",
        "missing, duplicated, renamed, wrong-sized segment",
        OPEN,
        "        Found::Mark(mark) if mark.records > 0 => {",
        "        Found::Mark(mark) if mark.records == u64::MAX => {",
        [("recovery", ""), ("log", "sidecar")],
    ),
    Bug(
        "a header that contradicts the mark is believed",
        "header, head marker, manifest damaged or missing",
        RECOVER,
        "        if mark.records > 0 && header_first != mark.first {",
        "        if false && header_first != mark.first {",
        DAMAGE,
    ),
    Bug(
        "the lock is not taken",
        "second writer, other process or same process, through links too",
        DISK,
        "        match file.try_lock() {\n            Ok(()) => {}",
        "        match file.try_lock() {\n            _ if true => {}\n            Ok(()) => {}",
        FILES,
    ),
    Bug(
        "the log's own file is not locked",
        "second writer, other process or same process, through links too",
        OPEN,
        "        lock.add_log(storage, &log)?;\n",
        "",
        FILES,
    ),
    Bug(
        "the lock does not name its holder",
        "second writer, other process or same process, through links too",
        DISK,
        'format!("{}\\n", std::process::id())',
        '"\\n".to_string()',
        FILES,
    ),
    Bug(
        "a forked child may write",
        "fork while open",
        "src/book/mod.rs",
        "        self.born != fork_generation()\n",
        "        self.born == u64::MAX && fork_generation() == 0\n",
        [("log", "live")],
    ),
    Bug(
        "a forked child frees its parent's lock",
        "fork while open",
        DISK,
        "        if self.key.0 != fork_generation() {",
        "        if self.key.0 == u64::MAX {",
        [("log", "live")],
    ),
    Bug(
        "symbolic links are followed",
        "path traversal, symlink, FIFO, device, directory in place of a log",
        DISK,
        "libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC",
        "libc::O_NONBLOCK | libc::O_CLOEXEC",
        [("log", "places")],
    ),
    Bug(
        "opening a FIFO hangs",
        "path traversal, symlink, FIFO, device, directory in place of a log",
        DISK,
        "libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC",
        "libc::O_NOFOLLOW | libc::O_CLOEXEC",
        [("log", "places")],
    ),
    Bug(
        "a cut file kills its writer",
        "file truncated or replaced under reader or writer",
        "src/storage/mapped_writes.rs",
        "        install_handler();\n",
        "",
        [("lib", "map"), ("log", "live")],
    ),
    Bug(
        "a replaced log is synced and acknowledged",
        "file truncated or replaced under reader or writer",
        SYNC,
        "        match self.file.is_unlinked()? {",
        "        match false {",
        [("log", "live")],
    ),
    Bug(
        "gaps in the event numbers are accepted",
        "offsets beyond 2^31 and 2^32; u64 overflow",
        WRITER,
        "        if let Some(event) = event.filter(|&event| event != first) {",
        "        if let Some(event) = event.filter(|&event| event < first) {",
        [("numbers", "")],
    ),
    Bug(
        "event numbers overflow",
        "offsets beyond 2^31 and 2^32; u64 overflow",
        WRITER,
        "        let fits = next.filter(|next| next.checked_add(count).is_some());",
        "        let fits = next.filter(|next| next.wrapping_add(count) < u64::MAX);",
        [("limits", ""), ("numbers", "")],
    ),
    Bug(
        "the mark is lowered after the cut",
        "crash at any step of truncation, compaction, migration, removal",
        TAIL,
        "    if looked.mark.is_some_and(|mark| mark.end > tip.end) {",
        "    if looked.mark.is_some_and(|mark| mark.end == u64::MAX) {",
        [*CRASH, *FAULTS, ("recovery", ""), ("log", "sidecar")],
    ),
    Bug(
        "repair saves nothing",
        "bit flip in the middle",
        TAIL,
        """        report.saved_to =
            save_tail(storage, &*looked.file, log, options.file_mode, findings.tip.end)?;""",
        "        report.saved_to = None;\n        let _ = save_tail;",
        [("recovery", ""), ("log", "sidecar"), ("golden", "")],
    ),
    Bug(
        "closing does not sync",
        "power loss",
        SYNC,
        "        self.file\n            .sync_data()\n"
        "            .and_then(|()| self.check_still_there(tip))",
        "        Ok(())\n            .and_then(|()| self.check_still_there(tip))",
        CRASH,
    ),
    Bug(
        "recovery to the acknowledged keeps the rest",
        "kill -9 at any instruction",
        TAIL,
        "        findings.tip = Tip::of_mark(&mark);\n",
        "",
        [("recovery", ""), ("log", "sidecar"), *CRASH],
    ),
]
BUGS += WAL_BUGS
