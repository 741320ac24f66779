"""An input that a store has read, and that is away when the store is opened: it is opened once needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read, SplitSource
from headrace.schema import Schema


class LaterSource:
    """Rows whose files are away for now.

    What was read of them is in the store, so that queries go on; only who reads further needs the files.

    Args:
        schema: the columns.
        opened: opens it; a SourceError says that it is still away.
    """

    def __init__(self, schema: Schema, opened: Callable[[], SplitSource]) -> None:
        self.schema = schema
        self._open = opened
        self._found: SplitSource | None = None

    def found(self) -> SplitSource:
        """The source itself.

        Raises:
            SourceError: it cannot be opened.
        """
        if self._found is None:
            self._found = self._open()
        return self._found

    @property
    def is_away(self) -> bool:
        """Whether it has not been opened so far."""
        return self._found is None

    def __reduce__(self) -> tuple[Any, ...]:
        # Tasks read what there is, and could not open it.
        return _itself, (self.found(),)

    @property
    def size(self) -> int:
        """How many positions there are."""
        return self.found().size

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.found().rows

    @property
    def borders(self) -> Sequence[int]:
        """Positions between blocks."""
        return self.found().borders

    @property
    def paths(self) -> tuple[Place, ...]:
        """The files that are read; none while they are away."""
        return () if self._found is None else self._found.paths

    def weigh(self, start: int, end: int) -> int:
        """About how many bytes rows have."""
        return self.found().weigh(start, end)

    def mark(self, position: int) -> str:
        """Identifies what is below a position."""
        return self.found().mark(position)

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`."""
        return self.found().read(start, end, columns)


def is_later(source: SplitSource) -> bool:
    """Whether a source is one whose files are still away."""
    within = getattr(source, "input", source)
    return isinstance(within, LaterSource) and within.is_away


def _itself(source: SplitSource) -> SplitSource:
    return source
