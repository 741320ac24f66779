"""Users' aggregates over the live values of each group.

This is where users' Python runs once per value, so there are loops over rows here, as nowhere else.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headrace.conversion import column_of
from headrace.elements import BoolArray, Int64Array
from headrace.errors import ExecutionError, is_of_code
from headrace.expressions.user import Aggregator, UserAggregate, failure
from headrace.limits import turn

ArgumentRow = tuple[Any, ...]


def user_values(
    user: UserAggregate,
    values: list[ArgumentRow],
    changes: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    points: tuple[Int64Array, Int64Array, BoolArray],
) -> pa.Array:
    """A user's aggregate at every point.

    Args:
        user: the aggregate.
        values: the arguments of each number.
        changes: codes, times, numbers and counts, int64[n] each, sorted by (code, time): at `times` the count
            of a number of the key `codes` changes.
        points: codes and times, int64[m] each, sorted by both, and where the aggregate is wanted, bool[m].

    Raises:
        ExecutionError: the user's code raised, or gave no value of the type that was declared.
    """
    try:
        with turn():
            return column_of(list(_evaluated(user, values, changes, points)), user.returns)
    except BaseException as error:
        if not is_of_code(error):
            raise
        hint = "the query ends; others go on"
        raise ExecutionError(failure(user.name, error), hint=hint) from error


def _evaluated(
    user: UserAggregate,
    values: list[ArgumentRow],
    changes: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    points: tuple[Int64Array, Int64Array, BoolArray],
) -> Iterator[Any]:
    codes, times, numbers, counts = (part.tolist() for part in changes)
    at, last, live = 0, None, _live(user.body, values)
    for code, time, wanted in zip(*(part.tolist() for part in points), strict=True):
        if code != last:
            last, live = code, _live(user.body, values)
            while at < len(codes) and codes[at] < code:
                at += 1
        net: dict[int, int] = {}
        while at < len(codes) and codes[at] == code and times[at] <= time:
            net[numbers[at]] = net.get(numbers[at], 0) + counts[at]
            at += 1
        live.change(net)
        yield live.value() if wanted else None


def _live(body: Any, values: list[ArgumentRow]) -> _Running | _Merged | _Recomputed:
    if hasattr(body, "retract"):
        return _Running(body, values)
    return _Merged(body, values) if hasattr(body, "merge") else _Recomputed(body, values)


class _Running:
    """One state, from which values that leave are retracted."""

    def __init__(self, body: Any, values: list[ArgumentRow]) -> None:
        self._body, self._values = body, values
        self._state = body.initialize()

    def change(self, net: dict[int, int]) -> None:
        """Take in changes of counts, those that come before those that leave."""
        for number, count in sorted(net.items(), key=lambda item: (item[1] < 0, item[0])):
            step = self._body.accumulate if count > 0 else self._body.retract
            for _ in range(abs(count)):
                self._state = step(self._state, *self._values[number])

    def value(self) -> Any:
        """The result."""
        return self._body.evaluate(self._state)


class _Recomputed:
    """The counts of the live values; every answer is computed from all of them."""

    def __init__(self, body: Aggregator, values: list[ArgumentRow]) -> None:
        self._body, self._values = body, values
        self._counts: dict[int, int] = {}

    def change(self, net: dict[int, int]) -> None:
        """Take in changes of counts."""
        for number, count in net.items():
            self._counts[number] = self._counts.get(number, 0) + count
            if not self._counts[number]:
                del self._counts[number]

    def value(self) -> Any:
        """The result."""
        state = self._body.initialize()
        for number, count in sorted(self._counts.items()):
            for _ in range(count):
                state = self._body.accumulate(state, *self._values[number])
        return self._body.evaluate(state)


class _Merged:
    """A tree of partial states over the values' numbers; a change makes those above its leaf anew."""

    def __init__(self, body: Any, values: list[ArgumentRow]) -> None:
        self._body, self._values = body, values
        self._counts: dict[int, int] = {}
        self._states: dict[tuple[int, int], Any] = {}
        self._height = max(len(values) - 1, 0).bit_length()

    def change(self, net: dict[int, int]) -> None:
        """Take in changes of counts."""
        nodes = set()
        for number, count in net.items():
            self._counts[number] = self._counts.get(number, 0) + count
            self._set(0, number, self._leaf(number))
            nodes.add(number // 2)
        for level in range(1, self._height + 1):
            for node in nodes:
                self._set(level, node, self._merged(level - 1, 2 * node))
            nodes = {node // 2 for node in nodes}

    def value(self) -> Any:
        """The result."""
        state = self._states.get((self._height, 0))
        return self._body.evaluate(self._body.initialize() if state is None else state)

    def _leaf(self, number: int) -> Any:
        if not self._counts[number]:
            del self._counts[number]
            return None
        state = self._body.initialize()
        for _ in range(self._counts[number]):
            state = self._body.accumulate(state, *self._values[number])
        return state

    def _merged(self, level: int, left: int) -> Any:
        one, other = (self._states.get((level, place)) for place in (left, left + 1))
        if one is None or other is None:
            return other if one is None else one
        # Both live on in the tree, whatever `merge` does to what it is given.
        return self._body.merge(copy.deepcopy(one), copy.deepcopy(other))

    def _set(self, level: int, node: int, state: Any) -> None:
        if state is None:
            self._states.pop((level, node), None)
        else:
            self._states[level, node] = state
