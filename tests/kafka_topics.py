"""Topics of a test's own, and what a query has said over them."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import pytest

import headrace as hr

kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")


class Topic:
    """A topic of a test's own.

    Args:
        broker: the bootstrap server.
        partitions: how many it has.
        name: its name; one that no other topic has if empty.
        is_there: whether it is made at once.
        config: its settings, with `_` for dots.
    """

    def __init__(
        self, broker: str, partitions: int = 1, name: str = "", *, is_there: bool = True, **config: str
    ) -> None:
        self.broker = broker
        self.name = name or f"t{uuid.uuid4().hex[:8]}"
        self.client = admin.AdminClient({"bootstrap.servers": broker})
        if is_there:
            self.make(partitions, **config)
        # What is sent again after a while without an answer is there once.
        settings = {"bootstrap.servers": broker, "log_level": 0, "enable.idempotence": True}
        self.producer = kafka.Producer(settings)

    def make(self, partitions: int, **config: str) -> None:
        new = admin.NewTopic(
            self.name, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()}
        )
        # One that was deleted goes some time after it.
        for _ in range(100):
            try:
                self.client.create_topics([new])[self.name].result(30)
                return
            except kafka.KafkaException:
                time.sleep(0.1)

    def send(self, *values: Any, partition: int = 0, key: str | None = None, **more: Any) -> None:
        for value in values:
            data = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            self.producer.produce(self.name, data, key, partition, **more)
        assert self.producer.flush(30) == 0

    def stream(self, columns: str = "v BIGINT, ts BIGINT", more: str = "", clauses: str = "") -> str:
        return (
            f"CREATE STREAM s ({columns}) FROM kafka OPTIONS (brokers '{self.broker}', topic '{self.name}'"
            f"{more}) TIMESTAMP BY ts {clauses}"
        )


def row(v: int) -> dict[str, int]:
    return {"v": v, "ts": v}


SAID = "CREATE QUERY q CONSISTENCY MIDDLE AS "


def rows(db: hr.Database) -> list[dict[str, Any]]:
    """What the query has said, in the order of v."""
    found = db.queries["q"].changes().to_pylist()
    return sorted(found, key=lambda one: one["v"])


def values(db: hr.Database) -> list[int]:
    return [one["v"] for one in rows(db)]
