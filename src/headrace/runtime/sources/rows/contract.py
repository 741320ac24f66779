"""What every split source offers: any range of its positions, read anywhere, any number of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from headrace.elements import Int64Array
from headrace.runtime.sources.files.remote import Place
from headrace.schema import Schema

BATCH_ROWS: Final = 131_072
"""About how many rows a source gives at once."""

BATCH_BYTES: Final = 32 * 2**20
"""About how many bytes a source gives at once, if its rows are not larger."""

TEXT_LIMIT: Final = 10_000
"""How many characters of a rejected row are kept."""


@dataclass(frozen=True)
class Rejected:
    """A row that could not be read; it belongs to the dead letters.

    Attributes:
        text: the row as written in the input, or as JSON; of a long one the beginning, and its length.
        reason: what is wrong with it.
        place: the file and the line, byte or row, such as `bids.csv:17`.
    """

    text: str
    reason: str
    place: str


@dataclass(frozen=True, eq=False)
class Places:
    """Where in their source rows are, such as `bids.csv:17`; worked out for those that somebody asks for.

    Attributes:
        find: the places of some of the rows, by their numbers (int64[n]).
    """

    find: Callable[[Int64Array], list[str]]

    def kept(self, rows: Int64Array) -> Places:
        """The places of some of the rows, which are numbered anew.

        Args:
            rows: int64[n], their numbers so far.
        """
        return Places(lambda asked: self.find(rows[asked]))


@dataclass(frozen=True, eq=False)
class Read:
    """Some rows of a source.

    Attributes:
        rows: the wanted columns, in the wanted order, with the types of the source's schema.
        rejected: rows of the same stretch of input that could not be read.
        places: where the rows are; None where nobody knows.
    """

    rows: pa.RecordBatch
    rejected: tuple[Rejected, ...] = ()
    places: Places | None = None


class SplitSource(Protocol):
    """A bounded input whose parts can be read independently; a frozen dataclass that can be pickled."""

    @property
    def schema(self) -> Schema:
        """All columns that can be read."""
        ...

    @property
    def size(self) -> int:
        """Positions run from 0 to `size`; each source counts in its own unit: rows, bytes or events."""
        ...

    @property
    def rows(self) -> int:
        """How many rows there are in total: exact for Parquet, Arrow and NEXMark, else an estimate."""
        ...

    @property
    def borders(self) -> Sequence[int]:
        """Positions between blocks that are decoded as a whole, increasing; none where rows are read singly.

        A cut at another position costs the decoding of its block twice.
        """
        ...

    def weigh(self, start: int, end: int) -> int:
        """About how many bytes the rows of the positions `[start, end)` have, known without reading them."""
        ...

    @property
    def paths(self) -> tuple[Place, ...]:
        """The files that are read, which may be changed by others; none where there are none."""
        ...

    def mark(self, position: int) -> str:
        """Identifies what is below a position: it changes when that does, and not when the input grows.

        It has the names and sizes of files, not their bytes.
        """
        ...

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`, in order.

        Any cut of `[0, size)` into ranges gives every row exactly once.

        Raises:
            SourceError: the input is missing or damaged, or has changed since it was opened.
        """
        ...
