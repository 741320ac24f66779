"""One row without columns, as a source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.algebra.one_row import SCHEMA
from headrace.elements import record_batch
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read
from headrace.schema import Schema


@dataclass(frozen=True)
class OneRow:
    """The row at position 0."""

    @property
    def schema(self) -> Schema:
        """No columns."""
        return SCHEMA

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def rows(self) -> int:
        """One."""
        return 1

    @property
    def borders(self) -> tuple[int, ...]:
        """None."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """Nothing."""
        return 0

    @property
    def paths(self) -> tuple[Place, ...]:
        """None."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing: it is always the same."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The row, if it is among the positions `[start, end)`."""
        if start < end:
            yield Read(record_batch([], SCHEMA, 1), ())
