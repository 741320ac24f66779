"""A query's changes in a Kafka topic: exactly once with a real broker, whatever is killed around a commit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

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
            found.append((json.loads(record.key()), json.loads(record.value())))
    finally:
        consumer.close()


def expected(query: Query) -> list[tuple[Any, ...]]:
    rows = query.changes().to_pylist()
    return [({"k": row["k"]}, row["total"], row["epoch"], row["change"]) for row in rows]


def seen(broker: str, topic: str) -> list[tuple[Any, ...]]:
    rows = read(broker, topic)
    return [(key, value["total"], value["epoch"], value["change"]) for key, value in rows]


KILLED = """
import os, signal, sys
import pyarrow as pa
from headrace import TopicSink, connect

folder, broker, topic, side = sys.argv[1:]

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
    query = db.query("SELECT k, SUM(v) AS total FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k", name="totals")
    query.deliver(Mortal(topic, broker, key="k"))
    db.run()
"""


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_process_that_is_killed_around_a_commit_goes_on(broker: str, tmp_path: Path, side: str) -> None:
    topic = made(broker, f"totals-{side}")
    command = [sys.executable, "-c", KILLED, str(tmp_path), broker, topic, side]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert {epoch for _, _, epoch, _ in seen(broker, topic)} == ({1} if side == "before" else {1, 2})
    with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        db.stream("s", INPUT, timestamp="ts")
        query = db.query(TOTALS, name="totals")
        query.deliver(TopicSink(topic, broker, key="k"))
        db.run()
        assert seen(broker, topic) == expected(query)


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
