"""A topic whose broker is down or silent, at the start and later: it gets everything once, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.runtime.delivery import topic as sink_module
from headrace.runtime.delivery.contract import Retry
from headrace.runtime.outside.patience import patient
from kafka_broker import mortal_broker
from kafka_topics import Topic, kafka
from waiting import wait_for, wait_until

QUICK = Retry(pause=0.05, longest=0.2)


def committed(topic: Topic) -> list[dict[str, Any]]:
    """The values of all committed records, in order."""
    settings = {"bootstrap.servers": topic.broker, "group.id": "reader", "enable.partition.eof": True}
    consumer = kafka.Consumer({**settings, "isolation.level": "read_committed", "log_level": 0})
    consumer.assign([kafka.TopicPartition(topic.name, 0, 0)])
    found = []
    try:
        while (record := consumer.poll(30)) is not None and record.error() is None:
            found.append(json.loads(record.value()))
        assert record is not None, "the topic has no end"
        return found
    finally:
        consumer.close()


@pytest.mark.kills
@pytest.mark.parametrize("form", ["changes", "upsert"])
def test_a_topic_whose_broker_is_away_gets_each_epoch_once_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(sink_module, "SECONDS", 2.0)
    with mortal_broker(tmp_path) as broker, patient(pause=0.05, longest=0.2, opening=0.1):
        topic = Topic(broker.address)
        broker.kill()
        with hr.connect(runner="inline") as db:
            db.execute(
                "CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
                "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k"
            )
            db["q"].deliver(
                hr.TopicSink(topic.name, broker.address, key="k", form=form), name="topic", retry=QUICK
            )
            # It does not wait for the broker.
            db.start()
            for at in range(2):
                db.push("s", {"k": at % 2, "ts": at})
            wait_for(lambda: "q to topic" in db.problems)
            broker.start()
            # Of the last instant more may come.
            wait_until(lambda: len(committed(topic)), 1)
            for at in range(2, 4):
                broker.silence()
                db.push("s", {"k": at % 2, "ts": at})
                wait_for(lambda: "q to topic" in db.problems)
                assert len(db["q"].changes()) > 0
                broker.speak()
                wait_for(lambda: len(committed(topic)) >= at)  # noqa: B023
                wait_until(lambda: dict(db.problems), {})
            db.stop()
            said = db["q"].changes().to_pylist()
            found = committed(topic)
            assert [(one["k"], one["n"]) for one in found] == [
                (one["k"], one["n"]) for one in said if form == "changes" or one["change"] > 0
            ]
