"""Which dead letters a run keeps with their columns, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Final

import pyarrow as pa

from headrace.algebra.letters import letters_name
from headrace.runtime.intake.letters import read_letters
from headrace.runtime.intake.streams import BoundedStream, Incoming, Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.letters import stream_of
from headrace.runtime.tasks.messages import LetterFile, TaskReport
from headrace.time import INFINITY

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

        Letters that wait to become input of the next epoch are kept whatever the stream says.

        Args:
            streams: those that some query reads.
            points: how far each has been read after the epoch.
            intakes: what it took of them.
            reports: of its tasks.
        """
        found = dict(points)
        for name, stream in streams.items():
            if isinstance(stream, BoundedStream | LiveStream):
                intake, reader = intakes.get(name), letters_name(name)
                before = points[name].letters
                if intake is not None and intake.replay is not None:
                    before = intake.replay
                new = (report.letters[name] for report in reports if name in report.letters)
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
                same = [self.write(stream, pa.concat_tables(tables), same[-1], tier + 1)]
            result += same
        return tuple(result)

    def write(self, stream: str, rows: pa.Table, newest: LetterFile, tier: int) -> LetterFile:
        """Write dead letters to a file of their own.

        Args:
            stream: whose they are.
            rows: the letters, with the columns in which they are kept, oldest first.
            newest: the file with the newest of them.
            tier: how often they have been put together.
        """
        place = f"{self.epoch}-{newest.last}-{tier}-{stream.encode().hex()[:_NAMED]}"
        writer = SegmentWriter(self.store, f"segments/e{place}-kept-{self.token}")
        part = writer.add(stream_of(rows))
        writer.close()
        return LetterFile(part, rows.num_rows, newest.last, newest.clock, tier)


_NAMED: Final = 60
"""So much of a stream's name is in the names of files, whose length is limited."""


def is_expired(noted: int, kept: int, clock: int) -> bool:
    """Whether a dead letter has been kept for long enough.

    Args:
        noted: when it was set apart (microseconds since 1970-01-01 UTC).
        kept: for how long it is kept (microseconds).
        clock: the clock's reading now.
    """
    return kept != INFINITY and noted < clock - kept
