"""Kafka's messages in tasks of Spark's: the answer is that of one process, however they are cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

import headrace as hr
from kafka_broker import kafka_broker
from waiting import wait_for

kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:rows of s are judged by all rows read before them"),
]


def test_any_cut_of_partitions_into_tasks_gives_the_same_history(tmp_path: Path, spark: Any) -> None:
    with kafka_broker(tmp_path) as broker:
        expected = history(broker, "inline", 600)
        # Each row counts for 10 instants.
        assert sum(one["n"] * (one["valid_to"] - one["valid_from"]) for one in expected) == 6_000
        assert history(broker, "spark", 250) == expected
        assert history(broker, "spark", 70) == expected


def test_several_topics_and_upserts_are_read_on_spark(tmp_path: Path, spark: Any) -> None:
    with kafka_broker(tmp_path) as broker:
        client = admin.AdminClient({"bootstrap.servers": broker})
        names = ("orders-a", "orders-b", "customers")
        for made in client.create_topics([admin.NewTopic(name, 2, 1) for name in names]).values():
            made.result(30)
        producer = kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
        for v in range(6):
            producer.produce(f"orders-{'ab'[v % 2]}", json.dumps({"v": v, "ts": v}), partition=v % 2)
        for k, value in ((0, b'{"n": 1}'), (1, b'{"n": 2}'), (0, b'{"n": 3}'), (1, None)):
            producer.produce("customers", value, json.dumps({"k": k}), partition=k)
        assert producer.flush(30) == 0
        with hr.connect(runner="spark", epoch_rows=3) as db:
            db.execute(
                "CREATE STREAM s (v BIGINT, ts BIGINT, _topic STRING) FROM kafka "
                f"OPTIONS (brokers '{broker}', topic_pattern 'orders-.*') TIMESTAMP BY ts DISORDER 1000"
            )
            db.execute(
                "CREATE RELATION r (k BIGINT, n BIGINT) KEY (k) FROM kafka "
                f"OPTIONS (brokers '{broker}', topic 'customers', form 'upsert')"
            )
            db.execute(
                "CREATE QUERY came CONSISTENCY MIDDLE AS SELECT _topic AS t, v FROM s;"
                "CREATE QUERY present CONSISTENCY MIDDLE AS SELECT k, n FROM r"
            )
            rows, table = db["came"], db["present"]
            db.start()
            wait_for(lambda: {one.name: one.rows for one in db.status.streams} == {"s": 6, "r": 4})
            db.stop()
            found = sorted((one["v"], one["t"]) for one in rows.changes().to_pylist())
            assert found == [(v, f"orders-{'ab'[v % 2]}") for v in range(6)]
            present = [one for one in table.changes().to_pylist() if one["valid_to"] is None]
            net = {(one["k"], one["n"]): 0 for one in present}
            for one in present:
                net[one["k"], one["n"]] += one["change"]
            assert [key for key, count in net.items() if count] == [(0, 3)]


def history(broker: str, runner: Literal["inline", "spark"], epoch_rows: int) -> list[dict[str, Any]]:
    """Counts of 600 messages in windows of 10."""
    name = f"{runner}{epoch_rows}"
    client = admin.AdminClient({"bootstrap.servers": broker})
    client.create_topics([admin.NewTopic(name, 3, 1)])[name].result(30)
    producer = kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
    for v in range(600):
        # The third partition has a seventh of what the first one has.
        partition = 0 if v % 11 < 7 else 1 if v % 11 < 10 else 2
        producer.produce(name, json.dumps({"v": v, "ts": v}), partition=partition)
    assert producer.flush(30) == 0
    with hr.connect(runner=runner, epoch_rows=epoch_rows) as db:
        db.execute(
            f"CREATE STREAM s (v BIGINT, ts BIGINT, _partition BIGINT) FROM kafka "
            f"OPTIONS (brokers '{broker}', topic '{name}') TIMESTAMP BY ts DISORDER 1000"
        )
        query = db.query(
            "SELECT _partition AS p, COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY _partition", name="q"
        )
        db.start()
        await_rows(db, 600)
        # Then everything before it is final.
        producer.produce(name, json.dumps({"v": 0, "ts": 5_000}), partition=2)
        assert producer.flush(30) == 0
        await_rows(db, 601)
        db.stop()
        rows = [one for one in query.history().to_pylist() if one["valid_from"] < 1_000]
        return sorted(rows, key=lambda one: (one["valid_from"], one["p"]))


def await_rows(db: hr.Database, count: int) -> None:
    """Wait until so many rows are committed."""
    wait_for(lambda: db.status.streams[0].rows >= count)
