"""Text files laid end to end, whose rows are lines; positions are bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.sources.rows.rows import gather
from headrace.runtime.sources.text.blocks import Block, TextPart, line_blocks, mark_parts, weigh_parts
from headrace.schema import Schema


@dataclass(frozen=True)
class LineSource(ABC):
    """Text files laid end to end, each of whose rows is a line.

    Attributes:
        kind: what such a file is called, for errors.
        schema: the columns that can be read.
        parts: the files in order.
        rows: about how many rows there are.
    """

    kind: ClassVar[str]
    schema: Schema
    parts: tuple[TextPart, ...]
    rows: int

    @property
    def size(self) -> int:
        """Bytes in total."""
        return sum(self.sizes)

    @property
    def found(self) -> tuple[str, ...]:
        """The columns that the lines are known to have."""
        return self.schema.names

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each file."""
        return tuple(part.size for part in self.parts)

    @property
    def borders(self) -> tuple[int, ...]:
        """None: rows are read singly."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the files; those of a file that is read as a whole belong to its first byte."""
        return weigh_parts(self.parts, start, end)

    @property
    def paths(self) -> tuple[Place, ...]:
        """The files."""
        return tuple(part.path for part in self.parts)

    def mark(self, position: int) -> str:
        """Identifies the files up to a byte."""
        return mark_parts(self.parts, position)

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows whose line starts in the bytes `[start, end)`.

        Raises:
            SourceError: a file is missing or has become shorter.
        """
        return gather(self._pieces(start, end, columns))

    def _pieces(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        for index, first, last in overlaps(self.sizes, start, end):
            part = self.parts[index]
            with reading(part.label, self.kind):
                for block in line_blocks(part, first, last):
                    yield self.parse(block, wanted)

    @abstractmethod
    def parse(self, block: Block, wanted: Schema) -> Read:
        """The wanted columns of the rows of a block."""
