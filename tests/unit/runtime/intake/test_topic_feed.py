"""Rows of a Kafka topic: each counts once, whatever is killed, made anew, aborted or deleted."""

from __future__ import annotations

import http.server
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

import headrace as hr
import warm_processes
from headrace.runtime.intake import brokers
from headrace.runtime.intake.topic import open_topic
from headrace.runtime.intake.topic_feed import TopicFeed
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.outside.patience import patient
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.schema import BIGINT, Field, Schema
from kafka_broker import kafka_broker, mortal_broker
from kafka_topics import SAID, Topic, row, rows, values
from waiting import wait_for, wait_until

pytestmark = pytest.mark.filterwarnings("ignore:rows of s are judged by all rows read before them")
kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def test_messages_of_all_partitions_are_rows_with_what_kafka_says_of_them(broker: str) -> None:
    topic = Topic(broker, 2)
    topic.send(row(1), partition=0, key="a", timestamp=1_700_000_000_123, headers=[("h", b"x"), ("g", None)])
    topic.send({"v": 2, "ts": 2, "who": {"name": "w"}, "else": [1]}, partition=1)
    topic.send(b'{"v": 3,\n "ts":\n 3}', partition=1)
    columns = (
        "v BIGINT, ts BIGINT, _key STRING, _partition BIGINT, _offset BIGINT, _timestamp TIMESTAMP, "
        "_headers MAP<STRING, STRING>, who STRUCT<name STRING>, name AS who.name"
    )
    with hr.connect(runner="inline") as db:
        db.execute(topic.stream(columns, clauses="DISORDER 10"))
        db.execute(
            SAID + "SELECT v, _key, _partition AS p, _offset AS o, _timestamp AS t, _headers['h'] AS h, name "
            "FROM s"
        )
        db.start()
        wait_until(lambda: values(db), [1, 2, 3])
        first, *others = rows(db)
        assert (first["_key"], first["p"], first["o"], first["h"]) == ("a", 0, 0, "x")
        assert first["t"].timestamp() == 1_700_000_000.123
        assert [(one["_key"], one["p"], one["o"], one["name"]) for one in others] == [
            (None, 1, 0, "w"), (None, 1, 1, None)
        ]  # fmt: skip


def test_rows_that_are_late_or_ahead_of_the_clock_have_the_offsets_of_their_messages(broker: str) -> None:
    topic = Topic(broker)
    times = ("2024-01-01 00:00:05", "2024-01-01 00:00:01", "2999-01-01", "2024-01-01 00:00:09", "2024-01-01")
    topic.send(*({"v": place, "ts": at} for place, at in enumerate(times)))
    with hr.connect(runner="inline") as db:
        db.execute(topic.stream("v BIGINT, ts TIMESTAMP"))
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: values(db), [0, 3])
        places = sorted((one["place"], one["reason"][:13]) for one in db.dead_letters().to_pylist())
    label = f"{topic.name}/0"
    late, ahead = "late: older t", "the timestamp"
    assert places == [(f"{label}:1", late), (f"{label}:2", ahead), (f"{label}:4", late)]


def test_a_message_that_is_not_a_row_is_a_dead_letter_with_its_offset(broker: str) -> None:
    topic = Topic(broker)
    topic.send(row(1), b"poison", b"\xff", b" ", None, {"v": "x", "ts": 1}, row(2))
    with hr.connect(runner="inline") as db:
        db.execute(topic.stream())
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: values(db), [1, 2])
        letters = {one["place"]: one["reason"] for one in db.dead_letters().to_pylist()}
    label = f"{topic.name}/0"
    assert sorted(letters) == [f"{label}:{offset}" for offset in (1, 2, 3, 4, 5)]
    assert letters[f"{label}:1"] == "the line is not one JSON object"
    assert letters[f"{label}:3"] == "the message is empty"
    assert letters[f"{label}:4"] == "the message has no value"


KILLED = """
import sys, time, headrace as hr
folder, text, query = sys.argv[1:4]
with hr.connect(runner="inline", storage=folder, epoch_rows=7) as db:
    db.execute(text)
    db.execute(query)
    db.start()
    print(flush=True)
    time.sleep(60)
"""


def test_after_kills_every_message_has_counted_once(broker: str, tmp_path: Path) -> None:
    topic = Topic(broker, 3)
    text, query = topic.stream(clauses="DISORDER 1000"), SAID + "SELECT v FROM s"
    sent = 0
    for _ in range(3):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "s"), text, query]
        with warm_processes.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(30):
                topic.send(row(sent), partition=sent % 3)
                sent += 1
                time.sleep(0.03)
            process.kill()
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.start()
        wait_until(lambda: values(db), list(range(sent)))


