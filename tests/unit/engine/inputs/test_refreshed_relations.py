"""Relations that are read again while queries run, as users have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
import headrace.runtime.store.segments as segments
from headrace.engine.database import Database
from headrace.errors import LanguageError, SourceError, UserError
from headrace.time import ALWAYS
from watched_clock import SECOND, Clock

ORDERS = "CREATE STREAM orders (ts BIGINT, cur STRING) FROM push TIMESTAMP BY ts"
LOOK_UP = "SELECT o.cur, r.rate FROM orders o LEFT JOIN rates r ON r.cur = o.cur"


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    path = tmp_path / "rates.csv"
    path.write_text("cur,rate\neur,1\nusd,2\n")
    return path


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline", dialect="pipes") as database:
        yield database


def declare(db: Database, path: Path, refresh: str = "ON DEMAND") -> None:
    db.execute(
        f"CREATE RELATION rates KEY (cur) FROM csv OPTIONS (path '{path}') REFRESH {refresh}; {ORDERS}"
    )


def order(db: Database, *orders: tuple[int, str]) -> None:
    db.push("orders", [{"ts": ts, "cur": cur} for ts, cur in orders])


def found(query: Any) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in query.stream().to_pylist()]


def wait(clock: Clock, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds while the run looks at the clock."""
    for _ in range(100):
        if condition():
            return
        clock.wait_for_looks()
    raise AssertionError("it does not come to hold")


def test_a_statement_reads_the_files_again(db: Database, rates: Path) -> None:
    declare(db, rates)
    query = db.query(LOOK_UP, name="looked_up")
    db.start()
    order(db, (1, "eur"), (5, "usd"))
    rates.write_text("cur,rate\nusd,2\neur,10\nchf,3\n")
    assert db.execute("REFRESH RELATION rates") == ["rates has 3 rows from 5 on: 2 inserted, 1 deleted"]
    assert db.execute("REFRESH RELATION Rates") == ["rates has not changed: 3 rows"]
    order(db, (5, "chf"), (6, "eur"), (7, "chf"), (8, ""))
    shown = str(db.execute("SHOW RELATIONS")[0])
    assert "until read again, on demand" in shown
    assert "from 5 on: 2 inserted, 1 deleted" in shown
    db.stop()
    assert sorted(found(query), key=str) == sorted(
        [("eur", 1, 1), ("usd", 2, 5), ("chf", 3, 5), ("eur", 10, 6), ("chf", 3, 7)], key=str
    )


def test_nothing_that_was_answered_changes(db: Database, rates: Path) -> None:
    # The slower stream has not passed 3 yet, and the answer to the other query is final up to 50.
    declare(db, rates)
    db.execute("CREATE STREAM fast (ts BIGINT, cur STRING) FROM push TIMESTAMP BY ts")
    slow = db.query(LOOK_UP)
    db.start()
    order(db, (3, "eur"))
    fast = db.query("SELECT f.cur, r.rate FROM fast f JOIN rates r ON r.cur = f.cur")
    db.push("fast", [{"ts": 40, "cur": "eur"}, {"ts": 50, "cur": "eur"}])
    rates.write_text("cur,rate\neur,7\n")
    assert db.refresh("rates").at == 50
    order(db, (49, "eur"), (50, "eur"), (51, "eur"))
    db.push("fast", [{"ts": 51, "cur": "eur"}])
    db.stop()
    assert found(slow) == [("eur", 1, 3), ("eur", 1, 49), ("eur", 7, 50)]
    assert found(fast) == [("eur", 1, 40), ("eur", 7, 50)]


def test_rows_without_a_key_are_a_bag(db: Database) -> None:
    db.relation("r", pa.table({"k": [1, 1, 2]}), refresh="on demand")
    db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts")
    query = db.query("SELECT r.k, COUNT(*) AS n FROM s, r GROUP BY r.k")
    db.start()
    db.push("s", [{"ts": 1}])
    report = db.refresh("r", pa.table({"k": [1, 2, 2, None]}))
    assert (report.at, report.inserted, report.deleted, report.rows) == (1, 2, 1, 4)
    db.push("s", [{"ts": 2}])
    db.stop()
    assert sorted(row[0:2] for row in query.history().to_pandas().fillna(0).itertuples(index=False)) == [
        (0, 1),
        (1, 1),
        (2, 2),
    ]


