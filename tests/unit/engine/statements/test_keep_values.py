"""LOSS TOLERANT BY, and ALTER QUERY name SET (KEEP UTILITY u): rows that are worth less are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import LanguageError
from headrace.steps import Step

STATEMENTS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q LOSS TOLERANT BY V (0: 0.1, 10: 0.5, 20: 1) AS SELECT k, v FROM s [RANGE 5];
CREATE QUERY also LOSS TOLERANT BY v (0: 0.1, 10: 0.50, 20: 1) CONSISTENCY MIDDLE
    AS SELECT v FROM s WHERE k = 0;
CREATE QUERY other LOSS TOLERANT BY v (0: 0.2, 20: 1) AS SELECT v FROM s;
CREATE QUERY shared LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s [RANGE 5];
CREATE QUERY plain AS SELECT v FROM s;
CREATE QUERY reader AS SELECT v FROM q
"""
BELOW = "rows with v below 10 are left out"


def opened(storage: Path | None = None) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage)
    if "q" not in [query.name for query in db.queries]:
        db.execute(STATEMENTS)
    db.start()
    return db


def push(db: hr.Database, first: int, last: int) -> None:
    assert db.push("s", [{"k": at % 2, "v": at % 21, "ts": at} for at in range(first, last)])


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def test_rows_are_left_out_from_the_newest_on_in_all_queries_that_say_the_same() -> None:
    with opened() as db:
        push(db, 0, 50)
        would = "rows with v below 10 would be left out, where all rows are kept now; so it is of also"
        assert told(db, "EXPLAIN ALTER QUERY q SET (KEEP UTILITY 0.5)").startswith(would)
        assert told(db, "ALTER QUERY q SET (KEEP UTILITY 0.5)") == (
            f"{BELOW} from 50 on; so it is of also, which say the same"
        )
        assert told(db, "ALTER QUERY also SET (KEEP UTILITY 0.5)") == f"{BELOW} already"
        push(db, 50, 100)
        kept = [row["v"] for row in db["q"].snapshot(66).to_pylist()]
        assert sorted(kept) == [at % 21 for at in range(62, 67) if at % 21 >= 10]
        assert {row["v"] for row in db["q"].snapshot(46).to_pylist()} == {at % 21 for at in range(42, 47)}
        assert db["other"].snapshot(66).to_pylist() == [{"v": 66 % 21}]
        assert told(db, "ALTER QUERY q SET (KEEP UTILITY 0)").startswith("all rows are kept from 100 on")


def test_what_is_left_out_is_told_everywhere() -> None:
    with opened() as db:
        push(db, 0, 50)
        db.execute("ALTER QUERY q SET (KEEP UTILITY 0.5)")
        for text in ("DESCRIBE q", "WHY q", "WHY reader"):
            assert f"{BELOW} from 50 on: they are worth less than 0.5" in told(db, text)
        assert "SET (KEEP UTILITY 0) keeps all" in told(db, "WHY q")
        assert "left out" not in told(db, "WHY other")
        assert "all rows are kept" in told(db, "DESCRIBE other")
        (shed,) = [row for row in told(db, "SHOW SHEDDING").splitlines() if BELOW in row]
        assert shed.split(" BY ")[0] == "least utility of rows of s LOSS TOLERANT"
        assert "now 0.5 since 50" in told(db, "EXPLAIN ANALYZE q")
        (row,) = [row for row in told(db, "SHOW TUNINGS").splitlines() if "(0: 0.1, 10: 0.5" in row]
        assert row.split()[-6:] == ["1", "0.5", "50", "q,", "also,", "reader"]
        values = db.status.query("q").values
        assert values is not None
        assert (values.threshold, values.since, values.streams) == (500_000, 50, ("s",))
        (seen,) = [
            one for one in json.loads(json.dumps(db.status.to_dict()))["queries"] if one["name"] == "q"
        ]
        assert seen["values"]["text"].startswith(BELOW)
        assert db.status.query("plain").values is None


def test_it_lasts_over_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        push(db, 0, 50)
        db.execute("ALTER QUERY q SET (KEEP UTILITY 0.75)")
    with opened(tmp_path) as db:
        (tuned,) = db.status.tunings.values()
        assert tuned.steps == (Step(50, 750_000),)
        push(db, 50, 100)
        assert {row["v"] for row in db["q"].snapshot(83).to_pylist()} == {16, 17, 18, 19, 20}
        assert db["q"].snapshot(70).to_pylist() == []


UNKNOWN = "does not say what its rows are worth"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("ALTER QUERY q SET (KEEP 0.5)", "by their values, and no share", "SET (KEEP UTILITY 0.5)"),
        ("ALTER QUERY shared SET (KEEP UTILITY 0.5)", UNKNOWN, "SET (KEEP 0.5)"),
        ("ALTER QUERY plain SET (KEEP UTILITY 0.5)", UNKNOWN, "LOSS TOLERANT BY"),
        ("ALTER QUERY reader SET (KEEP UTILITY 0.5)", UNKNOWN, "LOSS TOLERANT BY"),
    ],
)
def test_of_other_queries_it_is_refused(text: str, message: str, hint: str) -> None:
    with opened() as db:
        for words in (text, f"EXPLAIN {text}"):
            with pytest.raises(LanguageError, match=message) as refused:
                db.execute(words)
            assert hint in str(refused.value.hint)
