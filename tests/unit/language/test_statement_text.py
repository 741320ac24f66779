"""Statements as text: the parser makes the same statement of it again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from headrace.errors import NOWHERE, Position
from headrace.language.parsing.parser import parse_one
from headrace.language.parsing.pieces import Piece, pieces_of
from headrace.language.statement_text import query_text, relation_text, sink_text, skew_text, stream_text
from headrace.language.statements.sinks import CreateSink
from headrace.language.statements.statements import Consistency, CreateQuery
from headrace.language.statements.streams import CreateRelation, CreateSkew, CreateStream, TimeClauses
from headrace.scheduling.priority import Priority

PUSHED = "CREATE STREAM s (k STRING, v DECIMAL(10, 2), ts TIMESTAMP) FROM push TIMESTAMP BY ts"


def placeless(part: Any) -> Any:
    """A statement without the places of its parts."""
    match part:
        case Position():
            return NOWHERE
        case tuple():
            return tuple(map(placeless, part))
        case _ if is_dataclass(part) and not isinstance(part, type):
            return replace(part, **{one.name: placeless(getattr(part, one.name)) for one in fields(part)})
        case _:
            return part


def text_of(statement: object) -> str:
    match statement:
        case CreateStream():
            return stream_text(statement)
        case CreateRelation():
            return relation_text(statement)
        case CreateSkew():
            return skew_text(statement)
        case CreateQuery():
            return query_text(statement)
        case CreateSink():
            return sink_text(statement)
    raise AssertionError(statement)


@pytest.mark.parametrize(
    "text",
    [
        PUSHED,
        "CREATE QUERY q LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s",
        "CREATE QUERY q LOSS TOLERANT BY `v w` (-0.25: 0.5, 75: 1) AS SELECT v AS `v w` FROM s",
        "CREATE QUERY q WEIGHT 0 AS SELECT v FROM s",
        "CREATE QUERY q WEIGHT 0.5 LATENCY 250 MILLISECONDS CONSISTENCY MIDDLE AS SELECT v FROM s",
        "CREATE QUERY q QOS DELAY (0, 1), (5 SECONDS, 0.25) WEIGHT 2 AS SELECT v FROM s",
        "CREATE QUERY q LATENCY 1 MINUTE QOS (DELAY (0.0000015 SECONDS, 1), (1 HOUR, 0)) AS SELECT v FROM s",
        "CREATE QUERY q WEIGHT 2 LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s",
        "CREATE QUERY q WITHIN 5 PERCENT AS SELECT COUNT(*) AS n FROM s",
        "CREATE QUERY q WITHIN 0.5 PERCENT CONFIDENCE 99 AS SELECT COUNT(*) AS n FROM s",
        "CREATE QUERY q LOSS TOLERANT (0.2: 0.5, 0.75: 0.8) CONFIDENCE 99.5 AS SELECT COUNT(*) AS n FROM s",
        "CREATE STREAM `a b` (`select` BIGINT, `x``y` DATE) FROM push OPTIONS (max_rows_per_epoch 5) "
        "TIMESTAMP BY `select`",
        "CREATE STREAM s FROM csv OPTIONS (path 'it''s \\\\ here.csv', header true) TIMESTAMP BY ts",
        "CREATE STREAM s FROM kafka OPTIONS ('kafka.bootstrap.servers' 'h:1', subscribe 'a') TIMESTAMP BY ts",
        "CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY ARRIVAL",
        "CREATE STREAM s (at STRING) FROM push TIMESTAMP BY TO_TIMESTAMP(at, 'dd/MM/yyyy') STRICT",
        "CREATE STREAM s FROM csv OPTIONS (path 'a') TIMESTAMP BY at::TIMESTAMP AS `the time`",
        "CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY ARRIVAL AS at DEAD LETTERS KEEP ALL",
        "CREATE STREAM s (arrival BIGINT) FROM push TIMESTAMP BY `arrival`",
        f"{PUSHED} DISORDER 5 SECONDS LATENCY 2 SECONDS IDLE AFTER 30 SECONDS TIMEOUT 1 MINUTE",
        f"{PUSHED} DISORDER 5 SECONDS DISORDER 10 ROWS HEARTBEATS FROM v DEAD LETTERS KEEP 7 DAYS",
        f"{PUSHED} AT MOST 1 DAY AHEAD DEVIATION 2 SECONDS FROM gateway RATE 9 SECONDS PER 10 SECONDS",
        f"{PUSHED} DEVIATION 2 SECONDS",
        f"{PUSHED} DISORDER FOR 99.9 PERCENT",
        f"{PUSHED} STRICT",
        f"{PUSHED} ESTIMATED",
        f"{PUSHED} ESTIMATED (WINDOW 100 ROWS, ALPHA 0.5)",
        f"{PUSHED} ESTIMATED (WINDOW 2 MINUTES) PER k OF ('a', 'it''s') WAIT 1 MINUTE",
        f"{PUSHED} PER k OF device (id)",
        f"{PUSHED} PER k OF (1, -2)",
        f"{PUSHED} DISORDER 2 SECONDS RETAIN 2 HOURS",
        f"{PUSHED} RETAIN 1000 ROWS DEAD LETTERS KEEP 1 DAY",
        f"{PUSHED} RETAIN ALL",
        f"{PUSHED} RETAIN ALL OVERFLOW DROP OLDEST DEAD LETTERS KEEP ALL",
        f"{PUSHED} CORRECTIONS WITHIN 72 HOURS",
        "CREATE STREAM s (v BIGINT, a BIGINT, b BIGINT) FROM push VALID FROM a TO b",
        "CREATE STREAM s (v BIGINT, op STRING, a BIGINT, n BIGINT) FROM push CHANGES BY op VALID FROM a "
        "VERSION BY n DISORDER 5",
        "CREATE STREAM s (v BIGINT, op STRING, a BIGINT) KEY (v) FROM push CHANGES BY op TIMESTAMP BY a",
        "CREATE STREAM s FROM csv OPTIONS (path 'a.csv') FORMAT CEDR",
        "CREATE STREAM s FROM csv OPTIONS (path 'a.csv') FORMAT CEDR COUNT BY n HEARTBEATS FROM CTI",
        "CREATE RELATION s (id BIGINT, __source_lsn BIGINT, __ts_ms BIGINT) KEY (id) FROM json "
        "OPTIONS (path 'a') FORMAT DEBEZIUM TIMESTAMP BY __ts_ms VERSION BY __source_lsn",
        "CREATE STREAM s (id BIGINT) KEY (id) FROM json OPTIONS (path 'x') FORMAT DEBEZIUM",
        "CREATE STREAM s (id BIGINT) KEY (id) FROM kafka OPTIONS (brokers 'b', topic 't', form 'upsert')",
        "CREATE RELATION r (id BIGINT, v DOUBLE) KEY (id) FROM kafka OPTIONS (brokers 'b', topic 't', form "
        "'upsert') DISORDER 5 SECONDS PER _partition IDLE AFTER 1 MINUTE",
        "CREATE STREAM s FROM json OPTIONS (path 'x') FORMAT DEBEZIUM TIMESTAMP BY __ts_ms VERSION BY "
        "__source_lsn DISORDER 5 SECONDS",
        "CREATE RELATION r (id BIGINT, n STRING) KEY (id, n) FROM csv OPTIONS (path 'r.csv')",
        "CREATE RELATION r FROM parquet OPTIONS (path 'r') REFRESH ON DEMAND",
        "CREATE RELATION r FROM parquet OPTIONS (path 'r') REFRESH EVERY 5 MINUTES",
        "CREATE RELATION r (id BIGINT, a BIGINT, b BIGINT) FROM csv OPTIONS (path 'r.csv') VALID FROM a TO b",
        "CREATE RELATION r (op STRING, id BIGINT, ts BIGINT, n BIGINT) KEY (id) FROM push CHANGES BY op "
        "TIMESTAMP BY ts VERSION BY n DISORDER 3",
        "CREATE SKEW BETWEEN a AND (b, c) (0 SECONDS, 5 SECONDS), (10 ROWS, STRICT)",
        "CREATE SKEW FROM a TO b ESTIMATED (WINDOW 10 ROWS, WAIT 10 SECONDS)",
        "CREATE SKEW AMONG a, b, c (1 MINUTE, 2 MINUTES)",
        "CREATE QUERY q AS SELECT 'a''b' AS x, v -- no\n FROM s [RANGE 5]",
        "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (BLOCK 5 SECONDS) AS (SELECT v FROM s) UNION ALL SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY WEAK AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (OUTPUT MAXIMAL) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (OUTPUT MAXIMAL, REMEMBER 1 MINUTE) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (BLOCK 5 SECONDS BY ARRIVAL) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (BLOCK 100 ROWS, REMEMBER 1 MINUTE) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (REMEMBER 1 MINUTE) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (REMEMBER 1000 ROWS) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (BLOCK 5 ROWS, REMEMBER 1 MINUTE BY ARRIVAL) AS SELECT v FROM s",
        "CREATE QUERY q CONSISTENCY (BLOCK 0 SECONDS, REMEMBER 1 MINUTE) AS SELECT v FROM s",
        "CREATE QUERY q STARTING AT '2024-01-01T00:00:00Z' AS SELECT v FROM s",
        "CREATE QUERY q FROM -2 HOURS AS SELECT v FROM s",
        "CREATE QUERY q FROM BEGINNING AS SELECT v FROM s",
        "CREATE QUERY q HEARTBEATS COMMON AS SELECT v FROM s",
        "CREATE SINK `a b` FOR `select` TO parquet OPTIONS (path 'it''s', attempts 3)",
        "CREATE SINK a FOR q TO kafka OPTIONS (topic 't', 'sasl.password' SECRET 'broker')",
        "CREATE SINK a FOR q TO webhook",
    ],
)
def test_the_text_of_a_statement_is_the_statement(text: str) -> None:
    statement = parse_one(text)
    written = text_of(statement)
    again = parse_one(written)
    if isinstance(statement, CreateQuery):
        assert isinstance(again, CreateQuery)
        assert again.text == statement.text
        clauses = (
            (one.heartbeats, placeless(one.consistency), placeless(one.start), one.priority)
            for one in (again, statement)
        )
        assert len(set(clauses)) == 1
    else:
        assert placeless(again) == placeless(statement)
    assert text_of(again) == written


def test_every_part_of_a_statement_is_written() -> None:
    """A part that is added is to be written by `language.statement_text`, or a restart forgets it."""
    names = {kind: {one.name for one in fields(kind)} for kind in (CreateStream, TimeClauses, CreateQuery)}
    assert names[CreateStream] == {
        *("name", "columns", "format", "options", "timestamp", "time", "position", "timestamp_position"),
        *("key", "events", "records", "computed"),
        # A statement's own: what there is afterwards is the same with it and without.
        "replaces",
    }
    assert names[TimeClauses] == {
        *("disorder", "rows", "percent", "estimation", "strict", "latency", "idle_after", "timeout"),
        *("ahead", "behind", "heartbeats", "deviation", "rate", "per", "letters", "retain", "overflow"),
    }
    assert {one.name for one in fields(Consistency)} == {
        *("block", "position", "remember", "unit", "maximal", "memory"),
    }
    # How a query once started, by `warm`, or came to its name, by `replaces`, is not part of its definition.
    assert names[CreateQuery] == {
        *("name", "query", "position", "warm", "heartbeats", "consistency", "start", "text", "replaces"),
        *("loss", "priority"),
    }
    assert {one.name for one in fields(Priority)} == {"weight", "bound", "delay"}


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("SELECT v FROM s", "SELECT v FROM s"),
        ("CREATE QUERY q AS SELECT v\nFROM s -- all\n  -- of it\n", "SELECT v\nFROM s"),
        ("SELECT '-- x' AS c FROM s", "SELECT '-- x' AS c FROM s"),
        ("SELECT v -- first\n FROM s", "SELECT v -- first\n FROM s"),
    ],
)
def test_the_body_of_a_text(text: str, body: str) -> None:
    found = pieces_of(text)
    assert found is not None
    (piece,) = found
    assert isinstance(piece, Piece)
    assert piece.body == body
