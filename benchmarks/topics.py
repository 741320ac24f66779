"""How fast the messages of a Kafka topic are read: bids as JSON, from a broker on the same machine.

    python benchmarks/topics.py
    python benchmarks/topics.py --events 2000000 --partitions 8 --runner spark
    python benchmarks/topics.py --streaming   # and Structured Streaming beside it
    python benchmarks/topics.py --write   # to benchmarks/RESULTS.md

The topic is written first. Then each step of the way is timed alone, in one process: messages that are only
fetched by confluent-kafka, messages that are parsed as well, and whole runs of queries, from the start of
the run until all rows are committed. `stateless` selects and computes; `counts` counts by auction in a window
of 10 seconds.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import confluent_kafka
import pyarrow as pa
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace import connect
from headrace.runtime.intake.brokers import Brokers, WantedTopics
from headrace.runtime.intake.topic import open_topic
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.messages.topic import Access, OffsetRange, messages_of
from headrace.runtime.writing.tables import write_table
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema
from headrace.workloads.nexmark import Nexmark, generate
from results import RESULTS, Section, machine, write_part

sys.path.append(str(Path(__file__).parent.parent / "scripts"))
from broker import running_broker

TOPIC: Final = "bids"
COLUMNS: Final = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP"
SCHEMA: Final = Schema(
    (
        *(Field(name, BIGINT) for name in ("auction", "bidder", "price")),
        Field("channel", STRING),
        Field("ts", TIMESTAMP),
    )
)
QUERIES: Final = {
    "stateless": "SELECT auction, price * 2 AS price FROM bid WHERE price > 100",
    "counts": "SELECT auction, COUNT(*) AS n FROM bid [RANGE 10 SECONDS] GROUP BY auction",
}
_BATCH: Final = 100_000


def bids(events: int) -> Iterator[list[bytes]]:
    """The bids of so many events, as messages."""
    spec = Nexmark(events, seed=1, rate=10_000)
    for first in range(0, events, _BATCH):
        rows = generate(spec, "bid", first, min(events, first + _BATCH), SCHEMA.names)
        text = io.BytesIO()
        write_table(pa.table(rows), "jsonl", text)
        yield text.getvalue().splitlines()


def written(broker: str, events: int, partitions: int) -> int:
    """Fill the topic; how many messages it has."""
    made = NewTopic(TOPIC, partitions, 1)
    client = AdminClient({"bootstrap.servers": broker})
    client.create_topics([made])[TOPIC].result(30)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    count = 0
    for messages in bids(events):
        for place, message in enumerate(messages):
            # Each partition has every bid of some stretches, as those of several writers are.
            producer.produce(TOPIC, message, partition=place * partitions // len(messages))
        count += len(messages)
        producer.flush()
    return count


def fetched(broker: str, ranges: list[OffsetRange]) -> None:
    """Only fetch the messages."""
    access = Access((("bootstrap.servers", broker),))
    for one in ranges:
        for _ in messages_of(access, one):
            pass


def parsed(broker: str, ranges: list[OffsetRange]) -> None:
    """Fetch and parse the messages."""
    source = open_topic({"brokers": broker, "topic": TOPIC}, ComputedColumns(SCHEMA), None).source(
        tuple(ranges)
    )
    for _ in source.read(0, source.size, SCHEMA.names):
        pass


def answered(broker: str, query: str, runner: Literal["spark", "inline"], rows: int) -> tuple[float, float]:
    """A run that reads all messages, from its start until they are committed.

    Returns:
        Its seconds, and how many messages per second it read after the first epoch, before which Spark starts
        its workers.
    """
    with connect(runner=runner) as db:
        db.execute(
            f"CREATE STREAM bid ({COLUMNS}) FROM kafka OPTIONS (brokers '{broker}', topic '{TOPIC}') "
            "TIMESTAMP BY ts DISORDER 1 DAY"
        )
        db.query(query, name="q")
        db.prepare()
        begin = time.perf_counter()
        db.start()
        while not (first := db.status.streams[0].rows):
            time.sleep(0.01)
        after = time.perf_counter()
        while db.status.streams[0].rows < rows:
            time.sleep(0.01)
        end = time.perf_counter()
        return end - begin, (rows - first) / (end - after)


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def streamed(broker: str, rows: int) -> Iterator[tuple[str, float, float]]:
    """The same by Structured Streaming: a query's name, its seconds, and its rate after the first batch."""
    command = [sys.executable, str(Path(__file__).with_name("streaming_topics.py")), broker, TOPIC]
    done = subprocess.run([*command, COLUMNS, str(rows)], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        name, taken, rate = json.loads(line)
        yield name, taken, rate


HEADS: Final = (
    "what",
    "runner",
    "partitions",
    "messages",
    "seconds",
    "messages per second",
    "after the first epoch",
)


def main() -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--runner", choices=("inline", "spark"), nargs="*", default=["inline", "spark"])
    parser.add_argument("--streaming", action="store_true", help="Structured Streaming beside it")
    parser.add_argument("--write", action="store_true", help=f"write them to {RESULTS.name} as well")
    chosen = parser.parse_args()
    rows: list[tuple[str, ...]] = []

    def note(what: str, runner: str, taken: float, after: float | None = None) -> None:
        rates = (f"{count / taken:,.0f}", "" if after is None else f"{after:,.0f}")
        cells = (what, runner, str(chosen.partitions), f"{count:,}", f"{taken:.1f}", *rates)
        rows.append(cells)
        print(" | ".join(cells), flush=True)

    with TemporaryDirectory() as folder, running_broker(Path(folder)) as running:
        broker = running.address
        count = written(broker, chosen.events, chosen.partitions)
        partitions = Brokers(Access((("bootstrap.servers", broker),)), WantedTopics((TOPIC,))).partitions()
        ranges = [OffsetRange(*one, 0, end) for one, end in partitions.ends.items()]
        print(" | ".join(HEADS))
        for step in (fetched, parsed):
            # What is compiled is loaded first.
            step(broker, [replace(ranges[0], end=1_000)])
        note("fetched", "", seconds(lambda: fetched(broker, ranges)))
        note("fetched and parsed", "", seconds(lambda: parsed(broker, ranges)))
        for runner in chosen.runner:
            for name, query in QUERIES.items():
                answered(broker, query, runner, count)
                note(name, runner, *answered(broker, query, runner, count))
        if chosen.streaming:
            for name, taken, rate in streamed(broker, count):
                note(name, "Structured Streaming", taken, rate)
    if chosen.write:
        said = f"`python benchmarks/topics.py --write`, {machine()}. Bids as JSON, from a broker beside it."
        section = Section("Bids of a topic", HEADS, tuple(rows))
        write_part("Kafka", f"{said}\n\n{section}")


if __name__ == "__main__":
    main()
