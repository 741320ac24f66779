"""Streams of several topics, by name and by pattern, and of topics that are not there yet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.runtime.intake.brokers import WantedTopics
from headrace.runtime.intake.topic import open_topic
from headrace.runtime.intake.topic_feed import TopicFeed
from headrace.runtime.journal.followed import ReadFile
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.schema import BIGINT, Field, Schema
from kafka_broker import kafka_broker
from kafka_topics import SAID, Topic, row, rows, values
from waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:rows of s are judged by all rows read before them")

COLUMNS = "v BIGINT, ts BIGINT, _topic STRING, _partition BIGINT, _offset BIGINT"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def said(option: str, broker: str, more: str = "", clauses: str = "DISORDER 1000") -> str:
    return (
        f"CREATE STREAM s ({COLUMNS}) FROM kafka OPTIONS (brokers '{broker}', {option}{more}) "
        f"TIMESTAMP BY ts {clauses}"
    )


def places(db: hr.Database) -> list[tuple[str, int, int, int]]:
    return [(one["_topic"], one["_partition"], one["_offset"], one["v"]) for one in rows(db)]


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_topic_that_is_not_there_is_said_and_read_from_its_beginning_once_it_is(
    broker: str, tmp_path: Path, start: str
) -> None:
    there, later = Topic(broker), Topic(broker, name=f"late-payments-{start}", is_there=False)
    Topic(broker, name=f"late-payment-{start}")
    sentence = f"there is no topic {later.name} (did you mean late-payment-{start}"
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        with pytest.warns(hr.HeadraceWarning) as warned:
            db.execute(said(f"topic '{there.name}, {later.name}'", broker, f", start '{start}'"))
        assert str(warned[0].message).startswith(f"s has no rows so far: {sentence}")
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: db.problems.get("s", "").startswith(sentence), True)
        # The topics that are there are read.
        there.send(row(1))
        wait_until(lambda: values(db), [1])
        # Before it is asked for the next time.
        later.make(2)
        later.send(row(2), partition=1)
        wait_until(lambda: values(db), [1, 2])
        wait_until(lambda: dict(db.problems), {})
    later.send(row(3), partition=0)
    # What the store has of it is not created anew, so that nothing is warned of.
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.start()
        wait_until(lambda: values(db), [1, 2, 3])


def test_a_topic_that_all_of_a_stream_waits_for_begins_with_its_oldest_message(broker: str) -> None:
    later = Topic(broker, name="alone", is_there=False)
    with hr.connect(runner="inline") as db:
        with pytest.warns(hr.HeadraceWarning, match="there is no topic alone"):
            db.execute(later.stream(more=", start 'latest'", clauses="DISORDER 10"))
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: "s" in db.problems, True)
        later.make(1)
        later.send(row(1), row(2))
        wait_until(lambda: values(db), [1, 2])
        assert dict(db.problems) == {}


def test_brokers_that_are_away_refuse_nothing() -> None:
    with warnings.catch_warnings(), hr.connect(runner="inline") as db:
        warnings.simplefilter("error")
        db.execute(said("topic 'a'", "127.0.0.1:1"))
        assert "s" in db.streams


def test_several_topics_are_one_stream_over_restarts(broker: str, tmp_path: Path) -> None:
    one, other = Topic(broker, 2), Topic(broker)
    one.send(row(1), row(2), partition=1)
    other.send(row(3))
    text = said(f"topic '{one.name},{other.name}'", broker)
    expected = [(one.name, 1, 0, 1), (one.name, 1, 1, 2), (other.name, 0, 0, 3)]
    for round in range(3):
        with hr.connect(runner="inline", storage=tmp_path / "s", epoch_rows=2) as db:
            db.execute(text)
            if not round:
                db.execute(SAID + "SELECT * FROM s")
            db.start()
            wait_until(lambda: places(db), expected)
            number = 10 * (round + 1)
            other.send(row(number))
            expected.append((other.name, 0, round + 1, number))
            wait_until(lambda: places(db), expected)
        one.send(row(number + 1), partition=0)
        expected.append((one.name, 0, round, number + 1))


def test_topics_of_a_pattern_are_read_also_those_that_come_later(broker: str, tmp_path: Path) -> None:
    Topic(broker, name="xorders-a").send(row(99))
    Topic(broker, name="orders-a-headrace-later").send(row(98))
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        with pytest.warns(hr.HeadraceWarning, match=r"no topic matches orders-\.\* so far"):
            db.execute(said("topic_pattern 'orders-.*'", broker, ", start 'latest'"))
        db.execute(SAID + "SELECT * FROM s")
        db.start()
        wait_until(lambda: db.problems.get("s"), "no topic matches orders-.* so far")
        first = Topic(broker, name="orders-a")
        first.send(row(1))
        wait_until(lambda: places(db), [("orders-a", 0, 0, 1)])
        second = Topic(broker, 2, name="orders-b")
        second.send(row(2), partition=1)
        wait_until(lambda: places(db), [("orders-a", 0, 0, 1), ("orders-b", 1, 0, 2)])
        # One that goes stops nothing.
        first.client.delete_topics([first.name])[first.name].result(30)
        second.send(row(3), partition=0)
        wait_until(lambda: values(db), [1, 2, 3])
        assert dict(db.problems) == {}


def test_one_of_several_topics_that_is_made_anew_is_an_error(broker: str, tmp_path: Path) -> None:
    one, other = Topic(broker), Topic(broker)
    for topic, v in ((one, 1), (other, 2)):
        topic.send(row(v))
    for name, more in (("fail", ""), ("on", ", on_data_loss 'continue'")):
        with hr.connect(runner="inline", storage=tmp_path / name) as db:
            db.execute(said(f"topic '{one.name}, {other.name}'", broker, more))
            db.execute(SAID + "SELECT v FROM s")
            db.start()
            wait_until(lambda: values(db), [1, 2])
    other.client.delete_topics([other.name])[other.name].result(30)
    other.make(1)
    other.send(row(3))
    one.send(row(4))
    with hr.connect(runner="inline", storage=tmp_path / "fail") as db:
        db.start()
        problem = f"the topic {other.name} was deleted and made anew"
        wait_until(lambda: problem in db.problems.get("s", ""), True)
    with hr.connect(runner="inline", storage=tmp_path / "on") as db:
        db.start()
        wait_until(lambda: values(db), [1, 2, 3, 4])


def test_a_store_from_before_there_were_several_topics_goes_on(broker: str) -> None:
    topic = Topic(broker)
    topic.send(row(1), row(2), row(3))
    options = {"brokers": broker, "topic": topic.name}
    found = open_topic(options, ComputedColumns(Schema((Field("v", BIGINT),))), None)
    identity = found.brokers().partitions().identities[topic.name]
    feed = TopicFeed("s", found, 100, 1_000_000, lambda: None)
    point = StreamPoint(2, files={"be/fore/0": ReadFile(9, 0), f"{identity}/0": ReadFile(2, 0)})
    feed.start(point, ("v",))
    wait_until(feed.ready, True)
    taken = feed.take(point)
    feed.stop()
    assert taken is not None
    assert (taken.position, taken.files) == (3, {f"{topic.name}:{identity}/0": ReadFile(3, 0)})


def test_positions_are_found_again_whatever_kafka_calls_topics() -> None:
    options = {"brokers": "127.0.0.1:1", "topic": "a, b.c_d-e"}
    found = open_topic(options, ComputedColumns(Schema((Field("v", BIGINT),))), None)
    files = {"a:R/+x==/1": ReadFile(5, 0), "b.c_d-e:/q/0": ReadFile(6, 0)}
    feed = TopicFeed("s", found, 100, 1_000_000, lambda: None)
    feed.start(StreamPoint(2, files=files), ("v",))
    feed.stop()
    assert feed._identities == {"a": "R/+x==", "b.c_d-e": "/q"}
    assert feed._next == {("a", 1): 5, ("b.c_d-e", 0): 6}


def test_topics_of_kafka_and_of_sinks_match_no_pattern() -> None:
    there = ["a", "ab", "b", "__consumer_offsets", "a-headrace-later"]
    assert WantedTopics.matching("a.*|__.*").of(there) == ["a", "ab"]


@pytest.mark.filterwarnings("error")
def test_plain_disorder_over_several_partitions_is_warned_of(broker: str) -> None:
    one, two = Topic(broker), Topic(broker, 2)
    columns = "v BIGINT, ts BIGINT, _partition BIGINT"
    with hr.connect(runner="inline") as db:
        db.execute(one.stream(clauses="DISORDER 5"))
        per = "PER _partition IDLE AFTER 30 SECONDS"
        db.execute(two.stream(columns, clauses=f"DISORDER 5 {per}").replace("STREAM s", "STREAM good"))
        with pytest.warns(hr.HeadraceWarning, match=f"ALTER STREAM better {per}"):
            db.execute(two.stream(columns, clauses="DISORDER 5").replace("STREAM s", "STREAM better"))
        # What it says helps.
        db.execute(f"ALTER STREAM better {per}")
        assert not db.query("SELECT v FROM better").notes


@pytest.mark.parametrize("clauses", ["DISORDER 5", "DISORDER 5 PER _partition IDLE AFTER 30 SECONDS"])
def test_equal_numbers_of_partitions_of_several_topics_are_not_one(broker: str, clauses: str) -> None:
    ahead, behind = Topic(broker), Topic(broker)
    ahead.send(*map(row, range(100, 130)))
    behind.send(*map(row, range(30)))

    def text(columns: str, clauses: str) -> str:
        made = ahead.stream(columns, clauses=clauses)
        return made.replace(f"'{ahead.name}'", f"'{ahead.name}, {behind.name}'")

    with hr.connect(runner="inline") as db:
        columns = "v BIGINT, ts BIGINT, _partition BIGINT"
        with pytest.warns(hr.HeadraceWarning, match="rows of s are judged by") as warned:
            db.execute(text(columns, clauses))
        (note,) = db.query("SELECT v FROM s", "noted").notes
        assert note.hint is not None
        assert note.hint in str(warned[0].message)
        db.execute("DROP QUERY noted; DROP STREAM s")
        # What it says helps.
        further, per = note.hint.removeprefix("declare the columns ").split(", and write ")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            db.execute(
                text(f"v BIGINT, ts BIGINT, {further}", per if "DISORDER" in per else f"DISORDER 5 {per}")
            )
        assert not db.query("SELECT v FROM s", "none").notes
        db.execute(SAID + "SELECT v FROM s")
        db.start()
        wait_until(lambda: values(db), [*range(30), *range(100, 130)])
        assert db.dead_letters().num_rows == 0
