"""ALTER QUERY name SET (GRANULARITY length) and SET (WINDOW n ROWS): what else may change within bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import LanguageError

STREAMS = """
CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE STREAM r (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
"""
GRANULAR = "SELECT COUNT(*) AS n FROM s [RANGE 10] GRANULARITY(COARSEST 12, FINEST 2)"
LAST = "SELECT COUNT(*) AS n FROM s [ROWS MIN 2, MAX 8]"
EACH = "SELECT k, COUNT(*) AS n FROM s [PARTITION BY k ROWS MIN 2, MAX 8] GROUP BY k"


def database(storage: Path | None = None) -> hr.Database:
    return hr.connect(runner="inline", buckets=2, storage=storage)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        made.execute(f"{STREAMS}CREATE QUERY q AS {GRANULAR}; CREATE QUERY l AS {LAST}")
        made.start()
        yield made


def push(db: hr.Database, *times: int, stream: str = "s", k: int = 1) -> None:
    assert db.push(stream, [{"k": k, "ts": at} for at in times])


def counts(db: hr.Database, query: str, *instants: int) -> list[int]:
    found = [db[query].snapshot(at).to_pylist() for at in instants]
    return [rows[0]["n"] if rows else 0 for rows in found]


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def refused(db: hr.Database, text: str) -> tuple[str, str | None]:
    with pytest.raises(LanguageError) as found:
        db.execute(text)
    return found.value.message, found.value.hint


def test_rows_come_and_go_at_multiples_of_the_granule_that_there_is_when_they_come(db: hr.Database) -> None:
    push(db, *range(7))
    # 12 is a multiple of 2: it need not wait for one.
    assert told(db, "ALTER QUERY q SET (GRANULARITY 12)") == "the granule of s is 12 for rows from 8 on"
    push(db, *range(7, 31))
    # The rows of 8 to 12 come at 12 and leave at 24, at which those of 15 to 24 come.
    assert counts(db, "q", 6, 7, 11, 12, 13, 14, 23, 24) == [7, 7, 7, 10, 10, 8, 5, 10]
    # 3 is no multiple of 12: it waits for one. A finer one takes its place there.
    assert "is no multiple of FINEST 2" in refused(db, "ALTER QUERY q SET (GRANULARITY 3)")[0]
    assert told(db, "ALTER QUERY q SET (GRANULARITY 6)") == "the granule of s is 6 for rows from 36 on"
    assert told(db, "ALTER QUERY q SET GRANULARITY 2") == "the granule of s is 2 for rows from 36 on"
    push(db, *range(31, 80))
    assert counts(db, "q", 36, 37, 50, 51, 52) == [10] * 5


def test_answers_are_exact_at_multiples_of_the_coarsest_granule(db: hr.Database) -> None:
    for step, granule in enumerate((12, 4, 6, 2, 12, 2, 4)):
        push(db, *range(20 * step, 20 * step + 20))
        db.execute(f"ALTER QUERY q SET (GRANULARITY {granule})")
    assert counts(db, "q", *range(12, 130, 12)) == [10] * 10


def test_a_window_of_rows_is_shorter_when_the_next_row_comes_and_grows_row_by_row(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY each AS {EACH}")
    push(db, *range(20))
    push(db, 19, k=2)
    assert told(db, "ALTER QUERY l SET (WINDOW 3 ROWS)").startswith(
        "the window of rows of s is 3 ROWS for rows from 20 on; so it is in each, with the same bounds"
    )
    # A late row pushes out what it would have pushed out in time.
    push(db, 18, 20, 21, 22, 23)
    assert counts(db, "l", 18, 19, 20) == [8, 8, 3]
    db.execute("ALTER QUERY l SET (WINDOW 8 ROWS)")
    push(db, *range(24, 40))
    assert counts(db, "l", 23, 24, 25, 28, 29) == [3, 4, 5, 8, 8]
    # No row of 2 has come that would push out one.
    assert sorted(row["n"] for row in db["each"].snapshot(21).to_pylist()) == [1, 3]


def test_state_falls_with_the_rows_that_come(db: hr.Database) -> None:
    db.execute("CREATE QUERY long AS SELECT COUNT(*) AS n FROM r [ROWS MIN 10, MAX 1000]")

    def rows_kept() -> int:
        return sum(part.state_rows for part in db.status.operators if "RowWindow ROWS MIN 10" in part.text)

    push(db, *range(1200), stream="r")
    assert rows_kept() >= 1000
    db.execute("ALTER QUERY long SET (WINDOW 10 ROWS)")
    push(db, *range(1200, 1210), stream="r")
    assert rows_kept() <= 20


def test_sizes_are_shown(db: hr.Database) -> None:
    both = "SELECT COUNT(*) AS n FROM s [RANGE MIN 3, MAX 8] GRANULARITY(COARSEST 12, FINEST 2)"
    db.execute(f"CREATE QUERY both AS {both}")
    push(db, 4)
    db.execute("ALTER QUERY both SET (WINDOW 5); ALTER QUERY both SET (GRANULARITY OF s 4)")
    db.execute("ALTER QUERY l SET (WINDOW OF S 5 ROWS)")
    assert told(db, "SHOW TUNINGS").splitlines()[2:5] == [
        "s GRANULARITY  2       12      4       6      q, both",
        "s              2 ROWS  8 ROWS  5 ROWS  5      l",
        "s              3       8       5       5      both",
    ]
    assert "its granule of s is 4 for rows from 6 on, from FINEST 2 to COARSEST 12" in told(db, "DESCRIBE q")
    assert "its window of rows of s is 5 ROWS for rows from 5 on, from MIN 2 ROWS to MAX 8 ROWS" in told(
        db, "DESCRIBE l"
    )
    assert "Granularity COARSEST 12, FINEST 2, now 4 since 6" in told(db, "EXPLAIN ANALYZE both")
    assert "RowWindow ROWS MIN 2, MAX 8, now 5 since 5" in told(db, "EXPLAIN ANALYZE l")
    windows = json.loads(json.dumps(db.status.to_dict()))["queries"][2]["windows"]
    assert [(one["kind"], one["smallest"], one["largest"], one["size"]) for one in windows] == [
        ("granule", 2, 12, 4),
        ("window", 3, 8, 5),
    ]


def test_a_restart_goes_on_with_them(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute(f"{STREAMS}CREATE QUERY q AS {GRANULAR}; CREATE QUERY l AS {EACH}")
        db.start()
        push(db, *range(20))
        db.execute("ALTER QUERY q SET (GRANULARITY 12); ALTER QUERY l SET (WINDOW 3 ROWS)")
        shown = told(db, "SHOW TUNINGS")
    with database(tmp_path) as db:
        assert told(db, "SHOW TUNINGS") == shown
        db.start()
        push(db, *range(20, 50))
        assert counts(db, "q", 20, 36, 40) == [10, 10, 10]
        assert counts(db, "l", 20, 30) == [3, 3]


def test_a_query_from_the_past_reads_rows_with_the_granules_that_they_had() -> None:
    with database() as db:
        db.execute(f"{STREAMS.replace('DISORDER 2', 'RETAIN ALL')}CREATE QUERY q AS {GRANULAR}")
        db.execute(f"CREATE QUERY l AS {LAST}")
        db.start()
        push(db, *range(20))
        db.execute("ALTER QUERY q SET (GRANULARITY 12); ALTER QUERY l SET (WINDOW 2 ROWS)")
        push(db, *range(20, 60))
        db.execute(f"CREATE QUERY again FROM BEGINNING AS {GRANULAR}")
        db.execute(f"CREATE QUERY last FROM BEGINNING AS {LAST}")
        push(db, *range(60, 80))
        assert db["again"].history().sort_by("valid_from") == db["q"].history().sort_by("valid_from")
        assert counts(db, "last", 10, 19, 20, 30) == counts(db, "l", 10, 19, 20, 30) == [8, 8, 2, 2]


def test_other_bounds_are_another_window(db: hr.Database) -> None:
    db.execute(
        "CREATE QUERY other AS SELECT COUNT(*) AS n FROM s [RANGE 10] GRANULARITY(COARSEST 6, FINEST 2)"
    )
    push(db, *range(20))
    db.execute("ALTER QUERY q SET (GRANULARITY 6)")
    assert [window.size for window in db.status.query("other").windows] == [2]
    db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10] GRANULARITY(2)")
    push(db, *range(20, 60))
    assert counts(db, "q", 50, 51, 52) == [10, 10, 10]


def test_granules_of_times_have_units() -> None:
    with database() as db:
        db.execute(
            "CREATE STREAM t (ts TIMESTAMP) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY q AS SELECT COUNT(*) AS n FROM t WINDOW(RANGE MIN 12 HOURS, MAX 24 HOURS) "
            "GRANULARITY(COARSEST 2 HOURS, FINEST 10 SECONDS)"
        )
        db.start()
        db.push("t", [{"ts": "2026-11-29T10:00:00Z"}])
        found = told(db, "ALTER QUERY q SET (GRANULARITY 20 MINUTES)")
        assert found == "the granule of t is 20 MINUTES for rows from 2026-11-29T10:00:00.000002Z on"
        found = told(db, "ALTER QUERY q SET (GRANULARITY 1 MINUTE)")
        assert found == "the granule of t is 1 MINUTE for rows from 2026-11-29T10:20:00Z on"
        assert refused(db, "ALTER QUERY q SET (GRANULARITY 7 MINUTES)") == (
            "7 MINUTES is no multiple of FINEST 10 SECONDS that divides COARSEST 2 HOURS, as a granule of t "
            "must be",
            "write GRANULARITY 400 SECONDS, or 450 SECONDS",
        )
        assert refused(db, "ALTER QUERY q SET (GRANULARITY 1 SECOND)")[1] == (
            "write GRANULARITY 10 SECONDS, or replace the query by one with other bounds"
        )
        assert refused(db, "ALTER QUERY q SET (GRANULARITY 5)")[0].startswith("GRANULARITY 5 needs a unit")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("ALTER QUERY q SET (GRANULARITY 1)", "1 is not from FINEST 2 to COARSEST 12", "GRANULARITY 2"),
        ("ALTER QUERY q SET (GRANULARITY 24)", "24 is not from FINEST 2 to COARSEST 12", "GRANULARITY 12"),
        ("ALTER QUERY q SET (GRANULARITY 8)", "8 is no multiple of FINEST 2 that divides", "6, or 12"),
        ("ALTER QUERY q SET (WINDOW 5)", "q has no window whose size", "a granule: write SET (GRANULARITY"),
        ("ALTER QUERY l SET (WINDOW 5)", "l has no window whose size", "write SET (WINDOW number ROWS)"),
        ("ALTER QUERY l SET (WINDOW 9 ROWS)", "9 ROWS is not from MIN 2 ROWS to MAX 8 ROWS", "WINDOW 8 ROWS"),
        ("ALTER QUERY l SET (WINDOW 1 ROW)", "1 ROWS is not from MIN 2 ROWS to MAX 8 ROWS", "WINDOW 2 ROWS"),
        ("ALTER QUERY l SET (WINDOW OF r 5 ROWS)", "l has no window of rows of r whose size", "one of s"),
        ("ALTER QUERY l SET (GRANULARITY 5)", "l has no granule whose length may change", "a window of rows"),
    ],
)
def test_what_cannot_be(db: hr.Database, text: str, message: str, hint: str) -> None:
    found = refused(db, text)
    assert message in found[0]
    assert hint in str(found[1])


def test_a_hint_can_be_followed(db: hr.Database) -> None:
    db.execute("CREATE QUERY one AS SELECT COUNT(*) AS n FROM s [ROWS 5] GRANULARITY(4)")
    for text, bounds in (
        ("WINDOW 3 ROWS", "ROWS MIN 50, MAX 200"),
        ("GRANULARITY 2", "GRANULARITY(COARSEST"),
    ):
        assert bounds in str(refused(db, f"ALTER QUERY one SET ({text})")[1])


def test_a_limit_of_memory_changes_them_as_well() -> None:
    with hr.connect(runner="inline", buckets=2, memory_limit="12 kB") as db:
        grouped = (
            "SELECT k, COUNT(*) AS n FROM s [RANGE MIN 100, MAX 2000] GRANULARITY(COARSEST 10, FINEST 1)"
        )
        db.execute(f"{STREAMS}CREATE QUERY q AS {grouped} GROUP BY k; CREATE QUERY l AS {LAST}")
        db.start()
        for begin in range(0, 4000, 200):
            push(db, *range(begin, begin + 200))
        managed = db.status.managed
        assert managed is not None
        found = {one.window.kind.value: one for one in managed.windows}
        assert found["granule"].window.size > 1
        assert found["granule"].window.why.startswith("made coarser from 1 to ")
        # With coarser granules there may be room for all rows again.
        assert " ROWS by the manager, since " in found["rows"].window.why
        shown = str(db.execute("SHOW MANAGER")[0])
        assert "window of rows of s  2 ROWS  8 ROWS" in shown
        assert "granule of s         1 " in shown


@pytest.mark.parametrize("below", ["[ROWS MIN 2, MAX 8]", "[RANGE 10] GRANULARITY(COARSEST 12, FINEST 2)"])
def test_nothing_is_estimated_of_them(db: hr.Database, below: str) -> None:
    text = f"CREATE QUERY e LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s {below}"
    assert "no row may be left out of" in refused(db, text)[0]


def test_a_change_of_level_knows_the_sizes(db: hr.Database) -> None:
    push(db, *range(10))
    db.execute("ALTER QUERY l SET (WINDOW 2 ROWS)")
    push(db, 10, 11)
    db.execute("ALTER QUERY l SET CONSISTENCY MIDDLE")
    assert counts(db, "l", 9, 10, 11) == [8, 2, 2]
    push(db, 12)
    db.execute("ALTER QUERY l SET CONSISTENCY STRONG")
    push(db, *range(13, 20))
    assert counts(db, "l", 9, 10, 12, 15) == [8, 2, 2, 2]


def test_a_query_that_speaks_early_says_no_more_by_a_coarser_granule_alone(db: hr.Database) -> None:
    db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    push(db, *range(10))
    before = db["q"].horizon
    db.execute("ALTER QUERY q SET (GRANULARITY 12)")
    assert db["q"].horizon == before
    push(db, 10, 11, 12)
    assert counts(db, "q", 10, 11) == [10, 10]
