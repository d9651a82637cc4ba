"""The seeded bugs of a ledger's transactions."""

from __future__ import annotations

from bug import Bug, Tests
from rows import FLIP, FULL, KILL, POWER

DIRECTORY = "src/ledger/directory.rs"
MOD = "src/ledger/mod.rs"
SEALED = "src/sidecar/sealed.rs"
STAGE = "src/ledger/stage.rs"
STAGING = "src/transaction/staging.rs"
TRANSACT = "src/ledger/transact.rs"

GONE = (
    "            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Published::Before),\n"
)


def by(name: str) -> Tests:
    """A test of the ledger among those of transactions."""
    return [("engine::transactions", f"ledger::{name}")]


LEDGER_TRANSACTION_BUGS = [
    Bug(
        "ledger transaction: noted before the names are durable",
        POWER,
        TRANSACT,
        "        self.directory.sync()?;\n        let mut state",
        "        let mut state",
        by("crashes::a_crash_at_any_step"),
    ),
    Bug(
        "ledger transaction: noted before the files have names",
        KILL,
        TRANSACT,
        "        let parts = with_records(parts);\n        let begun =",
        "        let parts = with_records(parts.get(..1).unwrap_or(&[]));\n        let begun =",
        by("crashes::a_crash_at_any_step"),
    ),
    Bug(
        "ledger transaction: what was sent meanwhile cannot be finished",
        KILL,
        TRANSACT,
        GONE,
        "",
        by("crashes::what_was_sent"),
    ),
    Bug(
        "ledger transaction: a staged file that cannot be opened is taken for sent",
        KILL,
        TRANSACT,
        GONE,
        "            Err(_) => return Ok(Published::Before),\n",
        by("crashes::a_failing_call"),
    ),
    Bug(
        "ledger transaction: no index is claimed",
        KILL,
        TRANSACT,
        "        self.claim(gate, last)?;\n",
        "        let _ = (gate, last);\n",
        by("beside::a_store_that_goes_on"),
    ),
    Bug(
        "ledger transaction: one index is claimed for all parts",
        KILL,
        TRANSACT,
        "(first + count as u64)",
        "(first + (count as u64).min(1))",
        by("beside::a_store_that_goes_on"),
    ),
    Bug(
        "ledger transaction: a file of another program is replaced",
        KILL,
        TRANSACT,
        "            Ok(_) => return Ok(Published::Taken),\n",
        "            Ok(_) => self.storage.rename(staged, &named).map_err(fail)?,\n",
        by("beside::a_file_that_another_program"),
    ),
    Bug(
        "ledger transaction: it goes on elsewhere, and the intent stays",
        KILL,
        TRANSACT,
        "            store(first.to_string())?;\n        }",
        "        }",
        by("beside::a_file_that_another_program"),
    ),
    Bug(
        "ledger transaction: opening finishes nothing",
        KILL,
        MOD,
        "        store.shared.finish_begun();\n",
        "",
        by("crashes::a_crash_at_any_step"),
    ),
    Bug(
        "ledger transaction: opening takes over a commit that another store is at",
        KILL,
        TRANSACT,
        "            Ok(LockAttempt::Busy(_)) => Ok(()),\n",
        "            Ok(LockAttempt::Busy(_)) => transaction::finish(self),\n",
        by("crashes::an_abort_removes_nothing"),
    ),
    Bug(
        "ledger transaction: two stores commit at once",
        KILL,
        TRANSACT,
        "            let _committing = locked.map_err(|e| e.with_durable(Durable::No))?;\n",
        "            drop(locked.map_err(|e| e.with_durable(Durable::No))?);\n",
        by("beside::commits_beside_stores"),
    ),
    Bug(
        "ledger transaction: a checksum is not compared",
        FLIP,
        TRANSACT,
        "        while staged.next()?.is_some() {}\n",
        "        staged.next()?;\n",
        by("a_staged_file_that_changed"),
    ),
    Bug(
        "ledger transaction: parts of two attempts are committed",
        KILL,
        STAGING,
        "before.sequence == sequence || before.attempt != attempt",
        "before.sequence == sequence",
        by("parts_that_are_not_one_whole"),
    ),
    Bug(
        "ledger transaction: a missing part is not noticed",
        KILL,
        STAGING,
        "        if sequence != next {\n",
        "        if sequence < next {\n",
        by("parts_that_are_not_one_whole"),
    ),
    Bug(
        "ledger transaction: the limit of all files does not hold",
        FULL,
        TRANSACT,
        "        self.make_room(&mut state, records, bytes)?;\n",
        "        let _: (u64, u64, &mut _) = (records, bytes, &mut state);\n",
        by("a_commit_counts_against"),
    ),
    Bug(
        "ledger transaction: what it added is not counted",
        FULL,
        TRANSACT,
        "        state.held = None;\n",
        "",
        by("a_commit_counts_against"),
    ),
    Bug(
        "ledger transaction: a task's limit of a payload is not kept",
        KILL,
        STAGE,
        "            shared.directory.keep_limit(&gate, shared.options.record_bytes_max)?;\n",
        "",
        by("a_record_that_is_longer"),
    ),
    Bug(
        "ledger transaction: the ledgers of a directory share their jobs",
        KILL,
        DIRECTORY,
        'format!("{JOBS_PREFIX}{base}")',
        "JOBS_PREFIX",
        by("ledgers_of_one_directory"),
    ),
    Bug(
        "ledger transaction: the store's own file goes on",
        KILL,
        TRANSACT,
        "        // What this store appended before comes before.\n"
        "        self.finish_and_sync()?;\n",
        "",
        by("files_get_the_next_indexes"),
    ),
    Bug(
        "ledger transaction: a failure after the intent says that nothing is left",
        KILL,
        TRANSACT,
        "        published.map_err(|e| e.with_durable(Durable::Unknown))\n",
        "        published.map_err(|e| e.with_durable(Durable::No))\n",
        by("crashes::a_failing_call"),
    ),
    Bug(
        "ledger transaction: the names of what was noted are not durable",
        POWER,
        TRANSACT,
        "        sync_names(&*self.storage, &self.sidecar(), &self.path)\n",
        "        let _ = sync_names;\n        Ok(())\n",
        by("a_commit_without_records"),
    ),
    Bug(
        "ledger transaction: a task that gives up leaves its files",
        KILL,
        STAGE,
        "        if self.is_finished || self.store.shared.is_forked() {\n",
        "        if self.is_finished || !self.finished.is_empty() {\n",
        by("a_task_makes_files"),
    ),
    Bug(
        "ledger transaction: files of a task pass the cap",
        KILL,
        STAGE,
        "file.bytes_len() + bytes > shared.max_file_size",
        "file.bytes_len() > shared.max_file_size",
        by("a_task_makes_files"),
    ),
    Bug(
        "ledger transaction: files have another mode",
        KILL,
        TRANSACT,
        "file_mode: self.options.file_mode",
        "file_mode: 0o600",
        by("beside::a_file_with_both_names"),
    ),
    Bug(
        "transaction: a record that may not be read is taken for none",
        KILL,
        SEALED,
        "io::ErrorKind::NotFound | io::ErrorKind::NotADirectory",
        "io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied",
        by("crashes::what_cannot_be_read"),
    ),
    Bug(
        "ledger transaction: a claim of which nothing came is kept",
        FULL,
        TRANSACT,
        "        if begun.is_err() && is_unused() {\n",
        "        if false && begun.is_err() && is_unused() {\n",
        by("crashes::a_commit_whose_intent"),
    ),
]
