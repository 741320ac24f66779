"""The feed of a Spark stream: batches that a Structured Streaming query hands over, one at a time.

Spark's log of what has been read moves with ours. Where its sources can be read again, it is one batch ahead
of ours: Spark plans a batch while the one before is in an epoch. What Spark counts as done and we do not is
taken out of its log before the query is started again (decision 0014).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from headrace.errors import ExecutionError, StoreError
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.spark.faults import GATEWAY_ERRORS, jvm_needed
from headrace.runtime.spark.scans import FileBatches
from headrace.runtime.store.paths import refuse_links

RESTARTS = 3
"""So often a Spark stream that fails is started again before it is given up."""

_WAITING: Final = "Waiting for data to arrive"
"""What the status of a streaming query says after Spark has looked for rows and found none."""

_BETWEEN: Final = "Waiting for next trigger"
"""What it says at the end of every look, whatever was found, and as the next one begins."""

_LOOKING: Final = 0.05
"""Seconds that are waited at most for Spark to end a look for rows."""

_POLL: Final = 0.002
"""Seconds between two questions after the status meanwhile."""

_FILES: Final = ("avro", "csv", "json", "orc", "parquet", "text")
_REPEATABLE: Final = ("rate", "rate-micro-batch")
_STATELESS: Final = (
    "EventTimeWatermark",
    "Filter",
    "MapInArrow",
    "MapInPandas",
    "Project",
    "StreamingRelation",
    "StreamingRelationV2",
    "SubqueryAlias",
    "Union",
)


def may_read_ahead(frame: Any) -> bool:
    """Whether Spark may take a batch of a streaming frame for done before its epoch is committed.

    So it may where the frame keeps no state, and its sources forget nothing that Spark counts as done: files
    that are left where they are, and generated rows.
    """
    return all(_repeatable(node) for node in _nodes(frame._jdf.queryExecution().analyzed()))


def quoted(name: str) -> str:
    """A column's name as Spark takes it, whatever is in it: a dot would mean a part of a column."""
    return f"`{name.replace('`', '``')}`"


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _repeatable(node: Any) -> bool:
    match node.nodeName():
        case "StreamingRelation":
            source = node.dataSource()
            return source.className() in _FILES and "cleansource" not in source.options().toString().lower()
        case "StreamingRelationV2":
            return node.sourceName() in _REPEATABLE
        case name:
            return name in _STATELESS


@dataclass(frozen=True)
class Idle:
    """No batch is at hand."""


@dataclass(frozen=True)
class Handed:
    """A batch waits for an epoch; where our tasks may read its files, they do."""

    rows: Any
    number: int
    files: SplitSource | None = None

    def intake(self) -> Intake:
        """What the epoch takes."""
        if self.files is None:
            return Intake(self.number + 1, frame=self.rows, is_batch=True)
        return Intake(self.number + 1, self.files, 0, self.files.size, is_batch=True)


@dataclass(frozen=True)
class Taken:
    """A batch is in an epoch; where Spark may read ahead, the next one may wait after it."""

    number: int
    behind: Handed | None = None


@dataclass(frozen=True)
class Failed:
    """An epoch or the query failed; no batch is taken before the query is started again."""

    error: BaseException


@dataclass(frozen=True)
class Lost:
    """Batches are missing; the stream is given up."""

    reason: str


@dataclass(frozen=True)
class Stopped:
    """The feed has ended."""


_State = Idle | Handed | Taken | Failed | Lost | Stopped


