"""A simulator of operators with queues between them and one processor, which a policy gives to one at a time.

STREAM's plans are such operators and queues (Motwani and others, CIDR 2003, section 3), and what it says of
scheduling is about them (section 4.2); so it is in Aurora. A run of this system has no queues between
operators: there policies schedule whole queries over rows that are kept.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.errors import UserError
from headrace.qos_graph import QosGraph
from headrace.scheduling.policies import QueuedRows, SchedulingPolicy, joined
from headrace.scheduling.progress import PathStep

_NEARLY: Final = 1e-9
"""Rows are whole from so little below on: products of doubles are inexact."""


@dataclass(frozen=True)
class QueuedOperator:
    """An operator with a queue before it.

    Attributes:
        name: its name.
        cost: the processor time for a row (seconds).
        selectivity: the rows that it yields for a row; of few rows whole ones, as soon as they are complete.
        following: whose queue these go to; None where they leave.
        weight, bound, delay: those of its queue, as policies see them.
    """

    name: str
    cost: float
    selectivity: float = 1.0
    following: str | None = None
    weight: float = 1.0
    bound: float | None = None
    delay: QosGraph | None = None


class Burst(NamedTuple):
    """Rows that come at one instant.

    Attributes:
        instant: when (seconds).
        operator: to whose queue.
        rows: how many.
    """

    instant: float
    operator: str
    rows: int


class Departure(NamedTuple):
    """A row of an answer.

    Attributes:
        operator: which yielded it.
        arrived: when the row came that made it complete (seconds).
        left: when it left (seconds).
    """

    operator: str
    arrived: float
    left: float


class ServedTurn(NamedTuple):
    """A turn that an operator has had.

    Attributes:
        operator: which.
        rows: how many it took.
        begin, end: when (seconds).
    """

    operator: str
    rows: int
    begin: float
    end: float


@dataclass
class Simulated:
    """A simulation, once it is over.

    Attributes:
        memory: instants, rising, each with the rows that are in queues or being worked on from then on.
        departures: the rows of answers, in the order in which they left.
        turns: all turns, in order.
    """

    memory: list[tuple[float, int]] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)
    turns: list[ServedTurn] = field(default_factory=list)

    def memory_at(self, instant: float) -> int:
        """The rows in memory at an instant, once what comes and ends then has come and ended."""
        return next((rows for begin, rows in reversed(self.memory) if begin <= instant), 0)

    def spent(self) -> dict[str, float]:
        """The processor time of each operator (seconds)."""
        found: dict[str, float] = {}
        for turn in self.turns:
            found[turn.operator] = found.get(turn.operator, 0.0) + turn.end - turn.begin
        return found

    def utility(self, graphs: Mapping[str, QosGraph]) -> float:
        """The mean utility of the rows of answers that have a delay graph.

        Args:
            graphs: delay graphs, by the name of the operator that yields the answer.
        """
        left = [one for one in self.departures if one.operator in graphs]
        worth = [graphs[one.operator].at(one.left - one.arrived) for one in left]
        return sum(worth) / len(worth) if worth else 1.0


def simulate(
    operators: Sequence[QueuedOperator],
    bursts: Iterable[Burst],
    policy: SchedulingPolicy,
    seconds: float = 0.0,
    switch: float = 0.0,
) -> Simulated:
    """Let rows go through operators until none is left that a policy serves.

    A turn is not interrupted. Its rows are in memory as they were until it is over; then what it yields is in
    the next queue, or has left.

    Args:
        operators: all operators.
        bursts: what comes.
        policy: who is served.
        seconds: how long a turn may take: 0 for single rows, more for trains.
        switch: what each turn takes besides (seconds).

    Raises:
        UserError: an operator that is named is not there, or operators follow each other in a circle.
    """
    processor = _Processor(operators, bursts)
    while True:
        processor.receive(processor.now)
        turn = policy(processor.queues(), seconds)
        if turn is not None:
            processor.serve(turn.name, turn.rows, switch)
        elif not processor.wait():
            return processor.found


class _Processor:
    """The processor, the queues, and the time.

    Attributes:
        now: the instant (seconds).
        found: what has happened so far.
    """

    def __init__(self, operators: Sequence[QueuedOperator], bursts: Iterable[Burst]) -> None:
        self._operators = {one.name: one for one in operators}
        self._steps = {one.name: tuple(self._path(one)) for one in operators}
        self._coming = deque(sorted(bursts, key=lambda burst: burst.instant))
        for burst in self._coming:
            self._require(burst.operator)
        self._waiting: dict[str, deque[float]] = {name: deque() for name in self._operators}
        self._taken = Counter[str]()
        self._passed = dict.fromkeys(self._operators, 0.0)
        self._last = dict.fromkeys(self._operators, 0)
        self.now = 0.0
        self.found = Simulated()

    def _path(self, operator: QueuedOperator) -> Iterator[PathStep]:
        seen = set[str]()
        while True:
            if operator.name in seen:
                raise UserError(f"operators follow each other in a circle: {', '.join(sorted(seen))}")
            seen.add(operator.name)
            yield PathStep(operator.cost, operator.selectivity if operator.following else 0.0)
            if operator.following is None:
                return
            operator = self._require(operator.following)

    def _require(self, name: str) -> QueuedOperator:
        if name not in self._operators:
            raise UserError(f"there is no operator {name}", hint=f"there are {', '.join(self._operators)}")
        return self._operators[name]

    def queues(self) -> list[QueuedRows]:
        """The queue as a policy sees it."""
        return [self._queue(one) for one in self._operators.values()]

    def _queue(self, one: QueuedOperator) -> QueuedRows:
        waiting, name = self._waiting[one.name], one.name
        return QueuedRows(
            name,
            rows=len(waiting),
            oldest=self.now - waiting[0] if waiting else 0.0,
            cost=one.cost,
            selectivity=self._steps[name][0].selectivity,
            weight=one.weight,
            passed=self._passed[name],
            turn=self._last[name],
            bound=one.bound,
            delay=one.delay,
            steps=self._steps[name],
        )

    def receive(self, until: float) -> None:
        """Take in what comes up to an instant."""
        while self._coming and self._coming[0].instant <= until:
            burst = self._coming.popleft()
            self._enqueue(burst.operator, [burst.instant] * burst.rows)
            self._remember(burst.instant)

    def wait(self) -> bool:
        """Let time pass until something comes; False if nothing will."""
        if not self._coming:
            return False
        self.now = max(self.now, self._coming[0].instant)
        return True

    def serve(self, name: str, rows: int, switch: float) -> None:
        """Let an operator have a turn."""
        operator, begin = self._operators[name], self.now
        end = begin + switch + rows * operator.cost
        self.receive(end)
        self.now = end
        taken = [self._waiting[name].popleft() for _ in range(rows)]
        yielded = [arrived for arrived in taken for _ in range(self._complete(operator))]
        if operator.following is None:
            self.found.departures += (Departure(name, arrived, end) for arrived in yielded)
        else:
            self._enqueue(operator.following, yielded)
        self._passed[name] += (end - begin) / operator.weight
        self.found.turns.append(ServedTurn(name, rows, begin, end))
        self._last[name] = len(self.found.turns)
        self._remember(end)

    def _complete(self, operator: QueuedOperator) -> int:
        """The rows that one more row makes complete."""
        before, self._taken[operator.name] = self._taken[operator.name], self._taken[operator.name] + 1
        return _whole((before + 1) * operator.selectivity) - _whole(before * operator.selectivity)

    def _enqueue(self, name: str, arrived: Sequence[float]) -> None:
        waiting = self._waiting[name]
        if arrived and not waiting:
            others = (one for one in self.queues() if one.name != name)
            self._passed[name] = joined(self._passed[name], others)
        in_order = not arrived or not waiting or waiting[-1] <= arrived[0]
        waiting += arrived
        if not in_order:
            # Several operators feed this queue.
            self._waiting[name] = deque(sorted(waiting))

    def _remember(self, instant: float) -> None:
        memory, rows = self.found.memory, sum(map(len, self._waiting.values()))
        if memory and memory[-1][0] == instant:
            memory.pop()
        memory.append((instant, rows))


def _whole(rows: float) -> int:
    return math.floor(rows + _NEARLY)
