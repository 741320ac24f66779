"""The history of a query names the sizes of windows within bounds that its rows were made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.algebra.tunings.in_force import sized_windows
from headrace.errors import LanguageError
from headrace.time import INFINITY

STREAM = "CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
COUNTED = "SELECT COUNT(*) AS n FROM s WINDOW(RANGE MIN 3, MAX 8)"


def started(text: str, storage: Path | None = None, **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", buckets=2, storage=storage, **options)
    db.execute(f"{STREAM}CREATE QUERY q AS {text}")
    db.start()
    return db


def push(db: hr.Database, *instants: int) -> None:
    assert db.push("s", [{"k": at % 2, "ts": at} for at in instants])


def sizes(query: Any, at: int, **options: Any) -> list[tuple[str, int, int | None]] | None:
    """The kinds, sizes and beginnings that the row at an instant names."""
    (row,) = [
        row
        for row in query.history(tunings=True, **options).to_pylist()
        if row["valid_from"] <= at and (row["valid_to"] is None or at < row["valid_to"])
    ]
    named = row["tunings"]
    return None if named is None else [(one["kind"], one["size"], one["since"]) for one in named]


def test_a_row_names_each_size_that_its_rows_may_have() -> None:
    with started(COUNTED) as db:
        push(db, *range(20))
        db.execute("ALTER QUERY q SET (WINDOW 3)")
        push(db, *range(20, 40))
        eight, three = ("window", 8, None), ("window", 3, 20)
        assert sizes(db["q"], 10) == [eight]
        assert [sizes(db["q"], at) for at in (19, 20, 26, 27)] == [[eight], *[[eight, three]] * 2, [three]]
        table = db["q"].history(tunings=True)
        assert table.column_names == ["n", "valid_from", "valid_to", "tunings"]
        # Rows are cut where other sizes count.
        assert [row["valid_from"] for row in db["q"].history().to_pylist()] == [*range(8), 23, 24, 25, 26, 27]
        assert table["valid_from"].to_pylist() == [*range(8), 20, 23, 24, 25, 26, 27]
        assert table["tunings"].to_pylist()[0] == [
            {"streams": "s", "kind": "window", "smallest": 3, "largest": 8, "size": 8, "since": None}
        ]
        assert len(db["q"].history(tunings=True, as_of=1)) == 8


def test_a_row_has_its_granule_for_as_long_as_it_is_in_the_window() -> None:
    with started(f"{COUNTED} GRANULARITY(COARSEST 2, FINEST 1)") as db:
        push(db, *range(11))
        db.execute("ALTER QUERY q SET (GRANULARITY 2)")
        push(db, *range(11, 16), 17, 18, 30)
        # Rows of up to 11 have the finer granule, and stay for 8.
        finer, coarser = ("granule", 1, None), ("granule", 2, 12)
        assert [one for one in sizes(db["q"], 18) or [] if one[0] == "granule"] == [finer, coarser]


def test_windows_above_reach_further_back() -> None:
    with started("SELECT MAX(n) AS m FROM (SELECT COUNT(*) AS n FROM s WINDOW(RANGE MIN 3, MAX 8) "
                 "GRANULARITY(4)) WINDOW(RANGE 20)") as db:  # fmt: skip
        ((_, back),) = sized_windows(db["q"].plan)
        assert back == 19 + 3 + 7
    with started("SELECT COUNT(*) AS n FROM s WINDOW(ROWS MIN 1, MAX 3)") as db:
        assert [back for _, back in sized_windows(db["q"].plan)] == [INFINITY]
        push(db, *range(10))
        db.execute("ALTER QUERY q SET (WINDOW 1 ROWS)")
        push(db, *range(10, 40))
        assert sizes(db["q"], 30) == [("rows", 3, None), ("rows", 1, 10)]


def test_a_query_without_bounds_has_no_sizes() -> None:
    with started("SELECT COUNT(*) AS n, 1 AS tunings FROM s [RANGE 5]") as db:
        push(db, 1, 9)
        found = db["q"].history(tunings=True)
        assert found.column_names[-1] != "tunings"
        assert found.column(found.num_columns - 1).to_pylist() == [[]]


def test_a_plan_that_was_replaced_had_other_windows(tmp_path: Path) -> None:
    with started(COUNTED, tmp_path) as db:
        push(db, *range(20))
        db.execute("ALTER QUERY q SET (WINDOW 5)")
        push(db, *range(20, 30))
        old = db["q"]
        db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) + 0 AS n FROM s WINDOW(RANGE MIN 3, MAX 8)")
        push(db, *range(30, 50))
        five = ("window", 5, 20)
        assert sizes(db["q"], 10) == [("window", 8, None)]
        assert (sizes(db["q"], 48) or [])[-1] == five
        db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) AS n FROM s WINDOW(RANGE MIN 2, MAX 9)")
        push(db, *range(50, 100))
        for query in (db["q"], old):
            assert (sizes(query, 10), sizes(query, 40)) == (None, None)
            assert sizes(query, 98) == [("window", 9, None)]
        db.execute("ALTER QUERY q PAUSE")
        assert sizes(db["q"], 10) is None
        db.execute("ALTER QUERY q RESUME")
        push(db, *range(100, 130))
        assert sizes(db["q"], 10) is None
    stored = hr.open(tmp_path)["q"]
    assert (sizes(stored, 10), sizes(stored, 98)) == (None, [("window", 9, None)])
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.start()
        assert (sizes(db["q"], 10), sizes(db["q"], 98)) == (None, [("window", 9, None)])
        dropped = db["q"]
        db.execute("DROP QUERY q")
        assert sizes(dropped, 98) is None


FAR = "SELECT MAX(n) AS n FROM (SELECT COUNT(*) AS n FROM s WINDOW(RANGE MIN 3, MAX 8)) [RANGE 40] u"


def test_a_plan_that_was_replaced_may_have_looked_back_further() -> None:
    """The windows are the same, yet the rows of before may have sizes that the new plan no longer names."""
    with started(FAR) as db:
        push(db, *range(50))
        db.execute("ALTER QUERY q SET (WINDOW 3)")
        push(db, *range(50, 85))
        (far,) = [row for row in db["q"].history().to_pylist() if row["valid_from"] <= 70 < row["valid_to"]]
        assert far["n"] == 8, "larger than any window of 3"
        eight, three = ("window", 8, None), ("window", 3, 50)
        assert sizes(db["q"], 70) == [eight, three]
        db.execute(f"CREATE OR REPLACE QUERY q AS {COUNTED}")
        assert sizes(db["q"], 70) is None
        push(db, *range(85, 150))
        assert (sizes(db["q"], 70), sizes(db["q"], 148)) == (None, [three])
        # Further back again: what there was is named at least.
        db.execute(f"CREATE OR REPLACE QUERY q AS {FAR}")
        push(db, *range(150, 250))
        assert (sizes(db["q"], 70), sizes(db["q"], 148), sizes(db["q"], 248)) == (None, [three], [three])


def test_sizes_that_a_paused_answer_has_are_kept() -> None:
    """Another query goes on with the windows, and looks back less far."""
    with started(FAR) as db:
        db.execute(f"CREATE QUERY other AS {COUNTED}")
        push(db, *range(10))
        db.execute("ALTER QUERY q SET (WINDOW 5)")
        push(db, *range(10, 30))
        db.execute("ALTER QUERY q SET (WINDOW 3)")
        push(db, *range(30, 60))
        before = sizes(db["q"], 58)
        assert before == [("window", 5, 10), ("window", 3, 30)]
        db.execute("SET retain_epochs = 2; ALTER QUERY q PAUSE")
        for begin in range(60, 200, 20):
            push(db, *range(begin, begin + 20))
            db.execute(f"ALTER QUERY other SET (WINDOW {4 + begin // 20 % 2})")
        assert (sizes(db["q"], 58) or [])[:2] == before


def test_sizes_that_answers_no_longer_have_are_forgotten() -> None:
    with started(COUNTED) as db:
        db.execute("SET retain_epochs = 2")
        for begin in range(0, 400, 20):
            push(db, *range(begin, begin + 20))
            db.execute(f"ALTER QUERY q SET (WINDOW {3 + begin // 20 % 2})")
        rows = db["q"].history(tunings=True).to_pylist()
        oldest = rows[0]["tunings"][0]["since"]
        assert 0 < oldest <= rows[0]["valid_from"] - 7, "all that counts for the oldest row is known"
        lines = str(db.execute("SHOW TUNINGS FOR q")[0]).splitlines()
        assert lines[2].endswith("sizes from before are forgotten")
        assert len(lines) < 10


def test_show_tunings_of_a_query() -> None:
    with started(f"{COUNTED} GRANULARITY(COARSEST 4, FINEST 2)") as db:
        push(db, *range(10))
        db.execute("ALTER QUERY q SET (WINDOW 3)")
        push(db, *range(10, 20))
        db.execute("ALTER QUERY q SET (WINDOW 5); ALTER QUERY q SET (GRANULARITY 4)")
        assert str(db.execute("SHOW TUNINGS FOR QUERY Q")[0]).splitlines() == [
            "windows_of     min  max  size  since  until  why",
            "-------------  ---  ---  ----  -----  -----  ---",
            "s GRANULARITY  2    4    2            21     ",
            "s GRANULARITY  2    4    4     21            ",
            "s              3    8    8            10     ",
            "s              3    8    3     10     20     ",
            "s              3    8    5     20            ",
            "(5 rows)",
        ]
        with pytest.raises(LanguageError, match="there is no query r"):
            db.execute("SHOW TUNINGS FOR r")
