"""Any number of threads gives the same answers, states, dead letters and failures, to the last bit."""

from __future__ import annotations

import decimal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import to_rows
from headrace.history import canonical
from headrace.runtime.driver.endless.retries import run_to_end
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from how_many import examples
from property.plan_strategies import Case, cases
from property.relatives import relatives

THREADS = (1, 2, 7)
TEXTS = (
    "SELECT k, v, ts FROM s WHERE v % 3 = 1",
    "SELECT k, COUNT(*) AS n, SUM(v) AS x, AVG(f) AS mean, STDDEV(f) AS d FROM s [RANGE 500] GROUP BY k",
    "SELECT k, MIN(v) AS low, MAX(f) AS high FROM s [RANGE 700 SLIDE 100] GROUP BY k",
    "SELECT k, COUNT(DISTINCT v) AS n FROM s [RANGE 300] GROUP BY k",
    "SELECT DISTINCT k, v FROM s [RANGE 200]",
    "SELECT a.k, b.v FROM s [RANGE 20] a JOIN s [RANGE 30] b ON a.k = b.k AND a.v = b.v",
    "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE 50 PRECEDING) AS x FROM s",
    "SELECT k, v FROM s [ROWS 5]",
    "SELECT k, 100 / v AS part FROM s",
    "SELECT k, twice(v) AS x FROM s",
    "SELECT k, spread(v) AS x FROM s [RANGE 100] GROUP BY k",
    "SELECT k, v FROM s [RANGE 50] EXCEPT SELECT k, v FROM s [RANGE 40] WHERE v > 5",
)


def twice(values: pa.Array) -> pa.Array:
    return pa.array([2 * value for value in values.to_pylist()])


class Spread:
    """The difference of the largest value and the smallest."""

    def initialize(self) -> list[int]:
        return []

    def accumulate(self, state: list[int], value: int) -> list[int]:
        return [*state, value]

    def evaluate(self, state: list[int]) -> int:
        return max(state) - min(state)


@contextmanager
def switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@examples(6, 60)
@given(st.data(), cases(max_relations=1), st.sampled_from((1, 3, 7)), st.sampled_from((3, 1000)))
def test_plans_answer_alike(data: st.DataObject, case: Case, buckets: int, epoch_rows: int) -> None:
    related = data.draw(st.lists(relatives(case.plan), max_size=2))
    plans = {f"q{number}": plan for number, plan in enumerate((case.plan, *related))}
    found = []
    for threads in THREADS:
        store, runner = MemoryStore(), InlineRunner(threads=threads)
        run = Run(runner, store, case.inputs(), plans, RunSettings(epoch_rows, buckets=buckets))
        with switching():
            run_to_end(run)
        runner.close()
        readers = [ResultReader(name, form_of(plan), store, run.results) for name, plan in plans.items()]
        held = {
            (key, area): sum(part.rows for part in manifest[area])
            for key, manifest in run.present.known.state.items()
            for area in manifest
        }
        # As texts, in which NaN is NaN.
        answers = [str(to_rows(canonical(reader.elements()))) for reader in readers]
        found.append((answers, held, run.totals.dead_letters))
    assert found[1:] == [found[0]] * (len(THREADS) - 1)


