"""CREATE OR REPLACE QUERY where rows are kept: the new answer is exact from the next instant on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
import headrace.runtime.store.segments as segments
from headrace.errors import UserError

STREAMS = "CREATE STREAM r (s BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2 RETAIN 40"
SHORT = "SELECT s, COUNT(*) AS n FROM r [RANGE 5] GROUP BY s"
LONG = "SELECT s, COUNT(*) AS n FROM r [RANGE 20] GROUP BY s"
OTHER = "SELECT s, MAX(ts) AS newest FROM r [RANGE 20] GROUP BY s"
ROWS = "SELECT s, COUNT(*) AS n FROM r [ROWS 4] GROUP BY s"
MANY = "SELECT s, COUNT(*) AS n FROM r [RANGE UNBOUNDED] GROUP BY s HAVING COUNT(*) > 6"
ONE = "SELECT s, COUNT(*) AS n FROM r [RANGE 5] WHERE s = 1 GROUP BY s"
TIMES = [3, 1, 6, 4, 9, 12, 11, 16, 15, 19, 24, 22, 27]
LATER = [26, 31, 30, 34, 70]


def at_each_instant(query: Any, last: int = 68) -> list[tuple[Any, ...]]:
    """The rows of a history, each cut into instants, up to one of them."""
    return sorted(
        (*(value for name, value in row.items() if name not in ("valid_from", "valid_to")), instant)
        for row in query.history().to_pylist()
        for instant in range(row["valid_from"], min(row["valid_to"] or last, last))
    )


def begun(folder: Path | None, query: str = SHORT, streams: str = STREAMS) -> hr.Database:
    db = hr.connect(runner="inline", storage=folder)
    db.execute(f"{streams}; CREATE QUERY q AS {query}; CREATE QUERY other AS SELECT s FROM r")
    db.start()
    for ts in TIMES:
        db.push("r", {"s": ts % 2, "ts": ts})
    return db


def told(query: str) -> list[tuple[Any, ...]]:
    """What a query says that was there from the first row on."""
    with begun(None, query) as db:
        end(db)
        return at_each_instant(db["q"])


def end(db: hr.Database) -> None:
    for ts in LATER:
        db.push("r", {"s": ts % 2, "ts": ts})


def both(at: int, old: str, new: str) -> list[tuple[Any, ...]]:
    """The old definition below an instant, and the new one from there on."""
    below = (row for row in told(old) if row[-1] < at)
    return sorted([*below, *(row for row in told(new) if row[-1] >= at)])


@pytest.mark.parametrize("new", [LONG, ROWS, ONE, MANY])
def test_the_new_answer_is_exact_from_where_the_old_one_is_final(new: str) -> None:
    with begun(None) as db:
        said = str(db.execute(f"EXPLAIN REPLACE q AS {new}")[0])
        assert "the new answer holds from 25 on\nit is brought to the present" in said
        db.execute(f"CREATE OR REPLACE QUERY q AS {new}")
        end(db)
        assert at_each_instant(db["q"]) == both(25, SHORT, new)
        assert not db["q"].gaps().num_rows


def test_the_second_one_takes_over_from_two_that_both_run() -> None:
    with begun(None, LONG) as db:
        db.execute("ALTER STREAM r RETAIN 10")
        db.push("r", {"s": 0, "ts": 28})
        db.execute(f"CREATE OR REPLACE QUERY q AS {LONG} HAVING COUNT(*) > 1")
        db.execute(f"CREATE OR REPLACE QUERY q AS {ONE}")
        end(db)
        with begun(None, LONG) as known, begun(None, ONE) as other:
            for one in (known, other):
                one.push("r", {"s": 0, "ts": 28})
                end(one)
            below = [row for row in at_each_instant(known["q"]) if row[-1] < 26]
            above = [row for row in at_each_instant(other["q"]) if row[-1] >= 26]
        assert at_each_instant(db["q"]) == sorted(below + above)


def test_two_replacements_follow_each_other_at_once() -> None:
    with begun(None) as db:
        db.execute(f"CREATE OR REPLACE QUERY q AS {LONG}; CREATE OR REPLACE QUERY q AS {ROWS}")
        end(db)
        assert at_each_instant(db["q"]) == both(25, SHORT, ROWS)


def test_an_answer_with_other_columns_begins_where_the_old_one_ended() -> None:
    with begun(None) as db:
        before = db["q"]
        db.execute(f"CREATE OR REPLACE QUERY q AS {OTHER}")
        end(db)
        assert at_each_instant(before) == [row for row in told(SHORT) if row[-1] < 25]
        assert at_each_instant(db["q"]) == [row for row in told(OTHER) if row[-1] >= 25]


def test_where_rows_are_missing_it_takes_over_when_both_have_all_of_theirs() -> None:
    with begun(None) as db:
        db.execute("ALTER STREAM r RETAIN 3")
        db.push("r", {"s": 0, "ts": 28})
        said = str(db.execute(f"EXPLAIN REPLACE q AS {LONG}")[0])
        assert "both run" in said
        assert "are kept" not in said


class Killed(BaseException):
    """What ends a run in the middle of a step, as a kill does."""


@pytest.mark.parametrize(
    ("module", "point", "counts"),
    [
        (segments, "segment.written", False),
        (driver, "change.begun", False),
        (segments, "commit.linked", True),
        (driver, "change.done", True),
    ],
)
def test_a_kill_leaves_the_one_or_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, point: str, counts: bool
) -> None:
    def cut(name: str) -> None:
        if name == point:
            raise Killed

    with begun(tmp_path / "store") as db, monkeypatch.context() as patch:
        patch.setattr(module, "reach", cut)
        with pytest.raises(UserError, match="Killed"):
            db.execute(f"CREATE OR REPLACE QUERY q AS {LONG}")
        with pytest.raises(Killed):
            db.stop()
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.start()
        assert ("RANGE 20" in str(db.execute("SHOW CREATE QUERY q")[0])) == counts
        end(db)
        assert at_each_instant(db["q"]) == both(25, SHORT, LONG if counts else SHORT)


def test_a_second_replacement_names_the_instant_of_the_first_where_rows_are_missing() -> None:
    with begun(None, LONG, streams=STREAMS.replace("RETAIN 40", "")) as db:
        db.push("r", {"s": 0, "ts": 28})
        first = str(db.execute(f"EXPLAIN REPLACE q AS {LONG} HAVING COUNT(*) > 1")[0])
        assert "the new answer holds from 48 on" in first
        db.execute(f"CREATE OR REPLACE QUERY q AS {LONG} HAVING COUNT(*) > 1")
        said = str(db.execute(f"EXPLAIN REPLACE q AS {LONG} HAVING COUNT(*) > 3")[0])
        assert "is being exchanged already, for one that takes over at 48" in said
        assert "it is exact from 48 on" in said


def test_a_replacement_uses_the_rows_that_are_kept_though_some_are_missing() -> None:
    with begun(None, LONG) as db:
        db.execute("ALTER STREAM r RETAIN 10")
        db.push("r", {"s": 0, "ts": 28})
        told_before = str(db.execute(f"EXPLAIN REPLACE q AS {OTHER}")[0])
        assert "it is brought to the present over the rows that are kept" in told_before
        (query,) = db.execute(f"CREATE OR REPLACE QUERY q AS {OTHER}")
        (gap,) = query.gaps().to_pylist()
        exact = gap["exact_from"]
        assert f"it is exact from {exact} on" in told_before
        assert 26 < exact < 28 + 20
        for ts in (31, 34, 55, 80):
            db.push("r", {"s": ts % 2, "ts": ts})
        found = [row for row in at_each_instant(query) if row[-1] >= exact]
    with begun(None, OTHER) as db:
        for ts in (28, 31, 34, 55, 80):
            db.push("r", {"s": ts % 2, "ts": ts})
        assert found == [row for row in at_each_instant(db["q"]) if row[-1] >= exact]


def test_a_resumed_query_says_nothing_up_to_where_the_kept_rows_are_enough() -> None:
    with begun(None, LONG) as db:
        db.execute("ALTER QUERY q PAUSE; ALTER STREAM r RETAIN 30")
        for ts in range(28, 100):
            db.push("r", {"s": ts % 2, "ts": ts})
        told_before = str(db.execute("EXPLAIN ALTER QUERY q RESUME")[0])
        db.execute("ALTER QUERY q RESUME")
        (gap,) = db["q"].gaps().to_pylist()
        since = gap["lacks_to"]
        assert "rows that are kept; it says nothing about the instants from 25 to before" in told_before
        assert 70 < since < 97
        assert gap["exact_from"] == since
        db.push("r", {"s": 0, "ts": 100})
        found = [row for row in at_each_instant(db["q"], 98) if row[-1] >= since]
        assert found[0][-1] == since
    with begun(None, LONG) as db:
        for ts in range(28, 101):
            db.push("r", {"s": ts % 2, "ts": ts})
        assert found == [row for row in at_each_instant(db["q"], 98) if row[-1] >= since]
