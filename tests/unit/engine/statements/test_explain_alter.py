"""EXPLAIN ALTER QUERY says what ALTER QUERY would do, and does nothing."""

from __future__ import annotations

import re

import pytest

import headrace as hr

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2"


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def pushed(db: hr.Database, *instants: int) -> None:
    for ts in instants:
        db.push("s", {"k": ts % 2, "v": ts, "ts": ts})


@pytest.mark.parametrize("retain", ["", "RETAIN 8", "RETAIN ALL"])
@pytest.mark.parametrize("other", ["", "SELECT k, SUM(v) AS x FROM s [RANGE 12] GROUP BY k"])
@pytest.mark.parametrize("keeping", ["", " KEEPING INPUT"])
def test_a_query_is_resumed_as_was_said(retain: str, other: str, keeping: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM} {retain}; CREATE QUERY q AS SELECT k, AVG(v) AS x FROM s [RANGE 6] GROUP BY k")
        db.execute(f"CREATE QUERY other AS {other or 'SELECT k FROM s'}")
        db.start()
        pushed(db, *range(1, 20))
        if keeping and not retain:
            for text in ("EXPLAIN ALTER QUERY q PAUSE KEEPING INPUT", "ALTER QUERY q PAUSE KEEPING INPUT"):
                with pytest.raises(hr.UserError, match="cannot keep its input"):
                    db.execute(text)
            return
        said = told(db, f"EXPLAIN ALTER QUERY q PAUSE{keeping}")
        assert db["q"].heartbeat == 17
        kept = ", and the rows that come are kept" if keeping else ""
        assert told(db, f"ALTER QUERY q PAUSE{keeping}") == f"q is paused; its answer ends before 17{kept}"
        assert said.startswith(
            f"q would be paused; its answer ends before 17{kept}; what it has said of later"
        )
        pushed(db, *range(20, 40))
        said = told(db, "EXPLAIN ALTER QUERY q RESUME")
        assert db["q"].heartbeat == 17
        done = told(db, "ALTER QUERY q RESUME")
        assert missing(said) == missing(done)
        gaps = db["q"].gaps().to_pylist()
        exact = re.search(r"it is exact from (\d+) on", said)
        if exact is not None:
            assert gaps[-1]["exact_from"] == int(exact[1])
        assert ("it says nothing" in said) == bool(gaps)
        if retain == "RETAIN ALL" or keeping:
            assert "would be resumed, over " in said
            assert not gaps
        elif retain:
            # What is kept says more of the pause than what larger windows hold.
            assert "rows that are kept; it says nothing about the instants from 17 to before 34" in said
        elif other:
            assert "with what larger windows hold: other" in said
            assert gaps == [{"lacks_from": 17, "lacks_to": 37, "exact_from": 37}]


def missing(text: str) -> list[str]:
    """The parts of a text about what an answer lacks."""
    return text.split("; ")[1:]


def test_a_level_is_changed_as_was_said() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT k, SUM(v) AS x FROM s [RANGE 6] GROUP BY k")
        assert (
            told(db, "EXPLAIN ALTER QUERY q SET CONSISTENCY MIDDLE")
            == "q is at that level from the next run on"
        )
        db.start()
        pushed(db, *range(1, 20))
        assert told(db, "EXPLAIN ALTER QUERY q SET CONSISTENCY STRONG") == (
            "q is at this level already; nothing changes"
        )
        assert told(db, "EXPLAIN ALTER QUERY q SET (CONSISTENCY MIDDLE)") == (
            "q goes on at that level; all operators keep their state, and what is final stays"
        )
        assert db["q"].latest().num_rows == 0 or db["q"].heartbeat == 17
        larger = "CREATE OR REPLACE QUERY q AS SELECT k, SUM(v) AS x FROM s [RANGE 9] GROUP BY k"
        db.execute(larger)
        for text in ("EXPLAIN ALTER QUERY q SET CONSISTENCY MIDDLE", "ALTER QUERY q SET CONSISTENCY MIDDLE"):
            with pytest.raises(hr.UserError, match="is being exchanged already"):
                db.execute(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("EXPLAIN ALTER QUERY q RESUME", "q is not paused"),
        ("EXPLAIN ALTER QUERY p PAUSE", "p is paused already"),
        ("EXPLAIN ALTER QUERY p SET CONSISTENCY MIDDLE", "p is paused"),
        ("EXPLAIN ALTER QUERY nobody PAUSE", "nobody"),
        ("EXPLAIN ALTER QUERY q PAUSE KEEPING INPUT", "no endless run"),
        ("EXPLAIN ALTER QUERY q RENAME TO r", "explains PAUSE, RESUME, SET CONSISTENCY and SET"),
    ],
)
def test_what_cannot_be_done_is_refused_as_by_the_deed(text: str, reason: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s; CREATE QUERY p AS SELECT v FROM s")
        db.execute("ALTER QUERY p PAUSE")
        with pytest.raises(hr.UserError, match=reason):
            db.execute(text)
        if "RENAME" not in text:
            with pytest.raises(hr.UserError, match=reason):
                db.execute(text.removeprefix("EXPLAIN "))


def test_one_that_nothing_may_change_is_not_explained_to_who_may_not() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s")
        with pytest.raises(hr.PolicyError):
            db.execute("EXPLAIN ALTER QUERY q PAUSE", policy=hr.Policy.closed())