@pytest.mark.slow("twelve queries over 30,000 rows, with three numbers of threads")
@pytest.mark.parametrize("epoch_rows", [4_000, 100_000])
def test_queries_over_many_rows_answer_alike(epoch_rows: int) -> None:
    rng = np.random.default_rng(7)
    rows = 30_000
    late = rng.integers(0, 8, rows)
    table = pa.table(
        {
            "k": rng.integers(0, 50, rows),
            "v": rng.integers(0, 9, rows),
            "f": rng.normal(size=rows),
            "ts": np.maximum(np.arange(rows) // 3 - late, 0),
        }
    )
    found = [answers(table, epoch_rows, threads) for threads in THREADS]
    assert found[1:] == [found[0]] * (len(THREADS) - 1)


def answers(table: pa.Table, epoch_rows: int, threads: int) -> list[Any]:
    """What queries say over a table, what they have left, and their dead letters."""
    with hr.connect(runner="inline", threads=threads, epoch_rows=epoch_rows) as db, switching():
        db.function("twice", twice, arguments=["BIGINT"], returns="BIGINT")
        db.aggregate("spread", Spread(), arguments=["BIGINT"], returns="BIGINT")
        db.stream("s", table, timestamp="ts", disorder=5)
        queries = [db.query(text) for text in TEXTS]
        db.run()
        letters = sorted(str(row) for row in db.dead_letters().to_pylist())
        return [sorted(map(str, query.history().to_pylist())) for query in queries] + [letters]


def test_code_of_users_runs_in_one_thread_at_a_time() -> None:
    running: list[int] = []
    most = []

    def slow(values: pa.Array) -> pa.Array:
        running.append(threading.get_ident())
        most.append(len(running))
        time.sleep(0.005)
        running.pop()
        return values

    with hr.connect(runner="inline", threads=4, epoch_rows=10_000) as db:
        db.function("slow", slow, arguments=["BIGINT"], returns="BIGINT")
        db.stream("s", pa.table({"v": range(20_000), "ts": range(20_000)}), timestamp="ts")
        query = db.query("SELECT slow(v) AS v, ts FROM s")
        db.run()
        assert query.history().num_rows == 20_000
    assert set(most) == {1}
    assert len(most) > 1


def test_functions_have_the_context_of_who_starts_the_run() -> None:
    def third(values: pa.Array) -> pa.Array:
        return pa.array([str(decimal.Decimal(value) / 3) for value in values.to_pylist()])

    with decimal.localcontext() as context, hr.connect(runner="inline", threads=4, epoch_rows=10_000) as db:
        context.prec = 6
        db.function("third", third, arguments=["BIGINT"], returns="STRING")
        db.stream("s", pa.table({"v": [1] * 20_000, "ts": range(20_000)}), timestamp="ts")
        query = db.query("SELECT third(v) AS v FROM s")
        db.run()
        assert set(query.history()["v"].to_pylist()) == {"0.333333"}


@pytest.mark.parametrize("threads", [1, 3])
def test_a_function_may_ask_a_database_with_functions(threads: int) -> None:
    def inner(values: pa.Array) -> pa.Array:
        with hr.connect(runner="inline", threads=threads) as other:
            other.function("twice", twice, arguments=["BIGINT"], returns="BIGINT")
            other.stream("s", pa.table({"v": values, "ts": range(len(values))}), timestamp="ts")
            query = other.query("SELECT twice(v) AS w, ts FROM s")
            other.run()
            return pa.array(sorted(query.history()["w"].to_pylist()), pa.int64())

    with hr.connect(runner="inline", threads=threads) as db:
        db.function("through", inner, arguments=["BIGINT"], returns="BIGINT", version="1")
        db.stream("s", pa.table({"v": range(9), "ts": range(9)}), timestamp="ts")
        query = db.query("SELECT through(v) AS w, ts FROM s")
        db.run()
        assert sorted(query.history()["w"].to_pylist()) == list(range(0, 18, 2))


def test_a_function_that_never_ends_holds_up_no_later_epoch() -> None:
    begun, never = threading.Event(), threading.Event()

    def hangs(values: pa.Array) -> pa.Array:
        begun.set()
        never.wait()
        return values

    try:
        with hr.connect(runner="inline", threads=3) as db:
            db.function("hangs", hangs, arguments=["BIGINT"], returns="BIGINT")
            db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
            db.query("SELECT k, hangs(SUM(v)) AS w FROM s [RANGE 5] GROUP BY k", name="q")
            other = db.query("SELECT k, SUM(v) AS w FROM s [RANGE 5] GROUP BY k", name="p")
            db.start()
            rows = pa.table(
                {"k": np.arange(20_000) % 50, "v": np.ones(20_000, np.int64), "ts": np.arange(20_000) // 100}
            )
            pushing = threading.Thread(target=lambda: suppressed(db, rows), daemon=True)
            pushing.start()
            assert begun.wait(60)
            with pytest.raises(hr.UserError, match="was given up"):
                db.stop(timeout=0.5)
            db.execute("DROP QUERY q")
            db.start()
            db.push("s", rows)
            assert other.history().num_rows
    finally:
        never.set()


def suppressed(db: hr.Database, rows: pa.Table) -> None:
    with suppress(hr.HeadraceError):
        db.push("s", rows)


def test_what_fails_in_a_thread_fails_the_query_and_no_other() -> None:
    with hr.connect(runner="inline", threads=4, epoch_rows=5_000) as db:
        db.stream("s", pa.table({"v": [2**62] * 20_000, "ts": range(20_000)}), timestamp="ts")
        failing, other = db.query("SELECT SUM(v) AS x FROM s [RANGE 9]"), db.query("SELECT v FROM s")
        db.run()
        with pytest.raises(hr.UserError, match="failed"):
            failing.history()
        assert sum(other.changes()["change"].to_pylist()) == 20_000


def test_a_store_goes_on_with_another_number_of_threads(tmp_path: Path) -> None:
    text = "SELECT k, COUNT(*) AS n FROM s [RANGE 40] GROUP BY k"
    for threads, begin in ((3, 0), (1, 100), (2, 200)):
        with hr.connect(runner="inline", threads=threads, storage=tmp_path) as db:
            if not begin:
                db.execute("CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
                db.execute(f"CREATE QUERY q AS {text}")
            db.start()
            for at in range(begin, begin + 100, 10):
                db.push("s", [{"k": ts % 4, "ts": ts} for ts in range(at, at + 10)])
            assert db["q"].snapshot(begin + 98).to_pydict() == {"k": [0, 1, 2, 3], "n": [10, 10, 10, 10]}


def test_threads_are_of_the_runner_in_this_process() -> None:
    with pytest.raises(hr.UserError, match="threads are of the runner inline"):
        hr.connect(runner="spark", threads=4)
    with pytest.raises(hr.UserError, match="threads must be at least 1"):
        hr.connect(runner="inline", threads=0)
