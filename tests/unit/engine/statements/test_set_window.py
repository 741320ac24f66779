"""ALTER QUERY name SET (WINDOW size): windows within bounds that are shorter or longer from now on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import LanguageError
from headrace.steps import value_at
from headrace.time import BEGINNING

STREAMS = """
CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE STREAM r (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY reading AS SELECT k FROM s UNION ALL SELECT k FROM r;
"""
COUNTED = "SELECT COUNT(*) AS n FROM s [RANGE MIN 3, MAX 8]"
JOINED = "SELECT a.k FROM s [RANGE MIN 3, MAX 8] a JOIN r [RANGE MIN 2, MAX 5] b ON a.k = b.k"


def database(storage: Path | None = None) -> hr.Database:
    return hr.connect(runner="inline", buckets=2, storage=storage)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        made.execute(f"{STREAMS}CREATE QUERY q AS {COUNTED}")
        made.start()
        yield made


def push(db: hr.Database, *times: int, stream: str = "s") -> None:
    assert db.push(stream, [{"k": 1, "ts": at} for at in times])


def counts(db: hr.Database, query: str, *instants: int) -> list[int]:
    found = [db[query].snapshot(at).to_pylist() for at in instants]
    return [rows[0]["n"] if rows else 0 for rows in found]


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def refused(db: hr.Database, text: str) -> tuple[str, str | None]:
    with pytest.raises(LanguageError) as found:
        db.execute(text)
    return found.value.message, found.value.hint


def test_rows_stay_as_long_as_the_size_says_when_they_come(db: hr.Database) -> None:
    push(db, *range(10))
    assert told(db, "ALTER QUERY q SET (WINDOW 3)") == "the window of s is 3 for rows from 10 on"
    # One that comes late stays as long as it would have stayed in time.
    push(db, 8, *range(10, 30))
    assert counts(db, "q", 9, 10, 15, 16, 20) == [9, 9, 6, 4, 3]
    assert told(db, "ALTER QUERY q SET WINDOW 8") == "the window of s is 8 for rows from 30 on"
    push(db, *range(30, 50))
    assert counts(db, "q", 29, 32, 34, 37, 45) == [3, 3, 5, 8, 8]


def test_the_size_is_told(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY j AS {JOINED}")
    assert told(db, "SHOW TUNINGS").splitlines()[2:4] == [
        "s           3    8    8            q, j",
        "r           2    5    5            j",
    ]
    push(db, 4)
    assert told(db, "ALTER QUERY q SET (WINDOW 4)") == (
        "the window of s is 4 for rows from 5 on; so it is in j, with the same bounds"
    )
    assert told(db, "ALTER QUERY j SET (WINDOW OF R 4)") == "the window of r is 4 for all rows"
    assert told(db, "ALTER QUERY j SET (WINDOW 4)").splitlines() == [
        "the window of s is 4 already",
        "the window of r is 4 already",
    ]
    assert told(db, "SHOW TUNINGS").splitlines()[2:4] == [
        "s           3    8    4     5      q, j",
        "r           2    5    4            j",
    ]
    (window,) = db.status.query("q").windows
    assert (window.smallest, window.largest, window.size, window.since) == (3, 8, 4, 5)
    assert db.status.query("j").windows[1].since == BEGINNING
    assert db.status.to_dict()["queries"][2]["windows"][1]["since"] is None
    assert "its window of s is 4 for rows from 5 on, from MIN 3 to MAX 8" in told(db, "DESCRIBE QUERY q")
    assert "RANGE MIN 3, MAX 8, now 4 since 5" in told(db, "EXPLAIN ANALYZE q")


def test_operators_go_on_under_their_names(db: hr.Database) -> None:
    push(db, 1, 2, 3)
    before = db.status
    db.execute("ALTER QUERY q SET (WINDOW 3)")
    after = db.status
    assert after.epoch == before.epoch + 1
    assert [part.identity for part in after.operators] == [part.identity for part in before.operators]
    assert [part.state_rows for part in after.operators] == [part.state_rows for part in before.operators]


def test_a_size_lasts_as_long_as_a_query_that_had_it(db: hr.Database) -> None:
    push(db, 1, 2, 3)
    db.execute("ALTER QUERY q SET (WINDOW 3)")
    db.execute(f"CREATE QUERY other AS {COUNTED}")
    assert db.status.query("other").windows[0].size == 3
    db.execute("DROP QUERY q")
    assert db.status.query("other").windows[0].size == 3
    db.execute("ALTER QUERY other PAUSE; ALTER QUERY other RESUME")
    assert db.status.query("other").windows[0].size == 3
    db.execute("DROP QUERY other")
    db.execute(f"CREATE QUERY q AS {COUNTED}")
    assert db.status.query("q").windows[0].size == 8


def test_a_query_with_other_bounds_begins_with_the_largest(db: hr.Database) -> None:
    push(db, *range(10))
    db.execute("ALTER QUERY q SET (WINDOW 3)")
    push(db, *range(10, 20))
    db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE MIN 3, MAX 6]")
    push(db, *range(20, 60))
    # Both run until what the old one has said has ended; the size that it had holds until then.
    assert counts(db, "q", 9, 16, 18) == [8, 4, 3]
    assert counts(db, "q", 50) == [6]
    (window,) = db.status.query("q").windows
    assert (window.largest, window.size) == (6, 6)
    assert "8" not in told(db, "SHOW TUNINGS")


def test_the_windows_of_a_plan_that_still_answers_are_told(db: hr.Database) -> None:
    push(db, *range(10))
    db.execute("ALTER QUERY q SET (WINDOW 4)")
    push(db, *range(10, 20))
    new = f"EXPLAIN CREATE QUERY other AS {COUNTED}"
    begins = "its window of s begins with 4, as in q"
    assert begins in told(db, new)
    db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE MIN 3, MAX 6]")
    assert told(db, "SHOW TUNINGS").splitlines()[2:] == [
        "s           3    6    6            q",
        "s           3    8    4     10     q",
        "(2 rows)",
    ]
    assert begins in told(db, new)
    db.execute(f"CREATE QUERY other AS {COUNTED}")
    assert db.status.query("other").windows[0].size == 4
    assert told(db, "ALTER QUERY other SET (WINDOW 5)").endswith("; so it is in q, with the same bounds")
    push(db, *range(20, 60))
    push(db, 60)
    assert told(db, "SHOW TUNINGS").splitlines()[2:] == [
        "s           3    6    6            q",
        "s           3    8    5     20     other",
        "(2 rows)",
    ]
    db.execute("DROP QUERY other")
    assert begins[:20] not in told(db, new)


def test_a_restart_goes_on_with_the_sizes(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute(f"{STREAMS}CREATE QUERY q AS {COUNTED}; CREATE QUERY paused AS {JOINED}")
        db.start()
        push(db, *range(10))
        db.execute("ALTER QUERY q SET (WINDOW 3)")
        db.execute("ALTER QUERY paused SET (WINDOW OF r 2)")
        db.execute("ALTER QUERY paused PAUSE")
    with database(tmp_path) as db:
        db.start()
        assert told(db, "SHOW TUNINGS").splitlines()[2:4] == [
            "s           3    8    3     10     q, paused",
            "r           2    5    2            paused",
        ]
        db.execute("ALTER QUERY paused RESUME")
        push(db, *range(10, 30))
        assert counts(db, "q", 16, 20) == [4, 3]
        assert [window.size for window in db.status.query("paused").windows] == [3, 2]


def test_windows_of_times_have_sizes_with_units() -> None:
    with database() as db:
        db.execute(
            "CREATE STREAM t (ts TIMESTAMP) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY q AS SELECT COUNT(*) AS n FROM t WINDOW(RANGE MIN 12 HOURS, MAX 24 HOURS)"
        )
        db.start()
        db.push("t", [{"ts": "2026-11-29T10:00:00Z"}])
        found = told(db, "ALTER QUERY q SET (WINDOW 18 HOURS)")
        assert found == "the window of t is 18 HOURS for rows from 2026-11-29T10:00:00.000001Z on"
        assert refused(db, "ALTER QUERY q SET (WINDOW 18)")[0].startswith("WINDOW 18 needs a unit")
        assert refused(db, "ALTER QUERY q SET (WINDOW 2 DAYS)") == (
            "2 DAYS is not from MIN 12 HOURS to MAX 1 DAY, within which the window of t may be",
            "write WINDOW 1 DAY, or replace the query by one with other bounds",
        )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("ALTER QUERY q SET (WINDOW 2)", "2 is not from MIN 3 to MAX 8", "write WINDOW 3"),
        ("ALTER QUERY q SET (WINDOW 9)", "9 is not from MIN 3 to MAX 8", "write WINDOW 8"),
        ("ALTER QUERY q SET (WINDOW 0)", "0 is not from MIN 3 to MAX 8", "write WINDOW 3"),
        ("ALTER QUERY q SET (WINDOW 5 SECONDS)", "WINDOW 5 SECONDS has a unit", "WINDOW 5"),
        ("ALTER QUERY q SET (WINDOW OF r 5)", "q has no window of r", "it has one of s"),
        ("ALTER QUERY reading SET (WINDOW 5)", "reading has no window whose size may change", "RANGE MIN"),
        ("ALTER QUERY qq SET (WINDOW 5)", "there is no query qq", "did you mean q?"),
    ],
)
def test_what_cannot_be(db: hr.Database, text: str, message: str, hint: str) -> None:
    found = refused(db, text)
    assert message in found[0]
    assert hint in str(found[1])


def test_a_query_that_does_not_go_on_keeps_its_sizes() -> None:
    with database() as db:
        db.execute(f"{STREAMS}CREATE QUERY q AS {COUNTED}")
        assert refused(db, "ALTER QUERY q SET (WINDOW 5)")[0] == "q is not running"
        db.start()
        db.execute("ALTER QUERY q PAUSE")
        assert refused(db, "ALTER QUERY q SET (WINDOW 5)")[0] == "the query q is paused"


def test_windows_of_one_size_alone_have_no_bounds(db: hr.Database) -> None:
    db.execute("CREATE QUERY one AS SELECT COUNT(*) AS n FROM s [RANGE MIN 5, MAX 5]")
    assert "no window whose size may change" in refused(db, "ALTER QUERY one SET (WINDOW 5)")[0]


def test_a_size_is_within_the_bounds_of_each_window(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY j AS {JOINED}")
    message, _ = refused(db, "ALTER QUERY j SET (WINDOW 7)")
    assert message == "7 is not from MIN 2 to MAX 5, within which the window of r may be"
    assert db.status.query("j").windows[0].size == 8


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM (SELECT k FROM s WHERE k > 0) [RANGE MIN 3, MAX 8]",
        "WITH x AS (SELECT k FROM s WHERE k > 0) SELECT COUNT(*) AS n FROM x [RANGE MIN 3, MAX 8]",
        "SELECT COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM r) [RANGE MIN 3, MAX 8]",
        "SELECT n FROM q",
        "SELECT COUNT(*) AS n FROM derived [RANGE MIN 3, MAX 8]",
        "SELECT n FROM inside WHERE n > 0",
    ],
)
def test_windows_are_over_rows_of_streams_as_they_come(db: hr.Database, text: str) -> None:
    db.execute("CREATE STREAM derived AS SELECT k FROM s WHERE k > 0")
    db.execute(f"CREATE STREAM inside AS {COUNTED}")
    db.execute(f"CREATE QUERY other AS {text}")
    push(db, 0)
    push(db, 0, stream="r")
    db.execute("ALTER QUERY other SET (WINDOW 4)")
    for stream in "sr":
        push(db, *range(1, 30), stream=stream)
    assert counts(db, "other", 20) == [8 if "UNION" in text else 4]


def test_a_window_of_a_union_has_a_size_above_the_rows_of_all_streams(db: hr.Database) -> None:
    db.execute(
        "CREATE QUERY both AS "
        "SELECT COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM r) [RANGE MIN 3, MAX 8]"
    )
    push(db, 5)
    push(db, 9, stream="r")
    assert told(db, "ALTER QUERY both SET (WINDOW 4)") == "the window of r and s is 4 for rows from 10 on"


def test_windows_whose_size_may_change_share_no_nested_state(db: hr.Database) -> None:
    grouped = "SELECT k, COUNT(*) AS n FROM s [RANGE {}] GROUP BY k"
    sizes = ("MIN 3, MAX 10", "MIN 3, MAX 9", "10")
    names = ("first", "second", "third")
    texts = (
        f"CREATE QUERY {name} AS {grouped.format(size)}" for name, size in zip(names, sizes, strict=True)
    )
    db.execute("; ".join(texts))
    push(db, *range(10))
    db.execute("ALTER QUERY first SET (WINDOW 3)")
    push(db, *range(10, 40))
    assert [counts(db, name, 30) for name in names] == [[3], [9], [10]]


def test_rows_of_one_slide_are_not_added_up_that_leave_at_different_ones(db: hr.Database) -> None:
    grouped = "SELECT k, COUNT(*) AS n FROM s [RANGE {} SLIDE 4] GROUP BY k"
    db.execute(
        f"CREATE QUERY one AS {grouped.format('MIN 4, MAX 12')};CREATE QUERY other AS {grouped.format('8')}"
    )
    push(db, *range(10))
    db.execute("ALTER QUERY one SET (WINDOW 5)")
    push(db, 8, 9, *range(10, 40))
    # At 19 the rows from 15 on, since 19 < 15 + 5, and those of before 10 that have 12 to go.
    assert counts(db, "one", 19, 27) == [9, 5]
    assert counts(db, "other", 19, 27) == [8, 8]


def test_a_paused_query_has_the_size_that_its_windows_get_meanwhile(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY other AS {COUNTED}; ALTER QUERY other PAUSE")
    push(db, 1, 2)
    db.execute("ALTER QUERY q SET (WINDOW 3); DROP QUERY q; ALTER QUERY other RESUME")
    assert db.status.query("other").windows[0].size == 3


def test_a_size_counts_when_it_was_told(tmp_path: Path) -> None:
    def killed(name: str) -> int:
        """The size in a store as a process leaves it that is killed now."""
        shutil.copytree(tmp_path / "store", tmp_path / name, ignore=shutil.ignore_patterns("lock"))
        with database(tmp_path / name) as other:
            other.start()
            return other.status.query("q").windows[0].size

    with database(tmp_path / "store") as db:
        db.execute(f"{STREAMS}CREATE QUERY q AS {COUNTED}")
        db.start()
        push(db, *range(10))
        assert killed("before") == 8
        db.execute("ALTER QUERY q SET (WINDOW 3)")
        assert killed("after") == 3


def test_a_store_that_has_not_been_started_shows_the_sizes_in_force(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute(f"{STREAMS}CREATE QUERY q AS {COUNTED}")
        assert ["s", "3", "8", "8", "q"] in [line.split() for line in told(db, "SHOW TUNINGS").splitlines()]
        db.start()
        push(db, *range(10))
        db.execute("ALTER QUERY q SET (WINDOW 5)")
        shown = told(db, "SHOW TUNINGS")
        assert "10" in shown
        db.stop()
    with database(tmp_path) as db:
        assert told(db, "SHOW TUNINGS") == shown


@pytest.mark.parametrize(
    ("retain", "options", "most"),
    [("", {"retain_epochs": 2}, 8), ("", {}, 40), ("RETAIN ALL", {"retain_epochs": 2}, 40)],
)
def test_sizes_are_forgotten_that_no_answer_and_no_row_can_name(
    retain: str, options: dict[str, Any], most: int
) -> None:
    with hr.connect(runner="inline", buckets=2, **options) as db:
        db.execute(f"CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2 {retain}")
        db.execute(f"CREATE QUERY q AS {COUNTED}")
        db.start()
        sizes, found = [8] * 4, 0
        for step in range(40):
            push(db, *range(4 * step, 4 * step + 4))
            db.execute(f"ALTER QUERY q SET (WINDOW {3 + step % 5})")
            sizes += [3 + step % 5] * 4
            (known,) = db.status.tunings.values()
            found = max(found, len(known.steps))
            # Of all rows in the answers that are kept the sizes are known.
            kept = db["q"].history().to_pylist()
            first = min((row["valid_from"] for row in kept), default=0) - 8
            for instant in range(max(0, first), 4 * step + 4):
                assert value_at(8, known.steps, instant) == sizes[instant], (step, instant)
        assert found <= most
        assert most < 40 or found == 40
