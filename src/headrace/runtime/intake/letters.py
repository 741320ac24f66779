"""Dead letters as input: of the stream that they are, and of the stream that they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.runtime.intake.streams import Incoming, Intake, LetterStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.tables import filled
from headrace.runtime.sources.rows.contract import BATCH_ROWS, Read
from headrace.runtime.store.segments import Store, read_part
from headrace.runtime.tasks.letters import column_of_letters
from headrace.runtime.tasks.messages import LetterFile
from headrace.schema import Schema
from headrace.time import INFINITY


@dataclass(frozen=True)
class LetterSource:
    """Dead letters in files of the store, as a source; positions are rows.

    Attributes:
        store: where the files are.
        files: which of them.
        schema: the columns that can be read.
        replayed: the epoch for which letters are marked that are taken once more, and how many of each file;
            None where all are read.
    """

    store: Store
    files: tuple[LetterFile, ...]
    schema: Schema
    replayed: tuple[int, tuple[int, ...]] | None = None

    @property
    def _counts(self) -> tuple[int, ...]:
        """How many rows of each file are read."""
        return tuple(file.rows for file in self.files) if self.replayed is None else self.replayed[1]

    @property
    def size(self) -> int:
        """How many rows there are."""
        return sum(self._counts)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.size

    @property
    def borders(self) -> Sequence[int]:
        """Where a file begins."""
        return tuple(accumulate(self._counts))[:-1]

    def weigh(self, start: int, end: int) -> int:
        """About how many bytes the rows of the positions `[start, end)` have."""
        size = sum(file.part.length for file in self.files)
        return size * (end - start) // max(self.size, 1)

    @property
    def paths(self) -> tuple[Path, ...]:
        """None: the files are the store's own."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing: the files are the store's own."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`, in order."""
        begin, wanted = 0, self.schema.select(tuple(map(self.schema.names.index, columns))).arrow()
        for file, count in zip(self.files, self._counts, strict=True):
            low, high = max(start - begin, 0), min(end - begin, count)
            begin += count
            if low < high:
                rows = filled(self._rows(file).slice(low, high - low), wanted)
                for batch in rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
                    yield Read(batch)

    def _rows(self, file: LetterFile) -> pa.Table:
        """The rows of a file that are read."""
        rows = read_letters(self.store, file)
        if self.replayed is None:
            return rows
        return rows.filter(pc.equal(column_of_letters(rows, "replayed_in"), self.replayed[0]))


def read_letters(store: Store, file: LetterFile) -> pa.Table:
    """The dead letters of a file, with the columns in which they are kept.

    Raises:
        StoreError: the file is missing or damaged.
    """
    with pa.ipc.open_stream(read_part(store, file.part)) as reader:
        return reader.read_all()


def letters_to_take(
    streams: Mapping[str, Incoming], points: Mapping[str, StreamPoint], store: Store
) -> dict[str, Intake]:
    """What the next epoch takes of dead letters: those of the epochs since it took some.

    They end when the stream has ended that they come from.

    Args:
        streams: by name.
        points: how far each has been read; of dead letters, up to which epoch.
        store: where the letters are.
    """
    found = {}
    for name, stream in streams.items():
        if not isinstance(stream, LetterStream) or points[name].heartbeat == INFINITY:
            continue
        position, of = points[name].position, points[stream.of]
        files = tuple(file for file in of.letters if file.last > position)
        ended = of.heartbeat == INFINITY
        if files or ended:
            source = LetterSource(store, files, stream.schema)
            last = max((file.last for file in files), default=position)
            found[name] = Intake(last, source, 0, source.size, ended=ended)
    return found
