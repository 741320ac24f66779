"""Spark's settings, and its JVM, which a command may start before it loads what it needs itself.

A JVM takes as long to start as Headrace to load, a second or two, and has a core of its own for that. Nothing
here is slow to import.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headrace.runtime.spark.startup import standby
from headrace.runtime.spark.startup.archive import archive_options, found_java
from headrace.runtime.store.temporary import LONGEST_SOCKET, new_door, new_folder, private_folder

SQL_SETTINGS = {
    # Answers as data frames are one job: adaptive execution would cut it into several.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # Any other limit, and Spark adds up the size of all its vectors after every row: half of the hand-over.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # Otherwise their shuffle files stay on disk until the session ends.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}

_CORE_SETTINGS = {
    # Over TCP a task waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "headrace.runtime.spark.startup.daemon",
    # A worker that crashes then says of what.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}

_LOCAL_SETTINGS = {
    # What travels is packed already, and goes no further than this machine's disk cache.
    "spark.shuffle.compress": "false",
    # Or the ports of a driver that nobody else has business with are open to the network.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_LATER_COMPILATION = (
    # A JVM without one of the options starts all the same.
    "-XX:+IgnoreUnrecognizedVMOptions",
    # Ten times the default. What starts jobs and moves bytes is then compiled quickly instead of thoroughly,
    # which takes more time than it saves; loops over the rows of Spark's sources still are thoroughly.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

_LONGEST_PLACE = LONGEST_SOCKET - len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
"""So many the folder of Spark's may have."""


def session_settings(master: str | None) -> dict[str, str]:
    """What a session that serves epochs best is started with.

    Args:
        master: where it runs; all cores of this machine if None.
    """
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = SQL_SETTINGS | _CORE_SETTINGS
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={logging}"
    if _is_local(master):
        settings |= _LOCAL_SETTINGS
        settings["spark.driver.extraJavaOptions"] += " " + " ".join(_LATER_COMPILATION)
        if not (master or "").startswith("local-cluster"):
            # Spark makes the secret itself where all is one process; without it, any user of this machine
            # could send the driver objects to unpickle.
            settings["spark.authenticate"] = "true"
    return settings


def _is_local(master: str | None) -> bool:
    """Whether all of Spark runs on this machine."""
    return master is None or master.startswith("local")


def _with_private_folders(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The settings of a local session, with everything temporary of Spark's below a private folder.

    Args:
        settings: those without.
        folder: closed to other users. Where sockets would get too long a name in it, they and the JVM's own
            files stay where they are by default.
    """
    found = {**settings, "spark.local.dir": str(folder)}
    if len(os.fsencode(folder)) <= _LONGEST_PLACE:
        found["spark.python.unix.domain.socket.dir"] = str(folder)
        found["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={folder}"'
    return found


def settings_of(master: str | None) -> dict[str, str]:
    """All that Spark is started with.

    Args:
        master: where it runs; all cores of this machine if None.
    """
    settings = session_settings(master)
    if _is_local(master):
        settings["spark.driver.extraJavaOptions"] += "".join(map(' "{}"'.format, archive_options(_home())))
        settings = _with_private_folders(settings, private_folder())
    return {**settings, "spark.app.name": "headrace", "spark.master": master or "local[*]"}


@dataclass(frozen=True)
class StartedJvm:
    """A JVM that was started before it was needed.

    Attributes:
        master: what for.
        settings: what it was started with.
        process: its process, of a group of its own, which ends when nothing holds its standard input open.
        place: the file in which it says how it is reached.
    """

    master: str | None
    settings: dict[str, str]
    process: subprocess.Popen[bytes]
    place: Path

    def wait(self) -> tuple[int, str] | None:
        """The port and the secret by which it is reached; None where it did not start."""
        while not self.place.exists():
            if self.process.poll() is not None:
                self.end()
                return None
            time.sleep(0.01)
        # A port and a length, both of 4 bytes, and the secret; the file appears when it is whole.
        told = self.place.read_bytes()
        return int.from_bytes(told[:4], "big"), told[8:].decode()

    def end(self) -> None:
        """Kill it, with what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


_begun: list[StartedJvm] = []
"""The JVM that was started and not taken yet, if there is one."""


def begin(master: str | None) -> None:
    """Start a JVM for a session that will be needed; if none is, it ends with this process.

    Nothing is started where there is one, or no Java or Spark; that is said when Spark is needed.

    Args:
        master: where Spark runs; all cores of this machine if None.
    """
    program = _program()
    if _begun or program is None or found_java() is None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    settings = settings_of(master)
    place = new_folder("jvm") / "reached"
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    said = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    told = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(place)}
    with suppress(OSError), _standby(master, settings) as (door, held):
        process = subprocess.Popen(
            [program, *options, *said],
            stdin=subprocess.PIPE,
            env={**os.environ, **told, **door},
            process_group=0,
            pass_fds=held,
        )
        _begun.append(StartedJvm(master, settings, process, place))
        atexit.register(_end)


_standbys: list[subprocess.Popen[bytes]] = []
"""Daemons that were started here: each ends with its JVM."""


@contextmanager
def _standby(
    master: str | None, settings: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, str], Sequence[int]]]:
    """A Python daemon that loads while a JVM starts, where the JVM will start the same one.

    Yields:
        What the JVM needs in its environment, and the pipes that it must inherit.
    """
    same = not {"SPARK_HOME", "PYSPARK_PYTHON"} & {*os.environ}
    place = new_door("standby") if same and _is_local(master) else None
    if place is None:
        yield {}, ()
        return
    mark = "spark.executorEnv."
    given = {name.removeprefix(mark): value for name, value in settings.items() if name.startswith(mark)}
    # As Spark sets them for its own.
    given |= {"PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"), "OMP_NUM_THREADS": "1"}
    process, held = standby.start(place, given)
    _standbys.append(process)
    try:
        yield {standby.PLACE: str(place)}, (held,)
    finally:
        os.close(held)


def begin_for(arguments: Sequence[str]) -> None:
    """Start a JVM if a command needs one by all that its arguments say.

    Args:
        arguments: the words after `headrace`.
    """
    command, *rest = arguments or [""]
    if command not in ("run", "serve") or {"-h", "--help"} & {*rest}:
        return
    if _option("--runner", rest) in (None, "spark"):
        begin(_option("--master", rest))


def _option(name: str, words: Sequence[str]) -> str | None:
    """The value of an option that is written `--name value` or `--name=value`."""
    for place, word in enumerate(words):
        if word == name:
            return words[place + 1] if place + 1 < len(words) else ""
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return None


def taken(master: str | None) -> StartedJvm | None:
    """The JVM that was started ahead for a master, which is now the caller's; None if there is none."""
    if not _begun:
        return None
    begun = _begun.pop()
    if begun.master == master:
        return begun
    begun.end()
    return None


def _end() -> None:
    while _begun:
        _begun.pop().end()


def _home() -> str | None:
    """Spark's home folder: the one in SPARK_HOME, or PySpark's own."""
    home = os.environ.get("SPARK_HOME")
    if home is None:
        found = find_spec("pyspark")
        places = None if found is None else found.submodule_search_locations
        home = places[0] if places else None
    return home or None


def _program() -> str | None:
    """Spark's command that starts a JVM."""
    home = _home()
    program = Path(home or "") / "bin" / "spark-submit"
    return str(program) if home and program.is_file() else None
