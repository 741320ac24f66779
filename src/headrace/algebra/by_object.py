"""What a function says of objects, remembered by the objects themselves.

A change of thousands of queries looks at the plans of all of them, most of which it has seen before. It takes
longer to compare plans or predicates than to see that they are the same objects.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

REMEMBERED: Final = 50_000
"""So many objects are remembered where each is a query's: more than run together in one process."""

K = TypeVar("K")
V = TypeVar("V")


class ByObject(Generic[K, V]):
    """A function of objects that do not change, which is asked once for each of the last new ones.

    Args:
        function: it.
        most: how many objects are remembered, and so kept.

    Example:
        >>> from headrace.algebra.by_object import ByObject
        >>> length, text = ByObject(len, 10), "abc"
        >>> length(text), length(text)
        (3, 3)
    """

    def __init__(self, function: Callable[[K], V], most: int) -> None:
        self._function = function
        self._most = most
        self._known: dict[int, tuple[K, V]] = {}
        self._lock = Lock()

    def __call__(self, key: K) -> V:
        """What the function says of an object."""
        known = self._known.get(id(key))
        return self._asked(key) if known is None else known[1]

    def _asked(self, key: K) -> V:
        # The object is kept, so that no other can get its id.
        known = key, self._function(key)
        with self._lock:
            self._known[id(key)] = known
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return known[1]