class SparkFeed:
    """Batches of a Structured Streaming query.

    The query's `foreachBatch` blocks until the epoch that took its batch is committed; where Spark may read
    ahead, until an epoch has taken it. A batch whose number is committed already returns at once.

    Args:
        name: the stream.
        frame: a streaming data frame.
        checkpoint: the folder of Spark's own log.
        wake: called when a batch has come.
        ahead: whether Spark may count a batch as done that an epoch has taken; see `may_read_ahead`.
        files: from the columns that are read of it to what reads the batches of the query as files, or None.
        computed: the frame's columns and those that are computed of them, if there are any.
    """

    def __init__(
        self,
        name: str,
        frame: Any,
        checkpoint: Path,
        wake: Callable[[], None],
        *,
        ahead: bool,
        files: Callable[[Sequence[str]], FileBatches | None] = lambda _: None,
        computed: ComputedColumns | None = None,
    ) -> None:
        self._name = name
        self._frame = frame
        self._computed = computed
        self._checkpoint = checkpoint
        self._wake = wake
        self._ahead = ahead
        self._files = files
        self._spoilt: int | None = None
        self._changed = threading.Condition()
        self._columns: tuple[str, ...] = ()
        self._state: _State = Idle()
        self._committed = 0
        self._restarts = 0
        self._query: Any = None

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Start the streaming query; `point.position` is the number of the next batch.

        Raises:
            StoreError: batches are committed, and Spark's log does not have them: it would count anew. Or
                the log leads out of the store.
        """
        refuse_links(self._checkpoint)
        self._committed = point.position
        self._columns = tuple(columns)
        if self._committed and not _logged(self._checkpoint, self._committed):
            raise StoreError(
                f"{self._committed} batches of {self._name} are committed, and Spark's log of them is not in "
                f"{self._checkpoint}",
                hint="restore the store from a copy",
            )
        if self._ahead:
            _rewind(self._checkpoint, self._committed)
        self._state = Idle()
        needed = self._columns if self._computed is None else self._computed.needed(self._columns)
        wanted = self._frame.select(*map(quoted, needed))
        writer = wanted.writeStream.foreachBatch(partial(self._hand_over, self._files(needed)))
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        with _plainly_logged(self._frame.sparkSession.conf):
            self._query = writer.start()

    def widen(self, stream: LiveStream) -> bool:
        """Its columns are always those of its frame."""
        return True

    def read(self, columns: Sequence[str]) -> None:
        """Refuse batches that lack some of these columns; `check` then starts the query again."""
        if not set(columns) <= set(self._columns):
            self._columns, self._restarts = tuple(columns), 0
            self._let_go(Failed(ExecutionError("other columns are read")))

    def ready(self) -> bool:
        """Whether a batch waits, and none is in an epoch."""
        return isinstance(self._state, Handed)

    def come(self) -> int:
        """Nothing is known of what Spark has not handed over."""
        return 0

    def has_taken(self, come: int) -> bool:
        """A heartbeat counts with the next batch."""
        return True

    def caught_up(self) -> bool:
        """Whether no batch waits, and Spark has looked for more and found nothing.

        Where it is looking just now, which it does again and again, this waits for a short while for what it
        finds. A query that has not looked yet, or has ended, has found nothing out.
        """
        until = time.monotonic() + _LOOKING
        with suppress(*GATEWAY_ERRORS):
            while isinstance(self._state, Idle) and self._query is not None:
                status = self._query.status
                if status["isDataAvailable"]:
                    return False
                if status["message"] == _WAITING:
                    return True
                looks = status["isTriggerActive"] or status["message"] == _BETWEEN
                if not looks or time.monotonic() >= until:
                    return False
                time.sleep(_POLL)
        return False

    def waiting(self) -> None:
        """Spark does not say how many rows wait."""

    def take(self, point: StreamPoint) -> Intake | None:
        """The batch that waits."""
        with self._changed:
            match self._state:
                case Handed(number=number) as batch:
                    self._become(Taken(number))
                    return batch.intake()
                case _:
                    return None

    def settle(self, error: BaseException | None) -> None:
        """Let the streaming query go on, or fail."""
        with self._changed:
            match self._state:
                case Taken(number, behind) if error is None:
                    self._committed, self._restarts = number + 1, 0
                    self._become(behind or Idle())
                case Taken(number) if error is not None:
                    self._spoilt = number
                    self._become(Failed(error))

    def trouble(self) -> None:
        """Nothing: it is given what has come."""

    def check(self) -> str | None:
        """Start the query again if it or an epoch of its failed, up to `RESTARTS` times in a row.

        Raises:
            RunnerLostError: there is no JVM any more that it could be started in.
        """
        match self._state:
            case Stopped():
                return None
            case Lost(reason):
                return reason
        with jvm_needed(f"while {self._name} was read"):
            failed = self._reason_to_fail() or self._ended()
            if failed is None or self._restarts >= RESTARTS:
                return failed
            self._restarts += 1
            self._query.stop()
            self.start(StreamPoint(self._committed), self._columns)
        return None

    def stop(self) -> None:
        """Stop the streaming query; a batch that was not committed comes again."""
        self._let_go(Stopped())
        if self._query is not None:
            # Where there is no JVM any more, there is no query either.
            with suppress(*GATEWAY_ERRORS):
                self._query.stop()

    def _ended(self) -> str | None:
        """Why the query ended by itself; None while it runs, or before it is started."""
        if self._query is None or self._query.isActive:
            return None
        return _reason(str(self._query.exception()))

    def _become(self, state: _State) -> None:
        self._state = state
        self._changed.notify_all()

    def _let_go(self, state: Failed | Stopped) -> None:
        """Let the batch that waits fail, and any that comes before the query is started again."""
        with self._changed:
            if isinstance(state, Stopped) or isinstance(self._state, Idle | Handed | Taken):
                self._become(state)

    def _hand_over(self, files: FileBatches | None, rows: Any, number: int) -> None:
        if number < self._committed:
            return
        # A batch that has failed is left to Spark, which says what is wrong with it.
        found = None if files is None or number == self._spoilt else files.source(number)
        source = found if found is None or self._computed is None else self._computed.over(found)
        batch = Handed(rows, number, source)
        with self._changed:
            match self._state:
                case Idle() | Handed():
                    self._refuse_gap(number, self._committed)
                    self._become(batch)
                case Taken(before):
                    self._refuse_gap(number, before + 1)
                    self._become(Taken(before, batch))
        self._wake()
        with self._changed:
            self._changed.wait_for(lambda: self._reason_to_fail() is not None or self._may_return(number))
            if not self._may_return(number):
                raise ExecutionError(
                    f"batch {number} of {self._name} was not committed: {self._reason_to_fail()}"
                )

    def _reason_to_fail(self) -> str | None:
        """Why no batch is taken any more, before the query is started again."""
        match self._state:
            case Failed(error):
                return str(error)
            case Lost(reason):
                return reason
            case Stopped():
                return "stopped"
            case Idle() | Handed() | Taken():
                return None

    def _may_return(self, number: int) -> bool:
        if number < self._committed:
            return True
        return self._ahead and isinstance(self._state, Taken) and self._state.number == number

    def _refuse_gap(self, number: int, expected: int) -> None:
        """See that no batch is left out.

        Raises:
            ExecutionError: Spark has gone further than what is committed or in an epoch.
        """
        if expected < number:
            reason = (
                f"Spark goes on with batch {number} of {self._name}, and {expected} are committed: "
                "the store has lost its last commits"
            )
            self._become(Lost(reason))
            raise ExecutionError(reason)


_LOG_WRITER: Final = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
_starting = threading.Lock()


@contextmanager
def _plainly_logged(settings: Any) -> Iterator[None]:
    """Let a query that is started now write its log without starting processes.

    Spark's default way runs `readlink` for every file, three quarters of the time. It also refuses a file
    that another query makes in that very moment; but a store has one driver, so there is no other query. Each
    keeps the settings with which it was started.

    Args:
        settings: those of the session; a choice of the user's is kept, and all are as before at the end.
    """
    name, value = _LOG_WRITER
    with _starting:
        chosen = settings.get(name, None)
        if chosen is None:
            settings.set(name, value)
        try:
            yield
        finally:
            if chosen is None:
                settings.unset(name)


def _rewind(checkpoint: Path, batches: int) -> None:
    """Leave so many batches in Spark's log, as if it had been killed after them.

    The offsets of the next batch stay, so that it is the same batch when it comes again.
    """
    for folder, kept in (("offsets", batches + 1), ("commits", batches)):
        for path in (checkpoint / folder).glob("*"):
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= kept:
                path.unlink()


def _logged(checkpoint: Path, batches: int) -> bool:
    """Whether Spark's log says where batch `batches` begins."""
    return any((checkpoint / "offsets" / str(number)).is_file() for number in (batches - 1, batches))


def _reason(text: str) -> str:
    """The first line of what Spark says of a failure, with the error of a Python source if there is one."""
    first, _, rest = text.partition("\n")
    head, found, _ = first.partition("Traceback (most recent call last)")
    errors = (line for line in rest.splitlines() if line and not line[0].isspace())
    return head + next(errors, "") if found else first