def test_early_answers_above_a_join_do_not_wait_for_it(db: Database, rates: Path) -> None:
    """Until it is read again a relation is what it was; a refresh that counts earlier corrects them."""
    declare(db, rates)
    db.execute("""
        ALTER STREAM orders DISORDER 10;
        CREATE QUERY total CONSISTENCY MIDDLE AS
          SELECT SUM(r.rate) AS total, COUNT(*) AS n FROM orders [RANGE 5] o JOIN rates r ON r.cur = o.cur
    """)
    query = db["total"]
    db.start()
    order(db, (20, "eur"), (23, "usd"))
    assert (query.heartbeat, query.horizon) == (13, 24)
    assert query.snapshot(23).to_pylist() == [{"total": 3, "n": 2}]
    rates.write_text("cur,rate\neur,1\nusd,7\n")
    db.execute("REFRESH RELATION rates")
    assert query.snapshot(23).to_pylist() == [{"total": 8, "n": 2}]
    order(db, (16, "usd"), (40, "gbp"))
    db.stop()
    assert query.history().filter(pc.field("n") > 1).to_pydict()["total"] == [8, 8]


def test_what_cannot_be_read_changes_nothing(db: Database, rates: Path) -> None:
    declare(db, rates)
    query = db.query(LOOK_UP)
    db.start()
    order(db, (1, "eur"))
    rates.write_text("cur,rate\neur,5\neur,6\n")
    with pytest.raises(UserError, match=r'two rows of rates have the key \{"cur": "eur"\}'):
        db.refresh("rates")
    rates.write_text("cur\neur\n")
    with pytest.raises(SourceError, match="rate"):
        db.refresh("rates")
    rates.unlink()
    with pytest.raises(SourceError):
        db.execute("REFRESH RELATION rates")
    order(db, (2, "eur"), (3, "eur"))
    db.stop()
    assert found(query) == [("eur", 1, 1), ("eur", 1, 2)]


def test_rows_that_cannot_be_read_are_dead_letters(db: Database, rates: Path) -> None:
    columns = "(cur STRING, rate BIGINT)"
    db.execute(f"CREATE RELATION rates {columns} FROM csv OPTIONS (path '{rates}') REFRESH ON DEMAND")
    db.execute(ORDERS)
    db.query(LOOK_UP)
    rates.write_text("cur,rate\neur,x\nusd,2\n")
    db.start()
    order(db, (1, "eur"))
    assert db.dead_letters().num_rows == 1
    rates.write_text("cur,rate\neur,3\nusd,y\nchf,z\n")
    report = db.refresh("rates")
    assert (report.inserted, report.deleted, report.rejected) == (1, 1, 2)
    db.stop()
    assert db.dead_letters().num_rows == 3


def test_by_the_clock(rates: Path) -> None:
    clock = Clock()
    with hr.connect(runner="inline", dialect="pipes", clock=clock) as db:
        declare(db, rates, "EVERY 5 MINUTES")
        query = db.query(LOOK_UP)
        db.start()
        order(db, (1, "eur"))
        rates.write_text("cur,rate\neur,5\n")
        clock.jump(299)
        order(db, (2, "eur"))
        assert "inserted" not in str(db.execute("SHOW RELATIONS")[0])
        clock.advance(SECOND)
        wait(clock, lambda: "from 2 on: 1 inserted, 2 deleted" in str(db.execute("SHOW RELATIONS")[0]))
        order(db, (3, "eur"))
        rates.unlink()
        clock.advance(300 * SECOND)
        wait(clock, lambda: "rates.csv" in db.problems.get("rates", ""))
        order(db, (4, "eur"))
        rates.write_text("cur,rate\neur,6\n")
        clock.advance(300 * SECOND)
        wait(clock, lambda: not db.problems)
        order(db, (5, "eur"), (6, ""))
        assert "every 5 MINUTES" in str(db.execute("SHOW RELATIONS")[0])
        db.stop()
        # What is read by the clock holds from the heartbeat on, which is that of the last order.
        assert found(query) == [("eur", 1, 1), ("eur", 5, 2), ("eur", 5, 3), ("eur", 6, 4), ("eur", 6, 5)]


