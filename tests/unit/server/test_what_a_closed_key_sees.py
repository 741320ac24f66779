"""What is written in the queries of others is in no answer to a key that may not see it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, get_args

import httpx
import pytest

from headrace.language.parsing.parser import parse
from headrace.language.statements.statements import Statement
from headrace.server.keys import KeyFile, Role
from unit.server.serving_for_tests import running

MARKS: Final = ("770011", "sesame")
"""What is in the conditions of the queries, and in nothing else."""
DEFINED: Final = """CREATE STREAM r (ts BIGINT, v BIGINT, k STRING) FROM push TIMESTAMP BY ts;
CREATE STREAM q (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY theirs AS SELECT k, COUNT(*) AS n FROM r [RANGE 5]
  WHERE v <> 7700110 AND k <> 'sesame' GROUP BY k;
CREATE QUERY near AS SELECT r.v FROM r, q
  WHERE q.ts BETWEEN r.ts - 7700112 AND r.ts + 7700113 AND q.v > 7700114;
CREATE QUERY failing AS SELECT v + CAST(9223372036854000000 + 770011 AS BIGINT) AS x FROM r [NOW]
  WHERE k LIKE 'sesame%' OR v > 0;
CREATE QUERY paused AS SELECT v FROM r [NOW] WHERE v > 7700115;
ALTER QUERY paused PAUSE"""
QUERIES: Final = ("theirs", "near", "failing", "paused")
LINES: Final = {"Content-Type": "application/x-ndjson"}
ROWS: Final = '{"ts": 1, "v": 1, "k": "a"}\n{"ts": 2, "v": 9223372036854775807, "k": "b"}'


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], httpx.Client]]:
    folder = tmp_path_factory.mktemp("closed")
    with running(folder) as url:
        file = KeyFile(folder / "keys.json")
        keys = {role.value: file.add(role.value, role) for role in Role}

        def by(role: str) -> httpx.Client:
            return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {keys[role]}"}, timeout=60)

        with by("admin") as admin:
            made = admin.post("/statements", json={"text": DEFINED})
            assert made.status_code == 200, made.text
            assert admin.post("/streams/r/rows", content=ROWS, headers=LINES).status_code == 200
            assert (
                admin.post("/streams/q/rows", content='{"ts": 1, "v": 1}', headers=LINES).status_code == 200
            )
        yield by


def marked(text: str) -> bool:
    # Seconds and rates may have any digits behind the point.
    return any(mark in re.sub(r"\.\d+", ".", text) for mark in MARKS)


ROUTES: Final[dict[str, list[str]]] = {
    "/healthz": ["/healthz"],
    "/readyz": ["/readyz"],
    "/metrics": ["/metrics"],
    "/completions": [],
    "/statements": [],
    "/ask": [],
    "/queries/{name}/events": [],
    "/status/events": [],
    "/status/hour": ["/status/hour"],
    "/queries/{name}/recent": [f"/queries/{one}/recent?past=5" for one in QUERIES],
    "/streams/{name}/rows": [],
    "/streams/{name}/heartbeat": [],
    "/streams/{name}/tail": ["/streams/r/tail"],
    "/queries/{name}/snapshot": [
        "/queries/theirs/snapshot?at=1",
        "/queries/theirs/snapshot?last=3",
        "/queries/failing/snapshot",
    ],
    "/queries/{name}/tail": [f"/queries/{one}/tail" for one in QUERIES],
    "/queries/{name}/difference": ["/queries/theirs/difference?since=1"],
    "/queries/{name}/{view}": [
        f"/queries/{one}/{view}"
        for one in ("theirs", "failing", "paused")
        for view in ("history", "changes", "stream", "epochs", "history?tunings=true")
    ],
    "/streams": ["/streams"],
    "/streams/{name}": ["/streams/r", "/streams/q"],
    "/relations": ["/relations"],
    "/relations/{name}": [],
    "/queries": ["/queries"],
    "/queries/{name}": [f"/queries/{one}" for one in QUERIES],
    "/sinks": ["/sinks"],
    "/sinks/{name}": ["/sinks/nothing"],
    "/catalog": ["/catalog"],
    "/status": ["/status"],
    "/why/{name}": [f"/why/{one}" for one in QUERIES],
    "/explain": [f"/explain?query={one}" for one in QUERIES],
    "/store/check": ["/store/check"],
    "/dead-letters": ["/dead-letters"],
    "/dead-letters/{stream}": ["/dead-letters/r"],
}
"""By each route, what is asked of it with GET; others are asked below, or have nothing to show."""


def test_every_route_has_been_judged(client: Callable[[str], httpx.Client]) -> None:
    with client("read") as one:
        assert set(one.get("/openapi.json").json()["paths"]) == set(ROUTES), "what does a new one show?"
        assert not marked(one.get("/openapi.json").text)


@pytest.mark.parametrize("path", [path for paths in ROUTES.values() for path in paths])
@pytest.mark.parametrize("role", ["read", "write"])
def test_no_answer_shows_what_is_written_in_a_query(
    client: Callable[[str], httpx.Client], role: str, path: str
) -> None:
    with client(role) as one:
        answer = one.get(path)
        assert answer.status_code < 500
        assert not marked(answer.text)


def test_the_administrator_sees_it(client: Callable[[str], httpx.Client]) -> None:
    paths = ("/catalog", "/status", "/explain?query=theirs", "/metrics", "/dead-letters/r")
    with client("admin") as one:
        assert [path for path in paths if not marked(one.get(path).text)] == ["/dead-letters/r"]


STATEMENTS: Final = (
    "CREATE STREAM theirs (ts BIGINT) FROM push TIMESTAMP BY ts",
    "CREATE STREAM d AS SELECT v FROM theirs",
    "CREATE RELATION theirs KEY (v) FROM csv OPTIONS (path 'a.csv')",
    "CREATE QUERY theirs AS SELECT v FROM r",
    "CREATE OR REPLACE QUERY theirs AS SELECT v FROM r",
    "CREATE QUERY mine AS SELECT k, COUNT(*) AS n FROM r [RANGE 5] WHERE v <> 5 GROUP BY k",
    "CREATE SINK f FOR theirs TO csv OPTIONS (path 'a')",
    "CREATE SKEW BETWEEN r AND q (0, 5)",
    "SELECT x FROM theirs",
    "EXPLAIN SELECT k, COUNT(*) AS n FROM r [RANGE 5] WHERE v <> 5 GROUP BY k",
    "EXPLAIN ANALYZE theirs",
    "EXPLAIN COST SELECT v FROM r [NOW]",
    "EXPLAIN SELECT * FROM theirs", "EXPLAIN OPTIMIZED SELECT * FROM near",
    "EXPLAIN COST SELECT * FROM theirs",
    "EXPLAIN COST CREATE QUERY n AS SELECT * FROM theirs",
    "CREATE QUERY IF NOT EXISTS theirs AS SELECT v FROM r", "DROP QUERY IF EXISTS theirs",
    "EXPLAIN SHARED",
    "EXPLAIN REPLACE theirs AS SELECT v FROM r",
    "SHOW QUERIES", "SHOW STREAMS", "SHOW RELATIONS", "SHOW SINKS", "SHOW SKEWS", "SHOW FUNCTIONS",
    "SHOW SETTINGS", "SHOW TUNINGS", "SHOW TUNINGS FOR theirs", "SHOW MANAGER", "SHOW SHEDDING", "SHOW LANES",
    "SHOW CREATE QUERY theirs", "SHOW CREATE QUERY near", "SHOW CREATE QUERY paused",
    "DESCRIBE theirs", "DESCRIBE QUERY near", "DESCRIBE failing", "DESCRIBE paused", "DESCRIBE r",
    "WHY theirs", "WHY failing",
    "DROP QUERY theirs", "DROP STREAM r", "DROP RELATION theirs", "DROP SINK f",
    "ALTER STREAM r DISORDER 5", "ALTER STREAM r ADD COLUMN w BIGINT",
    "ALTER QUERY theirs PAUSE", "ALTER QUERY paused RESUME", "ALTER QUERY theirs RENAME TO other",
    "ALTER QUERY theirs SET CONSISTENCY MIDDLE", "ALTER QUERY theirs REOPTIMIZE",
    "ALTER QUERY theirs SET (WINDOW 5)",
    "ALTER QUERY theirs SET (KEEP 0.5)", "ALTER QUERY theirs SET (KEEP UTILITY 0.5)",
    "ALTER QUERY theirs SET (WEIGHT 0)", "ALTER QUERY theirs SET (LATENCY 1 SECOND)",
    "ALTER QUERY theirs SET (QOS (DELAY (0, 1)))", "EXPLAIN ALTER QUERY theirs SET (WEIGHT 0)",
    "EXPLAIN ALTER QUERY theirs PAUSE", "EXPLAIN ALTER QUERY theirs SET (KEEP 0.5)",
    "COMMENT ON QUERY theirs IS 'x'",
    "REFRESH RELATION theirs", "REPLAY DEAD LETTERS OF r", "SET dialect = 'cql'", "SET epoch_rows = 5",
    "SET latency_bound = '2 SECONDS'", "SET processing_limit = 1.5",
    "SET scheduling = 'fifo'",
)  # fmt: skip


def test_every_kind_of_statement_has_been_judged() -> None:
    kinds = {type(one) for text in STATEMENTS for one in parse(text)}
    assert kinds >= set(get_args(Statement)), "what does a new one show?"


@pytest.mark.parametrize("text", STATEMENTS)
@pytest.mark.parametrize("role", ["read", "write"])
def test_no_statement_shows_what_is_written_in_a_query(
    client: Callable[[str], httpx.Client], role: str, text: str
) -> None:
    with client(role) as one:
        answer = one.post("/statements", json={"text": text})
        assert answer.status_code < 500
        assert not marked(answer.text), answer.text


@pytest.mark.parametrize("role", ["read", "write"])
def test_nothing_that_is_sent_or_watched_shows_it(client: Callable[[str], httpx.Client], role: str) -> None:
    shown = []
    with client(role) as one:
        for path in ("/status/events", "/queries/theirs/events", "/queries/failing/events"):
            with one.stream("GET", path) as events:
                for line in events.iter_lines():
                    shown.append(line)
                    if line.startswith("data") or len(shown) > 40:
                        break
        for sql in (
            "FROM DEAD LETTERS", "FROM DEAD LETTERS OF r", "FROM HISTORY OF theirs",
            "FROM HISTORY OF nothing",            "SHOW TABLES", "FROM headrace.queries",
            "FROM duckdb_views()", "FROM duckdb_settings()",
        ):  # fmt: skip
            shown.append(one.post("/ask", json={"sql": sql}).text)
        for text in (
            "SELECT ",
            "SELECT * FROM ",
            "DESCRIBE ",
            "CREATE QUERY x AS SELECT n FROM theirs WHERE ",
        ):
            shown.append(one.post("/completions", json={"text": text, "at": len(text)}).text)
        if role == "write":
            again = json.dumps({"ts": 3, "v": 9223372036854775806, "k": "c"})
            shown.append(one.post("/streams/r/rows", content=again, headers=LINES).text)
            shown.append(one.post("/streams/r/rows", content='{"ts": "x"}', headers=LINES).text)
            shown.append(one.post("/streams/r/heartbeat", json={"at": 5}).text)
        for method, path in (("DELETE", "/queries/theirs"), ("DELETE", "/sinks/f"), ("DELETE", "/streams/r")):
            shown.append(one.request(method, path).text)
    assert [text for text in shown if marked(text)] == []
