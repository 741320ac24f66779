"""Which dead letters a run keeps with their columns, and for how long."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.letters import letters_name
from headrace.elements import BoolArray, integers
from headrace.errors import UserError
from headrace.lowering.behind import declared_name, lane_of
from headrace.runtime.intake.letters import read_letters
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream, Incoming, Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.tables import as_one, filled
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.letters import column_of_letters, kept_schema, stream_of
from headrace.runtime.tasks.messages import LetterFile, TaskReport
from headrace.schema import TIMESTAMP, Field, Schema
from headrace.time import BEGINNING, INFINITY

MOST_FILES: Final = 16
"""So many files of dead letters of a stream become one, and so many of those become one again."""


@dataclass(frozen=True)
class LetterKeeper:
    """Keeps the dead letters of streams in files of the store.

    Attributes:
        store: where they are.
        token: makes the names of files unique that the driver writes.
        epoch: the epoch that is to be committed.
        clock: its reading of the clock (microseconds since 1970-01-01 UTC).
    """

    store: Store
    token: str
    epoch: int
    clock: int

    def after(
        self,
        streams: Mapping[str, Incoming],
        points: Mapping[str, StreamPoint],
        intakes: Mapping[str, Intake],
        reports: Sequence[TaskReport],
    ) -> dict[str, StreamPoint]:
        """How far streams have been read, with the dead letters that are kept after the epoch.

        Letters that wait to become input of the next epoch are kept whatever the stream says. Those of rows
        that lanes read are letters of the stream.

        Args:
            streams: those that some query reads.
            points: how far each has been read after the epoch.
            intakes: what it took of them.
            reports: of its tasks.
        """
        found = dict(points)
        for name, stream in streams.items():
            if isinstance(stream, BoundedStream | LiveStream) and lane_of(name) is None:
                intake, reader = intakes.get(name), letters_name(name)
                before = points[name].letters
                if intake is not None and intake.replay is not None:
                    before = intake.replay.letters
                new = (
                    file
                    for report in reports
                    for read, file in report.letters.items()
                    if declared_name(read) == name
                )
                taken = points[reader].position if reader in streams else INFINITY
                files = self._kept(chain(before, new), stream.letters_kept, taken)
                if files != points[name].letters:
                    found[name] = replace(points[name], letters=self._merged(files, taken, name))
        return found

    def _kept(self, files: Iterable[LetterFile], kept: int | None, taken: int) -> tuple[LetterFile, ...]:
        """Those files that are still needed.

        Args:
            files: all of them.
            kept: for how long letters are kept (microseconds), None where nothing is said.
            taken: up to which epoch letters have become input.
        """
        return tuple(
            file
            for file in files
            if file.last > taken or (kept is not None and not is_expired(file.clock, kept, self.clock))
        )

    def _merged(self, files: tuple[LetterFile, ...], taken: int, stream: str) -> tuple[LetterFile, ...]:
        """The files, where many of one tier have become one of the next."""
        result: list[LetterFile] = []
        for tier, group in groupby(files, lambda file: file.tier):
            same = list(group)
            if len(same) >= MOST_FILES and same[-1].last <= taken:
                tables = [read_letters(self.store, file) for file in same]
                merged = replace(same[-1], tier=tier + 1)
                same = [self.write(stream, as_one(tables), merged, f"tier-{merged.tier}")]
            result += same
        return tuple(result)

    def write(self, stream: str, rows: pa.Table, like: LetterFile, what: str) -> LetterFile:
        """Write dead letters to a file of their own.

        Args:
            stream: whose they are.
            rows: the letters, with the columns in which they are kept, oldest first.
            like: what else is known of them.
            what: makes the file's name unique among those that are written for the stream in the epoch.
        """
        name = hashlib.sha256(stream.encode()).hexdigest()[:16]
        writer = SegmentWriter(self.store, f"segments/e{self.epoch}-letters-{name}-{what}-{self.token}")
        part = writer.add(stream_of(rows))
        writer.close()
        return replace(like, part=part, rows=rows.num_rows)


def kept_letters(name: str, stream: Incoming, point: StreamPoint, store: Store, clock: int) -> pa.Table:
    """The dead letters of a stream that says that they are kept, oldest first; see `kept_schema`.

    Args:
        name: the stream.
        stream: what is declared of it.
        point: how far it has been read.
        store: where the letters are.
        clock: the clock's reading now (microseconds since 1970-01-01 UTC).

    Raises:
        UserError: nothing says that they are to be kept.
    """
    kept = require_kept(name, stream)
    columns = kept_schema(all_columns(stream))
    tables = [columns.empty_table()]
    for file in point.letters:
        rows = filled(read_letters(store, file), columns)
        tables.append(rows.filter(pa.array(is_left(rows, kept, clock))))
    return pa.concat_tables(tables)


def require_kept(name: str, stream: Incoming) -> int:
    """For how long the dead letters of a stream are kept (microseconds), INFINITY for ever.

    Raises:
        UserError: nothing says that they are.
    """
    kept = stream.letters_kept if isinstance(stream, BoundedStream | LiveStream) else None
    if kept is None:
        raise UserError(
            f"the dead letters of {name} are not kept",
            hint=f"write ALTER STREAM {name} DEAD LETTERS KEEP ALL; those that come from then on are kept",
        )
    return kept


def is_left(rows: pa.Table, kept: int, clock: int) -> BoolArray:
    """Which dead letters are still kept.

    Args:
        rows: the letters, with the columns in which they are kept.
        kept: for how long (microseconds).
        clock: the clock's reading now.
    """
    apart = integers(column_of_letters(rows, "set_apart_at").combine_chunks())
    return np.asarray(apart >= (BEGINNING if kept == INFINITY else clock - kept))


def all_columns(stream: Incoming) -> Schema:
    """The columns of a stream, with the one that it is timed by where that is the arrival."""
    fields = {field.name: field for field in stream.schema}
    if not isinstance(stream, BoundedRelation) and stream.timing.by_arrival:
        fields[stream.timestamp] = Field(stream.timestamp, TIMESTAMP)
    return Schema(tuple(fields.values()))


def is_expired(noted: int, kept: int, clock: int) -> bool:
    """Whether a dead letter has been kept for long enough.

    Args:
        noted: when it was set apart (microseconds since 1970-01-01 UTC).
        kept: for how long it is kept (microseconds).
        clock: the clock's reading now.
    """
    return kept != INFINITY and noted < clock - kept
