"""Queries that are added and dropped while a run goes on, and whose plans are exchanged.

An added query answers as the reference does over the rows that arrived after it was added; whatever else is
added, dropped or restarted, the others answer as if they were alone. Operators whose states have become
equal are merged after every epoch, and nobody notices.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from unittest.mock import patch

from hypothesis import event, given
from hypothesis import strategies as st

import headrace.runtime.store.segments as segments
from headrace.algebra.nodes import Aggregate, Distinct, Filter, Plan, Project, Source, column
from headrace.algebra.properties import walk
from headrace.elements import from_rows, to_rows
from headrace.errors import PlanError, UserError
from headrace.expressions.functions.functions import literal
from headrace.expressions.tree import Call, Expression, Literal
from headrace.history import canonical, equivalent
from headrace.lowering.identity import identity
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.runtime.driver.beside.joining import brought, catching_up, join
from headrace.runtime.driver.beside.starting_at import CatchUp
from headrace.runtime.driver.change.beginning.boundary import beginning_of
from headrace.runtime.driver.change.beginning.kept_input import KeptInput
from headrace.runtime.driver.change.beginning.newcomer import Newcomer
from headrace.runtime.driver.change.common_operators import Inheritance
from headrace.runtime.driver.change.migration.exchange import Begun
from headrace.runtime.driver.change.wanted import AnswerStart, JoinRun, Redefine, Replace, Wanted
from headrace.runtime.driver.change.warm import derivation
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import DEFAULT_EPOCH_BYTES, RunSettings
from headrace.runtime.intake.streams import BoundedStream, Retain
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.journal import Journal
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import FolderStore, MemoryStore, Store
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import BOOLEAN
from headrace.time import BEGINNING, INFINITY
from how_many import examples
from property.plan_strategies import FORMS, Case, cases, plans
from property.relatives import above, relatives
from property.strategies import BUCKETS

ACTIONS = ("go on", "go on", "add", "add", "drop", "restart", "exchange")
EQUAL_PLANS = ("go on", "go on", "go on", "add again", "add", "drop", "restart", "exchange")
PAST = ("go on", "go on", "go on", "add past", "add past", "add", "drop", "restart")
WARM = ("go on", "go on", "add", "add warm", "add above", "add above", "drop", "restart", "exchange")


REFUSED = ("at different times", "have not reached", "is part of a query", "is final", "is being exchanged")
"""Why a query may not begin above the answers of others."""


MOST_STEPS = 8
"""Within about so many steps a process dies that does."""


class Killed(BaseException):
    """What ends a process in the middle of a step."""


@contextmanager
def dying(step: int) -> Iterator[list[str]]:
    """Let a process die with its n-th step in writing files, and leave behind what it has written.

    Args:
        step: which one; it lives on for 0, or where there are fewer.

    Yields:
        The steps that it has reached.
    """
    reached: list[str] = []

    def reach(point: str) -> None:
        reached.append(point)
        if len(reached) == step:
            raise Killed

    with (
        patch.object(segments, "reach", reach),
        patch.object(CatchUp, "discard", lambda _: None) if step else nullcontext(),
    ):
        yield reached


@dataclass
class Answered:
    """A query of the script: its plan, how far each stream was read when it came, its epochs and instants."""

    name: str
    plan: Plan
    positions: Mapping[str, int]
    start: int
    end: int | None = None
    answers_from: int = BEGINNING
    answers_until: int = INFINITY
    before: tuple[Answered, ...] = ()
    unlike: list[tuple[int, int]] = field(default_factory=list)
    """Between which instants the answer lacks rows that were no longer kept."""

    @property
    def pieces(self) -> tuple[Answered, ...]:
        """What the query was before it was replaced, and what it is now."""
        return (*self.before, self)


def exact_parts(
    rows: Iterable[tuple[Any, int, int, int]], query: Answered
) -> list[tuple[Any, int, int, int]]:
    """The parts of elements at instants at which a query's answer is that over all rows."""
    left = list(rows)
    for begin, end in query.unlike:
        left = [
            (row, *part, w)
            for row, ts, te, w in left
            for part in ((ts, min(te, begin)), (max(ts, end), te))
            if part[0] < part[1]
        ]
    return left


