"""An immutable mapping that can be extended at little cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


class Entries(Mapping[str, T]):
    """An immutable mapping that keeps the order in which its entries were added.

    A mapping with one entry more shares what it holds with the one it came from, which sees only its own
    part; so n entries, added one by one, take time in proportion to n. Extending a mapping a second time, or
    removing an entry, copies it.

    Args:
        entries: what it holds at first.
    """

    def __init__(self, entries: Mapping[str, T] | None = None) -> None:
        self._shared: dict[str, T] = dict(entries or {})
        self._places = {key: place for place, key in enumerate(self._shared)}
        self._count = len(self._shared)

    def __getitem__(self, key: str) -> T:
        if self._places[key] >= self._count:
            raise KeyError(key)
        return self._shared[key]

    def __iter__(self) -> Iterator[str]:
        return islice(list(self._shared), self._count)

    def __len__(self) -> int:
        return self._count

    def adding(self, key: str, entry: T) -> Entries[T]:
        """The mapping with one entry more, whose key it does not hold yet."""
        assert key not in self
        if self._count < len(self._shared):
            return Entries(dict(self)).adding(key, entry)
        new: Entries[T] = Entries.__new__(Entries)
        new._shared, new._places, new._count = self._shared, self._places, self._count + 1
        self._places[key] = self._count
        self._shared[key] = entry
        return new

    def replacing(self, key: str, entry: T) -> Entries[T]:
        """The mapping with another entry in the place of one that it holds."""
        assert key in self
        return Entries({**self, key: entry})

    def renaming(self, key: str, other: str) -> Entries[T]:
        """The mapping with another key in the place of one that it may hold."""
        return Entries({other if known == key else known: entry for known, entry in self.items()})

    def without(self, key: str) -> Entries[T]:
        """The mapping without one of its entries."""
        return Entries({other: entry for other, entry in self.items() if other != key})
