"""An input of a lane has the name with which it was declared, wherever people read of it."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

import headrace as hr
from headrace.algebra.system_streams import SystemStream
from headrace.lowering.behind import declared_plan, plan_behind
from inside import execution_of, run_of
from waiting import wait_for

OF_A_LANE = re.compile(r"\w behind \d")
JOINED = "SELECT s.k, COUNT(*) AS n FROM s [RANGE 50] JOIN t [RANGE 3] ON s.k = t.k GROUP BY s.k"
DEFINED = f"""
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DEAD LETTERS KEEP ALL;
CREATE STREAM t (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY a AS SELECT k FROM s [RANGE 3];
CREATE QUERY r WEIGHT 0 AS {JOINED};
CREATE QUERY m WEIGHT 0 CONSISTENCY MIDDLE AS SELECT k, SUM(v) AS n FROM t [RANGE 9] GROUP BY k;
CREATE QUERY y WEIGHT 1 AS SELECT ts, 6 / v AS n FROM s [RANGE 50];
CREATE QUERY failing WEIGHT 1 AS SELECT SUM(v) AS n FROM s [RANGE UNBOUNDED];
CREATE QUERY letters AS SELECT * FROM DEAD LETTERS OF s;
"""
VIEWS = (
    *(f"SHOW {kind}" for kind in ("QUERIES", "STREAMS", "LANES", "SINKS", "SKEWS", "TUNINGS", "RELATIONS")),
    *(f"{what} {query}" for what in ("WHY", "EXPLAIN ANALYZE", "DESCRIBE") for query in ("r", "m", "y")),
    "DESCRIBE s",
    "DESCRIBE failing",
    "EXPLAIN ALTER QUERY r PAUSE",
    "EXPLAIN ALTER QUERY r SET (WEIGHT 2)",
    "EXPLAIN ALTER QUERY r SET CONSISTENCY MIDDLE",
    "EXPLAIN ALTER QUERY r REOPTIMIZE",
    "EXPLAIN CREATE OR REPLACE QUERY r AS SELECT k FROM s",
    "EXPLAIN ALTER QUERY m PAUSE KEEPING INPUT",
    "EXPLAIN ALTER QUERY r SET (WINDOW 4)",
    f"EXPLAIN CREATE QUERY z AS {JOINED}",
    f"EXPLAIN {JOINED}",
)


def told(db: hr.Database, statement: str) -> str:
    try:
        return str(db.execute(statement)[0])
    except hr.HeadraceError as error:
        return f"{error} {error.hint}"


def test_nothing_that_is_shown_has_the_name_of_a_part(caplog: pytest.LogCaptureFixture) -> None:
    with hr.connect(runner="inline", threads=1) as db:
        db.execute(DEFINED)
        for kind in SystemStream:
            text = f"SELECT * FROM {kind.full_name} [RANGE UNBOUNDED]"
            db.execute(f"CREATE QUERY of_{kind.value} AS {text}")
        db.start()
        for at in range(4):
            db.push("s", {"k": 1, "v": 2**62 * (at % 2), "ts": at})
            db.push("t", {"k": 1, "v": 2, "ts": at})
        live = execution_of(db)._live
        assert live is not None
        wait_for(lambda: not live.lanes.waits)
        status = db.status
        assert len(status.lanes) > 2
        assert any(OF_A_LANE.search(name) for name in run_of(db).reading.queries.inputs)
        shown: dict[str, Any] = {view: told(db, view) for view in VIEWS}
        shown |= {one.name: getattr(status, one.name) for one in fields(status) if one.name != "graph"}
        shown |= {query.name: query.changes().to_pylist() for query in db.queries if query.name[:3] == "of_"}
        shown |= {"why": [db.why(name) for name in ("r", "m", "y", "letters")]}
        shown |= {"dead letters": db.dead_letters().to_pylist(), "log": caplog.text}
        shown |= {"letters": db["letters"].changes().to_pylist(), "status": str(status)}
        assert {name: str(what) for name, what in shown.items() if OF_A_LANE.search(str(what))} == {}
        assert "Source s (" in shown["EXPLAIN ANALYZE r"]


def test_a_plan_of_a_lane_is_the_declared_one_again() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(DEFINED.replace("SELECT * FROM", "SELECT k FROM"))
        for query in db.queries:
            plan = query.plan
            behind = plan_behind(plan, 7)
            assert behind != plan
            assert declared_plan(behind) == plan
            assert declared_plan(plan) is plan