class Script:
    """A run to which Hypothesis does something between any two epochs."""

    def __init__(
        self,
        data: st.DataObject,
        case: Case,
        store: Store,
        buckets: int,
        epoch: tuple[int, int],
        actions: Sequence[str] = ACTIONS,
        retain: Retain | None = None,
    ) -> None:
        self.data, self.case, self.store, self.actions = data, case, store, actions
        self.buckets, (self.epoch_rows, self.epoch_bytes) = buckets, epoch
        self.streams = {
            name: replace(stream, retain=retain) if isinstance(stream, BoundedStream) else stream
            for name, stream in case.inputs().items()
        }
        self.choices: Sequence[Plan] = (case.plan,)
        self.names = (f"q{number}" for number in count())
        self.everything: list[Answered] = []
        self.live: dict[str, Answered] = {}
        self.journal: Journal | None = None
        self.exchanged = 0
        self.clipped = self.filled = self.partly = self.inherited = self.killed = 0
        for plan in (case.plan, *data.draw(st.lists(relatives(case.plan), max_size=2))):
            self._register(next(self.names), plan, 1, {})
        self.run = self._start()

    def play(self) -> None:
        """Run to the end of the streams, with up to six actions in between."""
        try:
            left = 6
            while True:
                action = self.data.draw(st.sampled_from(self.actions)) if left else "go on"
                left -= action != "go on"
                if action == "add":
                    known = st.sampled_from([query.plan for query in self.everything])
                    self._add(self.data.draw(known | plans(self.case.leaves, depth=2)))
                elif action == "add again":
                    self._add(self.data.draw(st.sampled_from(self.choices)))
                elif action == "add warm" and self.run.results:
                    self._add_warm(self.data.draw(st.sampled_from(sorted(self.live))))
                elif action == "add above" and self.run.results:
                    names = st.lists(st.sampled_from(sorted(self.live)), min_size=1, max_size=2)
                    self._add_above(*self.data.draw(names))
                elif action == "add past":
                    known = st.sampled_from([query.plan for query in self.everything])
                    self._add_past(self.data.draw(known | plans(self.case.leaves, depth=2)))
                elif action in ("drop", "replace", "replace above", "exchange"):
                    self._turn(action, self.data.draw(st.sampled_from(sorted(self.live))))
                elif action == "restart" and self.journal is not None:
                    self.journal.close()
                    self.run = self._start()
                elif share := self.run.next_share():
                    self.run.step(share)
                    self.run.merge()
                    self.run.end_exchanges()
                else:
                    return
        finally:
            if self.journal is not None:
                self.journal.close()

    def _turn(self, action: str, name: str) -> None:
        """Do something to a query that is answered."""
        if action.startswith("replace"):
            self._replace(name, is_above=action == "replace above")
        elif action == "exchange":
            self._exchange(name)
        elif len(self.live) > 1:
            self._drop(name)

    def check(self) -> None:
        """Every query, dropped or not, answers as the reference over the rows since it was added."""
        assert not self.run.reading.queries.failed, self.run.reading.queries.failed
        for query in self.everything:
            parts = [
                part
                for part in self.run.results
                if part.epoch >= query.start and (query.end is None or part.epoch < query.end)
            ]
            reader = ResultReader(query.name, form_of(query.plan), self.store, parts)
            history = [part for piece in query.pieces for part in self._expected(piece)]
            schema = query.plan.schema
            expected = from_rows(schema, exact_parts([(row, ts, te, 1) for row, ts, te in history], query))
            found = from_rows(schema, exact_parts(to_rows(reader.elements()), query))
            assert equivalent(found, expected, reader.heartbeat), (
                query.name,
                history,
                to_rows(canonical(found)),
            )

    def _expected(self, query: Answered) -> list[tuple[Any, int, int]]:
        """What the reference says of a query, for the instants at which it answers."""
        rows = {
            stream.name: Stream(stream.schema.names, stream.elements[query.positions.get(stream.name, 0) :])
            for stream in self.case.streams
        }
        rows |= {relation.name: relation.stream() for relation in self.case.relations}
        found = [
            (row, max(ts, query.answers_from), min(te, query.answers_until))
            for row, ts, te in evaluate(query.plan, rows)
        ]
        return [(row, ts, te) for row, ts, te in found if ts < te]

    def _plans(self) -> dict[str, Plan]:
        return {name: query.plan for name, query in self.live.items()}

    def _wanted(self) -> Wanted:
        return Wanted(self._plans(), self.streams, self._description())

    def _start(self) -> Run:
        settings = RunSettings(self.epoch_rows, self.epoch_bytes, self.buckets)
        run = Run(InlineRunner(), self.store, self.streams, self._plans(), settings)
        if isinstance(self.store, FolderStore):
            description = self._description()
            self.journal = Journal(self.store, description)
            assert not run.resume(self.journal, description, adapt=True)
        return run

    def _description(self) -> Description:
        queries = {name: DescribedQuery(identity(plan)) for name, plan in self._plans().items()}
        return Description(queries, dict.fromkeys(self.streams, "a table"), self.buckets)

    def _register(self, name: str, plan: Plan, start: int, positions: Mapping[str, int]) -> None:
        query = Answered(name, plan, positions, start)
        self.everything.append(query)
        self.live[name] = query

    def _add(self, plan: Plan) -> None:
        """A plan, new or there already, under a new name or that of a dropped query; and some like it."""
        dropped = sorted({query.name for query in self.everything} - self.live.keys())
        reused = self.data.draw(st.sampled_from(dropped)) if dropped else next(self.names)
        positions = {name: self.run.point(name).position for name in self.run.known_streams}
        epoch = self.run.totals.epochs + 1
        self._register(reused, plan, epoch, positions)
        for related in self.data.draw(st.lists(relatives(plan), max_size=2)):
            self._register(next(self.names), related, epoch, positions)
        self.run.change(Redefine(self._wanted()))
        assert self.run.results[-1].epoch == self.live[reused].start
        assert self.run.results[-1].heartbeats.keys() == self.live.keys()

    def _exchange(self, name: str) -> None:
        """Another plan with the same answer takes over, where it can."""
        form = self.data.draw(FORMS)
        with suppress(PlanError):
            self.run.exchange(name, form(self.live[name].plan))
            self.exchanged += 1

    def _replace(self, name: str, *, is_above: bool = False) -> None:
        """Another plan under the name of a query, with the same columns, perhaps above a part of its own."""
        known, read = self.live[name], self.run.results
        until = read[-1].heartbeats[name] if read else BEGINNING
        if until == INFINITY:
            return
        plan = self.data.draw(others(known.plan, self.case, is_above=is_above))
        alike = form_of(plan).is_like(form_of(known.plan))
        one = Newcomer(self.run.present, name, plan, self.streams, alike=alike, beside=True)
        said = beginning_of(one)
        if isinstance(said.provenance, KeptInput):
            if alike:
                self._put(known, plan, {}, until, until)
                self.live[name].unlike.append((until, said.boundary.exact))
            else:
                known.end = self.run.totals.epochs + 1
                self._register(name, plan, known.end, {})
                self.live[name].answers_from = until
                self.live[name].unlike.append((until, said.boundary.exact))
            self.partly += said.boundary.exact > until
            found = brought(catching_up(self.run, one, said.provenance))
            self.run.change(JoinRun(self._wanted(), found))
            self.filled += 1
            return
        said = beginning_of(replace(one, alike=True, beside=False))
        clipped, inherits = isinstance(said.provenance, Begun), isinstance(said.provenance, Inheritance)
        positions: Mapping[str, int] = {
            part: self.run.point(part).position for part in self.run.known_streams
        }
        if clipped or inherits:
            positions, until = known.positions, said.boundary.at
            self.clipped += clipped
            self.inherited += inherits
        self._put(known, plan, positions, said.boundary.at, until)
        self.run.change(Replace(self._wanted(), name))

    def _put(self, known: Answered, plan: Plan, positions: Mapping[str, int], since: int, until: int) -> None:
        """Another plan in the place of a query's, which answers from an instant on."""
        before = tuple(
            replace(piece, answers_until=min(until, piece.answers_until), before=()) for piece in known.pieces
        )
        new = Answered(known.name, plan, positions, known.start, answers_from=since, before=before)
        new.unlike = known.unlike
        self.everything[self.everything.index(known)] = self.live[known.name] = new

    def _add_warm(self, other: str) -> None:
        """A query that answers as another one from now on, or its rows of one kind."""
        known, name = self.live[other], next(self.names)
        heartbeat = self.run.results[-1].heartbeats[other]
        if heartbeat == INFINITY:
            return
        plan = known.plan
        if len(plan.schema) and self.data.draw(st.booleans()):
            plan = Project(Filter(plan, Call("IS NULL", (column(plan, 0),), BOOLEAN)), (("x", literal(1)),))
        epoch = self.run.totals.epochs + 1
        self._register(name, plan, epoch, known.positions)
        self.live[name].answers_from = max(heartbeat, known.answers_from)
        warm = {name: derivation(plan, {other: known.plan})}
        self.run.change(Redefine(self._wanted(), warm))

    def _add_above(self, other: str, another: str | None = None) -> None:
        """A query with an operator of its own above the answers of one or two others."""
        read = [self.live[other], *([] if another is None else [self.live[another]])]
        heartbeat = min(self.run.results[-1].heartbeats[query.name] for query in read)
        name, plan = next(self.names), self.data.draw(above(*(query.plan for query in read)))
        if heartbeat == INFINITY:
            return
        warm = {name: derivation(plan, {query.name: query.plan for query in read})}
        epoch = self.run.totals.epochs + 1
        self._register(name, plan, epoch, read[0].positions)
        self.live[name].answers_from = max(heartbeat, *(query.answers_from for query in read))
        try:
            self.run.change(Redefine(self._wanted(), warm))
        except UserError as error:
            if not any(reason in error.message for reason in REFUSED):
                raise
            self.everything.remove(self.live.pop(name))

    def _add_past(self, plan: Plan) -> None:
        """A query that answers over the rows from before it, as far as they are kept."""
        name, epoch = next(self.names), self.run.totals.epochs + 1
        ago = st.integers(0, 9).map(lambda back: AnswerStart(back=back))
        start = self.data.draw(st.just(AnswerStart()) | st.integers(-2, 60).map(AnswerStart) | ago)
        self._register(name, plan, epoch, {})
        dies = self.data.draw(st.integers(0, MOST_STEPS)) if self.journal is not None else 0
        try:
            with dying(dies) as reached:
                join(self.run, {name: start}, self._wanted())
        except Killed:
            self._again_after(name, reached)
            if name not in self.live:
                return
        except UserError as error:
            if "are no longer kept" not in error.message:
                raise
            self.everything.remove(self.live.pop(name))
            return
        began = self.run.reading.queries.warm.get(name)
        assert (began is None) == (epoch == 1)
        if began is not None:
            self.live[name].answers_from = began.answers_from

    def _again_after(self, name: str, reached: Sequence[str]) -> None:
        """Another process, where one died while a query came to the present: the query is there or not."""
        assert self.journal is not None
        self.killed += 1
        counts = "commit.linked" in reached
        if not counts:
            self.everything.remove(self.live.pop(name))
        self.journal.close()
        self.run = self._start()
        assert (name in self.run.reading.queries.plans) == counts
        assert not counts or self.run.totals.epochs == self.live[name].start

    def _drop(self, name: str) -> None:
        self.live.pop(name).end = self.run.totals.epochs + 1
        self.run.change(Redefine(self._wanted()))
        assert name not in self.run.results[-1].heartbeats