def test_aborts_and_open_transactions_are_not_waited_for(broker: str) -> None:
    topic = Topic(broker)
    topic.send(row(1))
    writer = kafka.Producer({"bootstrap.servers": broker, "transactional.id": topic.name, "log_level": 0})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic.name, json.dumps(row(66)), partition=0)
    writer.flush(30)
    topic.send(row(3))
    with hr.connect(runner="inline") as db:
        db.execute(topic.stream(clauses="DISORDER 100"))
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        # What is behind an open transaction is not stable.
        wait_until(lambda: values(db), [1])
        writer.abort_transaction(30)
        wait_until(lambda: values(db), [1, 3])
        # An epoch may have nothing but gaps.
        writer.begin_transaction()
        writer.produce(topic.name, json.dumps(row(67)), partition=0)
        writer.abort_transaction(30)
        topic.send(row(4))
        wait_until(lambda: values(db), [1, 3, 4])


def test_a_topic_that_is_made_anew_is_an_error_unless_that_is_wanted(broker: str, tmp_path: Path) -> None:
    topic = Topic(broker)
    topic.send(row(1), row(2))
    for name, more in (("fail", ""), ("on", ", on_data_loss 'continue'")):
        with hr.connect(runner="inline", storage=tmp_path / name) as db:
            db.execute(topic.stream(more=more, clauses="DISORDER 100"))
            db.execute(SAID + "SELECT v FROM s")
            db.start()
            wait_until(lambda: values(db), [1, 2])
    topic.client.delete_topics([topic.name])[topic.name].result(30)
    topic.make(1)
    topic.send(row(5))
    with hr.connect(runner="inline", storage=tmp_path / "fail") as db:
        db.start()
        wait_until(lambda: "was deleted and made anew" in db.problems.get("s", ""), True)
    with hr.connect(runner="inline", storage=tmp_path / "on") as db:
        db.start()
        wait_until(lambda: values(db), [1, 2, 5])


def test_messages_that_retention_has_deleted_are_an_error_unless_that_is_wanted(
    broker: str, tmp_path: Path
) -> None:
    topic = Topic(broker)
    topic.send(row(1), row(2))
    for name, more in (("fail", ""), ("on", ", on_data_loss 'continue'")):
        with hr.connect(runner="inline", storage=tmp_path / name) as db:
            db.execute(topic.stream(more=more, clauses="DISORDER 100"))
            db.execute(SAID + "SELECT v FROM s")
            db.start()
            wait_until(lambda: values(db), [1, 2])
    topic.send(row(3), row(4), row(5))
    gone = kafka.TopicPartition(topic.name, 0, 4)
    topic.client.delete_records([gone])[gone].result(30)
    with hr.connect(runner="inline", storage=tmp_path / "fail") as db:
        db.start()
        wait_until(
            lambda: "no longer has the messages 2 to 3 of partition 0" in db.problems.get("s", ""), True
        )
    with hr.connect(runner="inline", storage=tmp_path / "on") as db:
        db.start()
        wait_until(lambda: values(db), [1, 2, 5])


def test_a_partition_that_comes_later_is_read_whole(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[TopicFeed] = []
    ask = TopicFeed.ask

    def asked(feed: TopicFeed) -> None:
        ask(feed)
        looked.append(feed)

    monkeypatch.setattr(TopicFeed, "ask", asked)
    topic = Topic(broker)
    topic.send(row(1))
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(topic.stream(more=", start 'latest'", clauses="DISORDER 100"))
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        # It begins with what comes after its first look.
        wait_for(lambda: looked)
        topic.send(row(2))
        wait_until(lambda: values(db), [2])
        topic.client.create_partitions([admin.NewPartitions(topic.name, 2)])[topic.name].result(30)
        topic.producer = kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
        topic.send(row(3), partition=1)
        wait_until(lambda: values(db), [2, 3])
    topic.send(row(4))
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.start()
        wait_until(lambda: values(db), [2, 3, 4])


def test_a_row_is_late_by_its_own_partition(broker: str) -> None:
    topic = Topic(broker, 2)
    topic.send(*map(row, (101, 102, 103)), partition=0)
    topic.send(*map(row, (1, 2, 3)), partition=1)
    columns = "v BIGINT, ts AS v, _partition BIGINT"
    with hr.connect(runner="inline", epoch_rows=2) as db:
        db.execute(topic.stream(columns, clauses="DISORDER 1 PER _partition IDLE AFTER 1 MINUTE"))
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: values(db), [1, 2, 3, 101, 102, 103])
        # Two behind the newest row of its own partition, and far ahead of the other one.
        topic.send(row(100), partition=0)
        topic.send(row(2), row(4), partition=1)
        wait_until(lambda: values(db), [1, 2, 2, 3, 4, 101, 102, 103])
        assert db.status.streams[0].late == 1


