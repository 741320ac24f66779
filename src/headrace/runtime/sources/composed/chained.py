"""Stretches of sources laid end to end as one source, such as the new files of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read, SplitSource
from headrace.schema import Schema


@dataclass(frozen=True)
class Stretch:
    """The positions `[start, end)` of a source."""

    source: SplitSource
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many positions these are."""
        return self.end - self.start

    @property
    def rows(self) -> int:
        """About how many rows they have."""
        return self.source.rows * self.size // max(self.source.size, 1)


@dataclass(frozen=True)
class ChainedSource:
    """Stretches laid end to end; a position counts what each source counts.

    Attributes:
        schema: the columns that all of them have.
        stretches: they, in order.
    """

    schema: Schema
    stretches: tuple[Stretch, ...]

    @property
    def size(self) -> int:
        """Of all stretches together."""
        return sum(stretch.size for stretch in self.stretches)

    @property
    def rows(self) -> int:
        """About how many rows there are."""
        return sum(stretch.rows for stretch in self.stretches)

    @property
    def borders(self) -> Sequence[int]:
        """Those between blocks of a source, and between the stretches."""
        found, offset = [], 0
        for stretch in self.stretches:
            inner = (border for border in stretch.source.borders if stretch.start < border < stretch.end)
            found += [offset, *(offset + border - stretch.start for border in inner)]
            offset += stretch.size
        return tuple(found[1:])

    def weigh(self, start: int, end: int) -> int:
        """About how many bytes the rows of the positions `[start, end)` have."""
        return sum(
            self.stretches[index].source.weigh(
                self.stretches[index].start + first, self.stretches[index].start + last
            )
            for index, first, last in overlaps([stretch.size for stretch in self.stretches], start, end)
        )

    @property
    def paths(self) -> tuple[Place, ...]:
        """The files of all of them."""
        return tuple(path for stretch in self.stretches for path in stretch.source.paths)

    def mark(self, position: int) -> str:
        """Nothing: who lays them end to end knows what has been read."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`, stretch by stretch."""
        for index, first, last in overlaps([stretch.size for stretch in self.stretches], start, end):
            stretch = self.stretches[index]
            yield from stretch.source.read(stretch.start + first, stretch.start + last, columns)