@st.composite
def others(draw: st.DrawFn, plan: Plan, case: Case, *, is_above: bool = False) -> Plan:
    """Plans with the columns of one: of a part of it, above one of its groups, or of others."""
    parts = [part for part in walk(plan) if not isinstance(part, Source)]
    groups = [part for part in parts if isinstance(part, Aggregate | Distinct)]
    other: Plan
    if is_above and groups:
        group = draw(st.sampled_from(groups))
        other = draw(above(group)) if draw(st.booleans()) else group
    else:
        some = plans(case.leaves, depth=2)
        other = draw(st.sampled_from(parts) | some) if parts else draw(some)
    if isinstance(other, Aggregate) and other.aggregates and draw(st.booleans()):
        calls = draw(st.lists(st.sampled_from(other.aggregates), min_size=1, unique=True))
        named = tuple((f"r{place}", call) for place, (_, call) in enumerate(calls))
        other = replace(other, aggregates=named)
    items: list[tuple[str, Expression]] = []
    for column_of in plan.schema:
        places = [place for place, one in enumerate(other.schema) if one.type == column_of.type]
        value = column(other, draw(st.sampled_from(places))) if places else Literal(None, column_of.type)
        items.append((column_of.name, value))
    return Project(other, tuple(items))


EPOCHS = st.tuples(st.sampled_from((1, 2, 5)), st.sampled_from((DEFAULT_EPOCH_BYTES, 40)))
"""About how many rows and bytes an epoch takes; with the smaller number relations come in several."""


