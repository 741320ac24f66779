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
        ("EXPLAIN ALTER QUERY q RENAME TO p", "there is a query p already"),
        ("EXPLAIN ALTER QUERY q REOPTIMIZE", "is not running"),
        ("EXPLAIN ALTER QUERY q SET (WINDOW 5)", "is not running"),
    ],
)
def test_what_cannot_be_done_is_refused_as_by_the_deed(text: str, reason: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s; CREATE QUERY p AS SELECT v FROM s")
        db.execute("ALTER QUERY p PAUSE")
        with pytest.raises(hr.UserError, match=reason):
            db.execute(text)
        with pytest.raises(hr.UserError, match=reason):
            db.execute(text.removeprefix("EXPLAIN "))


def test_another_size_is_explained_as_it_is_then_given() -> None:
    with hr.connect(runner="inline") as db:
        text = "SELECT k, SUM(v) AS x FROM s [RANGE MIN 4, MAX 9] GROUP BY k"
        db.execute(f"{STREAM}; CREATE QUERY q AS {text}; CREATE QUERY p AS {text} HAVING SUM(v) > 3")
        db.start()
        pushed(db, *range(1, 20))
        said = told(db, "EXPLAIN ALTER QUERY q SET (WINDOW 6)")
        assert (
            said
            == "the window of s would be 6 for rows from 20 on; so it would be in p, with the same bounds"
        )
        assert told(db, "EXPLAIN ALTER QUERY q SET (WINDOW 9)") == "the window of s is 9 already"
        assert told(db, "ALTER QUERY q SET (WINDOW 6)") == said.replace("would be", "is")


def test_another_name_is_explained() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s")
        db.start()
        said = told(db, "EXPLAIN ALTER QUERY q RENAME TO r")
        assert said == "q would be called r; its answer, sinks and subscriptions would go on"
        assert [query.name for query in db.queries] == ["q"]
        assert told(db, "EXPLAIN ALTER QUERY q RENAME TO q") == "q has this name already"


def test_another_order_of_joins_is_explained_as_it_is_then_begun() -> None:
    with hr.connect(runner="inline") as db:
        streams = (f"CREATE STREAM {name} (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts" for name in "abc")
        join = "a [RANGE 30] JOIN b [RANGE 30] ON a.k = b.k JOIN c [RANGE 30] ON b.k = c.k"
        db.execute(f"{'; '.join(streams)}; CREATE QUERY q AS SELECT a.k FROM {join}")
        db.start()
        assert "q would go on unchanged" in told(db, "EXPLAIN ALTER QUERY q REOPTIMIZE")
        for ts in range(12):
            db.push("a", [{"k": 1, "ts": ts} for _ in range(4)])
            db.push("b", [{"k": 1, "ts": ts} for _ in range(4)])
            db.push("c", [{"k": ts, "ts": ts}])
        said, done = (told(db, f"{how}ALTER QUERY q REOPTIMIZE").split("\n") for how in ("EXPLAIN ", ""))
        assert said[1:-1] == done[1:-1]
        assert len(said) > 2
        since = done[-1].split()[5]
        assert f"the new plan would answer from {since} on" in said[-1]


def test_one_that_nothing_may_change_is_not_explained_to_who_may_not() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s")
        with pytest.raises(hr.PolicyError):
            db.execute("EXPLAIN ALTER QUERY q PAUSE", policy=hr.Policy.closed())
