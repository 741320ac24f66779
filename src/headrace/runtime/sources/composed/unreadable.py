"""A file that cannot be read, as a source of one dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headrace.elements import record_batch
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read, Rejected
from headrace.schema import Schema


@dataclass(frozen=True)
class UnreadableFile:
    """One position, at which the file is rejected.

    Attributes:
        schema: the columns that its rows would have.
        label: its name to show.
        reason: why it is not read.
    """

    schema: Schema
    label: str
    reason: str

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def rows(self) -> int:
        """One, which is rejected."""
        return 1

    @property
    def borders(self) -> tuple[int, ...]:
        """None."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """Next to nothing."""
        return 0

    @property
    def paths(self) -> tuple[Place, ...]:
        """None: it is not read."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """No rows, and the file as a dead letter."""
        if start < end:
            wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
            rows = record_batch([pa.array([], field.type) for field in wanted], wanted, 0)
            yield Read(rows, (Rejected(self.label, self.reason, self.label),))
