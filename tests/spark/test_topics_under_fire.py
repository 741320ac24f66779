"""A topic with partitions of different speed, while the broker, the run and Spark's workers are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

import headrace as hr
from kafka_broker import mortal_broker
from waiting import wait_for

kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

PARTITIONS = 8

RUN = """
import signal, sys, headrace as hr
folder, runner, *texts = sys.argv[1:]
with hr.connect(runner=runner, storage=folder, epoch_rows=500) as db:
    for text in texts:
        db.execute(text)
    db.start()
    print("started", flush=True)
    signal.pause()
"""


class Writer:
    """Writes into all partitions, each half as fast as the one before, until it is told to end."""

    def __init__(self, address: str, topic: str) -> None:
        self.sent: Counter[int] = Counter()
        self._topic = topic
        # What a broker that was killed has acknowledged is there; what it has not is sent again, once.
        settings = {"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0}
        self._producer = kafka.Producer(settings)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        for turn in range(1_000_000):
            if self._ended.is_set():
                break
            for partition in range(PARTITIONS):
                if turn % 2**partition == 0:
                    row = {"v": self.sent[partition], "ts": turn}
                    self._send(json.dumps(row), partition)
                    self.sent[partition] += 1
            self._producer.poll(0)
            time.sleep(0.003)

    def _send(self, text: str, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, text, partition=partition)
                return
            except BufferError:
                self._producer.poll(0.1)

    def wait(self, count: int) -> None:
        """Wait until so many more messages were written, sent or not."""
        wanted = self.sent.total() + count
        wait_for(lambda: self.sent.total() >= wanted)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


class Runner:
    """The run, in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", RUN, *self._arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"started\n"

    def kill(self) -> None:
        """End it with all that it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill_workers(self) -> None:
        """End the processes of Spark's daemon, but not the daemon."""
        found = subprocess.run(["ps", "-eo", "pid,ppid,sid,args"], capture_output=True, text=True, check=True)
        rows = [line.split(None, 3) for line in found.stdout.splitlines()[1:]]
        ours = {pid: parent for pid, parent, session, told in rows if int(session) == self.process.pid
                and "headrace.runtime.spark.startup.daemon" in told}  # fmt: skip
        for pid, parent in ours.items():
            if parent in ours:
                os.kill(int(pid), signal.SIGKILL)


@pytest.mark.kills
@pytest.mark.parametrize("runner", ["inline", pytest.param("spark", marks=pytest.mark.spark)])
def test_whatever_is_killed_every_message_counts_once(
    runner: Literal["inline", "spark"], tmp_path: Path
) -> None:
    chance = random.Random(7)
    deeds = ["broker", "run", "workers"] if runner == "spark" else ["broker", "run"]
    with mortal_broker(tmp_path) as broker:
        client = admin.AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        client.create_topics([admin.NewTopic("t", PARTITIONS, 1)])["t"].result(30)
        stream = (
            "CREATE STREAM s (v BIGINT, ts BIGINT, _partition BIGINT) FROM kafka OPTIONS (brokers "
            f"'{broker.address}', topic 't') TIMESTAMP BY ts DISORDER 10 PER _partition "
            "IDLE AFTER 1 MINUTE"
        )
        query = "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT _partition AS p, v FROM s"
        writer = Writer(broker.address, "t")
        run = Runner(str(tmp_path / "store"), runner, stream, query)
        try:
            for deed in chance.sample(deeds * 2, 2 * len(deeds)):
                writer.wait(chance.randint(200, 1_500))
                match deed:
                    case "broker":
                        broker.kill()
                        writer.wait(chance.randint(200, 1_500))
                        broker.start()
                    case "run":
                        run.kill()
                        run.start()
                    case _:
                        run.kill_workers()
        finally:
            writer.end()
            run.kill()
        with hr.connect(runner="inline", storage=tmp_path / "store") as db:
            db.start()
            wait_for(lambda: db.status.streams[0].rows >= sum(writer.sent.values()), lambda: db.problems)
            db.stop()
            assert db.problems == {}
            found = db.queries["q"].changes().to_pylist()
        expected = [(partition, v) for partition, count in writer.sent.items() for v in range(count)]
        assert sorted((row["p"], row["v"]) for row in found) == sorted(expected)