def test_changes_and_raw_messages(broker: str) -> None:
    changes, raw = Topic(broker), Topic(broker)
    before, after = {"k": 1, "v": 1}, {"k": 1, "v": 2}
    source = {"ts_ms": 1_000}
    changes.send({"op": "c", "before": None, "after": before, "source": source, "ts_ms": 1}, None)
    changes.send(
        {"payload": {"op": "u", "before": before, "after": after, "source": {"ts_ms": 2_000}, "ts_ms": 2}}
    )
    raw.send(b"not JSON", b"\xff", None)
    with hr.connect(runner="inline") as db:
        text = changes.stream("k BIGINT, v BIGINT").replace("TIMESTAMP BY ts", "FORMAT DEBEZIUM")
        db.execute(text)
        db.execute(
            f"CREATE STREAM r (body STRING, _timestamp TIMESTAMP) FROM kafka OPTIONS (brokers '{broker}', "
            f"topic '{raw.name}', format 'raw') TIMESTAMP BY _timestamp"
        )
        db.execute("CREATE QUERY bodies CONSISTENCY MIDDLE AS SELECT body FROM r")
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(
            lambda: {one["body"] for one in db.queries["bodies"].changes().to_pylist()}, {"not JSON", None}
        )
        (letter,) = db.dead_letters().to_pylist()
        assert (letter["reason"], letter["place"]) == ("body is not UTF-8 text", f"{raw.name}/0:1")
        wait_until(lambda: {one["v"] for one in rows(db)}, {1, 2})


def test_messages_of_csv_and_protobuf(broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv, bids, at = Topic(broker), Topic(broker), datetime(2026, 1, 2, tzinfo=UTC)
    csv.send(b"1;a;5", b"2;-;6\n", b"x;a;7")
    stamps = pytest.importorskip("google.protobuf.timestamp_pb2")
    bids.send(stamps.Timestamp(seconds=int(at.timestamp()), nanos=7).SerializeToString())
    files = pytest.importorskip("google.protobuf.descriptor_pb2").FileDescriptorSet()
    stamps.DESCRIPTOR.CopyToProto(files.file.add())
    (tmp_path / "stamps.desc").write_bytes(files.SerializeToString())
    monkeypatch.chdir(tmp_path)
    bare = bids.stream(
        "seconds BIGINT, nanos BIGINT, ts AS nanos",
        ", format 'protobuf', descriptor 'stamps.desc', message 'google.protobuf.Timestamp'",
    )
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(csv.stream("v BIGINT, t STRING, ts BIGINT", ", format 'csv', sep ';', nullvalue '-'"))
        db.execute(bare.replace("STREAM s", "STREAM b"))
        db.execute(SAID + "SELECT v, t FROM s")
        db.execute("CREATE QUERY stamps CONSISTENCY MIDDLE AS SELECT seconds, nanos FROM b")
        db.start()
        wait_until(lambda: [(one["v"], one["t"]) for one in rows(db)], [(1, "a"), (2, None)])
        found = db.queries["stamps"]
        wait_until(
            lambda: [(one["seconds"], one["nanos"]) for one in found.changes().to_pylist()],
            [(int(at.timestamp()), 7)],
        )
        (letter,) = db.dead_letters().to_pylist()
        assert letter["reason"] == "v is not a valid BIGINT: 'x'"
    # The descriptor is found from elsewhere as well.
    monkeypatch.chdir("/")
    bids.send(stamps.Timestamp(seconds=1, nanos=8).SerializeToString())
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.start()
        wait_until(lambda: [one["nanos"] for one in db.queries["stamps"].changes().to_pylist()], [7, 8])


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ("brokers 'b'", "v BIGINT", "the option topic is missing"),
        ("brokers 'b', topic 't', topic_pattern 't.*'", "v BIGINT", "topic and topic_pattern both say"),
        ("brokers 'b', topic 'a, b c'", "v BIGINT", "'b c' is not the name of a topic"),
        ("brokers 'b', topic 'a, a'", "v BIGINT", "the topic a is named twice"),
        ("brokers 'b', topic_pattern '('", "v BIGINT", "is not a regular expression"),
        ("brokers 'b', topic 't', form 'json'", "v BIGINT", "the option form is 'json'"),
        ("brokers 'b', topic 't', format 'xml'", "v BIGINT", "messages have no format xml"),
        ("brokers 'b', topic 't', start 'soon'", "v BIGINT", "the option start is 'soon'"),
        ("brokers 'b', topic 't', poll '5'", "v BIGINT", "the option poll is '5'"),
        ("brokers 'b', topic 't', on_data_loss 'x'", "v BIGINT", "the option on_data_loss is 'x'"),
        ("brokers 'b', topic 't', format 'raw'", "v BIGINT", "raw messages are one column"),
        (
            "brokers 'b', topic 't', bootstrap.servers 'c'",
            "v BIGINT",
            "bootstrap.servers is the option brokers",
        ),
        ("brokers 'b', topic 't'", "_offset STRING", "the column _offset is STRING"),
        (
            "brokers 'b', topic 't', security.protocol 'x'",
            "v BIGINT",
            "the brokers cannot be reached in this way",
        ),
        ("brokers 'b', topic 't', format 'avro', schema_registry 'r'", "v BIGINT", "is not an address"),
        ("brokers 'b', topic 't', schema_registry 'r'", "v BIGINT", "json has no option schema_registry"),
        ("brokers 'b', topic 't', format 'csv', delimiter 'ab'", "v BIGINT", "the option delimiter is 'ab'"),
        ("brokers 'b', topic 't', format 'protobuf'", "v BIGINT", "the option descriptor or schema_registry"),
        (
            "brokers 'b', topic 't', format 'protobuf', descriptor 'no.desc', message 'p.M'",
            "v BIGINT",
            "no such file or folder",
        ),
    ],
)
def test_wrong_options_are_refused_with_a_hint(options: str, columns: str, message: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match=message) as found:
        db.execute(f"CREATE STREAM s ({columns}, ts BIGINT) FROM kafka OPTIONS ({options}) TIMESTAMP BY ts")
    assert found.value.hint
    assert found.value.position is not None


