"""A query's changes in a Kafka topic: exactly once with a real broker, whatever is killed around a commit."""

from __future__ import annotations

import http.server
import io
import json
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import warm_processes
from headrace import Query, Retry, TopicSink, UserError, connect
from kafka_broker import kafka_broker

INPUT = pa.table({"ts": [1, 2, 3, 4, 6], "k": ["a", "b", "a", None, None], "v": [1, 5, 2, 3, 4]})
TOTALS = "SELECT k, SUM(v) AS total FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def made(broker: str, topic: str) -> str:
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": broker})
    client.create_topics([admin.NewTopic(topic, 1, 1)])[topic].result(30)
    return topic


def read(broker: str, topic: str) -> list[tuple[Any, Any]]:
    """All committed records: keys and values of JSON."""
    return [
        (json.loads(key), None if value is None else json.loads(value))
        for key, value in records(broker, topic)
    ]


def records(broker: str, topic: str) -> list[tuple[Any, Any]]:
    """All committed records: keys and values."""
    kafka = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": broker, "group.id": "reader", "enable.partition.eof": True}
    consumer = kafka.Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([kafka.TopicPartition(topic, 0, 0)])
    found: list[tuple[Any, Any]] = []
    try:
        while True:
            record = consumer.poll(30)
            assert record is not None, "the topic has no end"
            if record.error() is not None:
                assert record.error().code() == kafka.KafkaError._PARTITION_EOF, record.error()
                return found
            found.append((record.key(), record.value()))
    finally:
        consumer.close()


def expected(query: Query) -> list[tuple[Any, ...]]:
    rows = query.changes().to_pylist()
    return [({"k": row["k"]}, row["total"], row["epoch"], row["change"]) for row in rows]


def seen(broker: str, topic: str) -> list[tuple[Any, ...]]:
    rows = read(broker, topic)
    return [(key, value["total"], value["epoch"], value["change"]) for key, value in rows]


KILLED = """
import json, os, signal, sys
import pyarrow as pa
from headrace import TopicSink, connect

folder, broker, topic, side, sql, more = sys.argv[1:]

class Mortal(TopicSink):
    commits = 0

    def _commit(self):
        self.commits += 1
        if self.commits == 2 and side == "before":
            self._producer.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        super()._commit()
        if self.commits == 2:
            os.kill(os.getpid(), signal.SIGKILL)

with connect(runner="inline", epoch_rows=2, storage=f"{folder}/store") as db:
    columns = {"ts": [1, 2, 3, 4, 6], "k": ["a", "b", "a", None, None], "v": [1, 5, 2, 3, 4]}
    db.stream("s", pa.table(columns), timestamp="ts")
    db.query(sql, name="totals").deliver(Mortal(topic, broker, key="k", **json.loads(more)))
    db.run()
"""


@pytest.mark.slow("kills a process beside a broker")
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_process_that_is_killed_around_a_commit_goes_on(broker: str, tmp_path: Path, side: str) -> None:
    topic = made(broker, f"totals-{side}")
    command = [sys.executable, "-c", KILLED, str(tmp_path), broker, topic, side, TOTALS, "{}"]
    killed = warm_processes.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert {epoch for _, _, epoch, _ in seen(broker, topic)} == ({1} if side == "before" else {1, 2})
    with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        db.stream("s", INPUT, timestamp="ts")
        query = db.query(TOTALS, name="totals")
        query.deliver(TopicSink(topic, broker, key="k"))
        db.run()
        assert seen(broker, topic) == expected(query)


COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 2] GROUP BY k"


@pytest.mark.slow("kills a process beside a broker")
@pytest.mark.parametrize("side", ["before", "after"])
def test_upserts_go_on_after_a_kill_with_what_was_said_of_later_instants(
    broker: str, tmp_path: Path, side: str
) -> None:
    topic = made(broker, f"upserts-{side}")
    more = json.dumps({"form": "upsert"})
    command = [sys.executable, "-c", KILLED, str(tmp_path), broker, topic, side, COUNTS, more]
    killed = warm_processes.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        db.stream("s", INPUT, timestamp="ts")
        db.query(COUNTS, name="totals").deliver(TopicSink(topic, broker, key="k", form="upsert"))
        db.run()
    undisturbed = made(broker, f"upserts-not-{side}")
    with connect(runner="inline", epoch_rows=2) as db:
        db.stream("s", INPUT, timestamp="ts")
        db.query(COUNTS, name="totals")
        db.execute(
            "CREATE SINK x FOR totals TO kafka "
            f"OPTIONS (brokers '{broker}', topic '{undisturbed}', form 'upsert')"
        )
        db.run()
    found = read(broker, topic)
    assert found == read(broker, undisturbed)
    assert found[:2] == [({"k": "a"}, {"k": "a", "n": 1}), ({"k": "b"}, {"k": "b", "n": 1})]
    assert sorted(found[2:], key=repr) == [({"k": "a"}, None), ({"k": "b"}, None)]


