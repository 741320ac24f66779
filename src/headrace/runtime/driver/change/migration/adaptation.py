"""Plans that follow the rows by themselves: when it is time to exchange one, and when it is not.

What is expected of a plan is off by some factor, rows come in bursts, and an exchange costs the work of both
plans for the length of a window. So a plan is exchanged only if another one is expected to do much less,
again and again, and the more often a query's plan was exchanged, the longer that takes. How often that was is
remembered with the query; looks begin anew with the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from headrace.algebra.nodes import Join
from headrace.algebra.properties import names_read, walk
from headrace.elements import Float64Array
from headrace.lowering.identity import identities
from headrace.runtime.driver.change.migration.exchange import carried_out
from headrace.runtime.driver.change.migration.join_order import Reordered, reordered
from headrace.runtime.driver.facts.statistics import Statistics
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.time import MICROSECONDS

GAIN: Final = 2.0
"""Another plan has to be expected to take, yield and keep so many times fewer rows."""

LOOKS: Final = 3
"""So many looks in a row have to find the same one; twice as many after each exchange."""

_CHANGE: Final = 0.2
"""A measured rate or selectivity that differs by less than this part of it is the same as before."""


@dataclass(frozen=True)
class Patience:
    """What the looks at a query have found.

    Attributes:
        found: the orders that the last look has found much better; empty for none.
        times: how many looks in a row have found them.
        exchanges: how often the plan was exchanged.
    """

    found: tuple[str, ...] = ()
    times: int = 0
    exchanges: int = 0

    def after(self, found: tuple[str, ...], gain: float) -> Patience:
        """The same after a look.

        Args:
            found: the best orders, empty where the present ones are.
            gain: how many times fewer rows are expected of them.
        """
        if not found or gain < GAIN:
            return replace(self, found=(), times=0)
        return replace(self, found=found, times=self.times + 1 if found == self.found else 1)

    @property
    def is_over(self) -> bool:
        """Whether it is time to exchange the plan."""
        return self.times >= LOOKS << self.exchanges

    def after_exchange(self) -> Patience:
        """The same when the plan was exchanged, or could not be."""
        return Patience(exchanges=self.exchanges + 1)


@dataclass(frozen=True, eq=False)
class _Look:
    """What there was of a query at the last look.

    Attributes:
        positions: how far its inputs had been read.
        measured: float64[joins, 2], the rows that came to each join per second, and how many it yielded for
            each.
    """

    positions: tuple[int, ...]
    measured: Float64Array


class Following:
    """Looks at running plans now and then, and says which are to be exchanged.

    Args:
        every: how often (seconds of wall-clock time, at least); never if None.
    """

    def __init__(self, every: float | None) -> None:
        self._every = every
        self._last: int | None = None
        self._patience: dict[str, Patience] = {}
        self._looks: dict[str, _Look] = {}

    def due(self, holding: Holding, statistics: Statistics, now: int) -> Mapping[str, Reordered]:
        """The plans that are to be exchanged now, with what for.

        Args:
            holding: the queries and their state.
            statistics: what was counted of them.
            now: the clock's reading (microseconds since 1970).
        """
        if self._every is None:
            return {}
        if self._last is None or now < self._last:
            self._last = now
        if now - self._last < self._every * MICROSECONDS["SECOND"]:
            return {}
        self._last = now
        queries = holding.queries
        self._patience = {name: known for name, known in self._patience.items() if name in queries.live}
        self._looks = {name: look for name, look in self._looks.items() if name in queries.live}
        places = {node.identity: node.number for node in queries.graph.nodes}
        found: dict[str, Reordered] = {}
        for name in queries.live:
            is_behind = queries.answered[name].lane is not None
            if name in queries.migrations or queries.holds.get(name) or is_behind:
                continue
            joins = [places[identity] for identity in _joins(queries, name)]
            # After an exchange a query that shares joins with others would have its own.
            if len(joins) > 1 and all(queries.graph.users[number] == (name,) for number in joins):
                rows = statistics.operators.recent[joins]
                other = self._look(holding, name, _measured(rows))
                if other is not None:
                    found[name] = other
        return found

    def _look(self, holding: Holding, name: str, measured: Float64Array) -> Reordered | None:
        """Another plan for a query, if it is time to exchange its own."""
        exchanged = holding.queries.exchanged.get(name)
        known = self._patience.get(name) or Patience(exchanges=0 if exchanged is None else exchanged.times)
        read = names_read(holding.queries.plans[name])
        look = _Look(tuple(holding.point(one).position for one in read), measured)
        last, self._looks[name] = self._looks.get(name), look
        if last is not None and last.positions == look.positions:
            return None
        if last is not None and not known.times and _is_alike(last.measured, look.measured):
            self._looks[name] = replace(look, measured=last.measured)
            return None
        found = reordered(holding, name)
        known = known.after(() if found is None else found.after, 0.0 if found is None else found.gain)
        if not known.is_over:
            self._patience[name] = known
            return None
        self._patience[name] = known.after_exchange()
        del self._looks[name]
        return found


def _joins(queries: QuerySet, name: str) -> tuple[str, ...]:
    """The identities of the joins of a query."""
    plan = carried_out(queries, name)
    parts = [part for part in walk(plan) if isinstance(part, Join)]
    names = identities(plan, queries.state_start_of(name), queries.merges) if len(parts) > 1 else {}
    return tuple(names[id(part)] for part in parts) if names else ()


def _measured(recent: Float64Array) -> Float64Array:
    """What was measured of joins; see `_Look`.

    Args:
        recent: float64[joins, k], as in `Statistics.operators`.
    """
    seconds, taken, given = recent[:, 0], recent[:, 1], recent[:, 2]
    return np.column_stack([taken / np.maximum(seconds, 1e-9), given / np.maximum(taken, 1.0)])


def _is_alike(one: Float64Array, other: Float64Array) -> bool:
    """Whether nothing that was measured has changed much."""
    return one.shape == other.shape and bool((np.abs(one - other) <= _CHANGE * np.maximum(one, other)).all())
