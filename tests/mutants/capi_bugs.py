"""Seeded bugs of the C interface."""

from __future__ import annotations

import rows
from bug import Bug, Tests

BOOK: Tests = [("capi", "the_program_does_with_the_static_library")]
SLOTS: Tests = [
    ("capi", "logs_of_veres_head_are_written_read_and_mended_with_the_static_library"),
]
LIB = "capi/src/lib.rs"
LOG = "capi/src/log.rs"

CAPI_BUGS = [
    Bug(
        name="c: a log that lost its end is not opened",
        row=rows.HEAD,
        file=LOG,
        old="if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LostRecords)",
        new="if matches!(error.kind(), ErrorKind::Corrupt)",
        tests=BOOK,
    ),
    Bug(
        name="c: new logs in 0iN are packed",
        row=rows.HEAD,
        file=LOG,
        old="let in_slots = is_new && epoch_in_name(path).is_some();",
        new="let in_slots = false && is_new && epoch_in_name(path).is_some();",
        tests=SLOTS,
    ),
    Bug(
        name="c: gulf of slots gives the first event",
        row=rows.HEAD,
        file=LOG,
        old="u64::from(self.book.layout() == Layout::Slots)",
        new="u64::from(self.book.layout() != Layout::Slots) & 0",
        tests=SLOTS,
    ),
    Bug(
        name="c: the epoch of a log without events is not asked for",
        row=rows.OVERFLOW,
        file=LOG,
        old="self.book.bounds()?.is_none().then_some(epoch)",
        new="self.book.bounds()?.is_none().then_some(event.saturating_sub(1))",
        tests=BOOK,
    ),
    Bug(
        name="c: events that do not follow are appended",
        row=rows.OVERFLOW,
        file=LOG,
        old="self.book.append_batch(&batch, Some(event), epoch)",
        new="self.book.append_batch(&batch, None, epoch)",
        tests=BOOK,
    ),
    Bug(
        name="c: a walk may end after the last event",
        row=rows.READER,
        file=LOG,
        old="!bounds.contains(&first) || !bounds.contains(&last) || first > last",
        new="!bounds.contains(&first) || first > last",
        tests=BOOK,
    ),
    Bug(
        name="c: an event's mug is left out",
        row=rows.LENGTH,
        file=LOG,
        old="[&mug.to_le_bytes()[..], jam].concat()",
        new="[&mug.to_be_bytes()[..], jam].concat()",
        tests=BOOK,
    ),
    Bug(
        name="c: the size of metadata is not checked",
        row=rows.HEAD,
        file=LOG,
        old="let [loobean] = <[u8; 1]>::try_from(value).map_err(|_| wrong(1))?;",
        new="let loobean = value.first().copied().unwrap_or(0);",
        tests=BOOK,
    ),
    Bug(
        name="c: a ship is fake that is not",
        row=rows.HEAD,
        file=LOG,
        old="meta.fake = Some(loobean == 0);",
        new="meta.fake = Some(loobean != 0);",
        tests=BOOK,
    ),
    Bug(
        name="c: an unknown key of the metadata has a size",
        row=rows.HEAD,
        file=LIB,
        old="None => unsafe { read(context, -1, ptr::null_mut()) },",
        new="None => unsafe { read(context, 0, ptr::null_mut()) },",
        tests=BOOK,
    ),
    Bug(
        name="c: the caller's no does not end the reading",
        row=rows.PANIC,
        file=LIB,
        old='check(answer == C3Y, "the caller\'s function ended the reading")?;',
        new='check(answer <= C3N, "the caller\'s function ended the reading")?;',
        tests=BOOK,
    ),
    Bug(
        name="c: a walk that was released is released again",
        row=rows.READER,
        file=LIB,
        old="let steps = std::mem::replace(&mut state.walk, ptr::null_mut());",
        new="let steps = state.walk;",
        tests=BOOK,
    ),
]
