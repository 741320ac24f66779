"""Plans that are exchanged in a run, step by step: the thesis' example 28.1, and kills on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.algebra.nodes import Distinct, Filter, Istream, Join, Plan, Project, Source, TimeWindow, column
from headrace.elements import to_rows
from headrace.errors import PlanError
from headrace.expressions.tree import Call
from headrace.heartbeats.timing import Timing
from headrace.history import canonical
from headrace.lowering.identity import identity
from headrace.reference.contents import Element, Stream, content_at
from headrace.reference.operators import evaluate
from headrace.runtime.driver.change.wanted import Redefine, Wanted
from headrace.runtime.driver.endless.retries import run_to_end
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedStream
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.journal import Journal
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import FolderStore, MemoryStore, Store
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import BIGINT, BOOLEAN, STRING, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain
from support import TableSource

ROWS = Schema((Field("x", STRING), Field("ts", BIGINT)))
READ = Schema((Field("x", STRING),))


def window(name: str) -> Plan:
    return TimeWindow(Source(name, READ, "ts", TimeDomain.INTEGER), Duration(101))


def joined(left: Plan, right: Plan) -> Plan:
    """The pairs of equal rows, as one of them."""
    pairs = Join(left, right, ((column(left, 0), column(right, 0)),), None, ("x", "y"))
    return Project(pairs, (("x", column(pairs, 0)),))


OLD = Distinct(joined(window("a"), window("b")))
NEW = joined(Distinct(window("a")), Distinct(window("b")))
"""Example 28.1: duplicates are eliminated above the join, then below it."""

A, B = (10, 50), (20, 70)
SHORT: Mapping[str, Sequence[int]] = {"a": A, "b": B}
"""A reconstruction of the rows of figure 28.1, which are all a: those that are named in the text are among
them. They are valid up to 100 instants later."""


def streams(rows: Mapping[str, Sequence[int]]) -> dict[str, BoundedStream]:
    def stream(instants: Sequence[int]) -> BoundedStream:
        table = pa.table({"x": ["a"] * len(instants), "ts": list(instants)})
        return BoundedStream(TableSource(table), "ts", Timing(0))

    return {name: stream(instants) for name, instants in rows.items()}


def run_of(store: Store, plan: Plan = OLD, rows: Mapping[str, Sequence[int]] = SHORT) -> Run:
    return Run(InlineRunner(), store, streams(rows), {"q": plan}, RunSettings(2, buckets=2))


def answer(run: Run, store: Store, name: str = "q") -> tuple[list[tuple[object, ...]], int]:
    """The history of the query so far, and its heartbeat."""
    reader = ResultReader(name, form_of(OLD), store, run.results)
    return [(*row, ts, te) for row, ts, te, _ in to_rows(canonical(reader.elements()))], reader.heartbeat


def kept(run: Run) -> int:
    """How many rows of state there are."""
    return sum(
        part.rows for manifest in run.reading.state.values() for area in manifest.values() for part in area
    )


def test_example_28_1() -> None:
    store = MemoryStore()
    run = run_of(store)
    run.step(run.next_share())
    # What has come by 40: a at 10 and b at 20. The latter ends at 121, where the new plan takes over.
    assert run.exchange("q", NEW) == 121
    run_to_end(run)
    assert answer(run, store) == ([("a", 20, 151)], INFINITY)


def test_parallel_track_repeats_a_row() -> None:
    """What both plans would yield by parallel track: the row is there twice from 111 to 120."""
    pairs = sorted((max(a, b), min(a, b) + 101, min(a, b) <= 40) for a in A for b in B)
    until, old = 0, []
    for begin, end, is_old in pairs:
        # The thesis' duplicate elimination: what a row adds to those before it keeps that row's mark.
        if end > until and is_old:
            old.append((("a",), max(begin, until), end, 1))
        until = max(until, end)
    new = [(("a",), max(A[1], B[1]), A[1] + 101, 1)]
    assert (("a",), 111, 121, 1) in old
    assert all(content_at([*old, *new], instant)[("a",)] == 2 for instant in range(111, 121))


LONG = {"a": tuple(range(0, 600, 10)), "b": tuple(range(5, 600, 15))}


def expected() -> list[tuple[object, ...]]:
    history = evaluate(OLD, {name: Stream(("x", "ts"), elements(rows)) for name, rows in LONG.items()})
    return [(*row, ts, te) for row, ts, te in history]


def elements(instants: Sequence[int]) -> list[Element]:
    return [(("a", ts), ts, ts + 1, 1) for ts in instants]


def test_the_old_plan_lets_go_of_its_state_and_the_new_one_goes_on_with_its_own() -> None:
    run, alone = run_of(MemoryStore(), OLD, LONG), run_of(MemoryStore(), NEW, LONG)
    for each in (run, alone):
        for _ in range(20):
            each.step(each.next_share())
    before = kept(run)
    run.exchange("q", NEW)
    assert kept(run) == before, "the old plan goes on with its state, and the new one has none yet"
    while not run.end_exchanges():
        for each in (run, alone):
            each.step(each.next_share())
    nodes, others = (each.reading.queries.graph.nodes for each in (run, alone))
    assert [type(node.plan) for node in nodes] == [type(node.plan) for node in others]
    for each in (run, alone):
        each.step(each.next_share())
    # What has expired is removed with what is left of its run, now and then.
    assert 0 < kept(run) <= kept(alone)
    assert {name for name, _ in run.reading.state} <= {node.identity for node in nodes}


class Killed(BaseException):
    """The process has ended here."""


@pytest.mark.parametrize("change", [1, 2])
@pytest.mark.parametrize("point", ["change.begun", "change.done"])
def test_a_kill_while_an_exchange_begins_or_ends(
    point: str, change: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def reach(here: str) -> None:
        seen.append(here)
        if here == point and seen.count(point) == change:
            raise Killed

    monkeypatch.setattr("headrace.runtime.driver.epoch.committed.reach", reach)
    exchanged = False
    with closing(FolderStore(str(tmp_path), durable=True)) as store:
        for _ in range(2):
            run = run_of(store, OLD, LONG)
            described = Description({"q": DescribedQuery(identity(OLD))}, dict.fromkeys("ab", "a table"), 2)
            with closing(Journal(store, described)) as journal, suppress(Killed):
                run.resume(journal, described)
                while share := run.next_share():
                    run.step(share)
                    run.end_exchanges()
                    if run.totals.epochs == 20 or (
                        exchanged and run.reading.queries.answered["q"].replaced is None
                    ):
                        exchanged = True
                        run.exchange("q", NEW)
        assert run.reading.queries.answered["q"].replaced == NEW
        assert answer(run, store) == (expected(), INFINITY)


def test_only_one_exchange_at_a_time() -> None:
    run = run_of(MemoryStore())
    run.step(run.next_share())
    run.exchange("q", NEW)
    with pytest.raises(PlanError, match="being exchanged already"):
        run.exchange("q", OLD)


def test_state_that_would_have_to_move() -> None:
    """ISTREAM gets its rows by the keys of the join; by those of the other plan they lie elsewhere."""
    a, b = window("a"), window("b")
    pairs = Join(a, b, ((column(a, 0), column(b, 0)),), None, ("x", "y"))
    crossed = Join(b, a, (), None, ("y", "x"))
    old = Istream(Project(pairs, (("x", column(pairs, 0)),)))
    same = Call("=", (column(crossed, 0), column(crossed, 1)), BOOLEAN)
    new = Istream(Project(Filter(crossed, same), (("x", column(crossed, 1)),)))
    run = run_of(MemoryStore(), old)
    run.step(run.next_share())
    with pytest.raises(PlanError, match="Istream would get its rows by other keys"):
        run.exchange("q", new)


def test_an_exchange_waits_for_another_query_with_the_same_operators() -> None:
    """Both have said what lies ahead in pieces of their own, and neither can go on with the other's state."""
    store = MemoryStore()
    settings = RunSettings(2, buckets=2)
    run = Run(InlineRunner(), store, streams(LONG), {"q": OLD, "r": OLD, "s": NEW}, settings)
    for _ in range(20):
        run.step(run.next_share())
    first = run.exchange("q", NEW)
    assert run.exchange("r", NEW) == first + 1, "each has operators of its own"
    for _ in range(15):
        run.step(run.next_share())
        assert not run.end_exchanges()
    run.change(Redefine(Wanted({"q": OLD, "r": OLD}, streams(LONG))))
    assert run.end_exchanges()
    assert run.reading.queries.migrations.keys() == {"r"}
    while share := run.next_share():
        run.step(share)
        assert not run.end_exchanges()
    found = [answer(run, store, name) for name in ("q", "r")]
    assert found == [(expected(), INFINITY)] * 2
