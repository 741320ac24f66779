"""A hold: an operator that does not run ahead of what is to use its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.elements import Batch
from headrace.operators.contract import Operator, OperatorProgress
from headrace.operators.state.held import Held
from headrace.operators.state.runs import Area

WAITING: Final = "waiting "
"""What the names of the areas begin with in which elements wait; the port follows."""


class HoldingOperator:
    """An operator with state that takes no element which starts at or after a limit.

    Srivastava and Widom, PODS 2004, sections 7.3 and 7.4: an operator that multiplies rows runs no further
    than what is above it can use its results.

    Definition:
        That of the operator.

    Retractions:
        They wait as any element does. What they take back started before them, or waits too.

    State:
        That of the operator, and per port the elements at or above the limit, as they came.

    Example:
        A join on x whose limit rises from 5 to 10, with both inputs' heartbeats at 20 all the time:

        ====== ======= ==        ====== ======= ==        ====== ======= ==
        L.x    [ts,te)  w        R.x    [ts,te)  w        x, x   [ts,te)  w
        ====== ======= ==        ====== ======= ==        ====== ======= ==
        a      [3,14)   +        a      [2,9)    +        a, a   [3,9)    +
        b      [7,14)   +        b      [4,9)    +        b, b   [7,9)    + with the second limit
        ====== ======= ==        ====== ======= ==        ====== ======= ==

    Args:
        operator: the operator.
        ports: how many inputs it has.
        limit: below it elements are taken (instant); no smaller than in the epoch before.
    """

    def __init__(self, operator: Operator, ports: int, limit: int) -> None:
        self._operator = operator
        self._limit = limit
        self._held = tuple(Held() for _ in range(ports))
        self._waiting: tuple[list[Batch], ...] = tuple([] for _ in range(ports))

    @property
    def areas(self) -> Mapping[str, Area]:
        """Those of the operator, and per port what waits."""
        return {**self._operator.areas, **{f"{WAITING}{port}": area for port, area in enumerate(self._held)}}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements of an input; those at or above the limit wait."""
        early = batch.ts < self._limit
        if not early.all():
            self._waiting[port].append(batch.filter(~early))
            batch = batch.filter(early)
        self._operator.process(port, batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """What the operator yields.

        Args:
            progress: of its inputs, none beyond the limit.
        """
        for port, (held, waiting) in enumerate(zip(self._held, self._waiting, strict=True)):
            for batch in held.release(self._limit):
                self._operator.process(port, batch)
            held.keep(waiting)
        return self._operator.advance(progress)
