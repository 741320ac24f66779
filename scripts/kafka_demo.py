"""A Kafka broker, a generator of bids, and a query over their topic that writes to another one; shows both.

Ctrl-C stops all. `make kafka-demo` runs it. Kafka's data and the store are in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from broker import NoBrokerError, running_broker
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import headrace as hr
from headrace.workloads.nexmark import Nexmark, generate

COLUMNS: Final = ("auction", "bidder", "price", "channel", "ts")
PARTITIONS: Final = 4
SHOWN: Final = 5
"""So many messages of a topic are shown at once."""
TEXT: Final = """
CREATE STREAM bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP, _partition BIGINT
) FROM kafka OPTIONS (brokers '{brokers}', topic 'bids')
TIMESTAMP BY ts DISORDER 1 SECOND PER _partition IDLE AFTER 5 SECONDS;

CREATE QUERY dearest AS
SELECT channel, COUNT(*) AS bids, MAX(price) AS price
FROM bid [RANGE 2 SECONDS SLIDE 2 SECONDS]
GROUP BY channel;

CREATE SINK dearest_bids FOR dearest TO kafka OPTIONS (brokers '{brokers}', topic 'dearest', key 'channel');
"""


def main() -> int:
    """Run until Ctrl-C, SIGTERM or the end of `--seconds`; the exit code."""
    options = _options()
    stopped = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stopped.set())
    if options.seconds is not None:
        threading.Timer(options.seconds, stopped.set).start()
    with tempfile.TemporaryDirectory(prefix="headrace-kafka-demo-") as folder:
        try:
            with running_broker(Path(folder)) as broker:
                run(broker.address, Path(folder, "store"), options, stopped)
        except NoBrokerError as error:
            print(error, file=sys.stderr)
            return 2
    print("stopped", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="bids per second, about")
    parser.add_argument("--runner", choices=("inline", "spark"), default="inline")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    return parser.parse_args()


def run(brokers: str, storage: Path, options: argparse.Namespace, stopped: threading.Event) -> None:
    """Answer a query over one topic into another, while bids come."""
    client = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    for made in client.create_topics([NewTopic("bids", PARTITIONS, 1), NewTopic("dearest", 1, 1)]).values():
        made.result(30)
    print(f"Kafka is at {brokers}; {options.rate} bids per second go to the topic bids", flush=True)
    showing = threading.Thread(target=show, args=(brokers, stopped))
    with hr.connect(runner=options.runner, storage=storage) as db:
        db.execute(TEXT.format(brokers=brokers))
        db.start()
        showing.start()
        send(brokers, options.rate, stopped)
        showing.join()


def send(brokers: str, rate: int, stopped: threading.Event) -> None:
    """Send bids as if they happened now, some to each partition."""
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})
    spec, begin, sent = Nexmark(10**9, seed=1, rate=rate), time.time(), 0
    while not stopped.wait(0.1):
        due = int((time.time() - begin) * rate)
        rows = generate(spec, "bid", sent, due, COLUMNS).to_pylist()
        for place, row in enumerate(rows):
            row["ts"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            producer.produce("bids", json.dumps(row), partition=place % PARTITIONS)
        producer.poll(0)
        sent = due
    producer.flush(10)


def show(brokers: str, stopped: threading.Event) -> None:
    """Print some messages of both topics, every two seconds."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "demo",
            "auto.offset.reset": "latest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe(["bids", "dearest"])
    come: dict[str, list[Any]] = {"bids": [], "dearest": []}
    until = time.monotonic() + 2
    while not stopped.is_set():
        for one in consumer.consume(1_000, 0.1):
            if one.error() is None:
                come[str(one.topic())].append((one.value() or b"").decode())
        if time.monotonic() > until:
            for topic, messages in come.items():
                print(f"{topic}: {len(messages)} messages" + ("," if messages else ""), flush=True)
                for message in messages[:SHOWN]:
                    print(f"  {message}", flush=True)
                messages.clear()
            until += 2
    consumer.close()


if __name__ == "__main__":
    sys.exit(main())