@pytest.mark.kills
def test_a_broker_that_is_away_for_a_while_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    note = TopicFeed._note_problem

    def noted(feed: TopicFeed, problem: str) -> None:
        asked.append(problem)
        note(feed, problem)

    monkeypatch.setattr(brokers, "SECONDS", 1.0)
    monkeypatch.setattr(TopicFeed, "_note_problem", noted)
    with mortal_broker(tmp_path) as broker:
        topic = Topic(broker.address)
        topic.send(row(1))
        with hr.connect(runner="inline") as db:
            db.execute(topic.stream(clauses="DISORDER 100"))
            db.execute(SAID + "SELECT v FROM s")
            db.start()
            wait_until(lambda: values(db), [1])
            broker.silence()
            topic.producer.produce(topic.name, json.dumps(row(2)), partition=0)
            wait_until(lambda: "the topic of s cannot be read" in caplog.text, True)
            assert db.running
            (finding, *_) = [one for one in db.why("q").findings if "for now" in one.message]
            assert finding.message.startswith("the stream s cannot be read for now: the brokers of the topic")
            # More often than a stream may fail.
            wait_for(lambda: len(asked) > 6)
            assert db.running
            broker.speak()
            topic.send(row(3))
            wait_until(lambda: values(db), [1, 2, 3])
            wait_until(lambda: dict(db.problems), {})


