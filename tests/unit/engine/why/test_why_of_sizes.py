"""WHY of windows and granules within bounds: each hint, when it is followed, does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import headrace as hr

STREAMS = """
    CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
    CREATE STREAM `two words` (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
    CREATE STREAM t (k BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts
"""
COUNT = "SELECT COUNT(*) AS n FROM"
BOTH = "(SELECT k FROM s UNION ALL SELECT k FROM `two words`)"
JOIN = "SELECT x.k FROM s {0} x JOIN s {1} y ON x.k = y.k"
CASES = {
    "a window": (f"{COUNT} s [RANGE MIN 2, MAX 50]", "WINDOW 5", "the window of s is 5 for"),
    "a window of time": (
        f"{COUNT} t [RANGE MIN 1 MINUTE, MAX 2 HOURS]",
        "WINDOW 90 SECONDS",
        "the window of t is 90 SECONDS for",
    ),
    "a window of rows": (
        f"{COUNT} s [ROWS MIN 2, MAX 5]",
        "WINDOW 3 ROWS",
        "the window of rows of s is 3 ROWS for",
    ),
    "granules": (
        f"{COUNT} s [RANGE 60] GRANULARITY(COARSEST 60, FINEST 1)",
        "GRANULARITY 6",
        "the granule of s is 6 for",
    ),
    "granules of time": (
        f"{COUNT} t GRANULARITY(COARSEST 1 HOUR, FINEST 30 SECONDS)",
        "GRANULARITY 30 MINUTES",
        "the granule of t is 30 MINUTES for",
    ),
    "a name with blanks": (
        f"{COUNT} `two words` [ROWS MIN 2, MAX 5]",
        "WINDOW 3 ROWS",
        "the window of rows of two words is 3 ROWS for",
    ),
    "two streams": (
        f"{COUNT} {BOTH} [RANGE MIN 2, MAX 50]",
        "WINDOW 5",
        "the window of s and two words is 5 for",
    ),
    "two of a stream": (
        JOIN.format("[RANGE MIN 2, MAX 50]", "[RANGE MIN 3, MAX 50]"),
        "WINDOW OF s 5",
        "the window of s is 5 for",
    ),
    "two kinds": (
        JOIN.format("[RANGE MIN 2, MAX 50]", "[ROWS MIN 3, MAX 9]"),
        "WINDOW 5 ROWS",
        "the window of rows of s is 5 ROWS for",
    ),
}


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=1) as made:
        made.execute(STREAMS)
        yield made


def push(db: hr.Database) -> None:
    read = {stream.name for stream in db.status.streams}
    for name in sorted(read):
        db.push(
            name,
            [{"k": at % 3, "ts": f"2024-01-01 00:00:{at}" if name == "t" else at} for at in range(10, 60)],
        )


def told(db: hr.Database) -> dict[str, str | None]:
    """What WHY says of sizes, with its hints."""
    found = {one.message: one.hint for one in db.why("q").findings}
    return {text: hint for text, hint in found.items() if re.match("the (window|granule) ", text)}


@pytest.mark.parametrize("rows_before", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_size_that_was_asked_for_is_told_with_the_way_back(
    db: hr.Database, case: str, rows_before: bool
) -> None:
    query, change, expected = CASES[case]
    db.execute(f"CREATE QUERY q AS {query}")
    db.start()
    if rows_before:
        push(db)
    assert not told(db)
    db.execute(f"ALTER QUERY q SET ({change})")
    found = told(db)
    assert found
    for text, hint in found.items():
        assert text.startswith(expected)
        assert ("for all rows" in text) is not rows_before
        order = re.fullmatch(r"write (ALTER QUERY q SET \(.*\)) for the (largest|finest)", hint or "")
        assert order is not None, hint
        db.execute(order[1])
    assert not told(db)


def test_windows_of_other_bounds_have_no_size_that_all_may_have(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q AS {JOIN.format('[RANGE MIN 2, MAX 50]', '[RANGE MIN 2, MAX 70]')}")
    db.start()
    db.execute("ALTER QUERY q SET (WINDOW OF s 5)")
    hints = {*told(db).values()}
    assert len(told(db)) == 2
    assert all((hint or "").startswith("write CREATE OR REPLACE QUERY q with other bounds") for hint in hints)
    db.execute(
        f"CREATE OR REPLACE QUERY q AS {JOIN.format('[RANGE MIN 3, MAX 50]', '[RANGE MIN 3, MAX 70]')}"
    )
    assert not told(db)


def test_a_run_that_was_stopped_is_started_again_first(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q AS {CASES['a window'][0]}")
    db.start()
    push(db)
    db.execute("ALTER QUERY q SET (WINDOW 5)")
    db.stop()
    ((_, hint),) = told(db).items()
    assert hint is not None
    assert hint.startswith("start the run again and write ")
    db.start()
    db.execute(hint.partition("write ")[2].partition(" for the")[0])
    assert not told(db)


def test_the_manager_is_named_only_where_it_acts(db: hr.Database) -> None:
    db.execute("CREATE QUERY q AS SELECT DISTINCT k FROM s [RANGE MIN 100, MAX 1000]")
    db.start()
    for begin in range(0, 3000, 100):
        db.push("s", [{"k": at, "ts": at} for at in range(begin, begin + 100)])
    db.execute("SET memory_limit = '100 MB'")
    assert db.status.managed is not None
    db.execute(f"SET memory_limit = {round(db.status.managed.expected)}")
    ((text, hint),) = told(db).items()
    assert "by the manager" in text
    assert "the manager makes it longer again" in (hint or "")
    for settings in ("SET manager = 'advise'", "SET manager = 'off'", "SET memory_limit = DEFAULT"):
        db.execute(settings)
        assert told(db) == {text: "write ALTER QUERY q SET (WINDOW OF s 1000) for the largest"}
    db.execute("ALTER QUERY q SET (WINDOW OF s 1000)")
    assert not told(db)