def test_avro_with_a_registry(broker: str) -> None:
    fastavro = pytest.importorskip("fastavro")
    topic, registered = made(broker, "avro"), list[tuple[str, Any]]()

    class Registry(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            registered.append((self.path, json.loads(body["schema"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"id": 40 + len(registered)}).encode())

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    query = (
        "SELECT k, SUM(v) AS total, MAX(TIMESTAMP '2026-01-02 03:04:05') AS at, "
        "CAST(SUM(v) AS DECIMAL(10, 2)) AS d, ARRAY_AGG(v) AS vs FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k"
    )
    with connect(runner="inline") as db:
        db.stream("s", INPUT, timestamp="ts")
        db.query(query, name="q")
        db.execute(
            f"CREATE SINK out FOR q TO kafka OPTIONS (brokers '{broker}', topic '{topic}', key 'k', "
            f"format 'avro', schema_registry 'http://127.0.0.1:{server.server_port}')"
        )
        db.run()
        expected = db["q"].changes().to_pylist()
    server.shutdown()
    server.server_close()
    # The value's schema, then the key's.
    assert [path for path, _ in registered] == [
        "/subjects/avro-value/versions",
        "/subjects/avro-key/versions",
    ]
    schemas = {40 + number: schema for number, (_, schema) in enumerate(registered, 1)}

    def decoded(data: bytes) -> dict[str, Any]:
        schema = schemas[int.from_bytes(data[1:5], "big")]
        found: dict[str, Any] = fastavro.schemaless_reader(io.BytesIO(data[5:]), schema, None)
        return found

    found = [(decoded(key), decoded(value)) for key, value in records(broker, topic)]
    assert found == [({"k": row["k"]}, row) for row in expected]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("form 'both'", "the option form is 'both'"),
        ("format 'xml'", "the option format is 'xml'"),
        ("format 'avro'", "needs the address of a schema registry"),
        ("schema_registry 'http://r'", "is for the format avro"),
    ],
)
def test_forms_and_formats_that_there_are_not(options: str, message: str) -> None:
    with connect(runner="inline") as db:
        db.stream("s", INPUT, timestamp="ts")
        db.query(TOTALS, name="q")
        with pytest.raises(UserError, match=message):
            db.execute(f"CREATE SINK x FOR q TO kafka OPTIONS (brokers '127.0.0.1:1', topic 't', {options})")


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        ("SELECT v FROM s", (), "which columns say which row it is"),
        ("SELECT k, v, COUNT(*) AS n FROM s GROUP BY k, v", ("k",), "k may have two rows at one instant"),
    ],
)
def test_upserts_need_a_key(query: str, key: tuple[str, ...], message: str) -> None:
    with connect(runner="inline") as db:
        db.stream("s", INPUT, timestamp="ts")
        db.query(query, name="q").deliver(TopicSink("t", "127.0.0.1:1", key, form="upsert"))
        with pytest.raises(UserError, match=message):
            db.run()


def test_a_sink_of_sql_sends_each_change_once(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = made(broker, "from-sql")
    monkeypatch.setenv("HEADRACE_SECRET_BROKER", broker)
    for _ in range(2):
        with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
            db.stream("s", INPUT, timestamp="ts")
            db.execute(f"""
                CREATE QUERY totals AS {TOTALS};
                CREATE SINK out FOR totals TO kafka
                  OPTIONS (topic '{topic}', brokers SECRET 'broker', key 'k', client.id 'mine');
            """)
            db.run()
            assert seen(broker, topic) == expected(db["totals"])
            text = "\n".join(map(str, db.execute("SHOW SINKS; SHOW CREATE SINK `out`; DESCRIBE SINK `out`")))
            assert f"{topic} at SECRET 'broker'" in text
            assert broker not in text


def test_an_earlier_process_can_send_nothing_more(broker: str, tmp_path: Path) -> None:
    topic = made(broker, "fenced")

    class Overtaken(TopicSink):
        def _commit(self) -> None:
            newer = TopicSink(topic, broker, key="k")
            newer._id = self._id
            newer._connect()
            super()._commit()

    with connect(runner="inline", storage=tmp_path / "store") as db:
        db.stream("s", INPUT, timestamp="ts")
        query = db.query(TOTALS, name="totals")
        query.deliver(Overtaken(topic, broker, key="k"), retry=Retry(pause=0))
        with pytest.raises(UserError, match="another process has taken over"):
            db.run()
    assert read(broker, topic) == []


def test_a_topic_that_is_missing_is_an_error(broker: str) -> None:
    with connect(runner="inline") as db:
        db.stream("s", INPUT, timestamp="ts")
        db.query(TOTALS, name="totals").deliver(TopicSink("nowhere", broker))
        with pytest.raises(UserError, match="the topic nowhere cannot be used"):
            db.run()


def test_settings_of_the_sink_are_refused() -> None:
    with pytest.raises(UserError, match=r"the sink sets transactional\.id itself"):
        TopicSink("t", "127.0.0.1:1", options={"transactional.id": "mine"})
