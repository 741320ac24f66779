"""An input that a store has read, and that is away when the store is opened: it is opened once needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.errors import HeadraceError, SourceError
from headrace.runtime.outside.patience import Away
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
        self._away: Away | None = None
        self._expected: tuple[int, str, HeadraceError] | None = None

    def expect(self, position: int, mark: str, otherwise: HeadraceError) -> None:
        """See, once it is opened, that what is below a position is what it was.

        Args:
            position: up to where it has been read.
            mark: what identifies that.
            otherwise: what is raised if it is another thing.
        """
        self._expected = position, mark, otherwise

    def found(self) -> SplitSource:
        """The source itself.

        Raises:
            SourceError: it cannot be opened.
            HeadraceError: it is not what it was.
        """
        if self._found is None:
            found = self._open()
            if self._expected is not None:
                position, mark, otherwise = self._expected
                if found.mark(position) != mark:
                    raise otherwise
            self._found = found
        return self._found

    def reached(self) -> bool:
        """Whether it has been opened; where it is time, that is tried.

        Raises:
            HeadraceError: it is not what it was.
        """
        if self._found is None and (self._away is None or self._away.is_due):
            try:
                self.found()
            except SourceError as error:
                self._away = Away.after(self._away, error)
        return self._found is not None

    @property
    def trouble(self) -> str | None:
        """What keeps it from being opened; None if it is open, or has not been tried."""
        return None if self._found is not None or self._away is None else str(self._away)

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


def later(source: SplitSource) -> LaterSource | None:
    """The source that could not be opened with its store, within one with computed columns too; None else."""
    within = getattr(source, "input", source)
    return within if isinstance(within, LaterSource) else None


def _itself(source: SplitSource) -> SplitSource:
    return source
