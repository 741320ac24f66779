"""A query that is replaced while it runs: another plan answers under its name, and its answer goes on.

Below an instant the old answer holds, from there on the new one; what is final is never taken back.

Where both plans can be clipped, the new one takes over once all that has entered either of them has ended.
Both run until then, so that neither answer lacks anything, and what is the same in both keeps its state
(`headrace.optimizer.migration`). Otherwise the new one starts anew, over the rows that arrive from then on,
for the instants from its streams' heartbeats on. What the old one has said of those is taken back. But where
all that is new looks at one instant at a time above operators that both have in common, these go on, and the
new one takes over at once (`headrace.runtime.driver.change.common_operators`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import is_stateful, walk
from headrace.errors import PlanError
from headrace.lowering.early import alone, horizon_of, said_from_on
from headrace.lowering.identity import identities
from headrace.lowering.memory import is_strong
from headrace.runtime.driver.change.common_operators import Inheritance, inheritance
from headrace.runtime.driver.change.content.answer import reader_of, said_from
from headrace.runtime.driver.change.content.larger_windows import Shift, shift_of
from headrace.runtime.driver.change.migration.exchange import Begun, begun
from headrace.runtime.driver.change.pause import answering_anew, answering_from, exact_anew_at
from headrace.runtime.driver.change.turn import Present
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.description import WarmStart
from headrace.runtime.journal.gap import Gap, with_gap
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.carried import held_from
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Replacement:
    """What becomes of a query that is replaced.

    Attributes:
        at: from where on the new plan answers (instant).
        until: up to where the old one does (instant); the answer says nothing in between.
        kept: the operators of the new plan that go on with their state.
        anew: those that start without any.
        reason: why the plans cannot be clipped, so that all start anew; None where they can.
        filled: whether the new plan is brought to the present over rows that are kept, and answers from the
            next instant on.
        exact: from where on the new answer is that over all rows (instant); INFINITY where that is not known.
        inherits: whether the new plan answers from the next instant on over the rows that the old one had,
            since the operators that it has in common with that hold what they hold.
        windows: the names of queries whose larger windows hold what the new plan begins with, at once.
    """

    at: int
    until: int
    kept: tuple[Plan, ...]
    anew: tuple[Plan, ...]
    reason: str | None = None
    filled: bool = False
    exact: int = BEGINNING
    inherits: bool = False
    windows: tuple[str, ...] = ()


def require_open(queries: QuerySet, name: str, results: Sequence[EpochResults]) -> None:
    """See that there is something of a query's answer that can be replaced.

    Raises:
        PlanError: all of it is final.
    """
    if _until(name, results) == INFINITY:
        called = queries.name_of(name)
        raise PlanError(
            f"all of the answer of {called} is final, so that nothing of it can be replaced",
            hint=f"drop {called} first, or choose another name",
        )


Succession = Shift | Begun | Inheritance | PlanError
"""By which a plan takes the place of another one: with what larger windows hold, by clips, with common
operators, or anew, and why."""


@dataclass(frozen=True)
class _Heir:
    """A plan that is to take the place of the one of a query.

    Attributes:
        present: the run.
        name: the query's.
        plan: the other plan, optimized.
        alike: whether both have the same columns.
        waits: whether some operators of the new one are to wait for others.
    """

    present: Present
    name: str
    plan: Plan
    alike: bool
    waits: bool

    @cached_property
    def until(self) -> int:
        """Up to where the answer of the query is final (instant)."""
        return _until(self.name, self.present.known.results)

    @cached_property
    def clips(self) -> Begun | PlanError:
        """The exchange of the plan by clips, or why there can be none."""
        if not self.alike:
            return PlanError("the columns are others")
        if self.waits or not is_strong(self.plan):
            clause = "HEARTBEATS" if self.waits else "CONSISTENCY"
            return PlanError(f"the plans cannot both run, by what the new one says of {clause}")
        try:
            return begun(self.present.holding(), self.name, self.plan, is_another=True)
        except PlanError as error:
            return error


def _shifted(heir: _Heir) -> Shift | None:
    if not heir.present.settings.keep_results:
        # What the old one has said of later instants cannot be taken back.
        return None
    shift = shift_of(heir.present.holding(), heir.plan, waits=heir.waits)
    # Where windows are as large as before, clips and common operators do the same without a copy.
    return shift if shift is not None and shift.shortens and shift.exact <= heir.until else None


def _clipped(heir: _Heir) -> Begun | None:
    return heir.clips if isinstance(heir.clips, Begun) else None


def _in_common(heir: _Heir) -> Inheritance | None:
    if not heir.present.settings.keep_results:
        # What the common operators have said cannot be taken back, and is not known any more.
        return None
    return inheritance(heir.present.holding(), heir.name, heir.plan, heir.until, waits=heir.waits)


_WAYS: Final[tuple[Callable[[_Heir], Succession | None], ...]] = (
    # At once and exact, for a copy of the state.
    _shifted,
    # Exact for all instants, which takes as long as the windows are.
    _clipped,
    # At once, with what the old operators had.
    _in_common,
)
"""The ways by which a plan may take the place of another one, the better ones first."""


def succession_of(present: Present, name: str, plan: Plan, *, alike: bool, waits: bool) -> Succession:
    """The way by which another plan takes the place of a query's now; what is carried out and explained.

    Args:
        present: the run.
        name: the query's.
        plan: the other one, optimized.
        alike: whether both have the same columns.
        waits: whether some operators of the new one are to wait for others.

    Raises:
        PlanError: all of the answer is final, and the new one's is to be a part of it.
    """
    if alike:
        require_open(present.known.queries, name, present.known.results)
    heir = _Heir(present, name, plan, alike, waits)
    for way in _WAYS:
        if (found := way(heir)) is not None:
            return found
    assert isinstance(heir.clips, PlanError)
    return heir.clips


def replacement(present: Present, name: str, plan: Plan, *, alike: bool, waits: bool) -> Replacement:
    """What would become of a query that another plan takes the place of now; see `succession_of`."""
    holding = present.holding()
    found = succession_of(present, name, plan, alike=alike, waits=waits)
    if isinstance(found, Begun):
        return _by_clips(holding, found, name)
    heartbeat = _until(name, present.known.results)
    if isinstance(found, Inheritance):
        return Replacement(heartbeat, heartbeat, found.kept, found.anew, inherits=True)
    until = heartbeat if alike else BEGINNING
    begins = _limited(answering_anew(plan, holding.point), until)
    if isinstance(found, Shift):
        windows = tuple(map(holding.queries.name_of, found.queries))
        return Replacement(begins, until, (), (), windows=windows)
    anew = tuple(part for part in walk(alone(plan)[0]) if is_stateful(part))
    exact, shift = exact_anew_at(plan, holding.point), shift_of(holding, plan, waits=waits)
    exact = exact if shift is None else min(exact, shift.exact)
    return Replacement(begins, until, (), anew, found.message, exact=exact)


def _by_clips(holding: Holding, found: Begun, name: str) -> Replacement:
    queries, migration = holding.queries, found.queries.migrations[name]
    start = queries.state_start_of(name)
    running = set(identities(migration.old, start, queries.merges).values())
    names = identities(migration.plan, start, queries.merges)
    kept: list[Plan] = []
    anew: list[Plan] = []
    for part in walk(migration.parts[1]):
        if is_stateful(part):
            (kept if names[id(part)] in running else anew).append(part)
    return Replacement(migration.at, migration.at, tuple(kept), tuple(anew))


def begun_anew(
    queries: QuerySet,
    epoch: int,
    names: Iterable[str],
    before: Holding,
    results: Sequence[EpochResults],
    exacts: Mapping[str, int] = MappingProxyType({}),
) -> QuerySet:
    """The set with what is to be known of replaced queries that start anew.

    Args:
        queries: those that are answered from now on.
        epoch: the one that replaces them.
        names: those that are replaced.
        before: the queries that run.
        results: those of the epochs that are kept, in order.
        exacts: from which instants on those are exact that begin with what others hold.
    """
    for name, begins in answering_from(queries, names, before.point).items():
        until = _until(name, results)
        at = _limited(begins, until)
        if _reach(queries, name, before) < at:
            # What is final is not said again, whatever the new plan reads.
            carried = queries.carried_out.get(name, alone(queries.plans[name])[0])
            queries = queries.replacing({name: said_from_on(carried, at)})
        exact = exacts[name] if name in exacts else exact_anew_at(queries.plans[name], before.point)
        gaps = with_gap(queries.records[name].gaps, Gap(until, at, exact))
        queries = queries.having(name, warm=WarmStart(epoch, at), gaps=gaps)
    return queries


def _limited(begins: int, until: int) -> int:
    """From where on a query answers that starts anew (instant).

    Args:
        begins: from where on it would answer if it were new; INFINITY if it has all its rows, or no further
            ones come.
        until: up to where the answer is final.
    """
    return until if begins == INFINITY else max(begins, until)


def taken_back(
    names: Iterable[str],
    before: Holding,
    after: QuerySet,
    results: Sequence[EpochResults],
    begins: Mapping[str, tuple[ResultRef, ...]],
    file: str,
) -> dict[str, tuple[ResultRef, ...]]:
    """What replaced queries begin with, after what takes back all that was said and is not final.

    Args:
        names: the queries that start anew.
        before: the queries that run.
        after: those from the change on.
        results: those of the epochs that are kept, in order.
        begins: what queries begin with.
        file: the name of the file to write, below the folder for results.
    """
    writer = SegmentWriter(before.store, f"results/{file}")
    found: dict[str, tuple[ResultRef, ...]] = {}
    for name in names:
        held = held_from(reader_of(name, before, results).yielded(), _until(name, results))
        output, reach = dict(after.graph.outputs)[name], _reach(after, name, before)
        refs = said_from(name, held.negated(), reach, before, results, writer, output)
        found[name] = (*refs, *begins.get(name, ()))
    writer.close()
    return found


def _until(name: str, results: Sequence[EpochResults]) -> int:
    """Up to where a query's answer is final (instant)."""
    return results[-1].heartbeats[name] if results else BEGINNING


def _reach(queries: QuerySet, name: str, before: Holding) -> int:
    """Up to where a query speaks at once (instant)."""
    graph, horizon = queries.graph, horizon_of(queries.plans[name])
    node = graph.node_of(dict(graph.outputs)[name])
    if horizon is None:
        return before.heartbeats(graph)[node]
    return graph.reaches(*before.reached(graph))[horizon][node]
