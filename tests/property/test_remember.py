"""Queries that remember a stream for less than it allows.

The law: over a stream with DISORDER d, a query with REMEMBER m answers as it would over a stream of the same
rows with DISORDER m. So its rows are those that the definition of lateness takes for m.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.elements import from_rows, to_rows
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.history import canonical, equivalent
from headrace.lowering.early import early
from headrace.lowering.memory import remembering
from headrace.reference.contents import Element, Stream
from headrace.reference.lateness import late_rows, needed_disorder
from headrace.reference.operators import evaluate
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from how_many import examples
from property.plan_strategies import FORMS, ROOTS, cases, plans
from property.strategies import BUCKETS
from property.test_corrections import DISORDER, KINDS, corrected
from property.test_lateness_of_runs import SCHEMA, small_batches, write_parquet
from support import run_plans

__all__ = ["small_batches"]

SUMS = "SELECT price, COUNT(*) AS rows, SUM(n) AS total FROM s [RANGE 4] GROUP BY price"
NESTED = f"SELECT MAX(rows) AS most FROM ({SUMS})"
ONE_PRICE = "SELECT COUNT(*) AS rows FROM s [RANGE 3] WHERE price = 1"
TAKEN = "SELECT n, ts FROM s"
QUERIES = {"taken": TAKEN, "sums": SUMS, "nested": NESTED, "one": ONE_PRICE}


@st.composite
def about_sorted(draw: st.DrawFn) -> list[int | None]:
    """Timestamps of rows that come up to nine instants late, and a few that are of no use."""
    steps = st.tuples(st.integers(0, 3), st.sampled_from((0, 0, 1, 2, 5, 9, None)))
    found, now = list[int | None](), 10
    for step, late in draw(
        st.lists(steps, min_size=1, max_size=8) | st.lists(steps, min_size=12, max_size=20)
    ):
        now += step
        found.append(draw(st.sampled_from((None, 2**62))) if late is None else now - late)
    return found


times = about_sorted()
memories = st.tuples(st.sampled_from((0, 1, 3)), st.sampled_from((1, 6, 0, 30)))
"""For how long a query remembers a stream, and how much more the stream allows."""
blocks = st.sampled_from((None, 0, 1, 3))


def database(epoch_rows: int, tasks: int, storage: Path | None = None) -> hr.Database:
    settings = Settings(storage, RunSettings(epoch_rows, buckets=2), None)
    return hr.Database(lambda: InlineRunner(tasks), settings, Policy.open())


def rows_of(times: Sequence[int | None]) -> list[dict[str, Any]]:
    return [{"n": number, "price": number % 3, "ts": ts} for number, ts in enumerate(times)]


def usable(times: Sequence[int | None]) -> list[int | None]:
    """The timestamps of the rows that are not rejected."""
    return [None if ts is None or ts > 2**61 else ts for ts in times]


def define(db: hr.Database, origin: str, disorder: int, block: int | None, remember: int | None) -> None:
    """The queries over a stream, at one level of consistency."""
    db.execute(
        f"CREATE STREAM s (n BIGINT, price BIGINT, ts BIGINT) FROM {origin} "
        f"TIMESTAMP BY ts DISORDER {disorder}"
    )
    parts = [] if block is None else [f"BLOCK {block}"]
    parts += [] if remember is None else [f"REMEMBER {remember}"]
    level = f"CONSISTENCY ({', '.join(parts)})" if parts else ""
    for name, text in QUERIES.items():
        db.execute(f"CREATE QUERY {name} {level} AS {text}")


def departed(times: Sequence[int | None], disorder: int, remember: int) -> int:
    """How many rows are in time for the stream and not for the query, by the definition."""
    return len(late_rows(usable(times), remember)) - len(late_rows(usable(times), disorder))


@examples(3, 24)
@given(times, st.lists(st.integers(1, 4), max_size=8), memories, blocks, st.integers(1, 3))
def test_pushed_rows(
    times: list[int | None], cuts: list[int], memory: tuple[int, int], block: int | None, tasks: int
) -> None:
    remember, disorder = memory[0], sum(memory)
    block = None if block is None else min(block, remember)
    rows = rows_of(times)
    found: list[list[Any]] = []
    for declared, shorter in ((disorder, remember), (remember, None)):
        said: list[Any] = []
        with database(1000, tasks) as db:
            define(db, "push", declared, block, shorter)
            db.start()
            left = rows
            for cut in (*cuts, len(rows)):
                db.push("s", pa.Table.from_pylist(left[:cut], SCHEMA))
                left = left[cut:]
                said += [(db[name].heartbeat, db[name].horizon) for name in QUERIES]
            if shorter is not None:
                expected = departed(times, disorder, remember)
                event(f"some are left out: {expected > 0}")
                assert {db.status.query(name).departures for name in QUERIES} == {expected}
            db.stop()
            said += [db[name].changes().to_pylist() for name in QUERIES]
            said += [db[name].history().to_pylist() for name in QUERIES]
        found.append(said)
    assert found[0] == found[1]


class InterruptionError(Exception):
    """Ends a run between two epochs."""


@examples(3, 24)
@given(times, st.sampled_from((500_000, 4, 8, 1)), memories, st.integers(1, 4), st.integers(1, 6))
def test_files_and_restarts(
    times: list[int | None], epoch_rows: int, memory: tuple[int, int], tasks: int, epochs: int
) -> None:
    remember, disorder = memory[0], sum(memory)

    def interrupt(progress: hr.Progress) -> None:
        if progress.epoch == epochs:
            raise InterruptionError

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "input")
        folder.mkdir()
        write_parquet(rows_of(times), folder / "rows.parquet")
        origin = f"parquet OPTIONS (path '{folder}')"
        with database(epoch_rows, tasks, Path(place, "store")) as db:
            define(db, origin, disorder, 0, remember)
            try:
                db.run(interrupt)
            except InterruptionError:
                event("interrupted")
        with database(epoch_rows, tasks, Path(place, "store")) as db:
            define(db, origin, disorder, 0, remember)
            summary = db.run()
            assert summary.late == len(late_rows(usable(times), disorder))
            counts = {db.status.query(name).departures for name in QUERIES}
            assert counts == {departed(times, disorder, remember)}
            taken = db["taken"].history().column("n").to_pylist()
            late = late_rows(usable(times), remember)
            assert sorted(taken) == [
                place for place, ts in enumerate(usable(times)) if ts is not None and place not in late
            ]
            with database(1000, 1) as alone:
                define(alone, origin, remember, None, None)
                alone.run()
                for name in QUERIES:
                    assert db[name].history().to_pylist() == alone[name].history().to_pylist()


def remembered(elements: Sequence[Element], remember: int) -> list[Element]:
    """The elements that are in time for a memory, in order of arrival."""
    late = set(late_rows([ts for _, ts, _, _ in elements], remember))
    return [element for place, element in enumerate(elements) if place not in late]


@pytest.mark.parametrize("root", ROOTS)
@examples(2, 24)
@given(st.data(), BUCKETS, st.sampled_from((1, 3, 1000)), st.integers(0, 3))
def test_whole_plans(root: str, data: st.DataObject, buckets: int, epoch_rows: int, remember: int) -> None:
    case = data.draw(cases(root=root))
    known = {stream.name: stream for stream in case.streams}
    streams = case.reference_streams() | {
        name: Stream(stream.schema.names, remembered(stream.elements, min(remember, stream.disorder)))
        for name, stream in known.items()
    }
    weaker = remembering(case.plan, [Memory(name, remember) for name in known])
    horizon = Horizon(tuple(source.name for source in sources_of(case.plan)), data.draw(st.integers(0, 3)))
    queries = {"remembering": weaker, "weak": early(weaker, horizon), "strong": case.plan}
    readers = run_plans(queries, case.inputs(), buckets=buckets, epoch_rows=epoch_rows)
    check(case.plan, streams, [readers["remembering"].elements(), readers["weak"].elements()])
    needed = max((needed_disorder([ts for _, ts, _, _ in one.elements]) for one in case.streams), default=0)
    event(f"within its memory: {needed <= remember}")
    if needed <= remember:
        assert equivalent(readers["weak"].elements(), readers["strong"].elements())


@pytest.mark.parametrize("kind", KINDS)
@examples(2, 15)
@given(st.data(), BUCKETS, st.sampled_from((1, 3, 1000)), st.integers(0, DISORDER - 1))
def test_corrections(kind: str, data: st.DataObject, buckets: int, epoch_rows: int, remember: int) -> None:
    found = data.draw(corrected("s0", KINDS[kind]))
    plan = data.draw(FORMS)(data.draw(plans([found.leaf], depth=2)))
    inputs = {"s0": found.stream()}
    weaker = remembering(plan, [Memory("s0", remember)])
    queries = {"remembering": weaker, "weak": early(weaker, Horizon(("s0",), 0))}
    readers = run_plans(queries, inputs, buckets=buckets, epoch_rows=epoch_rows)
    whole = found.reference()
    streams = {"s0": Stream(whole.columns, remembered(whole.elements, remember))}
    check(plan, streams, [reader.elements() for reader in readers.values()])


def check(plan: Plan, streams: dict[str, Stream], answers: Sequence[Any]) -> None:
    """See that answers are those of the reference."""
    history = evaluate(plan, streams)
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
    for answer in answers:
        assert equivalent(answer, expected), (history, to_rows(canonical(answer)))


@pytest.mark.parametrize(("epoch_rows", "tasks"), [(1000, 2), (1000, 1), (4, 1)])
def test_a_row_is_judged_by_all_rows_before_it(epoch_rows: int, tasks: int, tmp_path: Path) -> None:
    """Also by those of another split, of another batch, and of an earlier epoch."""
    times = [10, 11, 12, 20, 15, 16, 21, 22]
    write_parquet(rows_of(times), tmp_path / "rows.parquet")
    with database(epoch_rows, tasks) as db:
        define(db, f"parquet OPTIONS (path '{tmp_path}')", 6, None, 2)
        assert db.run().epochs == (1 if epoch_rows > len(times) else 2)
        assert db.status.query("taken").departures == 2
        assert db["taken"].history().column("ts").to_pylist() == [10, 11, 12, 20, 21, 22]
