"""Queries that are added and answer over rows from before them, as users have them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
import headrace.runtime.driver.beside.starting_at as past
import headrace.runtime.driver.epoch.committed as driver
import headrace.runtime.driver.kept.results as sweeping
import headrace.runtime.store.segments as segments
from headrace.engine.database import Database
from headrace.errors import LanguageError, UserError
from headrace.time import MICROSECONDS, ManualClock
from how_many import how_many
from inside import run_of

BIDS = "CREATE STREAM bid (item STRING, price BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3"
COUNTS = "SELECT item, COUNT(*) AS n, SUM(price) AS total FROM bid [RANGE 5] GROUP BY item"
ROWS = [("vase", 3, 1), ("lamp", 5, 2), ("vase", 1, 4), ("lamp", 9, 3), ("vase", 2, 8), ("vase", 6, 6)]
LATER = [("lamp", 4, 9), ("vase", 7, 12), ("lamp", 1, 11), ("vase", 8, 20), ("", 0, 30)]


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline") as database:
        yield database


def bid(db: Database, rows: list[tuple[str, int, int]]) -> None:
    for item, price, ts in rows:
        db.push("bid", [{"item": item, "price": price, "ts": ts}])


def history(query: Any, since: int | None = None) -> list[tuple[object, ...]]:
    """The rows of a history from an instant on, each cut into instants."""
    return sorted(
        (*(value for name, value in row.items() if name not in ("valid_from", "valid_to")), instant)
        for row in query.history().to_pylist()
        for instant in range(row["valid_from"], row["valid_to"] or 40)
        if since is None or instant >= since
    )


@pytest.mark.parametrize(
    ("clause", "since"),
    [("FROM BEGINNING", None), ("STARTING AT 4", 4), ("STARTING AT -7", None), ("FROM -2", 3)],
)
def test_it_answers_as_a_query_that_was_there_from_the_first_row(
    db: Database, clause: str, since: int | None
) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    first = db.query(COUNTS, name="first")
    db.start()
    bid(db, [*ROWS, ("late", 1, 4)])
    [query] = db.execute(f"CREATE QUERY later {clause} AS {COUNTS}")
    begun = history(query)
    assert begun == history(first, since)
    bid(db, LATER)
    db.stop()
    assert history(query) == history(first, since)
    assert not [row for row in history(query) if row[0] == "late"]


def test_before_the_first_epoch_it_is_there_from_the_first_row(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN 1 ROWS")
    first = db.query(COUNTS, name="first")
    db.start()
    [query] = db.execute(f"CREATE QUERY later STARTING AT 100 AS {COUNTS}")
    bid(db, [*ROWS, *LATER])
    db.stop()
    assert history(first)
    assert history(query) == history(first)


def test_without_the_clause_it_answers_from_now_on(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    db.query(COUNTS, name="first")
    db.start()
    bid(db, ROWS)
    query = db.query(COUNTS)
    assert not history(query)


def test_the_reply_names_the_first_exact_instant(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN 2")
    first = db.query(COUNTS, name="first")
    db.start()
    bid(db, [*ROWS, ("vase", 1, 10)])
    # The heartbeat is 7. Rows up to 4 are gone; a row of 4 is counted up to 8.
    [query] = db.execute(f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
    assert repr(query) == (
        "<Query later (item STRING, n BIGINT, total BIGINT), final below 9; exact from 9 on>"
    )
    assert "all from 5 on" in str(db.execute("SHOW STREAMS")[0])
    bid(db, LATER)
    db.stop()
    assert history(query) == history(first, 9)


def test_rows_are_let_go_of_by_their_number(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN 4 ROWS")
    db.query(COUNTS)
    db.start()
    bid(db, ROWS)
    shown = str(db.execute("SHOW STREAMS")[0])
    assert "4 rows, " in shown
    assert "all from 3 on" in shown
    found = db.status.streams[0].retained
    assert found is not None
    assert (found.rows, found.since) == (4, 3)
    assert db.status.to_dict()["streams"][0]["retained"]["since"] == 3


def test_many_small_files_become_one(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    first = db.query(COUNTS, name="first")
    db.start()
    bid(db, [("vase", 1, ts) for ts in range(40)])
    kept = run_of(db).point("bid").retained
    assert kept is not None
    assert [file.rows for file in kept.files] == [16, 16, *[1] * 8]
    [query] = db.execute(f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
    db.stop()
    assert history(query) == history(first)


def test_a_window_of_rows_needs_so_many_rows(db: Database) -> None:
    last = "SELECT SUM(price) AS total FROM bid [ROWS 3]"
    db.execute(f"{BIDS} RETAIN 4 ROWS")
    first = db.query(last, name="first")
    db.start()
    bid(db, ROWS)
    # Of those from 3 on, which are all there, the third is that of 6.
    [query] = db.execute(f"CREATE QUERY later STARTING AT 1 AS {last}")
    assert "exact from 6 on" in repr(query)
    bid(db, LATER)
    db.stop()
    assert history(query) == history(first, 6)
    with pytest.raises(UserError, match="depends on rows of bid that are no longer kept"):
        _refused(last.replace("ROWS 3", "ROWS 5"))


def _refused(query: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{BIDS} RETAIN 4 ROWS")
        db.query(COUNTS)
        db.start()
        bid(db, ROWS)
        db.execute(f"CREATE QUERY later FROM BEGINNING AS {query}")


def test_several_streams_and_a_relation(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    db.execute("CREATE STREAM ask (item STRING, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN 100 ROWS")
    db.relation("owner", pa.table({"item": ["vase", "lamp"], "name": ["ann", "bob"]}), key="item")
    joined = (
        "SELECT b.item, b.price, o.name FROM bid [RANGE 9] AS b JOIN ask [RANGE 4] AS a ON a.item = b.item "
        "LEFT JOIN owner AS o ON o.item = b.item"
    )
    first = db.query(joined, name="first")
    db.start()
    for ts, item in ((2, "vase"), (5, "lamp"), (9, "vase")):
        bid(db, [row for row in ROWS if ts - 3 <= row[2] < ts])
        db.push("ask", [{"item": item, "ts": ts}])
    [query] = db.execute(f"CREATE QUERY later STARTING AT 4 AS {joined}")
    bid(db, LATER)
    db.push("ask", [{"item": "lamp", "ts": 13}, {"item": "", "ts": 30}])
    db.stop()
    assert history(query, 4)
    assert history(query) == history(first, 4)


def test_rows_on_which_it_fails_are_dead_letters(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    db.query(COUNTS, name="first")
    db.start()
    bid(db, ROWS)
    db.execute("CREATE QUERY later FROM BEGINNING AS SELECT 6 / (price - 9) AS x FROM bid")
    db.stop()
    [letter] = db.dead_letters().to_pylist()
    assert letter["query"] == "later"
    assert "zero" in letter["reason"]


def test_a_query_that_fails_does_not_join(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    first = db.query("SELECT COUNT(*) AS n FROM bid [RANGE 5]", name="first")
    db.start()
    bid(db, [("vase", 2**62, 1), ("vase", 2**62, 2), ("vase", 1, 9)])
    failing = "SELECT SUM(price) AS total FROM bid [RANGE 3]"
    with pytest.raises(UserError, match="later fails on rows that were kept"):
        db.execute(f"CREATE QUERY later FROM BEGINNING AS {failing}")
    assert [query.name for query in db.queries] == ["first"]
    bid(db, [("vase", 1, 20)])
    db.stop()
    assert history(first)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT item FROM other", "the rows of other are not kept"),
        ("SELECT reason FROM DEAD LETTERS OF bid", "dead letters of bid are not kept as input"),
        ("SELECT b.item FROM bid b JOIN rate r ON r.item = b.item", "what rate was before it was read again"),
    ],
)
def test_what_is_not_kept_is_named(db: Database, tmp_path: Path, query: str, reason: str) -> None:
    (tmp_path / "rate.csv").write_text("item,rate\nvase,1\n")
    db.execute(f"""
        {BIDS} RETAIN ALL;
        CREATE STREAM other (item STRING, ts BIGINT) FROM push TIMESTAMP BY ts;
        CREATE RELATION rate FROM csv OPTIONS (path '{tmp_path / "rate.csv"}') REFRESH ON DEMAND;
    """)
    db.query("SELECT item FROM bid UNION ALL SELECT item FROM other")
    db.start()
    bid(db, ROWS)
    db.push("other", [{"item": "vase", "ts": 1}])
    with pytest.raises(UserError, match=reason):
        db.execute(f"CREATE QUERY later FROM BEGINNING AS {query}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE QUERY q STARTING AT 'noon' AS SELECT item FROM bid", "not an instant of an integer"),
        ("CREATE QUERY q FROM -2 HOURS AS SELECT item FROM bid", "FROM - 2 HOURS has a unit"),
        ("CREATE QUERY q FROM 3 AS SELECT item FROM bid", "BEGINNING or a length of time is missing"),
        ("CREATE QUERY q STARTING 3 AS SELECT item FROM bid", "AT is missing"),
        ("CREATE QUERY q STARTING AT AS SELECT item FROM bid", "an instant is missing"),
        ("CREATE QUERY q FROM BEGINNING WARM AS SELECT item FROM bid", "no HEARTBEATS or WARM"),
        ("ALTER STREAM bid RETAIN x ROWS", "RETAIN takes a number of rows, not 'x'"),
        ("ALTER STREAM bid RETAIN 2 HOURS", "RETAIN 2 HOURS has a unit"),
        ("ALTER STREAM bid RETAIN", "the length after RETAIN is missing"),
    ],
)
def test_what_is_malformed_is_refused(db: Database, text: str, reason: str) -> None:
    db.execute(BIDS)
    with pytest.raises(LanguageError, match=reason):
        db.execute(text)


@pytest.mark.parametrize("level", ["MIDDLE", "(BLOCK 2)", "(BLOCK 0, REMEMBER 2)", "WEAK"])
@pytest.mark.parametrize("altered", [False, True])
@pytest.mark.parametrize("running", how_many([True], [False, True]))
def test_it_does_so_at_any_level(level: str, altered: bool, running: bool, tmp_path: Path) -> None:
    """Kept rows are read at STRONG, then the level changes; a store that is opened again knows it."""
    text = f"CREATE QUERY later FROM BEGINNING AS {COUNTS}"
    if altered:
        made = [text, f"ALTER QUERY later SET CONSISTENCY {level}"]
    else:
        made = [text.replace("later", f"later CONSISTENCY {level}")]
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{BIDS} RETAIN ALL; CREATE QUERY first AS {COUNTS}")
        db.start()
        bid(db, ROWS)
        for statement in made if running else []:
            db.execute(statement)
    with hr.connect(runner="inline", storage=tmp_path) as db:
        for statement in [] if running else made:
            db.execute(statement)
        db.start()
        db.execute(f"ALTER QUERY first SET CONSISTENCY {level}")
        bid(db, LATER[:3])
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.start()
        bid(db, LATER[3:4])
        first, later = db["first"], db["later"]
        assert later.horizon == first.horizon >= later.heartbeat
        for at in range(1, later.horizon):
            assert later.snapshot(at).equals(first.snapshot(at))
        assert history(later) == history(first)
        assert f"CONSISTENCY {level} FROM BEGINNING" in str(db.execute("SHOW CREATE QUERY later")[0])


def test_a_level_that_the_streams_do_not_allow_is_refused(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    with pytest.raises(LanguageError, match="REMEMBER 9 is longer than bid allows"):
        db.execute(f"CREATE QUERY later CONSISTENCY (REMEMBER 9) FROM BEGINNING AS {COUNTS}")
    with pytest.raises(UserError, match="no query later"):
        db["later"]


def test_a_query_that_cannot_come_to_its_level_leaves_nothing_behind(db: Database) -> None:
    db.execute(f"{BIDS} RETAIN ALL; CREATE QUERY first AS {COUNTS}")
    db.start()
    bid(db, ROWS)
    counted = "SELECT item, COUNT(*) AS n FROM bid [RANGE 4] GROUP BY item"
    sums = f"SELECT SUM(10 / (n - n)) AS x FROM ({counted}) t"
    with pytest.raises(UserError, match="an expression fails for a row that would be said early"):
        db.execute(f"CREATE QUERY later CONSISTENCY MIDDLE FROM BEGINNING AS {sums}")
    assert [query.name for query in db.queries] == ["first"]
    bid(db, LATER[:1])
    db.stop()


def test_rows_are_kept_from_the_statement_on_that_says_so(db: Database) -> None:
    db.execute(BIDS)
    first = db.query(COUNTS, name="first")
    db.start()
    bid(db, ROWS)
    db.execute("ALTER STREAM bid RETAIN ALL")
    bid(db, LATER[:3])
    # Rows up to 8 came before it, and are counted up to 12.
    [query] = db.execute(f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
    assert "exact from 13 on" in repr(query)
    bid(db, LATER[3:])
    db.stop()
    assert history(query) == history(first, 13)


def test_rows_that_are_taken_once_more_are_kept_once() -> None:
    clock, second = ManualClock(100), MICROSECONDS["SECOND"]
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("""
            CREATE STREAM s (ts TIMESTAMP, k BIGINT) FROM push TIMESTAMP BY ts DISORDER 5 SECONDS
                AT MOST 10 SECONDS AHEAD DEAD LETTERS KEEP ALL RETAIN ALL;
            CREATE QUERY first AS SELECT k FROM s;
            CREATE QUERY failing AS SELECT 6 / (k - 3) AS x FROM s;
        """)
        db.start()
        for at, k in ((1, 1), (20, 2), (2, 3)):
            db.push("s", [{"ts": datetime.fromtimestamp(at, UTC), "k": k}])
        clock.advance(15 * second)
        assert "1 of 2 dead letters of s became input" in str(db.execute("REPLAY DEAD LETTERS OF s")[0])
        [query] = db.execute("CREATE QUERY later FROM BEGINNING AS SELECT k FROM s")
        db.heartbeat("s", datetime.fromtimestamp(60, UTC))
        db.stop()
        assert sorted(query.history()["k"].to_pylist()) == [1, 2, 3]


def test_a_restart_goes_on_with_it(tmp_path: Path) -> None:
    for rows, clause in ((ROWS, ""), (LATER[:2], "STARTING AT 3"), (LATER[2:], "STARTING AT 3")):
        with hr.connect(runner="inline", storage=tmp_path / "store") as db:
            db.execute(f"{BIDS} RETAIN ALL")
            first = db.query(COUNTS, name="first")
            if clause:
                [query] = db.execute(f"CREATE QUERY later {clause} AS {COUNTS}")
            db.start()
            bid(db, rows)
            db.stop()
            if clause:
                assert "exact from 3 on" in repr(query)
                assert history(query) == history(first, 3)


def test_others_go_on_while_it_comes_to_the_present(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute(f"{BIDS} RETAIN 3 ROWS")
    first = db.query(COUNTS, name="first")
    db.start()
    bid(db, ROWS)
    pushing = threading.Thread(target=bid, args=(db, LATER[:4]))
    taken: list[tuple[int, int, int]] = []

    def step(query: past.CatchUp) -> bool:
        found = db.status.catching_up
        assert found is not None
        assert found.query == "later"
        taken.append((found.rows, found.left, db.status.epoch))
        if len(taken) == 2:
            pushing.start()
        # No further epoch of it before the rows that are pushed meanwhile are committed.
        return pushing.is_alive() or one_step(query)

    one_step = past.CatchUp.step
    monkeypatch.setattr(past.CatchUp, "step", step)
    monkeypatch.setattr(past, "MOST_ROWS", 1)
    [query] = db.execute(f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
    pushing.join()
    # Of the three rows that are kept the oldest does not matter, since others of its time are gone.
    assert taken[0] == (0, 2, 6)
    assert taken[-1] == (6, 0, 10)
    assert db.status.catching_up is None
    bid(db, LATER[4:])
    found = db.status.streams[0].retained
    db.stop()
    # Rows are let go of again once nobody reads them.
    assert found is not None
    assert found.rows == 3
    began = query.warm_start
    assert began is not None
    assert began.answers_from == 9
    assert history(query) == history(first, 9)


def test_a_run_that_stops_does_not_wait_for_it(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute(f"{BIDS} RETAIN ALL")
    first = db.query(COUNTS, name="first")
    db.start()
    bid(db, ROWS)
    begun = threading.Event()

    def never(query: past.CatchUp) -> bool:
        begun.set()
        return True

    monkeypatch.setattr(past.CatchUp, "step", never)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(db.execute, f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
        assert begun.wait(60)
        db.stop()
        with pytest.raises(UserError, match="the queries were not changed: the database was stopped"):
            asked.result()
    assert [one.name for one in db.queries] == ["first"]
    assert history(first)


class Killed(BaseException):
    """What ends a run in the middle of a step, as a kill does."""


@pytest.mark.parametrize(
    ("module", "point", "number", "counts"),
    [
        (segments, "segment.drafted", 1, False),
        (segments, "segment.written", 2, False),
        (sweeping, "sweep.begun", 1, False),
        (driver, "change.begun", 1, False),
        (segments, "commit.drafted", 1, False),
        (segments, "commit.linked", 1, True),
        (driver, "change.done", 1, True),
    ],
)
def test_one_that_is_killed_is_there_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, point: str, number: int, counts: bool
) -> None:
    store, reached = tmp_path / "store", list[str]()

    def cut(name: str) -> None:
        reached.append(name)
        if reached.count(point) == number and name == point:
            raise Killed

    with hr.connect(runner="inline", storage=store) as db:
        db.execute(f"{BIDS} RETAIN ALL")
        db.query(COUNTS, name="first")
        db.start()
        bid(db, ROWS)
        with monkeypatch.context() as patch:
            patch.setattr(module, "reach", cut)
            with pytest.raises(UserError, match="Killed"):
                db.execute(f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
            with pytest.raises(Killed):
                db.stop()
    with hr.connect(runner="inline", storage=store) as db:
        db.execute(f"{BIDS} RETAIN ALL")
        first = db.query(COUNTS, name="first")
        [query] = db.execute(f"CREATE QUERY later FROM BEGINNING AS {COUNTS}")
        db.start()
        assert db.differences.added == (() if counts else ("later",))
        bid(db, LATER)
        db.stop()
        assert history(query) == history(first)


@pytest.mark.parametrize("clause", ["RETAIN 2 HOURS", "DISORDER 2 HOURS"])
def test_a_unit_that_does_not_fit_is_refused_with_its_place(clause: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM r (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        known = str(db.execute("SHOW CREATE STREAM r")[0])
        with pytest.raises(LanguageError, match=f"1:14: {clause} has a unit") as refused:
            db.execute(f"ALTER STREAM r SET ({clause})")
        assert "7200" in str(refused.value.hint)
        assert str(db.execute("SHOW CREATE STREAM r")[0]) == known
