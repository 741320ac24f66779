"""A query whose operators begin with a change, and what is known of it before that is decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.exactness import exact_anew
from headrace.algebra.nodes import Plan, Relation
from headrace.algebra.properties import sources_of
from headrace.errors import PlanError
from headrace.lowering.lower import Holds
from headrace.lowering.memory import is_strong
from headrace.runtime.driver.change.content.larger_windows import Shift, shift_of
from headrace.runtime.driver.change.migration.exchange import Begun, begun
from headrace.runtime.driver.change.turn import Present
from headrace.runtime.driver.change.wanted import AnswerStart, Starts, Wanted
from headrace.runtime.driver.change.warm import Derivation
from headrace.runtime.driver.query_record import AnsweredQuery
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.streams import Streams
from headrace.runtime.journal.described_query import Paused
from headrace.runtime.journal.records import StreamPoint
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True, eq=False)
class Newcomer:
    """A query that is created, goes on after a pause, or gets another plan, with which it begins.

    Attributes:
        present: the run before it.
        query: its identity.
        plan: its plan, optimized.
        streams: what is declared, by name.
        holds: which of its operators wait for others; None where none do.
        start: since when it is to answer, if that was said.
        warm: how it follows from the answers of others whose state it is to take over, if it is.
        alike: of one that takes the place of another one, whether the answer of that goes on in its own,
            which has the same columns; None of one that takes no place.
        by_itself: whether no other query begins with the change.
        beside: whether there is time to read kept rows before the change.
    """

    present: Present
    query: str
    plan: Plan
    streams: Streams
    holds: Holds | None = None
    start: AnswerStart | None = None
    warm: Derivation | None = None
    alike: bool | None = None
    by_itself: bool = True
    beside: bool = False

    @property
    def replaces(self) -> bool:
        """Whether it takes the place of another query."""
        return self.alike is not None

    @property
    def paused(self) -> Paused | None:
        """The pause after which it goes on, if it was paused."""
        return self.present.known.queries.paused.get(self.query)

    @property
    def called(self) -> str:
        """Its name."""
        return self.present.known.queries.name_of(self.query)

    @cached_property
    def until(self) -> int:
        """Up to where the answer is final that goes on, or that another one gives up to now (instant)."""
        if self.paused is not None:
            return self.paused.heartbeat
        return self.present.final_until(self.query) if self.replaces else BEGINNING

    @cached_property
    def begins(self) -> int:
        """From which instant on it answers if it begins with the rows that come."""
        return answering_anew(self.plan, self.holds, self.present.point)

    @cached_property
    def exact_anew(self) -> int:
        """From which instant on it is exact then; INFINITY where none is known."""
        sources = (source.name for source in sources_of(self.plan))
        return exact_anew(self.plan, {name: self.present.point(name).time.latest for name in sources})

    @cached_property
    def shift(self) -> Shift | None:
        """The state that larger windows hold of what it needs; None where it begins with others.

        Of several that begin together each may be carried out as a part of what all share.
        """
        if not self.by_itself or self.holds is not None or not self.present.known.totals.epochs:
            return None
        return shift_of(self.present.holding(), self.plan)

    @cached_property
    def clips(self) -> Begun | PlanError:
        """The exchange of the plan whose place it takes by clips, or why there can be none."""
        if not self.alike:
            return PlanError("the columns are others")
        if self.holds is not None or not is_strong(self.plan):
            clause = "CONSISTENCY" if self.holds is None else "HEARTBEATS"
            return PlanError(f"the plans cannot both run, by what the new one says of {clause}")
        try:
            return begun(self.present.holding(), self.query, self.plan, is_another=True)
        except PlanError as error:
            return error


def newcomers(
    present: Present,
    wanted: Wanted,
    queries: Collection[str],
    warm: Mapping[str, Derivation],
    starts: Starts,
    alike: bool | None = None,
    *,
    beside: bool = False,
) -> list[Newcomer]:
    """Queries that begin with a change.

    Args:
        present: the run before it.
        wanted: what it is from then on.
        queries: those that begin.
        warm: how those follow from others that take over their state.
        starts: since when they answer, of which that was said.
        alike: see `Newcomer.alike`.
        beside: whether there is time to read kept rows before the change.
    """
    return [
        Newcomer(
            present,
            query,
            wanted.plans[query],
            wanted.streams,
            wanted.holds.get(query),
            starts.get(query),
            warm.get(query),
            alike,
            by_itself=len(queries) == 1,
            beside=beside,
        )
        for query in queries
    ]


def answering_anew(plan: Plan, holds: Holds | None, points: Callable[[str], StreamPoint]) -> int:
    """From which instant on a plan answers that starts anew now.

    Args:
        plan: the plan, optimized.
        holds: which of its operators wait for others; None where none do.
        points: how far an input has been read, by its name.
    """
    queries = QuerySet({"": AnsweredQuery(plan, holds=holds)})
    graph = queries.graph
    relations = {node.reads for node in graph.nodes if isinstance(node.plan, Relation)}
    read = {name: points(name) for name in queries.inputs}
    # A relation, which is perhaps yet to be read again, holds no answer back.
    heartbeats = {name: INFINITY if name in relations else point.heartbeat for name, point in read.items()}
    newest = {name: point.time.latest for name, point in read.items()}
    said = graph.heartbeats(heartbeats, newest, {name: points(name).past for name in graph.dials})
    return said[graph.node_of(dict(graph.outputs)[""])]
