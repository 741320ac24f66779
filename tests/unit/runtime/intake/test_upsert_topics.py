"""Compacted topics as relations: what a sink writes in the form upsert is read back as it was."""

from __future__ import annotations

import http.server
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.runtime.delivery.topic import TopicSink
from kafka_broker import kafka_broker
from kafka_topics import Topic
from waiting import wait_until

CHANGE = ("epoch", "valid_from", "valid_to", "change")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@contextmanager
def registry() -> Iterator[str]:
    """A schema registry that takes every schema."""
    known: list[str] = []

    class Registry(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
            known.append(schema)
            self._say({"id": len(known)})

        def do_GET(self) -> None:
            self._say({"schema": known[int(self.path.rpartition("/")[2]) - 1]})

        def _say(self, answer: dict[str, Any]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def content(db: hr.Database, name: str = "q") -> list[dict[str, Any]]:
    """The rows that nothing has ended so far."""
    found: Counter[str] = Counter()
    rows = {}
    for row in db.queries[name].changes().to_pylist():
        known = {column: row[column] for column in row if column not in CHANGE}
        rows[repr(known)] = known
        if row["valid_to"] is None:
            found[repr(known)] += row["change"]
    return [rows[text] for text in sorted(found.elements())]


def relation(topic: Topic, columns: str, key: str, more: str = "") -> str:
    return (
        f"CREATE RELATION r ({columns}) KEY ({key}) FROM kafka "
        f"OPTIONS (brokers '{topic.broker}', topic '{topic.name}', form 'upsert'{more})"
    )


@pytest.mark.parametrize("form", ["json", "avro"])
def test_what_a_sink_writes_is_read_back_as_the_table_it_was(broker: str, tmp_path: Path, form: str) -> None:
    topic = Topic(broker, 3, cleanup_policy="compact")
    columns = (
        "k STRING, n BIGINT, total DOUBLE, d DECIMAL(12, 2), at TIMESTAMP, vs ARRAY<BIGINT>, "
        "m STRUCT<a BIGINT, b STRING>, w BOOLEAN"
    )
    query = (
        "SELECT k, COUNT(*) AS n, SUM(CAST(v AS DOUBLE) / 2) AS total, CAST(SUM(v) AS DECIMAL(12, 2)) AS d, "
        "MAX(CAST(TIMESTAMP_SECONDS(ts) AS TIMESTAMP)) AS at, ARRAY_AGG(v) AS vs, "
        "MAX_BY(STRUCT(v AS a, k AS b), v) AS m, MAX(v) > 3 AS w FROM p [RANGE 5] GROUP BY k"
    )
    with registry() as url, hr.connect(runner="inline") as db, hr.connect(runner="inline") as reader:
        db.execute("CREATE STREAM p (ts BIGINT, k STRING, v BIGINT) FROM push TIMESTAMP BY ts")
        db.query(query, "q").deliver(
            TopicSink(
                topic.name,
                broker,
                form="upsert",
                format=form,
                schema_registry=url if form == "avro" else None,
            )
        )
        more = f", format 'avro', schema_registry '{url}'" if form == "avro" else ""
        reader.execute(relation(topic, columns, "k", more))
        reader.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT k, n, total, d, at, vs, m, w FROM r")
        reader.start()
        db.start()
        for ts, k, v in [
            (1, "a", 1),
            (1, 'ä"x', 2),
            (2, "b", 3),
            (3, "a", 4),
            (4, "", 5),
            (8, "b", 6),
            (9, "c", 7),
        ]:
            db.push("p", {"ts": ts, "k": k, "v": v})
            heartbeat = db.status.streams[0].heartbeat
            expected = sorted(db["q"].snapshot(at=heartbeat - 1).to_pylist(), key=repr)
            wait_until(lambda: content(reader), expected)
        # Rows have gone as well.
        assert {one["k"] for one in expected} == {"b", ""}
        assert reader.dead_letters().num_rows == 0


def test_keys_of_any_format_and_messages_that_are_no_upserts(broker: str) -> None:
    topic = Topic(broker, 2)
    for key, value in [
        ("1", {"n": 1}),
        ("2", {"n": 2}),
        ("1", {"n": 3}),
        ("2", None),
        ("3", {"n": 9, "k": 8}),
    ]:
        topic.send(value, key=key, partition=int(key) % 2)
    topic.send({"n": 4})
    topic.send({"n": 5}, key="x")
    topic.send(b"no", key="4")
    topic.send(None, key="7")
    with hr.connect(runner="inline") as db:
        db.execute(relation(topic, "k BIGINT, n BIGINT, _offset BIGINT", "k", ", key_format 'csv'"))
        db.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT k, n, _offset FROM r")
        db.start()
        wait_until(lambda: content(db), [{"k": 1, "n": 3, "_offset": 1}, {"k": 3, "n": 9, "_offset": 2}])
        wait_until(lambda: db.dead_letters().num_rows, 3)
        letters = {one["place"].partition("/")[2]: one["reason"] for one in db.dead_letters().to_pylist()}
        assert letters == {
            "0:2": "the message has no key",
            "0:3": "its key cannot be read: k is not a valid BIGINT: 'x'",
            "0:4": "the line is not one JSON object",
        }
        assert [one["row"] for one in db.dead_letters().to_pylist()][1] == '{"n": 5}'


def test_keys_as_they_are_and_streams_of_upserts(broker: str) -> None:
    topic = Topic(broker)
    topic.send({"n": 1}, key="a")
    topic.send({"n": 2}, key="b")
    topic.send(None, key="a")
    text = relation(topic, "_key STRING, n BIGINT", "_key").replace("RELATION r", "STREAM s")
    with hr.connect(runner="inline") as db:
        db.execute(relation(topic, "_key STRING, n BIGINT", "_key"))
        db.execute(text)
        db.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT _key AS k, n FROM r")
        db.execute("CREATE QUERY t CONSISTENCY MIDDLE AS SELECT _key AS k, n FROM s")
        db.start()
        for name in ("q", "t"):
            wait_until(lambda: content(db, name), [{"k": "b", "n": 2}])  # noqa: B023


def test_partitions_of_other_ages_lose_nothing(broker: str, tmp_path: Path) -> None:
    day = 24 * 3600 * 1000
    topic = Topic(broker, 3)
    for n in range(9):
        at = 1_700_000_000_000 + (n // 3) * 100 * day
        topic.send({"n": n}, key=json.dumps({"k": n}), partition=n % 3, timestamp=at + (2 - n % 3) * 30 * day)
    expected = [{"k": n, "n": n} for n in range(9)]
    for _ in range(2):
        with hr.connect(runner="inline", storage=tmp_path / "s", epoch_rows=4) as db:
            db.execute(relation(topic, "k BIGINT, n BIGINT", "k"))
            db.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT k, n FROM r")
            db.start()
            wait_until(lambda: content(db), expected)
            (seen,) = db.status.streams
            assert (seen.late, seen.overdue, seen.rejected) == (0, 0, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "STREAM r (k BIGINT) FROM kafka OPTIONS (brokers 'b', topic 't', form 'upsert')",
            "upserts are by key",
        ),
        (
            "RELATION r (k BIGINT) FROM kafka OPTIONS (brokers 'b', topic 't', form 'upsert')",
            "upserts are by key",
        ),
        (
            "RELATION r (k BIGINT) KEY (k) FROM kafka OPTIONS (brokers 'b', topic 't')",
            "is not read from the messages",
        ),
        (
            "RELATION r (k BIGINT) KEY (k) FROM kafka OPTIONS (brokers 'b', topic 't, u', form 'upsert')",
            "upserts are of one topic",
        ),
        (
            "RELATION r (k BIGINT, _key STRING) KEY (k, _key) FROM kafka "
            "OPTIONS (brokers 'b', topic 't', form 'upsert')",
            "_key alone",
        ),
        (
            "RELATION r (k BIGINT, ts TIMESTAMP) KEY (k) FROM kafka "
            "OPTIONS (brokers 'b', topic 't', form 'upsert') TIMESTAMP BY ts",
            "upserts are timed by _timestamp",
        ),
        (
            "RELATION r (k BIGINT) KEY (k) FROM kafka OPTIONS (brokers 'b', topic 't', form 'upsert') "
            "FORMAT DEBEZIUM",
            "the form upsert says what",
        ),
        (
            "STREAM r (k BIGINT) FROM kafka OPTIONS (brokers 'b', topic 't', key_format 'x') TIMESTAMP BY k",
            "the option key_format is 'x'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_hint(text: str, message: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match=message) as found:
        db.execute(f"CREATE {text}")
    assert found.value.hint
    assert found.value.position is not None


def test_a_compacted_topic_gets_a_column(broker: str, tmp_path: Path) -> None:
    """What was read before it has NULL there, what comes has it, after a restart too."""
    topic = Topic(broker)

    def is_there(expected: list[dict[str, Any]]) -> None:
        wait_until(lambda: content(db, "wide"), expected)

    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(relation(topic, "id BIGINT, n BIGINT", "id", ", key_format 'csv'"))
        db.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT * FROM r")
        db.start()
        topic.send({"n": 1}, key="1")
        topic.send({"n": 2}, key="2")
        wait_until(lambda: len(content(db)), 2)
        db.execute("ALTER STREAM r ADD COLUMN c STRING")
        db.execute("CREATE QUERY wide CONSISTENCY MIDDLE AS SELECT id, c FROM r")
        topic.send({"n": 3, "c": "x"}, key="1")
        topic.send({"n": 4, "c": "y"}, key="3")
        wait_until(lambda: len(content(db)), 3)
        is_there([{"id": 1, "c": "x"}, {"id": 3, "c": "y"}])
        db.stop()
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.start()
        topic.send(None, key="1")
        is_there([{"id": 3, "c": "y"}])
        assert "c" not in db["q"].schema.names
        db.stop()