@examples(6, 54)
@given(st.data(), cases(max_relations=2), BUCKETS, EPOCHS)
def test_queries_come_and_go(data: st.DataObject, case: Case, buckets: int, epoch: tuple[int, int]) -> None:
    script = Script(data, case, MemoryStore(), buckets, epoch)
    script.play()
    script.check()


@examples(3, 27)
@given(st.data(), cases(max_streams=2, max_relations=2), EPOCHS)
def test_queries_come_and_go_between_restarts(
    data: st.DataObject, case: Case, epoch: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        script = Script(data, case, store, 2, epoch)
        script.play()
        script.check()


def prolonged(case: Case, times: int, period: int = 20) -> Case:
    """The case with the rows of each stream again and again, each time later by a period."""
    streams = tuple(
        replace(
            stream,
            elements=tuple(
                ((*row[:-1], ts + late), ts + late, te + late, w)
                for late in range(0, times * period, period)
                for row, ts, te, w in stream.elements
            ),
        )
        for stream in case.streams
    )
    return replace(case, streams=streams)


@examples(3, 8)
@given(st.data(), cases(max_streams=2, max_relations=1, max_size=8), st.sampled_from((3, 6)))
def test_equal_plans_of_different_starts_are_merged_unnoticed(
    data: st.DataObject, case: Case, rows: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        epoch = rows, DEFAULT_EPOCH_BYTES
        script = Script(data, prolonged(case, 4), store, 2, epoch, EQUAL_PLANS)
        script.play()
        script.check()


@examples(2, 18)
@given(st.data(), cases(max_streams=2, max_relations=1, max_size=8), st.sampled_from((2, 4)))
def test_a_warm_query_answers_as_the_one_that_it_follows_from(
    data: st.DataObject, case: Case, rows: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        script = Script(data, prolonged(case, 3), store, 2, (rows, DEFAULT_EPOCH_BYTES), WARM)
        script.play()
        script.check()


RETAINED = st.sampled_from((Retain(INFINITY, None), Retain(5, None), Retain(30, None), Retain(None, 6)))
"""Which rows of the streams are kept: all, the youngest, or the last."""


@examples(4, 12)
@given(st.data(), cases(max_streams=2, max_relations=1, max_size=8), st.sampled_from((1, 2, 4)), RETAINED)
def test_a_query_from_the_past_answers_as_one_that_was_there_from_the_first_row(
    data: st.DataObject, case: Case, rows: int, retain: Retain
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        epoch = rows, DEFAULT_EPOCH_BYTES
        script = Script(data, prolonged(case, 3), store, 2, epoch, PAST, retain)
        script.play()
        event(f"killed {script.killed}")
        script.check()
