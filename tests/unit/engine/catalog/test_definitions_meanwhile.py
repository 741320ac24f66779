"""Definitions change while a query is brought from the past to the present."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import headrace as hr
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.run.core import Core
from headrace.errors import UserError
from headrace.runtime.driver.beside.starting_at import CatchUp

STREAM = "CREATE STREAM r (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL"
SUMS = "SELECT SUM(v) AS total FROM r [RANGE 50]"


class Paused:
    """Catching up that stops after some steps, without holding up the run or other queries.

    Args:
        monkeypatch: undoes it.
        steps: so many steps are taken before.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: int = 0) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        step, first = CatchUp.step, list[CatchUp]()
        left = iter(range(steps))

        def waits(catching_up: CatchUp) -> bool:
            if not first:
                first.append(catching_up)
            if self.go.is_set() or catching_up is not first[0] or next(left, None) is not None:
                return step(catching_up)
            self.reached.set()
            return True

        monkeypatch.setattr(CatchUp, "step", waits)


@contextmanager
def begun() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT MAX(v) AS total FROM r [RANGE 5]")
        db.start()
        for ts in range(1, 20):
            db.push("r", {"v": ts, "ts": ts})
        yield db


def in_a_thread(what: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(what())
        except UserError as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


@pytest.mark.parametrize(
    "text", [f"CREATE QUERY late FROM BEGINNING AS {SUMS}", f"CREATE OR REPLACE QUERY q AS {SUMS}"]
)
def test_others_define_and_drop_meanwhile(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with begun() as db:
        db.execute("CREATE QUERY gone AS SELECT v FROM r")
        paused = Paused(monkeypatch)
        thread, found = in_a_thread(lambda: db.execute(text))
        assert paused.reached.wait(20)
        db.execute("CREATE QUERY extra AS SELECT v FROM r; DROP QUERY gone")
        db.push("r", {"v": 100, "ts": 20})
        assert thread.is_alive()
        paused.go.set()
        thread.join(20)
        query = found[0][0]
        db.push("r", {"v": 7, "ts": 30})
        assert query.history().to_pylist()[-1]["total"] == sum(range(1, 20)) + 100
        assert {one.name for one in db.queries} == {"q", "extra"} | {query.name}
        # It answers from where the stream was, at 19, and has the row of then.
        assert db["extra"].history().num_rows == 2


def test_a_query_from_the_past_is_refused_whose_stream_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with begun() as db:
        paused = Paused(monkeypatch)
        thread, found = in_a_thread(lambda: db.execute(f"CREATE QUERY late FROM BEGINNING AS {SUMS}"))
        assert paused.reached.wait(20)
        db.execute(
            "CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY w AS SELECT v FROM s"
        )
        db.execute(f"DROP QUERY q; DROP STREAM r; {STREAM}")
        paused.go.set()
        thread.join(20)
        with pytest.raises(UserError, match="r was dropped, or is another one, since late began"):
            raise found[0]
        assert [one.name for one in db.queries] == ["w"]


def test_one_that_was_replaced_by_somebody_else_meanwhile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with begun() as db:
        paused = Paused(monkeypatch)
        thread, found = in_a_thread(lambda: db.execute(f"CREATE OR REPLACE QUERY q AS {SUMS}"))
        assert paused.reached.wait(20)
        db.execute("DROP QUERY q; CREATE QUERY q AS SELECT v FROM r")
        paused.go.set()
        thread.join(20)
        with pytest.raises(UserError, match="q was changed or dropped since the query"):
            raise found[0]
        db.push("r", [{"v": 7, "ts": 30}, {"v": 8, "ts": 31}])
        assert db["q"].history().to_pylist()[-1]["v"] == 7


def test_windows_that_begin_anew_meanwhile_refuse_one_that_has_read_rows_with_their_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = "SELECT COUNT(*) AS n FROM r [RANGE MIN 2, MAX 20]"
    with begun() as db:
        db.execute(f"CREATE QUERY sized AS {window}; ALTER QUERY sized SET (WINDOW 5)")
        for ts in range(20, 60):
            db.push("r", {"v": 1, "ts": ts})
        monkeypatch.setattr("headrace.runtime.driver.beside.starting_at.MOST_ROWS", 1)
        paused = Paused(monkeypatch, steps=2)
        thread, found = in_a_thread(lambda: db.execute(f"CREATE QUERY late FROM BEGINNING AS {window}"))
        assert paused.reached.wait(20)
        db.execute(f"DROP QUERY sized; CREATE QUERY anew STARTING NOW AS {window}")
        paused.go.set()
        thread.join(20)
        with pytest.raises(UserError, match="windows of r have begun anew meanwhile"):
            raise found[0]
        assert {one.name for one in db.queries} == {"q", "anew"}
        for ts in range(60, 100):
            db.push("r", {"v": 1, "ts": ts})
        assert db["anew"].snapshot(90).to_pylist() == [{"n": 20}]


def test_the_end_of_the_run_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    with begun() as db:
        paused = Paused(monkeypatch)
        thread, found = in_a_thread(lambda: db.execute(f"CREATE QUERY late FROM BEGINNING AS {SUMS}"))
        assert paused.reached.wait(20)
        db.stop()
        thread.join(20)
        assert "the database was stopped" in str(found[0])
        assert db.queries[0].name == "q"


def test_two_queries_without_names_at_one_time_get_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    take_effect = Core.change_when_ready

    def after_another(core: Core, make: Callable[[], Definitions], name: str) -> None:
        monkeypatch.undo()
        thread, other = in_a_thread(lambda: db.query(SUMS))
        thread.join()
        take_effect(core, make, name)
        assert {other[0].name, name} == {"query_2", "query_3"}

    with begun() as db:
        monkeypatch.setattr(Core, "change_when_ready", after_another)
        db.query(SUMS)
        assert [query.name for query in db.queries] == ["q", "query_3", "query_2"]