def test_a_function_makes_the_table(db: Database) -> None:
    tables = iter([pa.table({"cur": ["eur"], "rate": [rate]}) for rate in (1, 1, 2)])
    db.relation("rates", lambda: next(tables), key="cur", refresh="1 hour")
    db.execute(ORDERS)
    query = db.query(LOOK_UP)
    db.start()
    order(db, (1, "eur"))
    assert db.refresh("rates").at == 1
    with pytest.raises(UserError, match="rates cannot be read: StopIteration"):
        db.refresh("rates")
    order(db, (2, "eur"), (3, ""))
    db.stop()
    assert found(query) == [("eur", 2, 1), ("eur", 2, 2)]


def test_queries_that_come_and_go(db: Database, rates: Path) -> None:
    declare(db, rates)
    first = db.query(LOOK_UP)
    db.start()
    order(db, (1, "eur"))
    rates.write_text("cur,rate\neur,5\n")
    db.refresh("rates")
    rates.write_text("cur,rate\neur,6\n")
    # It begins with what was read last, not with what the file has by now.
    second = db.query(LOOK_UP)
    order(db, (2, "eur"))
    db.refresh("rates")
    order(db, (3, "eur"), (4, ""))
    assert found(first) == [("eur", 5, 1), ("eur", 6, 2), ("eur", 6, 3)]
    assert found(second) == [("eur", 6, 2), ("eur", 6, 3)]
    db.drop(first.name)
    db.drop(second.name)
    with pytest.raises(UserError, match="no query reads rates"):
        db.refresh("rates")
    rates.write_text("cur,rate\neur,7\n")
    third = db.query(LOOK_UP)
    order(db, (5, "eur"), (6, ""))
    db.stop()
    assert found(third) == [("eur", 7, 5)]


def test_before_any_row_it_is_replaced(db: Database, rates: Path) -> None:
    declare(db, rates)
    query = db.query(LOOK_UP)
    db.start()
    assert db.refresh("rates").at is None
    rates.write_text("cur,rate\neur,5\n")
    assert db.refresh("rates").at == ALWAYS
    assert "from the beginning on" in str(db.execute("SHOW RELATIONS")[0])
    order(db, (1, "eur"), (2, ""))
    db.stop()
    assert found(query) == [("eur", 5, 1)]


def test_beside_streams_that_end_it_is_constant(db: Database, rates: Path) -> None:
    db.execute(f"CREATE RELATION rates FROM csv OPTIONS (path '{rates}') REFRESH EVERY 1 SECOND")
    db.stream("orders", pa.table({"ts": [1, 2], "cur": ["eur", "chf"]}), timestamp="ts")
    query = db.query(LOOK_UP)
    db.run()
    assert found(query) == [("eur", 1, 1), ("chf", None, 2)]
    with pytest.raises(LanguageError, match="no endless run is going on"):
        db.refresh("rates")


FILE = "CREATE RELATION r FROM csv OPTIONS (path 'x.csv')"


class Killed(BaseException):
    """What ends a run in the middle of a step, as a kill does."""


