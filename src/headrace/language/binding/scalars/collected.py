"""What a clause collects while its expressions are bound: each different value once, by number."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Collected(Generic[T]):
    """Different values, numbered from 0 in the order in which they are first met."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """The number of the value, which is added unless it is there."""
        return self._numbers.setdefault(value, len(self._numbers))

    def __iter__(self) -> Iterator[T]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)
