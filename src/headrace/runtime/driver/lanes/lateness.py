"""The lateness of answers lately, and their worth: Aurora's QoS monitor (VLDB 2002, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.qos_graph import QosGraph
from headrace.runtime.driver.lanes.status import AnswerWorth
from headrace.runtime.intake.retained import RetainedSource
from headrace.runtime.intake.streams import Intake
from headrace.runtime.tasks.messages import RetainedFile

_HALF: Final = 5.0
"""After so many seconds what was noted counts half."""


@dataclass
class RecentSum:
    """A sum in which what is five seconds older counts half."""

    _sum: float = 0.0
    _at: float = -math.inf

    def add(self, amount: float, now: float) -> None:
        """Add an amount.

        Args:
            amount: it.
            now: the seconds of a clock that only goes forward.
        """
        self._sum, self._at = self.at(now) + amount, now

    def at(self, now: float) -> float:
        """The sum at a time (seconds of the same clock)."""
        return self._sum * 0.5 ** ((now - self._at) / _HALF) if self._sum else 0.0


@dataclass
class _Late:
    """The lateness of a query's answers, and their worth.

    Attributes:
        graph: what one is worth by how late it is.
        rows: how many rows there were.
        late: their seconds.
        worth: their utilities.
    """

    graph: QosGraph
    rows: RecentSum = field(default_factory=RecentSum)
    late: RecentSum = field(default_factory=RecentSum)
    worth: RecentSum = field(default_factory=RecentSum)


@dataclass
class QosMonitor:
    """The lateness of answers lately, by the rows that they came from, and who has had how much time.

    Times are the seconds of a clock that only goes forward.
    """

    _late: dict[str, _Late] = field(default_factory=dict)
    _time: dict[int, RecentSum] = field(default_factory=dict)

    def note(self, graphs: Mapping[str, QosGraph], late: float, rows: int, now: float) -> None:
        """Take in rows that some queries have taken.

        Args:
            graphs: what their answers are worth by how late they are, by the queries.
            late: how late the answer of these rows is (seconds).
            rows: how many rows there are.
            now: when that is.
        """
        for query, graph in graphs.items():
            known = self._late.get(query)
            if known is None or known.graph != graph:
                known = self._late[query] = _Late(graph)
            whole = graph.at(0.0)
            known.rows.add(rows, now)
            known.late.add(late * rows, now)
            known.worth.add(rows * graph.at(late) / whole if whole else 0.0, now)

    def note_time(self, lane: int, seconds: float, now: float) -> None:
        """Take in how long a turn has taken."""
        self._time.setdefault(lane, RecentSum()).add(seconds, now)

    def keep(self, lanes: Collection[int], graphs: Mapping[str, QosGraph]) -> None:
        """Forget all lanes but some and the front, and all queries but some with their graphs."""
        self._time = {lane: one for lane, one in self._time.items() if not lane or lane in lanes}
        self._late = {query: one for query, one in self._late.items() if graphs.get(query) == one.graph}

    def share_of(self, lane: int, now: float) -> float | None:
        """The part of the time of all turns that a lane has had, from 0 to 1; None before there are any."""
        times = {key: one.at(now) for key, one in self._time.items()}
        return times.get(lane, 0.0) / sum(times.values()) if any(times.values()) else None

    def worth(
        self, queries: Sequence[str], name_of: Callable[[str], str], now: float
    ) -> Iterator[AnswerWorth]:
        """The worth of the answers of those queries that have a delay graph, and have taken rows.

        Args:
            queries: their identities.
            name_of: gives the name of one.
            now: when that is.
        """
        for query in queries:
            known = self._late.get(query)
            if known is not None and (rows := known.rows.at(now)):
                yield AnswerWorth(name_of(query), known.worth.at(now) / rows, known.late.at(now) / rows)


def kept_rows(intake: Intake) -> Iterator[tuple[RetainedFile, int]]:
    """The files of kept rows that are taken, each with how many of its rows are."""
    if not isinstance(intake.source, RetainedSource):
        return
    place = 0
    for file in intake.source.files:
        rows = min(intake.end, place + file.rows) - max(intake.start, place)
        place += file.rows
        if rows > 0:
            yield file, rows
