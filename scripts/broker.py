"""A Kafka broker on the loopback address, fetched with Maven, for tests, benchmarks and the demo."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

SCRIPTS = Path(__file__).parent

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
log.cleaner.backoff.ms=100
"""


class NoBrokerError(Exception):
    """What the broker needs is not on this machine."""


class Broker:
    """A broker's process, which may be killed and started again on its data.

    Args:
        folder: where it keeps its data and its log.

    Attributes:
        address: its bootstrap server.

    Raises:
        NoBrokerError: what it needs is not on this machine.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("mvn") is None:
            raise NoBrokerError("there is no mvn on the PATH to fetch Kafka's broker with")
        home = _said(str(SCRIPTS / "find_java.sh"))
        if not home:
            raise NoBrokerError("there is no Java for Kafka's broker")
        jars = _said(str(SCRIPTS / "fetch_kafka.sh"))
        # It ends before thorough compilation pays.
        quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        self._java = [f"{home}/bin/java", "-Xmx256m", *quick, "-cp", f"{jars}/*"]
        self._folder = folder
        self._settings = folder / "broker.properties"
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = _free_ports()
        self.address = f"127.0.0.1:{port}"
        self._settings.write_text(SETTINGS.format(folder=folder, port=port, controller=controller))
        tool = [*self._java, "kafka.tools.StorageTool", "format", "-t", "A" * 21 + "Q"]
        subprocess.run([*tool, "-c", str(self._settings)], check=True, capture_output=True, timeout=60)

    def start(self) -> None:
        """Run it, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            # In a session of its own: Ctrl-C is for the process that started it.
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        AdminClient({"bootstrap.servers": self.address, "log_level": 0}).list_topics(timeout=60)

    def silence(self) -> None:
        """Let it answer nothing until `speak`; its connections stay."""
        self._signal(signal.SIGSTOP)

    def speak(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """A broker that runs within the block.

    Args:
        folder: where it keeps its data and its log.

    Raises:
        NoBrokerError: Maven or Java is missing, or its jars cannot be fetched.
    """
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise NoBrokerError(f"{command[0]} failed: {done.stderr[-300:]}")
    return done.stdout.strip()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
