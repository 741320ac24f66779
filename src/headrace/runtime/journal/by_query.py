"""Numbers per query that many epochs have, where most queries share their node: kept per node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np


class ByQuery(Mapping[str, int]):
    """What nodes have, by the queries that they answer.

    Args:
        nodes: the number of each query's node; not copied, since all epochs of a plan share it.
        values: what each node has, by its number.
        without: queries that are left out.
    """

    __slots__ = ("_nodes", "_values", "_without")

    def __init__(
        self, nodes: Mapping[str, int], values: Sequence[int], without: Collection[str] = ()
    ) -> None:
        self._nodes = nodes
        self._values = values
        self._without = frozenset(without) & nodes.keys()

    def __getitem__(self, query: str) -> int:
        if query in self._without:
            raise KeyError(query)
        return self._values[self._nodes[query]]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._nodes if name not in self._without)

    def __len__(self) -> int:
        return len(self._nodes) - len(self._without)


def moved_from(now: Mapping[str, int], before: Mapping[str, int]) -> Collection[str]:
    """The queries whose numbers are others than before, or were not known then."""
    if not (isinstance(now, ByQuery) and isinstance(before, ByQuery) and now._nodes is before._nodes):
        return [name for name, value in now.items() if before.get(name) != value]
    if now._values is before._values and now._without == before._without:
        return ()
    moved = set(np.flatnonzero(np.array(now._values) != np.array(before._values)).tolist())
    names = (name for name, node in now._nodes.items() if node in moved) if moved else ()
    return {*(before._without - now._without), *(name for name in names if name not in now._without)}