@pytest.mark.parametrize(
    ("module", "point", "number", "counts"),
    [
        (segments, "segment.drafted", 1, False),
        (segments, "segment.written", 1, False),
        (segments, "segment.written", 2, False),
        (driver, "epoch.reported", 1, False),
        (segments, "commit.drafted", 1, False),
        (segments, "commit.linked", 1, True),
    ],
)
def test_a_refresh_that_is_killed_counts_or_does_not(
    tmp_path: Path,
    rates: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    point: str,
    number: int,
    counts: bool,
) -> None:
    store = tmp_path / "store"
    reached: list[str] = []

    def cut(name: str) -> None:
        reached.append(name)
        if reached.count(point) == number and name == point:
            raise Killed

    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        declare(db, rates)
        db.query(LOOK_UP, name="q")
        db.start()
        order(db, (1, "eur"))
        rates.write_text("cur,rate\neur,5\n")
        with monkeypatch.context() as patch:
            patch.setattr(module, "reach", cut)
            with pytest.raises(UserError, match="Killed"):
                db.refresh("rates")
            with pytest.raises(Killed):
                db.stop()
    rates.write_text("cur,rate\neur,9\n")
    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        declare(db, rates)
        query = db.query(LOOK_UP, name="q")
        db.start()
        order(db, (2, "eur"))
        assert db.refresh("rates").at == 2
        order(db, (3, "eur"), (4, ""))
        db.stop()
        before = 5 if counts else 1
        assert found(query) == [("eur", before, 1), ("eur", 9, 2), ("eur", 9, 3)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"{FILE} REFRESH", "REFRESH does not know"),
        (f"{FILE} REFRESH EVERY 5", "EVERY 5 needs a unit"),
        (
            "CREATE RELATION r FROM csv OPTIONS (path 'x.csv') VALID FROM a TO b REFRESH ON DEMAND",
            "not refreshed",
        ),
        (
            "CREATE RELATION r (k BIGINT, op STRING, ts BIGINT) KEY (k) FROM push "
            "CHANGES BY op TIMESTAMP BY ts REFRESH ON DEMAND",
            "not refreshed",
        ),
        ("REFRESH rates", "RELATION"),
        ("REFRESH RELATION rate", "there is no relation rate"),
        ("REFRESH RELATION orders", "orders is not a relation that is refreshed"),
        ("REFRESH RELATION rates", "no endless run"),
        ("SELECT * FROM rates", "query_1 reads none"),
    ],
)
def test_what_is_refused(db: Database, rates: Path, text: str, error: str) -> None:
    declare(db, rates)
    with pytest.raises(LanguageError, match=error):
        db.execute(text)


def test_streams_that_count_other_instants_need_another_relation(db: Database, rates: Path) -> None:
    declare(db, rates)
    db.query(LOOK_UP)
    db.execute("CREATE STREAM timed (ts TIMESTAMP, cur STRING) FROM push TIMESTAMP BY ts")
    with pytest.raises(LanguageError, match="reads it with streams timed by an integer"):
        db.query("SELECT t.cur, r.rate FROM timed t JOIN rates r ON r.cur = t.cur")


@pytest.mark.parametrize("refresh", ["sometimes", "5", "0 seconds"])
def test_when_to_refresh_is_on_demand_or_a_length(db: Database, refresh: str) -> None:
    with pytest.raises(UserError, match=refresh):
        db.relation("r", pa.table({"k": [1]}), refresh=refresh)
    with pytest.raises(UserError, match="not refreshed"):
        db.relation("r", pa.table({"a": [1], "b": [2]}), valid=("a", "b"), refresh="on demand")


def test_beside_streams_that_end_and_those_that_do_not(db: Database, rates: Path) -> None:
    declare(db, rates)
    db.stream("old", pa.table({"ts": [1, 2], "cur": ["eur", "chf"]}), timestamp="ts")
    ended = db.query("SELECT o.cur, r.rate FROM old o JOIN rates r ON r.cur = o.cur")
    db.start()
    query = db.query(LOOK_UP)
    order(db, (1, "eur"))
    assert ended.stream().to_pylist() == [{"cur": "eur", "rate": 1, "ts": 1}]
    for rate in (5, 6):
        rates.write_text(f"cur,rate\neur,{rate}\nusd,2\n")
        report = db.refresh("rates")
        assert (report.inserted, report.deleted) == (1, 1)
        order(db, (rate, "eur"))
    order(db, (7, "usd"), (8, ""))
    shares = {part.name: part.share for part in db.status.streams}
    db.stop()
    assert found(query) == [("eur", 5, 1), ("eur", 6, 5), ("eur", 6, 6), ("usd", 2, 7)]
    assert shares["rates"] is None