class Registry(http.server.BaseHTTPRequestHandler):
    """A schema registry with two versions of a schema, for whoever has the password."""

    schemas: ClassVar = {
        1: [{"name": "v", "type": "int"}, {"name": "ts", "type": "long"}],
        2: [
            {"name": "ts", "type": "long"},
            {"name": "v", "type": ["null", "long"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
        3: [{"name": "v", "type": "string"}, {"name": "ts", "type": "long"}],
    }

    @classmethod
    def schema(cls, number: int) -> dict[str, Any]:
        return {"type": "record", "name": "r", "fields": cls.schemas[number]}

    def do_GET(self) -> None:
        number = int(self.path.rpartition("/")[2])
        is_known = self.headers["Authorization"] == "Basic dXNlcjpwdw=="
        self.send_response(200 if is_known and number in self.schemas else 404 if is_known else 401)
        self.end_headers()
        if is_known:
            unknown = {"error_code": 40403, "message": "Schema not found"}
            known = number in self.schemas
            answer = {"schema": json.dumps(self.schema(number))} if known else unknown
            self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


def avro(number: int, record: dict[str, Any]) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    body = io.BytesIO()
    fastavro.schemaless_writer(body, Registry.schema(number), record)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


def test_avro_with_a_registry(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, at = Topic(broker), datetime(2026, 1, 2, tzinfo=UTC)
    second = {"v": None, "ts": 2, "at": at, "tags": ["a", "b"]}
    good = [avro(1, row(1)), avro(2, {**second, "v": 2}), avro(1, row(3))]
    lost = b"\0" + (9).to_bytes(4, "big")
    topic.send(
        good[0], b"{}", good[1], avro(3, {"v": "x", "ts": 1}), lost, avro(1, row(9))[:-1], None, good[2]
    )
    server = http.server.HTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HEADRACE_SECRET_REGISTRY", f"http://user:pw@127.0.0.1:{server.server_port}/")
    columns = "v BIGINT, ts BIGINT, at TIMESTAMP, tags ARRAY<STRING>, _offset BIGINT"
    with patient(lag=0.0), hr.connect(runner="inline") as db:
        db.execute(topic.stream(columns, ", format 'avro', schema_registry SECRET 'registry'", "DISORDER 10"))
        db.execute(SAID + "SELECT v, at, tags, _offset AS o FROM s")
        db.start()
        wait_until(lambda: values(db), [1, 2, 3])
        assert [(one["o"], one["at"], one["tags"]) for one in rows(db)] == [
            (0, None, None), (2, at, ["a", "b"]), (7, None, None)
        ]  # fmt: skip
        letters = {one["place"].rpartition(":")[2]: one["reason"] for one in db.dead_letters().to_pylist()}
    server.shutdown()
    server.server_close()
    assert letters == {
        "1": "the message does not begin with the number of a schema of a registry",
        "3": "v is string in schema 3, and not BIGINT",
        "4": "the registry has no schema 9",
        "5": "the message is not what its schema 1 says",
        "6": "the message has no value",
    }


def test_a_stream_is_not_idle_while_messages_wait(broker: str) -> None:
    topic = Topic(broker, 2)
    schema = Schema((Field("v", BIGINT),))
    found = open_topic({"brokers": broker, "topic": topic.name}, ComputedColumns(schema), None)
    feed = TopicFeed("s", found, 2, 1_000_000, lambda: None)

    def has_caught_up() -> bool:
        feed.ask()
        return feed.caught_up()

    # The brokers may have yet to agree on who leads the partitions.
    wait_until(has_caught_up, True)
    topic.send(row(1), row(2), partition=0)
    topic.send(row(3), partition=1)
    # What has come since the brokers were asked is not known.
    assert feed.caught_up()
    feed.ask()
    point = StreamPoint(0)
    while feed.take(point) is not None:
        assert not feed.caught_up()
        feed.settle(None)
    assert feed.caught_up()
    topic.client.delete_topics([topic.name])[topic.name].result(30)

    def is_known() -> bool:
        feed.ask()
        return feed.trouble() is None

    wait_until(is_known, False)
    assert not feed.caught_up()


@pytest.mark.kills
def test_what_compaction_has_removed_is_not_waited_for(broker: str, tmp_path: Path) -> None:
    topic = Topic(
        broker, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01",
        min_compaction_lag_ms="0", delete_retention_ms="0",
    )  # fmt: skip
    newest: dict[int, int] = {}
    for v in range(60):
        topic.send(row(v), key=str(v % 7))
        newest[v % 7] = v
        # A segment is cleaned once it is no longer the last one.
        time.sleep(0.02)
    consumer = kafka.Consumer({"bootstrap.servers": broker, "group.id": "look", "enable.partition.eof": True})

    def left() -> list[int]:
        consumer.assign([kafka.TopicPartition(topic.name, 0, 0)])
        found = []
        while (message := consumer.poll(10)) is not None and message.error() is None:
            found.append(json.loads(message.value())["v"])
        return found

    # Between what is left are gaps; the last segment is whole.
    wait_until(lambda: len(left()) < 30, True)
    expected = left()
    consumer.close()
    assert set(newest.values()) <= set(expected)
    with hr.connect(runner="inline", storage=tmp_path / "s", epoch_rows=3) as db:
        db.execute(topic.stream(clauses="DISORDER 1000"))
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: values(db), expected)
        topic.send(row(60), key="x")
        wait_until(lambda: values(db), [*expected, 60])
