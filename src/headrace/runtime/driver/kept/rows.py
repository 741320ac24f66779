"""Which rows of streams a run keeps after an epoch, and which it lets go of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import integers
from headrace.runtime.driver.kept.letters import all_columns
from headrace.runtime.intake.letters import read_letters
from headrace.runtime.intake.retained import read_retained
from headrace.runtime.intake.streams import (
    BoundedStream,
    Incoming,
    Intake,
    LiveStream,
    ReplayedLetters,
    Retain,
)
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.journal.retained import Retained
from headrace.runtime.sources.composed.tables import as_one, filled
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.letters import column_of_letters
from headrace.runtime.tasks.messages import RetainedFile, TaskReport
from headrace.runtime.tasks.retaining import write_retained
from headrace.time import BEGINNING, INFINITY

MOST_FILES: Final = 16
"""So many files of about one size become one."""

MOST_ROWS: Final = 500_000
"""A file has no more rows than that, if it does not come from one epoch."""

_MOST_UNTAKEN: Final = 20_000
"""A file of rows that have yet to be taken has no more of them: who takes few reads it again and again."""

_PIECES: Final = 8
"""What is kept is in at least about so many files, since rows are let go of by whole files."""


@dataclass(frozen=True)
class RowKeeper:
    """Keeps rows of streams in files of the store.

    Attributes:
        store: where they are.
        token: makes the names of files unique that the driver writes.
        epoch: the epoch that is to be committed.
        reads: whether a query is being brought to the present over them, so that all files stay as they are.
        untaken: per stream that queries read which are behind, the place of the first kept row that one of
            them has yet to take.
    """

    store: Store
    token: str
    epoch: int
    reads: bool = False
    untaken: Mapping[str, int] = field(default_factory=dict)

    def after(
        self,
        streams: Mapping[str, Incoming],
        before: Mapping[str, StreamPoint],
        points: Mapping[str, StreamPoint],
        intakes: Mapping[str, Intake],
        reports: Sequence[TaskReport],
    ) -> dict[str, StreamPoint]:
        """How far streams have been read after an epoch, with the rows that are kept.

        Args:
            streams: those that some query reads.
            before: how far they had been read before it.
            points: how far they have been read after it.
            intakes: what it took of them.
            reports: of its tasks.
        """
        found = dict(points)
        for name, stream in streams.items():
            if isinstance(stream, BoundedStream | LiveStream) and stream.retain is not None:
                retain, point = stream.retain, points[name]
                new = [report.retained[name] for report in reports if name in report.retained]
                if name in intakes and (replay := intakes[name].replay) is not None:
                    new += self._replayed(name, stream, replay)
                known = point.retained or Retained((), _missed(before[name]))
                kept = _with(known, new, point.heartbeat)
                if not self.reads:
                    first = self.untaken.get(name, kept.end)
                    kept = self._merged(name, _kept(retain, kept, _reached(point), first), retain, first)
                found[name] = replace(point, retained=kept)
            elif points[name].retained is not None:
                found[name] = replace(points[name], retained=None)
        return found

    def _replayed(
        self, name: str, stream: BoundedStream | LiveStream, replay: ReplayedLetters
    ) -> list[RetainedFile]:
        """A file with the rows that an epoch takes once more and that no query has had; none without any."""
        columns = all_columns(stream).arrow()
        tables = []
        for file in replay.letters:
            letters = read_letters(self.store, file)
            taken = pc.equal(column_of_letters(letters, "replayed_in"), self.epoch).fill_null(False)
            new = pc.is_null(column_of_letters(letters, "query"))
            tables.append(filled(letters.filter(pc.and_(taken, new)), columns))
        rows = pa.concat_tables(tables)
        if not rows.num_rows:
            return []
        part = write_retained(self.store, f"segments/e{self.epoch}-{self.token}-replayed", name, rows)
        newest = int(integers(rows[stream.timestamp].combine_chunks()).max())
        return [RetainedFile(part, rows.num_rows, self.epoch, self.epoch, newest)]

    def _merged(self, stream: str, kept: Retained, retain: Retain, untaken: int) -> Retained:
        """The same rows, in fewer files where there are many small ones; not with such as are yet untaken."""
        files: list[RetainedFile] = []
        for _, group in groupby(kept.files, lambda file: (file.tier, file.end > untaken)):
            same = list(group)
            while len(same) >= MOST_FILES and _may_merge(same[:MOST_FILES], retain, untaken):
                files.append(self._as_one(stream, same[:MOST_FILES]))
                same = same[MOST_FILES:]
            files += same
        return replace(kept, files=tuple(files))

    def _as_one(self, stream: str, files: Sequence[RetainedFile]) -> RetainedFile:
        """The rows of some files in one."""
        rows = as_one([read_retained(self.store, file) for file in files])
        last, tier = files[-1], files[0].tier + 1
        name = f"segments/e{self.epoch}-{self.token}-tier{tier}-{files[0].first}"
        part = write_retained(self.store, name, stream, rows)
        newest = max(file.newest for file in files)
        first = files[0]
        return RetainedFile(
            part, rows.num_rows, first.first, last.last, newest, last.heartbeat, tier, first.at
        )


def keeping_all(stream: Incoming) -> Incoming:
    """The stream with all its rows kept, whatever it declares."""
    if isinstance(stream, BoundedStream | LiveStream):
        return replace(stream, retain=Retain(INFINITY, None))
    return stream


def keeping_untaken(stream: Incoming) -> Incoming:
    """The stream with rows that are kept until all have taken them, and as it declares."""
    if isinstance(stream, BoundedStream | LiveStream) and stream.retain is None:
        return replace(stream, retain=Retain(None, 0))
    return stream


def _with(known: Retained, new: Sequence[RetainedFile], heartbeat: int) -> Retained:
    """Kept rows with those of an epoch, after which a stream has a heartbeat."""
    files, end = [*known.files], known.end
    for file in new:
        files.append(replace(file, heartbeat=heartbeat, at=end))
        end += file.rows
    return replace(known, files=tuple(files), end=end)


def _missed(point: StreamPoint) -> int:
    """From which instant on all rows are there of a stream whose rows are kept from now on."""
    return BEGINNING if point.time.latest == BEGINNING else point.time.latest + 1


def _reached(point: StreamPoint) -> int:
    """The instant that is measured back from: the heartbeat, or the end of a stream that has ended."""
    return min(point.heartbeat, point.time.latest + 1)


def _kept(retain: Retain, known: Retained, reached: int, untaken: int) -> Retained:
    """What is kept of some rows.

    Args:
        retain: which rows are.
        known: the rows.
        reached: the instant that is measured back from.
        untaken: the place of the first row that somebody has yet to take.
    """
    files: list[RetainedFile] = []
    since, left = known.since, known.rows
    for file in known.files:
        if retain.rows is not None:
            gone = not files and left - file.rows >= retain.rows
        else:
            gone = retain.length not in (None, INFINITY) and file.newest < reached - (retain.length or 0)
        if gone and file.end <= untaken:
            since, left = max(since, file.newest + 1), left - file.rows
        else:
            files.append(file)
    return Retained(tuple(files), since, known.end)


def _may_merge(files: Sequence[RetainedFile], retain: Retain, untaken: int) -> bool:
    """Whether files may become one, which is let go of as a whole."""
    rows = sum(file.rows for file in files)
    if files[0].end > untaken and rows <= _MOST_UNTAKEN:
        return True
    if retain.rows is not None:
        return rows <= min(MOST_ROWS, max(retain.rows // _PIECES, 1))
    span = max(file.newest for file in files) - files[0].newest
    return rows <= MOST_ROWS and span <= (retain.length or 0) // _PIECES
