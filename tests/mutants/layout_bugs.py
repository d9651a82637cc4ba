"""The seeded bugs of a book's layouts: slots, padded, conversions."""

from __future__ import annotations

from bug import Bug
from rows import ADVICE, FLIP, FSYNC, HEAD, KILL, POWER, READER, REPAIR

COMMITTED = "src/book/committed.rs"
FIND = "src/book/find_slots.rs"
FORMAT = "src/book/format.rs"
WRITER = "src/book/slot_writer.rs"

LAYOUT_BUGS = [
    Bug(
        "slots: after a damaged header the next batch is counted from the older one",
        FLIP,
        "src/log/settle.rs",
        "if cut || unmarked || cut_begun || !found.format.is_sealed(&extent) {",
        "if cut || unmarked || cut_begun {",
        [("slots", "appends_after_a_damaged_slot")],
    ),
    Bug(
        "slots: a changed first deed makes a log another one than was cut into parts",
        FLIP,
        "src/log/identity.rs",
        "if (head..end).contains(&anchor.offset) && !is_marked(anchor) {\n",
        "if (head..end).contains(&anchor.offset) && (head > 0 || !is_marked(anchor)) {\n",
        [("answers", "a_log_in_slots_with_any_bit_flipped")],
    ),
    Bug(
        "slots: deeds that no header counts become events after a kill",
        KILL,
        FIND,
        "            let space = space_to(end);\n",
        "            let space = space_to(file_end);\n",
        [("slots", "deeds_after_the_committed_end")],
    ),
    Bug(
        "slots: a header counts whose deeds are not there",
        POWER,
        COMMITTED,
        "    Ok(match sum == slot.sum {\n",
        "    Ok(match sum == slot.sum || slot.sum > 0 {\n",
        [("slots", "a_header_without_its_deeds")],
    ),
    Bug(
        "slots: an initial slot beside a damaged one means an empty log",
        HEAD,
        COMMITTED,
        "} else if all_initial || !begins_at(file, codec, DEEDS_AT, file_end)? {\n",
        "} else if !all_initial || begins_at(file, codec, DEEDS_AT, file_end)? {\n",
        [("slots", "committed_events_are_never")],
    ),
    Bug(
        "slots: zeros follow the last deed",
        KILL,
        FORMAT,
        "        self.layout() != Layout::Slots\n    }\n",
        "        self.layout() != Layout::Padded\n    }\n",
        [("slots", "no_space_is_reserved")],
    ),
    Bug(
        "slots: a reader takes what no header counts",
        READER,
        FORMAT,
        "end_by_slots(file, self.codec, known, there),\n",
        "end_by_slots(file, self.codec, known, there).map(|_| there),\n",
        [("slots", "a_reader_sees_what")],
    ),
    Bug(
        "slots: appends between two syncs change both slots",
        POWER,
        WRITER,
        "        let to = if synced { 1 - at } else { at };\n",
        "        let to = 1 - at;\n",
        [("slots", "unsynced_appends_change_one")],
    ),
    Bug(
        "slots: after a sync the same slot is changed again",
        POWER,
        WRITER,
        "        lock(&self.slots).synced = true;\n",
        "        lock(&self.slots).synced |= false;\n",
        [("slots", "the_same_batches_give")],
    ),
    Bug(
        "slots: an append changes the slot that is being synced",
        POWER,
        "src/log/durable.rs",
        "            let _turn = self.format.turn();\n",
        "",
        [("crash", "durable::book_slots::what_is_appended_during")],
    ),
    Bug(
        "slots: a batch is not counted whole",
        POWER,
        WRITER,
        "            bat: bat + extent.records - known,\n",
        "            bat: extent.records - known,\n",
        [("crash", "book_slots"), ("slots", "")],
    ),
    Bug(
        "slots: a cut leaves a header that counts more",
        REPAIR,
        "src/log/settle.rs",
        "let sealed = found.format.seal(&*found.space.file, &extent);\n",
        "let sealed = std::io::Result::Ok(());\n",
        [("slots", "a_repair_of_slots")],
    ),
    Bug(
        "slots: the first mark is not synced, so an empty one proves nothing",
        ADVICE,
        FORMAT,
        "    fn proves_empty(&self) -> bool {\n        self.layout() == Layout::Slots\n",
        "    fn proves_empty(&self) -> bool {\n        self.layout() == Layout::Padded\n",
        [("crash", "torn::book_slots")],
    ),
    Bug(
        "slots: what lies after the mark of a log that lost its end is read",
        POWER,
        FIND,
        "    let space = bounded(space_to(marked.max(DEEDS_AT)));\n",
        "    let space = space_to(marked.max(DEEDS_AT));\n",
        [("crash", "torn::book_slots")],
    ),
    Bug(
        "slots: a failed header write leaves the new header",
        FSYNC,
        WRITER,
        "                let _ = put(file, to, &before);\n",
        "                let _ = before;\n",
        [("slots", "a_header_that_is_half_written")],
    ),
    Bug(
        "slots: verify does not compare the blocks",
        FLIP,
        "src/log/verify.rs",
        "        if let Some(sum) = sum.filter(|&sum| sum != entry.sum) {\n",
        "        if let Some(sum) = sum.filter(|&sum| sum > entry.sum && sum < entry.sum) {\n",
        [("slots", "verify_finds_rot")],
    ),
    Bug(
        "padded: the padding is a part of the checksum",
        FLIP,
        "src/book/codec.rs",
        "                crc32(part(deed, ..HEAD_BYTES)),\n",
        "                crc32(part(deed, ..head as usize)),\n",
        [("slots", "the_padded_layout_is_read")],
    ),
]
