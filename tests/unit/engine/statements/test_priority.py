"""WEIGHT, LATENCY and QOS of a query: what a store keeps of them, and what is said about them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import LanguageError

COLUMNS = "(ts BIGINT, k BIGINT, v BIGINT) FROM push TIMESTAMP BY ts"
DEFINED = (
    f"CREATE STREAM s {COLUMNS};"
    + """
CREATE QUERY q {} AS SELECT v FROM s [NOW]"""
)
CLAUSES = "WEIGHT 5 LATENCY 2 SECONDS QOS (DELAY (0 SECONDS, 1), (5 SECONDS, 0.2))"


def opened(folder: Path) -> hr.Database:
    return hr.connect(runner="inline", storage=folder)


def shown(db: hr.Database) -> str:
    return str(db.execute("SHOW CREATE QUERY q")[0])


@pytest.mark.parametrize("clauses", ["WEIGHT 5", "WEIGHT 0 LATENCY 2 SECONDS", CLAUSES, ""])
def test_a_store_keeps_the_priority_of_a_query(tmp_path: Path, clauses: str) -> None:
    with opened(tmp_path) as db:
        db.execute(DEFINED.format(clauses))
        db.start()
        before = shown(db)
        assert clauses in before
    with opened(tmp_path) as db:
        assert shown(db) == before
        db.execute(DEFINED.format(clauses))
        assert db.execute("SHOW CREATE QUERY q")[0] == before


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("WEIGHT 5", "WEIGHT 2"),
        ("WEIGHT 5", ""),
        ("", "WEIGHT 0.5"),
        ("WEIGHT 5 LATENCY 2 SECONDS", "QOS (DELAY (0, 1), (1 MINUTE, 0)) WEIGHT 1"),
    ],
)
def test_another_priority_than_the_store_has_is_refused_with_the_change(
    tmp_path: Path, stored: str, given: str
) -> None:
    with opened(tmp_path) as db:
        db.execute(DEFINED.format(stored))
        db.start()
    with opened(tmp_path) as db:
        with pytest.raises(LanguageError) as caught:
            db.execute(DEFINED.format(given))
        error = caught.value
        assert f"the query q of the store has {stored or 'no priority of its own'}; here" in error.message
        changes = re.findall(r"ALTER QUERY q SET \(.*?\)(?=;| before)", error.hint or "")
        db.execute("; ".join(changes))
        # The stream has been given by now.
        db.execute(DEFINED.format(given).partition(";")[2])
        db.start()
    with opened(tmp_path) as db:
        db.execute(DEFINED.format(given))


def test_the_answer_says_what_follows() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(DEFINED.format(""))
        for clause, text in {
            "WEIGHT 0": "q has WEIGHT 0: it takes no rows until it has a weight; those that come are kept",
            "WEIGHT 0.5": "q has WEIGHT 0.5: it takes turns beside the others, by its weight",
            "LATENCY 1 SECOND": "q has WEIGHT 0.5 LATENCY 1 SECOND: it takes turns beside the others",
            "WEIGHT DEFAULT": "q has LATENCY 1 SECOND: it takes rows together with the others",
            "LATENCY DEFAULT": "q has no priority of its own: it takes rows together with the others",
        }.items():
            would = str(db.execute(f"EXPLAIN ALTER QUERY q SET ({clause})")[0])
            before = shown(db)
            assert str(db.execute(f"ALTER QUERY q SET ({clause})")[0]).startswith(text)
            assert would.replace("would have", "has").startswith(text)
            said, _, value = clause.partition(" ")
            assert (clause in shown(db)) == (value != "DEFAULT")
            assert before != shown(db), said


JOINED = """SELECT s.k, t.v FROM s [RANGE 9] JOIN s [RANGE 5] AS z ON s.k = z.k
JOIN t [RANGE 4] ON s.k = t.k"""


@pytest.mark.parametrize("heartbeats", ["MEMORY", "COMMON"])
def test_a_query_whose_operators_wait_for_others_has_no_weight(heartbeats: str) -> None:
    message = "cannot have a WEIGHT, .*: some of its operators wait for others, by its HEARTBEATS"
    with hr.connect(runner="inline") as db:
        db.execute(DEFINED.format("") + f"; CREATE STREAM t {COLUMNS}")
        made = f"CREATE QUERY m WEIGHT 2 HEARTBEATS {heartbeats} AS {JOINED}"
        replaced = made.replace("CREATE", "CREATE OR REPLACE").replace(" m ", " q ")
        for text in (made, f"EXPLAIN {made}", f"EXPLAIN COST {made}", replaced, f"EXPLAIN {replaced}"):
            with pytest.raises(LanguageError, match=message):
                db.execute(text)
        db.execute(made.replace("WEIGHT 2", ""))
        with pytest.raises(LanguageError, match=message):
            db.execute("ALTER QUERY m SET (WEIGHT 2)")
        # Operators over one stream wait for nobody.
        db.execute(f"CREATE QUERY l WEIGHT 2 HEARTBEATS {heartbeats} AS SELECT MAX(v) AS n FROM s [RANGE 5]")


def test_a_query_that_has_failed_keeps_its_priority() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(DEFINED.format("") + "; CREATE QUERY f AS SELECT SUM(v) AS x FROM s [RANGE UNBOUNDED]")
        db.start()
        db.push("s", [{"ts": at, "k": 1, "v": 2**62} for at in range(2)])
        db.push("s", {"ts": 3, "k": 1, "v": 1})
        for text in ("ALTER QUERY f SET (WEIGHT 2)", "EXPLAIN ALTER QUERY f SET (WEIGHT 2)"):
            with pytest.raises(LanguageError, match="the query f has failed"):
                db.execute(text)
        assert "WEIGHT" not in str(db.execute("SHOW CREATE QUERY f")[0])


def test_a_lane_begins_when_the_exchange_of_a_plan_is_over() -> None:
    with hr.connect(runner="inline", threads=1) as db:
        db.execute(DEFINED.format("").replace("[NOW]", "[RANGE 9]"))
        db.start()
        db.push("s", [{"ts": at, "k": 1, "v": 1} for at in range(5)])
        other = "CREATE OR REPLACE QUERY q WEIGHT 0 AS SELECT v FROM s [RANGE 9] WHERE k = 1"
        assert "it has its lane from then on, by its WEIGHT" in str(db.execute(f"EXPLAIN {other}")[0])
        db.execute(other)
        text = (
            "q has WEIGHT 2: it has its lane when its heartbeat has passed 13, where its new plan takes over"
        )
        would = str(db.execute("EXPLAIN ALTER QUERY q SET (WEIGHT 2)")[0])
        assert would.replace("would have", "has").startswith(text)
        assert str(db.execute("ALTER QUERY q SET (WEIGHT 2)")[0]).startswith(text)
        assert not [lane for lane in db.status.lanes if lane.lane]
        for at in range(5, 16):
            db.push("s", {"ts": at, "k": 1, "v": 1})
        db.execute("ALTER QUERY q SET (WEIGHT 0)")
        db.push("s", {"ts": 17, "k": 1, "v": 1})
        assert [lane.queries for lane in db.status.lanes if lane.lane] == [("q",)]


@pytest.mark.parametrize(
    "select", ["SELECT v FROM DEAD LETTERS OF s", "SELECT COUNT(*) AS n FROM s [RANGE 5]"]
)
def test_a_query_that_cannot_be_behind_has_no_weight(select: str) -> None:
    loss = "LOSS TOLERANT" if "COUNT" in select else ""
    with hr.connect(runner="inline") as db:
        db.execute(DEFINED.format(""))
        db.execute(f"CREATE QUERY l {loss} AS {select}")
        with pytest.raises(LanguageError, match="l cannot have a WEIGHT, with which it may be behind"):
            db.execute("ALTER QUERY l SET (WEIGHT 2)")
        with pytest.raises(LanguageError, match="m cannot have a WEIGHT, with which it may be behind"):
            db.execute(f"CREATE QUERY m WEIGHT 2 {loss} AS {select}")
        db.execute("ALTER QUERY l SET (LATENCY 1 SECOND)")
