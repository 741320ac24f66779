"""Operators that wait for others change no answer, and no moment at which it is final."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Join,
    Plan,
    Source,
    TimeWindow,
    column,
)
from headrace.elements import from_rows, to_rows
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.history import canonical, equivalent
from headrace.language.statements.statements import Heartbeats
from headrace.lowering.holds import holds_of
from headrace.lowering.identity import identity
from headrace.lowering.lower import Holds, lower
from headrace.reference.operators import evaluate
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedStream, Intake
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.journal import Journal
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import FolderStore, MemoryStore, Store
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import BIGINT, Field, Schema, unique_names
from headrace.time import Duration, TimeDomain
from how_many import examples
from property.plan_strategies import Case, GeneratedStream
from property.strategies import BUCKETS

SCHEMA = Schema((Field("k", BIGINT), Field("ts", BIGINT)))


@dataclass(frozen=True)
class Held:
    """A plan over three streams, of which some operators wait for others."""

    case: Case
    holds: Holds


@st.composite
def held(draw: st.DrawFn) -> Held:
    """A join of two streams with something above it, joined with a third."""
    made = tuple(draw(streams(name)) for name in ("a", "b", "c"))
    first, second, third = (window(draw, stream.source) for stream in made)
    below = draw(st.sampled_from((as_it_is, as_it_is, Distinct, counted, Coalesce)))(
        joined(draw, first, second)
    )
    sides = [below, third] if draw(st.booleans()) else [third, below]
    plan: Plan = joined(draw, *sides)
    if draw(st.integers(0, 2)) == 0:
        plan = joined(draw, counted(plan), window(draw, made[0].source))
    rates = draw(st.lists(st.sampled_from((3.0, 1.0, 0.3)), min_size=1, max_size=4))
    heartbeats = draw(st.sampled_from((Heartbeats.COMMON, Heartbeats.MEMORY)))
    holds = holds_of(lower({"q": plan}), heartbeats, lambda number: rates[number % len(rates)])
    assume(holds)
    return Held(Case(plan, made), holds)


@st.composite
def streams(draw: st.DrawFn, name: str) -> GeneratedStream:
    """Rows of two keys with gaps of up to two instants, some of them out of order."""
    disorder = draw(st.sampled_from((0, 0, 2)))
    gaps = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, disorder))
    at, elements = 3, []
    for key, gap, behind in draw(st.lists(gaps, min_size=5, max_size=9)):
        at += gap
        elements.append(((key, at - behind), at - behind, at - behind + 1, 1))
    source = Source(name, SCHEMA, "ts", TimeDomain.INTEGER)
    return GeneratedStream(source, SCHEMA, tuple(elements), disorder)


def window(draw: st.DrawFn, below: Plan) -> Plan:
    size, slide = draw(st.sampled_from((3, 9, 5, 1))), draw(st.sampled_from((1, 1, 1, 4)))
    return TimeWindow(below, Duration(size), Duration(slide))


def as_it_is(plan: Plan) -> Plan:
    return plan


def counted(plan: Plan) -> Plan:
    count = resolve_aggregate("COUNT", None)
    return Aggregate(plan, (("k", column(plan, 0)),), (("n", count),))


def joined(draw: st.DrawFn, left: Plan, right: Plan) -> Join:
    """The pairs of two plans, of equal keys or all of them."""
    keys = ((column(left, 0), column(right, 0)),) if draw(st.integers(0, 3)) else ()
    return Join(left, right, keys, None, tuple(unique_names([*left.schema.names, *right.schema.names])))


class Both:
    """A run that answers one plan twice: as `free`, and as `held` with operators that wait."""

    def __init__(self, held: Held, store: Store, buckets: int) -> None:
        self.held, self.store, self.buckets = held, store, buckets
        self.plans = {"free": held.case.plan, "held": held.case.plan}
        self.streams = held.case.inputs()
        self.journal: Journal | None = None
        self.run = self.start()

    def start(self) -> Run:
        """Begin, or go on where the store is."""
        if self.journal is not None:
            self.journal.close()
        run = Run(
            InlineRunner(),
            self.store,
            self.streams,
            self.plans,
            RunSettings(None, buckets=self.buckets),
            {"held": self.held.holds},
        )
        if isinstance(self.store, FolderStore):
            queries = {name: DescribedQuery(identity(plan)) for name, plan in self.plans.items()}
            description = Description(queries, dict.fromkeys(self.streams, "a table"), self.buckets)
            self.journal = Journal(self.store, description)
            run.resume(self.journal, description, adapt=True)
        return run

    def step(self, taken: Mapping[str, int]) -> None:
        """An epoch that takes so many rows of each stream."""
        intakes = {}
        for name, stream in self.run.streams.items():
            if isinstance(stream, BoundedStream):
                begin, size = self.run.point(name).position, stream.source.size
                end = min(begin + taken.get(name, size), size)
                intakes[name] = Intake(end, stream.source, begin, end, ended=end == size)
        self.run.step(intakes)
        assert not self.run.reading.queries.failed, self.run.reading.queries.failed

    def compare(self) -> ResultReader:
        """See that both say the same so far; the reader of what is held."""
        free, held = (
            ResultReader(name, form_of(plan), self.store, self.run.results)
            for name, plan in self.plans.items()
        )
        assert held.heartbeat == free.heartbeat
        assert equivalent(held.elements(), free.elements(), free.heartbeat)
        return held

    def finish(self) -> None:
        """Read everything, and see that the answer is the reference's."""
        self.step({})
        plan, found = self.held.case.plan, self.compare().elements()
        history = evaluate(plan, self.held.case.reference_streams())
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
        assert equivalent(found, expected), to_rows(canonical(found))


TAKEN = st.lists(
    st.fixed_dictionaries({name: st.sampled_from((3, 0, 1, 5)) for name in "abc"}), min_size=1, max_size=4
)
"""How many rows of each stream the epochs take before the last one, which takes all."""


@examples(7, 20)
@given(held(), BUCKETS, TAKEN)
def test_holds_change_no_answer(held: Held, buckets: int, taken: Sequence[Mapping[str, int]]) -> None:
    both = Both(held, MemoryStore(), buckets)
    for part in taken:
        both.step(part)
        both.compare()
    both.finish()


@examples(3, 8)
@given(held(), TAKEN)
def test_what_waits_outlives_a_restart(held: Held, taken: Sequence[Mapping[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        both = Both(held, store, 2)
        for part in taken:
            both.step(part)
            both.run = both.start()
        both.compare()
        both.finish()
        assert both.journal is not None
        both.journal.close()
